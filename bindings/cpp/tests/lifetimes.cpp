// What may be kept: names of things that have ended answer Code::Stale, what is lent cannot be copied, and replies own
// their bytes.

#include "client.hpp"

#include <functional>
#include <optional>
#include <set>

// Its names are its own: all tests are one translation unit.
namespace of_lifetimes {

using paceline::Datagram;
using paceline::HandleRef;
using paceline::Hub;
using paceline::Message;
using paceline::OwnedDatagram;
using paceline::OwnedMessage;
using paceline::UdpConfig;
using paceline::UdpRef;

namespace {

// What is good for a call only cannot be kept by mistake.
template <class T>
inline constexpr bool is_lent = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
static_assert(is_lent<Message> && is_lent<Datagram> && is_lent<paceline::FilterSink>);
static_assert(is_lent<paceline::AcceptedConn> && is_lent<paceline::Conn> && is_lent<paceline::Request>);
static_assert(is_lent<paceline::Attempt> && is_lent<paceline::DurableJob> && is_lent<paceline::Next>);

UdpConfig on_loopback() {
    UdpConfig config;
    config.bind = "127.0.0.1:0";
    return config;
}

/// Hands all that comes to `take`.
struct Hears : paceline::UdpHandler {
    explicit Hears(std::function<void(UdpRef, const Datagram &)> t) : take(std::move(t)) {}
    void data(UdpRef udp, paceline::span<const Datagram> datagrams) override {
        for (const Datagram &datagram : datagrams) {
            take(udp, datagram);
        }
    }
    const std::function<void(UdpRef, const Datagram &)> take;
};

} // namespace

TEST_CASE("a name of a handle whose pool has ended is stale") {
    HandleRef from_outside, from_inside;
    CHECK(from_outside.pause().error() == Code::Stale);
    {
        const Pool pool = make_pool();
        Signal called;
        const auto handle = pool.every(1ms,
                                       [&](HandleRef self) {
                                           from_inside = self;
                                           called.set();
                                           return Flow::Done;
                                       })
                                .value();
        from_outside = handle.ref();
        CHECK(called.wait());
    }
    for (const HandleRef &late : {from_outside, from_inside}) {
        CHECK(late.pause().error() == Code::Stale);
        CHECK(late.resume().error() == Code::Stale);
        CHECK(late.deregister().error() == Code::Stale);
        CHECK(late.is_open().error() == Code::Stale);
    }
}

TEST_CASE("a datagram socket answers from a task, and its name outlives it") {
    const Pool pool = make_pool();
    Signal answered, kept;
    std::optional<UdpRef> name;
    auto server =
        paceline::Udp::create(pool, on_loopback(),
                              std::make_unique<Hears>([&](UdpRef udp, const Datagram &datagram) {
                                  pool.post([udp, owned = datagram.to_owned()] {
                                          udp.send_to("re: " + owned.bytes, owned.peer).value();
                                      })
                                      .value();
                                  if (!name) {
                                      name = udp;
                                      kept.set();
                                  }
                              }))
            .value();
    std::string answer;
    const auto client =
        paceline::Udp::create(pool, on_loopback(),
                              std::make_unique<Hears>([&](UdpRef, const Datagram &datagram) {
                                  answer = datagram.text();
                                  answered.set();
                              }))
            .value();
    const auto to = paceline::Ip::read(server.address().value()).value();
    client.send_to("question", to).value();
    CHECK(answered.wait());
    CHECK(answer == "re: question");
    CHECK(kept.wait());
    {
        const auto gone = std::move(server);
        CHECK(name->is_open().value());
    }
    CHECK(name->send_to("late", to).error() == Code::Stale);
    CHECK(name->is_open().error() == Code::Stale);
    CHECK(name->address().error() == Code::Stale);
    CHECK(name->stats().error() == Code::Stale);
    CHECK(name->drain(1s).error() == Code::Stale);
    CHECK(name->close().error() == Code::Stale);
    CHECK(name->native() == nullptr);
}

TEST_CASE("threads that answer by the name of a datagram socket race with its end") {
    const Pool pool = make_pool();
    for (int round = 0; round < 20; ++round) {
        std::optional<UdpRef> name;
        auto socket = std::make_unique<paceline::Udp>(
            paceline::Udp::create(pool, on_loopback(),
                                  std::make_unique<Hears>([](UdpRef, const Datagram &) {}))
                .value());
        const auto to = paceline::Ip::read(socket->address().value()).value();
        name = *socket;
        std::atomic<bool> stale{false};
        Signal sent;
        std::thread sends([&] {
            for (;;) {
                const auto result = name->send_to("x", to);
                sent.set();
                if (!result && result.error() == Code::Stale) {
                    break;
                }
            }
            stale = true;
        });
        CHECK(sent.wait());
        socket.reset();
        sends.join();
        CHECK(stale);
    }
}

TEST_CASE("a name of a connection outlives its server and its pool") {
    struct Quiet : paceline::ConnHandler {
        explicit Quiet(std::function<void(paceline::ConnRef)> k) : keep(std::move(k)) {}
        std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
            keep(conn.ref());
            return bytes.size();
        }
        const std::function<void(paceline::ConnRef)> keep;
    };
    paceline::ConnRef name;
    {
        const Pool pool = make_pool();
        Signal came;
        const auto server =
            paceline::Server::create(
                pool, paceline::ServerConfig().add_listener(paceline::Listen{"127.0.0.1:0"}),
                [&](paceline::Conn &) {
                    return std::make_unique<Quiet>([&](paceline::ConnRef conn) {
                        name = std::move(conn);
                        came.set();
                    });
                })
                .value();
        Client client(server);
        client.send("x");
        CHECK(came.wait());
        CHECK(name.is_open().value());
    }
    CHECK(name.write("late").error() == Code::Stale);
    CHECK(name.close().error() == Code::Stale);
    CHECK_FALSE(name.is_open().value());
    name = paceline::ConnRef();
    CHECK(name.close().error() == Code::Stale);
}

