// The event hub: keys, publishing, subscriptions, mailboxes.

#include "common.hpp"

#include <cctype>
#include <cstdlib>
#include <future>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>

using paceline::Error;
using paceline::Execution;
using paceline::Hub;
using paceline::Mailbox;
using paceline::Message;
using paceline::Overflow;
using paceline::Priority;
using paceline::Publication;
using paceline::Result;
using paceline::span;
using paceline::Subscription;
using paceline::SubscriptionConfig;
using paceline::Unsubscribe;

namespace {

void balances(const Hub &hub) {
    auto audit = hub.audit().value();
    while (audit.waiting + audit.running > 0) {
        std::this_thread::yield();
        audit = hub.audit().value();
    }
    CHECK(audit.balances);
}

} // namespace

TEST_CASE("what is published reaches those who subscribe, in order") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto key = hub.key("orders.eu.created").value();
    CHECK(key.text() == "orders.eu.created");
    for (const Execution execution :
         {Execution::Serial, Execution::Inline, Execution::Concurrent, Execution::Strand}) {
        std::atomic<int> alive{0}, seen{0};
        std::atomic<bool> in_order{true};
        Subscription subscription =
            hub.subscribe(
                   "orders.*.created",
                   [&, counted = Counted(alive),
                    last = std::make_unique<std::uint64_t>(0)](const Message &message) {
                       if (execution != Execution::Concurrent) {
                           in_order = in_order && message.sequence > *last;
                           *last = message.sequence;
                       }
                       CHECK(message.key_text() == "orders.eu.created");
                       CHECK(message.text() == "forty two");
                       ++seen;
                   },
                   SubscriptionConfig().set_execution(execution, 2).set_capacity(4096))
                .value();
        CHECK(hub.subscriber_count("orders.eu.created").value() == 1);
        for (int i = 0; i < 500; ++i) {
            CHECK(key.publish("forty two").value().is_complete());
            CHECK(hub.publish("orders.eu.created", "forty two").value().enqueued == 1);
        }
        const std::string_view two[] = {"forty two", "forty two"};
        CHECK(key.publish_batch(two).value().matched == 2);
        while (seen < 1002) {
            std::this_thread::yield();
        }
        CHECK(in_order);
        CHECK(alive == 1);
        CHECK(subscription.unsubscribe(Unsubscribe::Sync).value());
        CHECK(alive == 0);
        CHECK(subscription.unsubscribe().error() == Code::Stale);
        CHECK(subscription.stats().error() == Code::Stale);
    }
    balances(hub);
}

TEST_CASE("a loop of a hundred thousand loses nothing, and what is refused is told") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> came{0};
    const auto counts = hub.subscribe("a", [&](const Message &) { ++came; }).value();
    const auto key = hub.key("a").value();
    for (int i = 0; i < 100'000; ++i) {
        if (!key.publish("x").value().is_complete()) {
            CHECK(false);
        }
    }
    while (came < 100'000) {
        std::this_thread::yield();
    }
    const auto full = hub.mailbox("a", SubscriptionConfig().set_capacity(1)).value();
    CHECK(hub.publish("a", "x").value().enqueued == 2);
    paceline::Receipt told;
    const auto refused = hub.publish("a", "x", &told);
    CHECK(refused.error() == Code::Full);
    CHECK(std::string(refused.error().message()).find("(a) is full (1 messages)") != std::string::npos);
    CHECK(told.matched == 2);
    CHECK(told.enqueued == 1);
    CHECK(told.rejected == 1);
    const auto waits =
        hub.mailbox("b", SubscriptionConfig().set_capacity(1).set_overflow(Overflow::Block)).value();
    const auto other = hub.key("b").value();
    CHECK(other.await_room(paceline::forever).has_value());
    CHECK(other.publish("x").value().enqueued == 1);
    CHECK(other.await_room(1ms).error() == Code::TimedOut);
    CHECK(other.publish("x", Publication().set_no_wait(), &told).error() == Code::Full);
    CHECK(told.rejected == 1);
    CHECK(hub.publisher("p", paceline::PublisherConfig().set_no_wait())
              .value()
              .publish(other, "x")
              .error() == Code::Full);
}

TEST_CASE("headers, priorities and failures") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto key = hub.key("a.b").value();
    Signal seen;
    const Subscription watching =
        hub.subscribe("a.>",
                      [&](const Message &message) {
                          CHECK(message.header("trace") == std::string_view("17"));
                          CHECK(message.header("empty") == std::string_view());
                          CHECK_FALSE(message.header("none").has_value());
                          CHECK(message.priority == static_cast<int>(Priority::High));
                          seen.set();
                      })
            .value();
    const Subscription throwing =
        hub.subscribe("a.*", [](const Message &) { throw std::runtime_error("away"); }).value();
    const Subscription refusing =
        hub.subscribe("a.b",
                      [](const Message &) -> Result<void> { return Error(Code::Failed, "not today"); })
            .value();
    const auto with =
        Publication().add_header("trace", "17").add_header("empty", "").set_priority(Priority::High);
    CHECK(key.publish("x", with).value().matched == 3);
    CHECK(seen.wait());
    const auto failures = [](const Subscription &of) {
        const auto stats = of.stats().value();
        return stats.failed + stats.dead_lettered;
    };
    while (failures(throwing) + failures(refusing) < 2) {
        std::this_thread::yield();
    }
    CHECK(key.publish("x", Publication().add_header("a b", "")).error() == Code::Invalid);
    const auto patterns = hub.patterns().value();
    REQUIRE(patterns.size() == 3);
    CHECK(patterns[0].first == "a.*");
    CHECK(patterns[2].second == 1);
    balances(hub);
}

TEST_CASE("a mailbox is emptied by the host") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    Mailbox mailbox =
        hub.mailbox("a.*", SubscriptionConfig().set_capacity(3).set_overflow(Overflow::DropOldest))
            .value();
    Inbox inbox(pool, mailbox);
    CHECK(inbox.take(0ns).error() == Code::TimedOut);
    pollfd waits{inbox.queue().fd().value(), POLLIN, 0};
    CHECK(poll(&waits, 1, 0) == 0);
    for (const char *text : {"1", "2", "3", "4", "5"}) {
        CHECK(hub.publish("a.b", text).value().enqueued == 1);
    }
    CHECK(poll(&waits, 1, -1) == 1);
    const auto taken = inbox.take(1h).value();
    REQUIRE(taken.size() == 3);
    CHECK(taken[0].text() == "3");
    CHECK(taken[0].lost_before == 2);
    CHECK(taken[2].text() == "5");
    CHECK(mailbox.stats().value().delivered == 3);
    CHECK(mailbox.stats().value().dropped == 2);
    CHECK(hub.publish("a.b", "6").value().enqueued == 1);
    CHECK_FALSE(mailbox.unsubscribe(Unsubscribe::Drain).value());
    CHECK(hub.publish("a.b", "7").value().matched == 0);
    CHECK(inbox.take(1h).value().size() == 1);
    CHECK(inbox.take(1h).error() == Code::Stale);
    balances(hub);
}

