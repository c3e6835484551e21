// What a destructor waits for: code of the user that runs, so that a lambda may refer to what was declared before the
// object that calls it. docs/GUIDE.md has the table. tests/cpp.rs compares the classes of the header with those that
// are named here.

#include "client.hpp"

#include <csignal>
#include <map>

// Its names are its own: all tests are one translation unit.
namespace of_ends {

using paceline::Conn;
using paceline::ConnHandler;
using paceline::Hub;
using paceline::Listen;
using paceline::Message;
using paceline::Request;
using paceline::Response;

namespace {

/// Code of the user, which takes a while. It knows whether it is called when it must not be any more.
class Busy {
public:
    void operator()() {
        late_ += over_ ? 1 : 0;
        ++inside_;
        entered.set();
        std::this_thread::sleep_for(20ms);
        --inside_;
        ++done_;
    }

    /// The object is gone: whether it has waited, and nothing is called afterwards.
    bool is_over() {
        over_ = true;
        const bool waited = inside_ == 0 && done_ > 0;
        std::this_thread::sleep_for(5ms);
        return waited && late_ == 0 && inside_ == 0;
    }

    Signal entered;

private:
    std::atomic<bool> over_{false};
    std::atomic<int> inside_{0}, late_{0}, done_{0};
};

struct Talks : ConnHandler {
    explicit Talks(Busy &b) : busy(b) {}
    std::size_t data(Conn &, std::string_view bytes) override {
        busy();
        return bytes.size();
    }
    Busy &busy;
};

struct Receives : paceline::UdpHandler {
    explicit Receives(std::function<void()> c) : call(std::move(c)) {}
    void data(paceline::UdpRef, paceline::span<const paceline::Datagram>) override { call(); }
    const std::function<void()> call;
};

paceline::Result<paceline::Udp> socket_for(const Pool &pool, std::function<void()> call) {
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0";
    auto udp = paceline::Udp::create(pool, config, std::make_unique<Receives>(std::move(call)));
    udp.value().send_to("x", paceline::Ip::read(udp.value().address().value()).value()).value();
    return udp;
}

Hub hub_with_history(const Pool &pool) {
    return Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig())).value();
}

/// Has one object call `busy`, and lets it go while it does.
using Ends = void (*)(const Pool &pool, Busy &busy);