TEST_CASE("replies that are held at once are each their own") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    const auto echo =
        hub.subscribe("ask",
                      [&](const Message &message) {
                          (void)hub.reply(message, std::string(message.text()) + "!").value();
                      })
            .value();
    const auto key = hub.key("ask").value();
    const OwnedMessage first = key.request("first", PATIENCE).value();
    const OwnedMessage second = key.request("second", PATIENCE).value();
    CHECK(first.text() == "first!");
    CHECK(second.text() == "second!");
    CHECK(key.request("third", PATIENCE).value().text() == "third!");

    Signal came;
    std::vector<OwnedMessage> kept;
    std::mutex mutex;
    for (const char *text : {"a", "b"}) {
        (void)key
            .request_async(text, PATIENCE,
                           [&](paceline::Result<OwnedMessage> reply) {
                               const std::lock_guard<std::mutex> lock(mutex);
                               kept.push_back(std::move(reply).value());
                               came.set();
                           })
            .value();
    }
    CHECK(came.wait(2));
    std::set<std::string> texts;
    for (const auto &reply : kept) {
        texts.insert(reply.text());
    }
    CHECK(texts == std::set<std::string>{"a!", "b!"});
}

TEST_CASE("a message that was copied is replied to by a task") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    const auto later = hub.subscribe("ask",
                                     [&](const Message &message) {
                                         pool.post([&hub, owned = message.to_owned()] {
                                                 CHECK(owned.key_text() == "ask");
                                                 CHECK(owned.header("trace") == "17");
                                                 CHECK_FALSE(owned.header("none"));
                                                 CHECK(owned.attempt == 1);
                                                 CHECK(owned.priority == paceline::Priority::High);
                                                 (void)hub.reply(owned, "later " + owned.text()).value();
                                             })
                                             .value();
                                     })
                           .value();
    const auto with =
        paceline::Publication().add_header("trace", "17").set_priority(paceline::Priority::High);
    CHECK(hub.key("ask").value().request("x", PATIENCE, with).value().text() == "later x");
    CHECK(hub.reply(OwnedMessage(), "").error() == Code::Invalid);
}

TEST_CASE("a strand that is a member waits for the tasks that refer to the object") {
    struct Account {
        explicit Account(const Pool &pool) : strand(pool.strand().value()) {}
        void add(int amount) {
            strand.post([this, amount] { balance.push_back(amount); }).value();
        }
        std::vector<int> balance;
        paceline::Strand strand;
    };
    const Pool pool = make_pool();
    for (int round = 0; round < 50; ++round) {
        Account account(pool);
        for (int n = 0; n < 20; ++n) {
            account.add(n);
        }
    }
    // What was accepted before has run.
    const auto strand = pool.strand().value();
    int ran = 0;
    strand.post([&] { ++ran; }).value();
    CHECK(strand.drain(PATIENCE).value());
    CHECK(ran == 1);
    CHECK(strand.post([] {}).error() == Code::ShutDown);
    finish(pool);
}