TEST_CASE("what goes unsubscribes, and what was refused comes back") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    {
        const Hub hub = Hub::create(pool).value();
        {
            const auto kept = hub.subscribe("a", [c = Counted(alive)](const Message &) {}).value();
            CHECK(hub.publish("a", "").value().matched == 1);
        }
        CHECK(hub.publish("a", "").value().matched == 0);
        auto handler = [c = Counted(alive)](const Message &) {};
        CHECK(hub.subscribe("a..b", std::move(handler)).error() == Code::Invalid);
        CHECK(hub.subscribe("orders*", std::move(handler)).error() == Code::Invalid);
        CHECK(hub.publish("orders*", "").error() == Code::Invalid);
        CHECK(hub.subscribe("a", std::move(handler), SubscriptionConfig().set_capacity(0)).error() ==
              Code::Invalid);
        hub.subscribe("a", std::move(handler)).value().detach();
        CHECK(hub.publish("a", "").value().matched == 1);
        CHECK(Hub::create(pool, 0).error() == Code::Invalid);
    }
    while (alive > 0) {
        std::this_thread::yield();
    }
}

TEST_CASE("publishers have a quota and keys that they may use") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto allowed = hub.key("a.x").value(), other = hub.key("b").value();
    const auto mailbox = hub.mailbox(">").value();
    const auto publisher =
        hub.publisher("clock", paceline::PublisherConfig().add_allowed("a.*").set_quota(
                                   paceline::Rate{1, std::chrono::hours(24 * 365), 3}))
            .value();
    CHECK(publisher.publish(other, "").error() == Code::Invalid);
    CHECK(publisher.publish(allowed, "1", Publication().add_header("a", "b")).value().enqueued == 1);
    const std::string_view two[] = {"2", "3"};
    CHECK(publisher.publish_batch(allowed, two).value().enqueued == 2);
    CHECK(publisher.publish(allowed, "4").error() == Code::Full);
    const auto stats = publisher.stats().value();
    CHECK(stats.published == 3);
    CHECK(stats.enqueued == 3);
    CHECK(stats.refused == 2);
    Inbox inbox(pool, mailbox);
    const auto taken = inbox.take(1h).value();
    REQUIRE(taken.size() == 3);
    CHECK(taken[0].header("a") == std::string_view("b"));
    const auto wrong = paceline::PublisherConfig().add_allowed("a..b");
    CHECK(hub.publisher("clock", wrong).error() == Code::Invalid);
}

TEST_CASE("those who fail are restarted, suspended, resumed, and get their letters") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> alive{0}, runs{0};
    std::atomic<std::uint64_t> restarts{0};
    std::atomic<bool> failing{true}, told{false};
    const auto config =
        SubscriptionConfig()
            .set_on_failure(paceline::OnExhausted::DeadLetter, paceline::Retry::fixed(1, 1us))
            .set_intensity(paceline::Intensity{1, 1h}.set_suspend_for_good());
    Subscription subscription = hub.subscribe(
                                       "a.*",
                                       [&, counted = Counted(alive)](const Message &message) {
                                           ++runs;
                                           if (failing && message.attempt == 2) {
                                               throw 2;
                                           }
                                           if (failing) {
                                               throw std::runtime_error("not yet");
                                           }
                                       },
                                       [&](std::string_view failure, std::uint64_t count) {
                                           told =
                                               told || failure == "what was thrown is no std::exception";
                                           restarts = count;
                                       },
                                       config)
                                    .value();
    const auto until = [&](auto &&holds) {
        while (!holds(subscription.stats().value())) {
            std::this_thread::yield();
        }
    };
    CHECK_FALSE(subscription.resume().value());
    CHECK(hub.publish("a.b", "one").value().enqueued == 1);
    until([](const auto &stats) { return stats.dead_lettered == 1; });
    CHECK(runs == 2);
    CHECK(told);
    CHECK(hub.publish("a.b", "two").value().enqueued == 1);
    until([](const auto &stats) { return stats.suspended; });
    CHECK(restarts == 1);
    const auto letters = hub.dead_letters().value();
    REQUIRE(letters.size() == 2);
    CHECK(letters[0].key == "a.b");
    CHECK(letters[0].payload == "one");
    CHECK(letters[0].failure == "what was thrown is no std::exception");
    CHECK(letters[0].pattern == "a.*");
    CHECK(letters[0].reason == PACE_DEAD_PANICKED);
    CHECK(letters[0].attempts == 2);
    CHECK(letters[0].subscription == subscription.stats().value().number);
    paceline::DeadFilter first;
    first.last = letters[0].number;
    first.pattern = "a.>";
    CHECK(hub.remove_dead_letters(first).value().size() == 1);
    CHECK(hub.redeliver().value().refused == 1);
    failing = false;
    CHECK(subscription.resume().value());
    CHECK(hub.redeliver().value().enqueued == 1);
    until([](const auto &stats) { return stats.delivered == 1; });
    CHECK(restarts == 2);
    CHECK(hub.dead_letter_stats().value().held == 0);
    balances(hub);
    CHECK(subscription.unsubscribe(Unsubscribe::Sync).value());
    CHECK(alive == 0);
    first.pattern = "a b";
    CHECK(hub.dead_letters(first).error() == Code::Invalid);
    auto handler = [counted = Counted(alive)](const Message &) {};
    CHECK(hub.subscribe("a..b", std::move(handler), [](std::string_view, std::uint64_t) {}).error() ==
          Code::Invalid);
    CHECK(alive == 1);
}

TEST_CASE("bad messages do not suspend a handler, and one that crashes gets messages again by itself") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<bool> sound{false};
    const auto soon = paceline::Intensity{0, 1h}.set_suspension(20ms, 40ms);
    const auto subscription = hub.subscribe(
                                     "a",
                                     [&](const Message &message) {
                                         if (message.text() == "bad") {
                                             throw std::runtime_error("bad");
                                         }
                                         if (!sound) {
                                             throw 1;
                                         }
                                     },
                                     SubscriptionConfig().set_intensity(soon))
                                  .value();
    const auto stats = [&] { return subscription.stats().value(); };
    for (int i = 0; i < 50; ++i) {
        CHECK(hub.publish("a", "bad").value().enqueued == 1);
    }
    while (stats().dead_lettered < 50) {
        std::this_thread::yield();
    }
    CHECK_FALSE(stats().suspended);
    CHECK(stats().restarts == 0);
    CHECK(hub.publish("a", "good").value().enqueued == 1);
    while (stats().dead_lettered < 51) {
        std::this_thread::yield();
    }
    sound = true;
    while (stats().delivered == 0) {
        const auto receipt = hub.publish("a", "good").value();
        CHECK(receipt.enqueued + receipt.dead_lettered == 1);
    }
    CHECK_FALSE(stats().suspended);
}