const std::map<std::string, Ends> WAITS{
    {"Pool",
     [](const Pool &, Busy &busy) {
         const Pool own = make_pool();
         own.post([&busy] { busy(); }).value();
         CHECK(busy.entered.wait());
     }},
    {"Handle",
     [](const Pool &pool, Busy &busy) {
         const auto handle = pool.every(1ms, [&busy] { return busy(), Flow::Wait; }).value();
         CHECK(busy.entered.wait());
     }},
    {"Ring",
     [](const Pool &pool, Busy &busy) {
         const auto serial =
             paceline::Ring<int>::serial(pool, 8, [&busy](paceline::Events<int>) { busy(); });
         const auto concurrent =
             paceline::Ring<int>::concurrent(pool, 8, [&busy](paceline::Events<int>) { busy(); });
         serial.value().publish(1).value();
         for (int n = 0; n < 8; ++n) {
             concurrent.value().publish(n).value();
         }
         CHECK(busy.entered.wait());
     }},
    {"Strand",
     [](const Pool &pool, Busy &busy) {
         const auto strand = pool.strand().value();
         for (int n = 0; n < 3; ++n) {
             strand.post([&busy] { busy(); }).value();
         }
         CHECK(busy.entered.wait());
     }},
    {"Scope",
     [](const Pool &pool, Busy &busy) {
         paceline::Scope scope(pool);
         scope.post([&busy] { busy(); }).value();
         scope.post([&busy] { busy(); }).value();
     }},
    {"Server",
     [](const Pool &pool, Busy &busy) {
         const auto server =
             paceline::Server::create(pool, paceline::ServerConfig().add_listener(Listen{"127.0.0.1:0"}),
                                      [&busy](Conn &) { return std::make_unique<Talks>(busy); })
                 .value();
         Client client(server);
         client.send("x");
         CHECK(busy.entered.wait());
     }},
    {"Udp",
     [](const Pool &pool, Busy &busy) {
         const auto udp = socket_for(pool, [&busy] { busy(); });
         CHECK(busy.entered.wait());
     }},
    {"Http",
     [](const Pool &pool, Busy &busy) {
         auto http = paceline::Http::create(pool).value();
         http.route("GET", "/",
                    [&busy](const Request &, Response response) {
                        busy();
                        (void)response.send("");
                    })
             .value();
         http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
         Client client(http);
         client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
         CHECK(busy.entered.wait());
     }},
    {"Signals",
     [](const Pool &pool, Busy &busy) {
         const std::int32_t numbers[] = {SIGUSR2};
         const auto signals = paceline::Signals::create(pool, numbers, [&busy](int) { busy(); }).value();
         CHECK(kill(getpid(), SIGUSR2) == 0);
         CHECK(busy.entered.wait());
     }},
    {"Periodic",
     [](const Pool &pool, Busy &busy) {
         const auto workers = paceline::WorkerPool::create(pool).value();
         const auto kind = workers.task_type("busy").value();
         const auto periodic = kind.every(1ms, [&busy] { busy(); }).value();
         CHECK(busy.entered.wait());
     }},
    {"Log",
     [](const Pool &, Busy &busy) {
         paceline::LogConfig config;
         config.levels = "debug";
         config.on_record = [&busy](const paceline::LogRecord &) { busy(); };
         const auto log = paceline::Log::create(config).value();
         const Pool own =
             Pool::create(paceline::Config().set_threads(1).set_pin("none").set_log(log)).value();
         CHECK(busy.entered.wait());
     }},
    {"Subscription",
     [](const Pool &pool, Busy &busy) {
         const auto hub = Hub::create(pool).value();
         const auto serial = hub.subscribe("a", [&busy](const Message &) { busy(); }).value();
         const auto concurrent =
             hub.subscribe(
                    "a", [&busy](const Message &) { busy(); },
                    paceline::SubscriptionConfig().set_execution(paceline::Execution::Concurrent, 2))
                 .value();
         for (int n = 0; n < 8; ++n) {
             (void)hub.publish("a", "x").value();
         }
         CHECK(busy.entered.wait());
     }},
    {"Hub",
     [](const Pool &pool, Busy &busy) {
         const auto hub = Hub::create(pool).value();
         hub.subscribe("a", [&busy](const Message &) { busy(); }).value().detach();
         (void)hub.publish("a", "x").value();
         CHECK(busy.entered.wait());
     }},
    {"Topic",
     [](const Pool &pool, Busy &busy) {
         struct Codec {
             paceline::Result<std::string> encode(const int &) const { return std::string("x"); }
             paceline::Result<int> decode(std::string_view) const { return 1; }
         };
         const auto topic = Hub::create(pool).value().topic<int>("a", Codec());
         const auto values = topic.subscribe([&busy](const int &) { busy(); }).value();
         (void)topic.publish(1).value();
         CHECK(busy.entered.wait());
     }},
    {"Replay",
     [](const Pool &pool, Busy &busy) {
         const auto hub = hub_with_history(pool);
         const auto replay =
             hub.replay("a", paceline::ReplayFrom::now(), [&busy](const Message &) { busy(); }).value();
         (void)hub.publish("a", "x").value();
         (void)hub.publish("a", "x").value();
         CHECK(busy.entered.wait());
     }},
    {"Watch",
     [](const Pool &pool, Busy &busy) {
         const auto hub = Hub::create(pool).value();
         const auto box = hub.mailbox("a").value();
         (void)hub.publish("a", "x").value();
         const auto watch = hub.watch(1ms, {paceline::Threshold::above("paceline_hub_waiting", 0)},
                                      [&busy](const paceline::Crossing &) { busy(); })
                                .value();
         CHECK(busy.entered.wait());
     }},
    {"Bridge",
     [](const Pool &pool, Busy &busy) {
         const auto hub = Hub::create(pool).value();
         const auto config = paceline::BridgeConfig("nats://127.0.0.1:1")
                                 .add_export(paceline::Export("a").set_at_least_once("A"));
         const auto bridge = paceline::Bridge::open(hub, config);
         if (!bridge) {
             return busy(); // The library has no bridges.
         }
         const auto call = [&busy](const paceline::Result<void> &) { busy(); };
         bridge->publish("a", "x").value().then(call).value();
     }},
};

/// What handlers have, in a pool that only this thread drives.
struct Unbegun {
    bool over = false;
    int late = 0, left = 0;
};