TEST_CASE("a strand that does not end in time says so, and its own task does not wait for it") {
    const Pool pool = make_pool();
    auto strand = std::make_unique<paceline::Strand>(pool.strand().value());
    Signal begun, go, destroyed;
    strand
        ->post([&] {
            begun.set();
            CHECK(go.wait());
            CHECK_FALSE(strand->drain(PATIENCE).value());
            strand.reset();
            destroyed.set();
        })
        .value();
    CHECK(begun.wait());
    CHECK_FALSE(strand->drain(1ms).value());
    go.set();
    CHECK(destroyed.wait());
    finish(pool);
}

TEST_CASE("a scope waits for the tasks that refer to locals") {
    const Pool pool = make_pool();
    for (int round = 0; round < 20; ++round) {
        std::vector<int> squares(100);
        std::atomic<int> more{0};
        {
            paceline::Scope scope(pool);
            for (int n = 0; n < 100; ++n) {
                scope
                    .post([&squares, &scope, &more, n] {
                        squares[static_cast<std::size_t>(n)] = n * n;
                        scope.post([&more] { ++more; }).value();
                    })
                    .value();
            }
        }
        CHECK(squares[99] == 99 * 99);
        CHECK(more == 100);
    }
    // Also while an exception unwinds.
    std::atomic<int> ran{0};
    try {
        paceline::Scope scope(pool);
        for (int n = 0; n < 10; ++n) {
            scope
                .post([&ran] {
                    std::this_thread::sleep_for(1ms);
                    ++ran;
                })
                .value();
        }
        throw std::runtime_error("unwinds");
    } catch (const std::runtime_error &) {
        CHECK(ran == 10);
    }
    // It tells of failures, by what was thrown or returned.
    paceline::Scope scope(pool, paceline::Lane::High);
    scope.post([] { throw std::out_of_range("too far"); }).value();
    CHECK_THROWS_AS(scope.wait().value(), std::out_of_range);
    scope.wait().value();
    scope.post([] { return paceline::Error(Code::Full, "no room for it"); }).value();
    CHECK_THROWS_WITH(scope.wait().value(), "no room for it");
    std::vector<int> once{1};
    scope.post([is = std::make_unique<int>(1), &once] { once[0] += *is; }).value();
    scope.wait().value();
    CHECK(once[0] == 2);
    finish(pool);
}

TEST_CASE("a scope inside the only thread of a pool does not wait for ever") {
    const Pool pool = make_pool(1);
    std::atomic<int> ran{0};
    const auto code = pool.submit([&] {
                              paceline::Scope scope(pool);
                              scope.post([&ran] { ++ran; }).value();
                              const auto ended = scope.wait();
                              return ended ? Code::Ok : ended.error().code();
                          })
                          .value()
                          .wait()
                          .value();
    CHECK(code == Code::Cancelled);
    CHECK(ran == 0);
    (void)pool.shutdown(PATIENCE).value();
}

TEST_CASE("a timer that is cancelled and waited for does not run any more") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    const auto late = pool.after(1h, [counted = Counted(alive)] {}).value();
    CHECK(late.wait(1ms).error() == Code::TimedOut);
    CHECK(late.cancel_and_wait().value());
    CHECK(alive == 0);
    late.wait().value();
    Signal begun, go;
    std::atomic<bool> over{false};
    const auto runs = pool.after(1ns,
                                 [&, counted = Counted(alive)] {
                                     begun.set();
                                     CHECK(go.wait());
                                     over = true;
                                 })
                          .value();
    CHECK(begun.wait());
    CHECK(runs.wait(1ms).error() == Code::TimedOut);
    std::thread helper([&] {
        std::this_thread::sleep_for(5ms);
        go.set();
    });
    CHECK_FALSE(runs.cancel_and_wait().value());
    CHECK(over);
    CHECK(alive == 0);
    helper.join();
    // A second time, and after the end.
    CHECK_FALSE(runs.cancel_and_wait().value());

    // One cannot wait for itself, and need not be kept.
    std::optional<paceline::Timer> itself;
    Signal kept, told;
    itself = pool.after(1ns,
                        [&] {
                            CHECK(kept.wait());
                            CHECK(itself->wait().error() == Code::WouldDeadlock);
                            CHECK(itself->cancel_and_wait().error() == Code::WouldDeadlock);
                            told.set();
                        })
                 .value();
    kept.set();
    CHECK(told.wait());
    pool.after(1ns, [&] { told.set(); }).value();
    CHECK(told.wait(2));
    CHECK(paceline::Timer().wait().error() == Code::Stale);
    CHECK(paceline::Timer().cancel_and_wait().error() == Code::Stale);
    finish(pool);
}