TEST_CASE("a supervisor suspends all of its subscriptions") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto none = paceline::Intensity{0, 1h}.set_suspend_for_good();
    const auto supervisor =
        paceline::Supervisor::create(paceline::RestartStrategy::OneForAll, none).value();
    const auto config = SubscriptionConfig().set_supervisor(supervisor);
    const auto failing = hub.subscribe(
                                "a", [](const Message &) { throw 1; }, config)
                             .value();
    const auto fine = hub.subscribe(
                             "b", [](const Message &) {}, config)
                          .value();
    CHECK_FALSE(supervisor.is_suspended());
    CHECK(hub.publish("a", "").value().enqueued == 1);
    while (!fine.stats().value().suspended) {
        std::this_thread::yield();
    }
    CHECK(supervisor.is_suspended());
    CHECK(fine.resume().value());
    CHECK_FALSE(supervisor.is_suspended());
    CHECK(paceline::Supervisor::create(paceline::RestartStrategy::OneForOne, {1, 0ns}).error() ==
          Code::Invalid);
    CHECK(hub.subscribe(
                 "c", [](const Message &) {},
                 SubscriptionConfig().set_intensity(paceline::Intensity::unlimited()))
              .has_value());
}

TEST_CASE("filters and groups") {
    using paceline::Balance;
    using paceline::MessageFilter;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> alive{0};
    {
        const auto loud = MessageFilter::bytes(0, "!").value();
        const auto alarm = MessageFilter::header("kind", "alarm").value();
        const auto past =
            MessageFilter::published({}, std::chrono::system_clock::time_point(1s)).value();
        const auto few = MessageFilter::at_most(1, 24h, 2).value();
        const auto small = MessageFilter::test([counted = Counted(alive)](const Message &message) {
                               if (message.size > 5) {
                                   throw std::runtime_error("too large");
                               }
                               return message.size < 3;
                           }).value();
        const auto filtered = [&](MessageFilter filter) {
            return hub.mailbox("a", SubscriptionConfig().set_filter(std::move(filter))).value();
        };
        const Mailbox boxes[] = {filtered(loud || alarm), filtered(small && !loud), filtered(!past),
                                 filtered(past), filtered(few)};
        const auto key = hub.key("a").value();
        CHECK(key.publish("!").value().matched == 3);
        CHECK(key.publish("x", Publication().add_header("kind", "alarm")).value().matched == 4);
        CHECK(key.publish("larger").value().matched == 1);
        const std::size_t expected[] = {2, 1, 3, 0, 2};
        for (std::size_t i = 0; i < 5; ++i) {
            const auto stats = boxes[i].stats().value();
            CHECK(stats.waiting == expected[i]);
            CHECK(stats.filtered == 3 - expected[i]);
            CHECK(stats.filter_failures == (i == 1 ? 1 : 0));
        }
        CHECK(MessageFilter::at_most(0).error() == Code::Invalid);
    }
    // Who publishes next lets go of those that have ended.
    CHECK(hub.publish("a", "").value().matched == 0);
    while (alive > 0) {
        std::this_thread::yield();
    }
    const Balance balances_of[] = {Balance::round_robin(), Balance::least_loaded(), Balance::random(7),
                                   Balance::by_key(), Balance::by_header("h")};
    for (const Balance &balance : balances_of) {
        std::atomic<int> sums[2]{};
        // Those of the last round may be on their way out still.
        const auto config =
            SubscriptionConfig().set_group("g" + std::to_string(&balance - &balances_of[0]), balance);
        const auto member = [&](int which) {
            return hub
                .subscribe(
                    "g.*", [&, which](const Message &) { ++sums[which]; }, config)
                .value();
        };
        const auto one = member(0), two = member(1);
        for (int i = 0; i < 100; ++i) {
            CHECK(hub.publish("g.x", "").value().matched == 1);
        }
        balances(hub);
        CHECK(sums[0] + sums[1] == 100);
    }
    CHECK(
        hub.subscribe(
               "g", [](const Message &) {},
               SubscriptionConfig().set_group("g", Balance::by_key()).set_overflow(Overflow::DropOldest))
            .error() == Code::Invalid);
}

TEST_CASE("requests and replies, and letters of mailboxes") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto key = hub.key("sum").value();
    CHECK(key.request("1", 1h).error() == Code::NoResponders);
    const auto responder =
        hub.subscribe(
               "sum",
               [&](const Message &message) {
                   if (!message.text().empty()) {
                       CHECK(hub.reply(message, std::string(message.text()) + "!").value().matched == 1);
                   }
               })
            .value();
    const auto reply = key.request("2", 1h, Publication().add_header("trace", "17")).value();
    CHECK(reply.text() == "2!");
    CHECK(key.request("", 1ms).error() == Code::TimedOut);
    CHECK(hub.reply(paceline::OwnedMessage(), "").error() == Code::Invalid);

    const auto mailbox = hub.mailbox("a").value();
    CHECK(hub.publish("a", "x").value().enqueued == 1);
    Inbox inbox(pool, mailbox);
    CHECK(inbox.take(1h).value().size() == 1);
    inbox.bury("no", 2);
    CHECK(hub.dead_letters().value().at(0).failure == "no");
    CHECK(hub.redeliver().value().enqueued == 1);
    CHECK(inbox.take(1h).value().size() == 1);
    balances(hub);
}

TEST_CASE("requests that nobody waits for") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto key = hub.key("sum").value();
    std::atomic<int> alive{0};
    auto unused = [counted = Counted(alive)](Result<paceline::OwnedMessage>) { CHECK(false); };
    CHECK(key.request_async("1", 1h, std::move(unused)).error() == Code::NoResponders);
    CHECK(alive == 1);
    const auto responder =
        hub.subscribe("sum",
                      [&](const Message &message) {
                          if (!message.text().empty()) {
                              CHECK(hub.reply(message, std::string(message.text()) + "!").has_value());
                          }
                      })
            .value();
    std::promise<std::string> promise;
    auto future = promise.get_future();
    CHECK(key.request_async(
                 "2", 1h,
                 [promise = std::move(promise)](Result<paceline::OwnedMessage> reply) mutable {
                     promise.set_value(std::string(reply.value().text()));
                 },
                 Publication().add_header("trace", "17"))
              .has_value());
    CHECK(future.get() == "2!");
    Signal late;
    CHECK(key.request_async("", 1ms,
                            [&](Result<paceline::OwnedMessage> reply) {
                                CHECK(reply.error() == Code::TimedOut);
                                late.set();
                            })
              .has_value());
    CHECK(late.wait());
    // What was refused came back.
    const auto asked = key.request_async("", paceline::forever, std::move(unused)).value();
    CHECK(alive == 1);
    CHECK(hub.give_up(asked).value());
    CHECK(alive == 0);
    CHECK_FALSE(hub.give_up(asked).value());
    balances(hub);
}