/// It must have been destroyed before the destructor returns, and is not called later.
class Lent {
public:
    explicit Lent(Unbegun &code) : code_(&code) { ++code_->left; }
    Lent(const Lent &other) : Lent(*other.code_) {}
    Lent &operator=(const Lent &) = delete;
    ~Lent() {
        (*this)();
        --code_->left;
    }
    void operator()() const { code_->late += code_->over ? 1 : 0; }

private:
    Unbegun *code_;
};

struct Closes : ConnHandler {
    explicit Closes(Unbegun &code) : lent(code) {}
    std::size_t data(Conn &, std::string_view bytes) override {
        lent();
        return bytes.size();
    }
    void close(Conn &, paceline::Reason) override { lent(); }
    const Lent lent;
};

/// Makes an object whose callable is due, and lets it go before anybody has called that.
const std::map<std::string, void (*)(const Pool &pool, Unbegun &code)> UNBEGUN{
    {"Handle",
     [](const Pool &pool, Unbegun &code) {
         const auto handle = pool.every(1us, [lent = Lent(code)] { return lent(), Flow::Wait; }).value();
     }},
    {"Ring",
     [](const Pool &pool, Unbegun &code) {
         const auto serial = paceline::Ring<int>::serial(
             pool, 8, [lent = Lent(code)](paceline::Events<int>) { lent(); });
         const auto concurrent = paceline::Ring<int>::concurrent(
             pool, 8, [lent = Lent(code)](paceline::Events<int>) { lent(); });
         serial.value().publish(1).value();
         concurrent.value().publish(1).value();
     }},
    {"Strand",
     [](const Pool &pool, Unbegun &code) {
         const auto strand = pool.strand().value();
         strand.post([lent = Lent(code)] { lent(); }).value();
         strand.post([lent = Lent(code)] { lent(); }).value();
     }},
    {"Server",
     [](const Pool &pool, Unbegun &code) {
         int opened = 0;
         const auto server =
             paceline::Server::create(pool, paceline::ServerConfig().add_listener(Listen{"127.0.0.1:0"}),
                                      [&](Conn &) {
                                          ++opened;
                                          return std::make_unique<Closes>(code);
                                      })
                 .value();
         Client client(server);
         while (opened == 0) {
             pool.join(1ms).value();
         }
         client.send("x");
     }},
    {"Http",
     [](const Pool &pool, Unbegun &code) {
         auto http = paceline::Http::create(pool).value();
         http.route("GET", "/",
                    [lent = Lent(code)](const Request &, Response response) {
                        lent();
                        (void)response.send("");
                    })
             .value();
         http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
         Client client(http);
         client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
         pool.join(0ns).value();
     }},
    {"Udp", [](const Pool &pool,
               Unbegun &code) { const auto udp = socket_for(pool, [lent = Lent(code)] { lent(); }); }},
    {"Periodic",
     [](const Pool &pool, Unbegun &code) {
         const auto workers = paceline::WorkerPool::create(pool).value();
         const auto kind = workers.task_type("waits").value();
         const auto periodic = kind.every(1us, [lent = Lent(code)] { lent(); }).value();
         // The first tick, which submits a run.
         while (periodic.counts().value().runs == 0) {
             pool.join(0ns).value();
         }
     }},
    {"Subscription",
     [](const Pool &pool, Unbegun &code) {
         const auto hub = Hub::create(pool).value();
         const auto handler =
             hub.subscribe("a", [lent = Lent(code)](const Message &) { lent(); }).value();
         (void)hub.publish("a", "x").value();
     }},
    {"Replay",
     [](const Pool &pool, Unbegun &code) {
         const auto hub = hub_with_history(pool);
         const auto replay = hub.replay("a", paceline::ReplayFrom::now(),
                                        [lent = Lent(code)](const Message &) { lent(); })
                                 .value();
         (void)hub.publish("a", "x").value();
     }},
};