namespace {

/// Two that each keep a callable of the user's: the first is replaced by the second, and ends then.
template <class Make>
void is_replaced(const std::string &what, Make make) {
    INFO(what);
    std::atomic<int> alive{0};
    {
        auto one = make(alive);
        auto other = make(alive);
        CHECK(alive == 2);
        one = std::move(other);
        // The factory of a server may be deleted a moment later, on another thread.
        for (int n = 0; alive != 1 && n < 30000; ++n) {
            std::this_thread::sleep_for(1ms);
        }
        CHECK(alive == 1);
    }
    for (int n = 0; alive != 0 && n < 30000; ++n) {
        std::this_thread::sleep_for(1ms);
    }
    CHECK(alive == 0);
}

} // namespace

TEST_CASE("move assignment ends what was held") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool, paceline::HubConfig().add_history({})).value();
    is_replaced("Pool", [](auto &alive) {
        auto own = make_pool(1);
        own.every(1h, [counted = Counted(alive)] { return Flow::Wait; }).value().detach();
        return own;
    });
    is_replaced("Handle", [&](auto &alive) {
        return pool.every(1h, [counted = Counted(alive)] { return Flow::Wait; }).value();
    });
    is_replaced("Ring", [&](auto &alive) {
        return paceline::Ring<int>::serial(pool, 8, [counted = Counted(alive)](paceline::Events<int>) {})
            .value();
    });
    is_replaced("Server", [&](auto &alive) {
        return paceline::Server::create(
                   pool, paceline::ServerConfig().add_listener(paceline::Listen{"127.0.0.1:0"}),
                   [counted = Counted(alive)](paceline::Conn &) { return nullptr; })
            .value();
    });
    is_replaced("Http", [&](auto &alive) {
        auto http = paceline::Http::create(pool).value();
        http.route("GET", "/",
                   [counted = Counted(alive)](const paceline::Request &, paceline::Response) {})
            .value();
        http.start(paceline::HttpConfig().add_listener(paceline::Listen{"127.0.0.1:0"})).value();
        return http;
    });
    is_replaced("Udp", [&](auto &alive) {
        return paceline::Udp::create(pool, on_loopback(),
                                     std::make_unique<Hears>([counted = std::make_shared<Counted>(
                                                                  alive)](UdpRef, const Datagram &) {}))
            .value();
    });
    is_replaced("Subscription", [&](auto &alive) {
        return hub.subscribe("a", [counted = Counted(alive)](const Message &) {}).value();
    });
    is_replaced("Replay", [&](auto &alive) {
        return hub
            .replay("a", paceline::ReplayFrom::now(), [counted = Counted(alive)](const Message &) {})
            .value();
    });
    is_replaced("Watch", [&](auto &alive) {
        return hub
            .watch(1s, {paceline::Threshold::above("paceline_hub_waiting", 0)},
                   [counted = Counted(alive)](const paceline::Crossing &) {})
            .value();
    });
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto kind = workers.task_type("replaced").value();
    is_replaced("Periodic",
                [&](auto &alive) { return kind.every(1h, [counted = Counted(alive)] {}).value(); });
    // It has no callable of its own: its subscription ends.
    auto one = hub.mailbox("b").value();
    one = hub.mailbox("b").value();
    CHECK(hub.subscriber_count("b").value() == 1);
}

TEST_CASE("a server that was replaced has left its port") {
    const Pool pool = make_pool();
    const auto serve = [&](const std::string &address) {
        return paceline::Server::create(pool,
                                        paceline::ServerConfig().add_listener(paceline::Listen{address}),
                                        [](paceline::Conn &) { return nullptr; });
    };
    auto server = serve("127.0.0.1:0").value();
    const std::string first = server.address().value();
    CHECK(serve(first).error() == Code::Os);
    auto other = serve("127.0.0.1:0").value();
    server = std::move(other);
    CHECK(server.address().value() != first);
    CHECK(serve(first).has_value());
    CHECK(other.address().error() == Code::Invalid);
    // Nothing is lost.
    auto &itself = server;
    server = std::move(itself);
    CHECK(server.address().has_value());
}

} // namespace of_lifetimes