TEST_CASE("messages that everybody takes, or nobody") {
    using paceline::PublishItem;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto debits = hub.mailbox("debit").value();
    const auto credits = hub.mailbox("credit", SubscriptionConfig().set_capacity(1)).value();
    const auto debit = hub.key("debit").value(), credit = hub.key("credit").value();
    const PublishItem both[] = {{debit, "17", Publication().add_header("trace", "17")},
                                {credit, "17", {}}};
    CHECK(hub.publish_all(both).value().enqueued == 2);
    CHECK(hub.publish_all(both).error() == Code::Full);
    Inbox taken(pool, debits);
    const auto messages = taken.take(0ns).value();
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].header("trace") == std::string_view("17"));
    CHECK(Inbox(pool, credits).take(0ns).value().size() == 1);
    balances(hub);
}

TEST_CASE("latencies are measured where that is asked for") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto how = SubscriptionConfig().set_measured(true);
    const auto mailbox = hub.mailbox("a", how).value();
    const auto handler = hub.subscribe(
                                "a", [](const Message &) {}, how)
                             .value();
    const auto plain = hub.mailbox("a").value();
    CHECK(hub.publish("a", "x").value().enqueued == 3);
    CHECK(Inbox(pool, mailbox).take(1h).value().size() == 1);
    CHECK(Inbox(pool, plain).take(1h).value().size() == 1);
    while (handler.stats().value().delivered == 0) {
        std::this_thread::yield();
    }
    for (const auto &stats : {mailbox.stats().value(), handler.stats().value()}) {
        CHECK(stats.latencies == 1);
        CHECK(stats.latency_p50_ns <= stats.latency_p999_ns);
        CHECK(stats.latency_p999_ns <= stats.latency_max_ns);
    }
    CHECK(plain.stats().value().latencies == 0);
}

TEST_CASE("webhooks and services, if the library has them") {
    using paceline::Service;
    using paceline::Webhook;
    using paceline::WebhookConfig;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    // Nobody listens there.
    const auto config = WebhookConfig().add_header("Token", "17").set_retry(paceline::Retry::none());
    const auto webhook = Webhook::create("http://127.0.0.1:1/hook", config);
    if (!webhook) {
        CHECK(webhook.error() == Code::Unsupported);
    } else {
        CHECK(webhook->post("{}").has_value());
        CHECK(webhook->flush(paceline::forever).has_value());
        CHECK(webhook->stats().value().failed == 1);
        CHECK(webhook->stats().value().retried == 0);
        CHECK_FALSE(webhook->last_error().value().empty());
        CHECK(webhook->forward(hub, "a..b").error() == Code::Invalid);
        CHECK(webhook->forward(hub, "$SYS.>").value().stats().has_value());
        CHECK(Webhook::create("localhost").error() == Code::Invalid);
    }
    std::atomic<int> alive{0};
    {
        // No systemd has started this.
        const auto service = Service::start(pool, [counted = Counted(alive)] { return true; });
        CHECK((service ? Code::Ok : service.error().code()) == (service ? Code::Ok : Code::Unsupported));
        if (service) {
            CHECK(service->status("two\nlines").error() == Code::Invalid);
        }
        CHECK(Service::start(pool).has_value() == service.has_value());
    }
    CHECK(alive == 0);
}

namespace {

/// Answers one request for each of its statuses, and 200 to others; not before it may.
class Answering {
public:
    explicit Answering(std::vector<int> answers)
        : answers_(std::move(answers)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto *raw = reinterpret_cast<sockaddr *>(&address);
        REQUIRE(::bind(listener_, raw, size) == 0);
        REQUIRE(::listen(listener_, 16) == 0);
        REQUIRE(::getsockname(listener_, raw, &size) == 0);
        url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/hook";
        thread_ = std::thread([this] { serve(); });
    }
    Answering(const Answering &) = delete;
    Answering &operator=(const Answering &) = delete;
    ~Answering() {
        held = false;
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }

    /// Heads and bodies, in lower case.
    std::vector<std::string> requests() {
        std::lock_guard<std::mutex> lock(mutex_);
        return requests_;
    }

    std::string url;
    std::atomic<bool> held{false};

private:
    void serve() {
        for (int fd = 0; (fd = ::accept(listener_, nullptr, nullptr)) >= 0; ::close(fd)) {
            const std::string request = read(fd);
            int status = 200;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                if (requests_.size() < answers_.size()) {
                    status = answers_[requests_.size()];
                }
                requests_.push_back(request);
            }
            while (held) {
                std::this_thread::yield();
            }
            const std::string answer = "HTTP/1.1 " + std::to_string(status) +
                                       " So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
    }

    static std::string read(int fd) {
        std::string text;
        std::size_t whole = std::string::npos;
        for (char byte = 0; text.size() < whole && ::recv(fd, &byte, 1, 0) == 1;) {
            text += static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
            const std::string name = "content-length: ";
            if (whole == std::string::npos && text.find("\r\n\r\n") != std::string::npos) {
                whole = text.size() + std::stoul(text.substr(text.find(name) + name.size()));
            }
        }
        return text;
    }