/// Those that do not wait, or have nothing to wait for, each with the reason.
const std::map<std::string, const char *> DO_NOT_WAIT{
    // What was handed over once runs once, by itself: these only name it.
    {"Task", "names what was submitted"},
    {"WorkTask", "names what was submitted"},
    {"Timer", "names what was submitted; cancel_and_wait() ends it: in lifetimes.cpp"},
    {"TaskType", "names its tasks, which go on"},
    {"DurableTask", "names what was submitted"},
    {"DurableQueue", "calls where its broker has tasks for it: in durable.cpp"},
    {"WorkerPool", "its tasks go on; shutdown() waits for them, and so does the end of the pool"},
    // What it calls is called by another object.
    {"Response", "completed by whoever has it; its server waits"},
    {"Body", "its callables run in the connection; its server waits"},
    {"ConnRef", "names a connection"},
    {"UdpRef", "names a socket"},
    {"HandleRef", "names a handle"},
    {"MessageFilter", "lasts as long as a subscription has it; publishers call it"},
    {"Webhook", "posts from a thread of its own, and calls nothing of the user's"},
    {"PendingStore", "names a message; what it calls is called by the Bridge at the latest"},
    {"Ops", "answers from a thread of its own, and calls nothing of the user's"},
    {"Service", "asks by a Handle, which waits; in hub.cpp, where the library has services"},
    {"Supervisor", "calls nothing: its subscriptions do"},
    {"Unconfined", "gives its thread the signals and CPUs back that it had before, and calls nothing"},
    {"Middleware", "the user's own object: the worker pool shares it"},
    {"Filter", "the user's own object: its connection has it"},
    {"ConnHandler", "the user's own object: its connection has it"},
    {"UdpHandler", "the user's own object: its socket has it"},
    {"RequestBody", "the user's own object: its connection has it"},
    // They call nothing.
    {"Archive", "what is on disk"},
    {"Queue", "plain values"},
    {"Mailbox", "taken from by a completion queue"},
    {"ReplayMailbox", "taken from by a completion queue"},
    {"CompletionQueue", "what is attached comes as data"},
    {"Completion", "a value"},
    {"Key", "a name"},
    {"Publisher", "a name"},
    {"Metric", "a figure"},
    {"Inherited", "a descriptor"},
    {"OpenJob", "an attempt of the host's own"},
    {"Admission", "a count"},
    {"Function", "the user's own callable"},
    {"AcceptedConn", "lent for a call"},
    {"Attempt", "lent for a call"},
    {"DurableJob", "lent for a call"},
    {"Next", "lent for a call"},
    {"Conn", "lent for a call"},
    {"Events", "lent for a call"},
    {"Request", "lent for a call"},
    {"FilterSink", "lent for a call"},
    {"Balance", "a value"},
    {"Delimited", "a value"},
    {"Error", "a value"},
    {"Exception", "a value"},
    {"FixedLength", "a value"},
    {"OverloadPolicy", "a value"},
    {"Interest", "a value"},
    {"LengthPrefixed", "a value"},
    {"Ready", "a value"},
    {"Reason", "a value"},
    {"ReplayFrom", "a value"},
    {"Result", "a value"},
    {"Retry", "a value"},
    {"Threshold", "a value"},
    {"span", "a value"},
};

/// An object that its own callable lets go: it is told when the object is there, and must return.
template <class T>
class Slot {
public:
    void put(T object) {
        object_.emplace(std::move(object));
        there_.set();
    }
    /// Inside the callable, once.
    void let_go() {
        if (!gone_.exchange(true)) {
            CHECK(there_.wait());
            object_.reset();
            let_go_.set();
        }
    }
    bool wait() { return let_go_.wait(); }

private:
    std::optional<T> object_;
    std::atomic<bool> gone_{false};
    Signal there_, let_go_;
};

template <class T, class Make>
void ends_inside_its_own_callable(Make make) {
    // The callable is deleted on a thread of the pool, after it has returned: the slot lasts until then.
    const Pool pool = make_pool();
    Slot<T> slot;
    make(pool, slot);
    CHECK(slot.wait());
    CHECK(pool.shutdown(PATIENCE).value().drained);
}

} // namespace

TEST_CASE("a destructor waits for the callable that runs") {
    const Pool pool = make_pool();
    for (const auto &each : WAITS) {
        INFO(each.first);
        Busy busy;
        each.second(pool, busy);
        CHECK(busy.is_over());
    }
    CHECK_FALSE(DO_NOT_WAIT.empty());
}

/// The same where hosts drive the pool, and this thread is between two of their stays at any moment.
TEST_CASE("a destructor waits for the callable that a host runs which comes and goes") {
    const Pool pool = Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value();
    std::atomic<bool> over{false};
    std::thread host([&] {
        for (int n = 0; !over; ++n) {
            pool.join(n % 2 == 0 ? 0ns : 1ms).value();
        }
    });
    for (const auto &each : WAITS) {
        INFO(each.first);
        Busy busy;
        each.second(pool, busy);
        CHECK(busy.is_over());
    }
    over = true;
    host.join();
}