    std::vector<int> answers_;
    int listener_;
    std::mutex mutex_;
    std::vector<std::string> requests_;
    std::thread thread_;
};

bool ends_with(const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

TEST_CASE("a webhook tries again, has headers and room, and forwards what a hub says") {
    using paceline::Webhook;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    Answering server({503, 200, 400});
    auto config = paceline::WebhookConfig().add_header("Token", "17").set_capacity(1);
    config.set_retry(paceline::Retry::fixed(2, 1ms));
    const auto made = Webhook::create(server.url, config);
    if (!made) {
        CHECK(made.error() == Code::Unsupported);
        return;
    }
    const Webhook &webhook = *made;
    CHECK(webhook.last_error().value().empty());
    CHECK(webhook.post("one").has_value());
    CHECK(webhook.flush(paceline::forever).has_value());
    CHECK(webhook.post("two").has_value());
    CHECK(webhook.flush(paceline::forever).has_value());
    auto stats = webhook.stats().value();
    CHECK(stats.posted == 2);
    CHECK(stats.delivered == 1);
    CHECK(stats.retried == 1);
    CHECK(stats.failed == 1);
    CHECK(webhook.last_error().value().find("400") != std::string::npos);
    const auto forwarded = webhook.forward(hub, "a.*").value();
    CHECK(hub.publish("b", "not for it").value().matched == 0);
    CHECK(hub.publish("a.b", "three").value().matched == 1);
    while (server.requests().size() < 4) {
        std::this_thread::yield();
    }
    CHECK(webhook.flush(paceline::forever).has_value());
    const auto requests = server.requests();
    const char *bodies[] = {"one", "one", "two", "three"};
    REQUIRE(requests.size() == 4);
    for (std::size_t at = 0; at < requests.size(); ++at) {
        CHECK(requests[at].find("\r\ntoken: 17\r\n") != std::string::npos);
        CHECK(ends_with(requests[at], std::string("\r\n\r\n") + bodies[at]));
    }
    server.held = true;
    CHECK(webhook.post("under way").has_value());
    while (server.requests().size() < 5) {
        std::this_thread::yield();
    }
    CHECK(webhook.post("waits").has_value());
    CHECK(webhook.post("finds no room").error() == Code::Full);
    CHECK(webhook.flush(1ms).error() == Code::TimedOut);
    server.held = false;
    CHECK(webhook.flush(paceline::forever).has_value());
    stats = webhook.stats().value();
    CHECK(stats.delivered == 4);
    CHECK(stats.dropped == 1);
    CHECK(ends_with(server.requests().back(), "waits"));
}

TEST_CASE("a service tells its manager how it is") {
    using paceline::Service;
    const Pool pool = make_pool();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "/tmp/paceline-notify-" + std::to_string(::getpid());
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int manager = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(manager, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    const timeval patience{60, 0};
    REQUIRE(::setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "4000", 1);
    std::atomic<int> asked{0};
    auto started = Service::start(pool, [&] {
        if (++asked == 3) {
            throw std::runtime_error("not well");
        }
        return asked != 6;
    });
    const auto hear = [&] {
        char line[256];
        const ssize_t size = ::recv(manager, line, sizeof line, 0);
        REQUIRE(size > 0);
        return std::string(line, static_cast<std::size_t>(size));
    };
    if (started) {
        {
            const Service service = std::move(started).value();
            CHECK(service.status("serving").has_value());
            bool fed = false, told = false;
            int ill = 0;
            while (!(fed && told && ill == 2)) {
                const std::string line = hear();
                fed = fed || line.find("WATCHDOG=1") == 0;
                told = told || line.find("STATUS=serving") == 0;
                ill += line.find("STATUS=not well") == 0;
            }
        }
        while (hear().find("STOPPING=1") != 0) {
        }
        CHECK(asked >= 6);
    } else {
        CHECK(started.error() == Code::Unsupported);
    }
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::close(manager);
    ::unlink(path.c_str());
}

TEST_CASE("what is kept is asked for, and replayed into what is published") {
    using paceline::ReplayFrom;
    const Pool pool = make_pool();
    const auto history =
        paceline::HistoryConfig().set_pattern("a.*").set_keep_count(50).set_keep_bytes(1 << 20);
    const Hub hub =
        Hub::create(pool, paceline::HubConfig().add_history(history).set_dead_letters(7)).value();
    const auto key = hub.key("a.b").value();
    for (int i = 1; i <= 100; ++i) {
        CHECK(key.publish(std::to_string(i), Publication().add_header("n", "v")).value().sequence ==
              static_cast<std::uint64_t>(i));
    }
    CHECK(hub.flush().has_value());
    const auto stats = hub.history_stats().value();
    REQUIRE(stats.size() == 1);
    CHECK(stats[0].pattern == "a.*");
    CHECK(stats[0].recorded == 100);
    CHECK(stats[0].in_memory == 50);
    CHECK(stats[0].last_error.empty());
    CHECK(hub.query().error() == Code::Invalid);
    paceline::Query query;
    query.pattern = "a.b";
    query.first = 90;
    query.limit = 3;
    const auto records = hub.query(query).value();
    REQUIRE(records.size() == 3);
    CHECK(records[0].payload == "90");
    CHECK(records[0].key == "a.b");
    CHECK(records[2].sequence == 92);
    CHECK(records[2].headers.at(0).second == "v");

    std::atomic<int> alive{0}, sum{0};
    {
        const auto replay = hub.replay("a.b", ReplayFrom::sequence(96),
                                       [&, counted = Counted(alive)](const Message &message) {
                                           sum += std::stoi(std::string(message.text()));
                                       })
                                .value();
        const auto mailbox = hub.replay_mailbox("a.*", ReplayFrom::last(2)).value();
        Inbox inbox(pool, mailbox);
        CHECK(key.publish("101").value().matched == 0);
        while (replay.stats().value().delivered < 6) {
            std::this_thread::yield();
        }
        CHECK(sum == 96 + 97 + 98 + 99 + 100 + 101);
        CHECK(replay.stats().value().last == 101);
        std::string texts;
        while (texts.size() < 8) {
            for (const auto &message : inbox.take(1h).value()) {
                texts += message.text();
            }
        }
        CHECK(texts == "99100101");
        CHECK(inbox.take(0ns).error() == Code::TimedOut);
        CHECK(replay.end(Unsubscribe::Sync).value());
        CHECK(alive == 0);
    }
    for (const ReplayFrom from : {ReplayFrom::beginning(), ReplayFrom::now(),
                                  ReplayFrom::time(std::chrono::system_clock::now())}) {
        CHECK(hub.replay_mailbox("a.*", from).has_value());
    }
    CHECK(hub.replay_mailbox(">", ReplayFrom::now()).error() == Code::Invalid);
    const auto archive = Hub::create(
        pool, paceline::HubConfig().add_history(paceline::HistoryConfig().set_archive("/no/where")));
    CHECK((archive.error() == Code::Unsupported || archive.error() == Code::Os));
}

TEST_CASE("a history is exported, imported into an archive, and read without a hub") {
    using paceline::Archive;
    const std::string base = "/tmp/paceline-archive-" + std::to_string(::getpid());
    const std::string lines = base + ".lines", path = base + ".sqlite";
    {
        const Pool pool = make_pool();
        const Hub hub =
            Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig())).value();
        for (int i = 1; i <= 10; ++i) {
            CHECK(hub.publish(i % 2 == 0 ? "even" : "odd", std::to_string(i)).has_value());
        }
        CHECK(hub.export_lines(lines.c_str()).value() == 10);
        CHECK(hub.export_lines("/nowhere/at/all").error() == Code::Os);
        CHECK(hub.close_histories().has_value());
        CHECK(hub.publish("even", "12").has_value()); // It has no files.
    }
    paceline::Query query;
    query.pattern = "even";
    query.first = 4;
    const auto records = paceline::read_lines(lines.c_str(), query).value();
    REQUIRE(records.size() == 4);
    CHECK(records[0].payload == "4");
    CHECK(records[3].sequence == 10);
    CHECK(paceline::read_lines("/nowhere/at/all").error() == Code::Os);

    const auto config = paceline::HistoryConfig().set_archive(path);
    const auto imported = Archive::import_lines(config, lines.c_str(), query);
    if (imported) {
        CHECK(imported.value().messages == 4);
        CHECK(imported.value().torn == 0);
        CHECK(Archive::import_lines(config, lines.c_str()).error() == Code::Invalid);
        CHECK(Archive::open("/nowhere/at/all").error() == Code::Os);
        auto opened = Archive::open(path.c_str()).value();
        const Archive archive = std::move(opened);
        CHECK(opened.query().error() == Code::Invalid);
        query.limit = 1;
        query.newest = true;
        CHECK(archive.query(query).value().at(0).payload == "10");
        CHECK(archive.query().value().size() == 4);
        CHECK(archive.export_lines(lines.c_str(), query).value() == 1);
        CHECK(paceline::read_lines(lines.c_str()).value().at(0).payload == "4");
        CHECK(archive.native() != nullptr);
    } else {
        CHECK(imported.error() == Code::Unsupported);
        CHECK(Archive::open(path.c_str()).error() == Code::Unsupported);
    }
    for (const std::string &name : {lines, path, path + "-wal", path + "-shm"}) {
        ::unlink(name.c_str());
    }
}

TEST_CASE("a flush does not say that it has written what was given up") {
    const std::string path = "/tmp/paceline-given-up-" + std::to_string(::getpid());
    const Pool pool = make_pool(1);
    auto history = paceline::HistoryConfig().set_keep_count(0).set_lines(path);
    CHECK(history.disk_wait == std::chrono::seconds(10));
    history.disk_wait.reset();
    const Hub hub = Hub::create(pool, paceline::HubConfig().add_history(history)).value();
    // The only thread of the pool is held, so nothing is written before the flush.
    const Hold hold(pool);
    const auto key = hub.key("a").value();
    for (int i = 0; i < 65536 + 7; ++i) (void)key.publish("").value();
    std::uint64_t given_up = 0;
    CHECK(hub.flush(&given_up).error() == Code::GivenUp);
    CHECK(given_up == 7);
    CHECK(hub.flush().error() == Code::GivenUp);
    ::unlink(path.c_str());
}

TEST_CASE("messages of a replay are waited for, and one that fails is a dead letter") {
    using paceline::ReplayFrom;
    const Pool pool = make_pool();
    const Hub hub =
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig())).value();
    (void)hub.publish("a", "1").value();
    const auto replay = hub.replay_mailbox("a", ReplayFrom::beginning()).value();
    Inbox inbox(pool, replay);
    pollfd waits{inbox.queue().fd().value(), POLLIN, 0};
    CHECK(poll(&waits, 1, -1) == 1);
    auto some = inbox.take(0ns).value();
    REQUIRE(some.size() == 1);
    CHECK(inbox.take(0ns).error() == Code::TimedOut);
    CHECK(poll(&waits, 1, 0) == 0);
    (void)hub.publish("a", "2").value();
    CHECK(poll(&waits, 1, -1) == 1);
    some = inbox.take(0ns).value();
    REQUIRE(some.size() == 1);
    inbox.bury("no", 3);
    CHECK(replay.stats().value().dead_lettered == 1);
    CHECK(replay.stats().value().delivered == 1);
    const auto letters = hub.dead_letters().value();
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].attempts == 3);
    CHECK(hub.redeliver().value().enqueued == 1);
    CHECK(poll(&waits, 1, -1) == 1);
    some = inbox.take(1h).value();
    CHECK(some[0].sequence == 2);
    CHECK(replay.stats().value().redelivered == 1);
    CHECK(replay.unsubscribe().value());
    CHECK(poll(&waits, 1, -1) == 1);
    CHECK(inbox.take(1h).error() == Code::Stale);
}

TEST_CASE("a host acknowledges messages of a replay, and suspends it") {
    const Pool pool = make_pool();
    const Hub hub =
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig())).value();
    (void)hub.publish("a", "1").value();
    const auto config = paceline::ReplayConfig().set_acknowledged(true);
    const auto replay = hub.replay_mailbox("a", paceline::ReplayFrom::beginning(), config).value();
    Inbox inbox(pool, replay);
    CHECK(inbox.take(1h).value().size() == 1);
    CHECK(replay.stats().value().running == 1);
    CHECK(replay.acknowledge(1));
    CHECK(replay.acknowledge(1).error() == Code::Invalid);
    CHECK(replay.crashed("broken").value());
    CHECK(replay.suspend().value());
    (void)hub.publish("a", "2").value();
    CHECK(inbox.take(0ns).error() == Code::TimedOut);
    CHECK(replay.stats().value().suspended);
    CHECK(replay.resume().value());
    CHECK(replay.catch_up().value());
    CHECK(!replay.catch_up().value());
    CHECK(inbox.take(1h).value().at(0).text() == "2");
    CHECK(!replay.unsubscribe().value());
    CHECK(replay.acknowledge(0, 1));
    CHECK(replay.stats().value().failed == 1);
    CHECK(replay.stats().value().restarts == 2);
    const auto errors = hub.errors().value();
    REQUIRE(errors.size() == 2);
    CHECK(errors[0].message == "restart 1: broken");
    CHECK(errors[1].event == "subscription.suspended");
}