TEST_CASE("what no host has begun does not begin behind the destructor") {
    for (const auto &each : UNBEGUN) {
        INFO(each.first);
        const Pool pool = Pool::create(paceline::Config().set_threads(0)).value();
        Unbegun code;
        each.second(pool, code);
        code.over = true;
        CHECK(code.left == 0);
        for (int n = 0; n < 5; ++n) {
            pool.join(0ns).value();
        }
        CHECK(code.late == 0);
    }
}

TEST_CASE("an object that goes inside its own callable does not wait for it") {
    ends_inside_its_own_callable<paceline::Handle>([](const Pool &pool, auto &slot) {
        slot.put(pool.every(1ms, [&slot] { return slot.let_go(), Flow::Wait; }).value());
    });
    ends_inside_its_own_callable<paceline::Ring<int>>([](const Pool &pool, auto &slot) {
        auto ring = paceline::Ring<int>::serial(pool, 8, [&slot](paceline::Events<int>) {
                        slot.let_go();
                    }).value();
        ring.publish(1).value();
        slot.put(std::move(ring));
    });
    ends_inside_its_own_callable<paceline::Strand>([](const Pool &pool, auto &slot) {
        auto strand = pool.strand().value();
        strand.post([&slot] { slot.let_go(); }).value();
        slot.put(std::move(strand));
    });
    ends_inside_its_own_callable<paceline::Udp>([](const Pool &pool, auto &slot) {
        slot.put(socket_for(pool, [&slot] { slot.let_go(); }).value());
    });
    ends_inside_its_own_callable<paceline::Server>([](const Pool &pool, auto &slot) {
        auto server =
            paceline::Server::create(pool, paceline::ServerConfig().add_listener(Listen{"127.0.0.1:0"}),
                                     [&slot](Conn &) {
                                         slot.let_go();
                                         return nullptr;
                                     })
                .value();
        const auto address = server.address().value();
        Client client(server);
        slot.put(std::move(server));
        CHECK(slot.wait());
    });
    ends_inside_its_own_callable<paceline::Http>([](const Pool &pool, auto &slot) {
        auto http = paceline::Http::create(pool).value();
        http.route("GET", "/",
                   [&slot](const Request &, Response response) {
                       slot.let_go();
                       (void)response.send("");
                   })
            .value();
        http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
        Client client(http);
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        slot.put(std::move(http));
        CHECK(slot.wait());
    });
    ends_inside_its_own_callable<paceline::Signals>([](const Pool &pool, auto &slot) {
        const std::int32_t numbers[] = {SIGUSR2};
        slot.put(paceline::Signals::create(pool, numbers, [&slot](int) { slot.let_go(); }).value());
        CHECK(kill(getpid(), SIGUSR2) == 0);
        CHECK(slot.wait());
    });
    ends_inside_its_own_callable<paceline::Periodic>([](const Pool &pool, auto &slot) {
        const auto workers = paceline::WorkerPool::create(pool).value();
        slot.put(workers.task_type("once").value().every(1ms, [&slot] { slot.let_go(); }).value());
        CHECK(slot.wait());
    });
    for (const auto execution : {paceline::Execution::Serial, paceline::Execution::Inline,
                                 paceline::Execution::Concurrent, paceline::Execution::Strand}) {
        ends_inside_its_own_callable<paceline::Subscription>([&](const Pool &pool, auto &slot) {
            const auto hub = Hub::create(pool).value();
            slot.put(hub.subscribe(
                            "a", [&slot](const Message &) { slot.let_go(); },
                            paceline::SubscriptionConfig().set_execution(execution))
                         .value());
            (void)hub.publish("a", "x").value();
            CHECK(slot.wait());
        });
    }
    ends_inside_its_own_callable<paceline::Replay>([](const Pool &pool, auto &slot) {
        const auto hub = hub_with_history(pool);
        slot.put(
            hub.replay("a", paceline::ReplayFrom::now(), [&slot](const Message &) { slot.let_go(); })
                .value());
        (void)hub.publish("a", "x").value();
        CHECK(slot.wait());
    });
    ends_inside_its_own_callable<paceline::Watch>([](const Pool &pool, auto &slot) {
        const auto hub = Hub::create(pool).value();
        const auto box = hub.mailbox("a").value();
        (void)hub.publish("a", "x").value();
        slot.put(hub.watch(1ms, {paceline::Threshold::above("paceline_hub_waiting", 0)},
                           [&slot](const paceline::Crossing &) { slot.let_go(); })
                     .value());
        CHECK(slot.wait());
    });
}