TEST_CASE("a replay's handler is supervised") {
    using paceline::OnExhausted;
    using paceline::ReplayConfig;
    using paceline::ReplayFrom;
    const Pool pool = make_pool();
    const Hub hub =
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig())).value();
    for (int i = 1; i <= 5; ++i) {
        CHECK(hub.publish("a", std::to_string(i)).value().matched == 0);
    }
    std::atomic<int> alive{0}, tries{0}, told{0};
    std::atomic<bool> works{false};
    {
        const auto supervisor =
            paceline::Supervisor::create(paceline::RestartStrategy::OneForOne,
                                         paceline::Intensity{1, 1h}.set_suspend_for_good())
                .value();
        const auto handler = [&, counted = std::make_shared<Counted>(alive)](const Message &message) {
            ++tries;
            if (!works && message.attempt == 2) {
                throw 2;
            }
            if (!works) {
                throw std::runtime_error("no");
            }
        };
        const auto retry = paceline::Retry::fixed(1, 1ms);
        const auto replay =
            hub.replay(
                   ">", ReplayFrom::beginning(), handler,
                   [&, counted = Counted(alive)](std::string_view, std::uint64_t) { ++told; },
                   ReplayConfig()
                       .set_on_failure(OnExhausted::DeadLetter, retry)
                       .set_supervisor(supervisor))
                .value();
        while (!replay.stats().value().suspended) {
            std::this_thread::yield();
        }
        CHECK(supervisor.is_suspended());
        CHECK(tries == 4);
        CHECK(told == 1);
        CHECK(hub.dead_letters().value().size() == 2);
        works = true;
        CHECK(replay.resume().value());
        CHECK_FALSE(replay.resume().value());
        while (replay.stats().value().last < 5) {
            std::this_thread::yield();
        }
        const auto stats = replay.stats().value();
        CHECK(stats.delivered == 3);
        CHECK(stats.dead_lettered == 2);
        CHECK(stats.matched == 5);
        CHECK(stats.restarts == 2);
        CHECK(replay.end(Unsubscribe::Sync).value());
        const auto discards = hub.replay(">", ReplayFrom::last(1), handler, ReplayConfig()).value();
        while (discards.stats().value().delivered < 1) {
            std::this_thread::yield();
        }
        CHECK(hub.replay("a", ReplayFrom::now(), handler,
                         ReplayConfig()
                             .set_intensity(paceline::Intensity{1, 0ns})
                             .set_intensity(paceline::Intensity{200'000, 1h}))
                  .error() == Code::Invalid);
    }
    CHECK(hub.dead_letters().value().size() == 2);
    while (alive != 0) {
        std::this_thread::yield();
    }
}

TEST_CASE("a subscription is drained, and what is left is told") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> runs{0};
    std::atomic<bool> held{true};
    auto slow = hub.subscribe("a",
                              [&](const Message &) {
                                  ++runs;
                                  while (held) {
                                      std::this_thread::yield();
                                  }
                              })
                    .value();
    for (int i = 0; i < 3; ++i) {
        CHECK(hub.publish("a", "").value().enqueued == 1);
    }
    while (runs == 0) {
        std::this_thread::yield();
    }
    CHECK(slow.drain(0ns).value() == 2);
    CHECK(slow.drain(0ns).error() == Code::Stale);
    held = false;
    auto quick = hub.subscribe("a", [&](const Message &) { ++runs; }).value();
    CHECK(hub.publish("a", "").value().enqueued == 1);
    CHECK(quick.drain(1h).value() == 0);
    CHECK(runs == 2);
    const auto mailbox = hub.mailbox("b").value();
    CHECK(hub.publish("b", "").value().enqueued == 1);
    const auto report = pool.shutdown(1h).value();
    CHECK(report.left == 1);
}

namespace {

/// Numbers as text.
struct Decimal {
    Result<std::string> encode(const int &value) const {
        if (value < 0) {
            return Error(Code::Invalid, "it is negative");
        }
        return std::to_string(value);
    }
    Result<int> decode(std::string_view text) const {
        int value = 0;
        for (const char digit : text) {
            if (digit < '0' || digit > '9') {
                return Error(Code::Invalid, "it is no number");
            }
            value = value * 10 + (digit - '0');
        }
        return value;
    }
};

} // namespace

TEST_CASE("a topic has values of one type") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto numbers = hub.topic<int>("n.*", Decimal{});
    std::atomic<int> sum{0};
    const auto adds = numbers.subscribe([&](const int &value) { sum += value; }).value();
    const auto looks = numbers
                           .subscribe([&](const int &value, const Message &message) -> Result<void> {
                               CHECK(message.text() == std::to_string(value));
                               return {};
                           })
                           .value();
    CHECK(numbers.publish(1).error() == Code::Invalid);
    CHECK(numbers.publish_to("n.a", 40).value().enqueued == 2);
    CHECK(hub.topic<int>("n.b", Decimal{}).publish(2).value().enqueued == 2);
    CHECK(numbers.publish_to("n.a", -1).error().message() == std::string("it is negative"));
    CHECK(hub.publish("n.a", "x").value().enqueued == 2);
    balances(hub);
    CHECK(sum == 42);
    const auto letters = hub.dead_letters().value();
    REQUIRE(letters.size() == 2);
    CHECK(letters[0].failure == "it is no number");
}

TEST_CASE("a factory makes a handler anew after each restart") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> alive{0}, made{0};
    std::atomic<bool> failing{true};
    std::atomic<int> last{0};
    /// Counts the messages of its own.
    struct Handler {
        Counted counted;
        std::atomic<int> *last;
        int seen = 0;
        bool crashed = false;
        Result<void> operator()(const Message &message) {
            CHECK_FALSE(crashed);
            if (message.text() == "crash") {
                crashed = true;
                throw 1;
            }
            *last = ++seen;
            return {};
        }
    };
    const auto factory = [&] {
        if (failing) {
            throw std::runtime_error("no parts");
        }
        ++made;
        return Handler{Counted(alive), &last};
    };
    const auto config = SubscriptionConfig().set_intensity(paceline::Intensity{100, 1h});
    const auto refused = hub.subscribe_factory("a", factory, config);
    CHECK(refused.error() == Code::Failed);
    CHECK(std::string(refused.error().message()).find("no parts") != std::string::npos);
    failing = false;
    Subscription subscription = hub.subscribe_factory("a", factory, config).value();
    const auto until = [&](auto &&holds) {
        while (!holds(subscription.stats().value())) {
            std::this_thread::yield();
        }
    };
    for (const char *text : {"good", "good", "crash", "good"}) {
        CHECK(hub.publish("a", text).value().enqueued == 1);
    }
    until([](const auto &stats) { return stats.delivered == 3; });
    CHECK(made == 2);
    CHECK(last == 1);
    CHECK(alive == 1);
    CHECK(hub.publish("a", "crash").value().enqueued == 1);
    until([](const auto &stats) { return stats.dead_lettered == 2; });
    failing = true;
    CHECK(hub.publish("a", "good").value().enqueued == 1);
    until([](const auto &stats) { return stats.dead_lettered == 3; });
    CHECK(alive == 0);
    CHECK(subscription.stats().value().restarts == 3);
    CHECK(hub.dead_letters().value()[2].failure.find("no parts") != std::string::npos);
    failing = false;
    CHECK(hub.publish("a", "good").value().enqueued == 1);
    until([](const auto &stats) { return stats.delivered == 4; });
    CHECK(subscription.unsubscribe(paceline::Unsubscribe::Sync).value());
    CHECK(alive == 0);
    CHECK(made == 3);
}

TEST_CASE("a handler says whether another attempt helps, and when") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    std::atomic<int> runs{0};
    const auto config =
        SubscriptionConfig()
            .set_on_failure(paceline::OnExhausted::DeadLetter, paceline::Retry::fixed(3, 0ms))
            .set_execution(paceline::Execution::Concurrent, 2);
    const auto subscription = hub.subscribe(
                                     "a",
                                     [&](const paceline::Message &message) -> paceline::Result<void> {
                                         ++runs;
                                         if (message.size == 0) {
                                             message.permanent();
                                         } else if (message.text() == "later") {
                                             message.retry_after(1h);
                                         } else {
                                             return {};
                                         }
                                         return paceline::Error(Code::Failed);
                                     },
                                     config)
                                  .value();
    CHECK(hub.publish("a", "").value().enqueued == 1);
    CHECK(hub.publish("a", "later").value().enqueued == 1);
    CHECK(hub.publish("a", "now").value().enqueued == 1);
    auto stats = subscription.stats().value();
    while (stats.delivered + stats.dead_lettered < 2 || stats.running > 0) {
        stats = subscription.stats().value();
    }
    CHECK(stats.delivered == 1);
    CHECK(stats.waiting == 1);
    CHECK(runs == 3);
}

TEST_CASE("a host acknowledges messages, and reports restarts and suspensions of its handler") {
    const Pool pool = make_pool();
    const Hub hub =
        Hub::create(pool, paceline::HubConfig().set_stats_interval(std::chrono::milliseconds(10)))
            .value();
    const auto notices = hub.mailbox("$SYS.hub.statistics").value();
    Inbox told(pool, notices);
    CHECK(told.take(1h).value().at(0).text().find("\"delivered\":") != std::string::npos);
    const auto config = SubscriptionConfig().set_acknowledged(true).set_unique("host").set_group(
        "g", paceline::Balance::by_key());
    const auto mailbox = hub.mailbox("a", config).value();
    CHECK(hub.mailbox("a", config).error() == Code::Invalid);
    Inbox taken(pool, mailbox);
    CHECK(hub.publish("a", "1").value().enqueued == 1);
    CHECK(taken.take(1h).value().size() == 1);
    CHECK(mailbox.stats().value().running == 1);
    CHECK(mailbox.acknowledge(1));
    CHECK(mailbox.acknowledge(0, 0, 1).error() == Code::Invalid);
    CHECK(mailbox.crashed("broken").value());
    CHECK(mailbox.suspend().value());
    CHECK(hub.publish("a", "2").value().dead_lettered == 1);
    CHECK(mailbox.resume().value());
    CHECK(!mailbox.resume().value());
    const auto stats = mailbox.stats().value();
    CHECK(stats.delivered == 1);
    CHECK(stats.restarts == 1);
    CHECK(stats.dead_lettered == 1);
    const auto errors = hub.errors().value();
    REQUIRE(errors.size() == 2);
    CHECK(errors[0].message == "restart 1: broken");
    CHECK(errors[1].event == "subscription.suspended");
}

TEST_CASE("a hub tells of itself, of its figures and of thresholds") {
    const Pool pool = make_pool();
    const Hub hub =
        Hub::create(
            pool,
            paceline::HubConfig().set_name("cpp").set_errors(3).set_count_keys(2).set_notice_interval(
                1ms))
            .value();
    const auto notices = hub.mailbox("$SYS.>").value();
    const auto full = hub.mailbox("a", SubscriptionConfig().set_capacity(1)).value();
    CHECK(hub.publish("a", "x").value().enqueued == 1);
    CHECK(hub.publish("a", "x").error() == Code::Full);
    Inbox told(pool, notices), taken(pool, full);
    std::string keys;
    while (keys.find("overflow") == std::string::npos) {
        for (const auto &notice : told.take(1h).value()) {
            keys += notice.key_text();
        }
    }
    CHECK(keys == "$SYS.subscription.started$SYS.subscription.overflow");
    const auto errors = hub.errors().value();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].event == "subscription.overflow");
    CHECK(errors[0].severity == paceline::Severity::Warning);
    CHECK(errors[0].time > std::chrono::system_clock::time_point(std::chrono::hours(24 * 365)));
    paceline::ErrorFilter filter;
    filter.origin = "publisher";
    CHECK(hub.errors(filter).value().empty());
    filter = {};
    filter.severity = paceline::Severity::Error;
    CHECK(hub.errors(filter).value().empty());

    CHECK(hub.stats().value().subscriptions == 2);
    CHECK(hub.stats().value().errors == 1);
    CHECK(hub.metrics(PACE_METRICS_HUB).value().find("\"pattern\":\"a\"") != std::string::npos);
    const std::string line = "paceline_hub_rejected_total{hub=\"cpp\"} 1";
    CHECK(hub.metrics(PACE_METRICS_PROMETHEUS).value().find(line) != std::string::npos);
    CHECK(hub.metrics(9).error() == Code::Invalid);
    paceline::WorkersConfig config;
    CHECK(hub.share_metrics(paceline::WorkerPool::create(pool, config).value()).error() ==
          Code::Invalid);
    config.metrics = true;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    CHECK(hub.share_metrics(workers).has_value());
    CHECK(workers.metrics(PACE_METRICS_PROMETHEUS).value().find(line) != std::string::npos);

    using paceline::Threshold;
    std::atomic<int> alive{0}, crossed{0}, back{0};
    {
        const auto watch = hub.watch(
            1ms,
            {Threshold::above("paceline_hub_waiting", 5).label("hub", "cpp").back_at(1),
             Threshold::above("paceline_hub_published", 1e9).rate(),
             Threshold::below("none", 0).quantile(0.5).severity(paceline::Severity::Error)},
            [&, counted = Counted(alive)](const paceline::Crossing &crossing) {
                CHECK(crossing.threshold == 0);
                ++(crossing.crossed ? crossed : back);
                throw std::runtime_error("nobody hears it");
            },
            &workers);
        REQUIRE(watch.has_value());
        const auto wide = hub.mailbox("b").value();
        for (int i = 0; i < 10; ++i) {
            CHECK(hub.publish("b", "x").value().enqueued == 1);
        }
        while (crossed < 1) {
            std::this_thread::yield();
        }
        CHECK(watch.value().stats().value().crossed == 1);
        CHECK(wide.unsubscribe().value());
        while (taken.take(0ns).has_value() || told.take(0ns).has_value() || back < 1) {
            std::this_thread::yield();
        }
    }
    while (alive > 0) {
        std::this_thread::yield();
    }
    CHECK(crossed == 1);
    const auto refused = hub.watch(1ms, {Threshold::above("m", 1).back_at(2)},
                                   [counted = Counted(alive)](const paceline::Crossing &) {});
    CHECK(refused.error() == Code::Invalid);
    CHECK(alive == 0);
}