TEST_CASE("two handlers that let go of each other's subscriptions do not wait for each other") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    std::optional<paceline::Subscription> one, other;
    std::atomic<int> inside{0};
    Signal done;
    const auto crosswise = [&](std::optional<paceline::Subscription> &its) {
        return [&](const Message &) {
            // Both run: each must find the other in its handler.
            for (++inside; inside < 2;) {
                std::this_thread::yield();
            }
            its.reset();
            done.set();
        };
    };
    one.emplace(hub.subscribe("a", crosswise(other)).value());
    other.emplace(hub.subscribe("a", crosswise(one)).value());
    (void)hub.publish("a", "x").value();
    CHECK(done.wait(2));
    CHECK(pool.shutdown(PATIENCE).value().drained);
}

TEST_CASE("what is ended by name is not waited for") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    Signal entered, go;
    const auto handler = [&](const Message &) {
        entered.set();
        CHECK(go.wait());
    };
    {
        auto subscription = hub.subscribe("a", handler).value();
        (void)hub.publish("a", "x").value();
        CHECK(entered.wait());
        CHECK_FALSE(subscription.unsubscribe(paceline::Unsubscribe::Async).value());
        // It goes while its handler waits for what comes afterwards.
    }
    go.set();
    CHECK(pool.shutdown(PATIENCE).value().drained);
}

TEST_CASE("what a task comes to is a std::future") {
    const Pool pool = make_pool();
    const auto code_of = [](auto future) {
        try {
            (void)future.get();
        } catch (const paceline::Exception &thrown) {
            return thrown.code();
        }
        return Code::Ok;
    };
    CHECK(pool.submit([] { return std::make_unique<int>(42); }).value().to_future().get() != nullptr);
    pool.submit([] {}).value().to_future().get();
    CHECK_THROWS_AS(
        pool.submit([]() -> int { throw std::logic_error("words"); }).value().to_future().get(),
        std::logic_error);
    {
        // Before its end and after it.
        Signal go;
        auto later = pool.submit([&] { return go.wait() ? 7 : 0; }).value().to_future();
        CHECK(later.wait_for(1ms) == std::future_status::timeout);
        go.set();
        CHECK(later.get() == 7);
        auto ended = pool.submit([] { return 8; }).value();
        while (!ended.is_done().value()) {
            std::this_thread::yield();
        }
        CHECK(std::move(ended).to_future().get() == 8);
        CHECK_FALSE(ended.valid());
        CHECK(code_of(std::move(ended).to_future()) == Code::Stale);
    }
    {
        const Pool held = make_pool(1);
        std::optional<Hold> hold(std::in_place, held);
        auto never = held.submit([] { return 1; }).value();
        CHECK(never.cancel().value());
        auto future = std::move(never).to_future();
        hold.reset();
        CHECK(code_of(std::move(future)) == Code::Cancelled);
    }

    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto kind = workers.task_type("futures").value();
    CHECK(*kind.submit([] { return std::make_unique<int>(42); }).value().to_future().get() == 42);
    kind.submit([] {}).value().to_future().get();
    try {
        kind.submit([]() -> int { throw std::logic_error("words"); }).value().to_future().get();
        FAIL("it has failed");
    } catch (const paceline::Exception &thrown) {
        CHECK(thrown.code() == Code::Failed);
        CHECK(std::string(thrown.what()) == "std::logic_error: words");
    }
    paceline::TaskOptions options;
    options.timeout = 1ms;
    Signal go, returned;
    CHECK(code_of(kind.submit([&] { (void)go.wait(), returned.set(); }, options).value().to_future()) ==
          Code::TimedOut);
    go.set();
    CHECK(returned.wait());
    options = {};
    options.delay = 1h;
    auto waits = kind.submit([] { return 1; }, options).value();
    CHECK(waits.cancel().value());
    CHECK(code_of(std::move(waits).to_future()) == Code::Cancelled);
    CHECK(code_of(std::move(waits).to_future()) == Code::Stale);
    auto ended = kind.submit([] { return 9; }).value();
    while (ended.status().value() < paceline::TaskStatus::Completed) {
        std::this_thread::yield();
    }
    CHECK(std::move(ended).to_future().get() == 9);
}

} // namespace of_ends
