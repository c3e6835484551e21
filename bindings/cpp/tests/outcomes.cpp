// What callables return: a failed Result or an Error is a failure with its text wherever nobody else gets it.

#include "client.hpp"

#include <sys/socket.h>

// Its names are its own: all tests are one translation unit.
namespace of_outcomes {

using paceline::Error;
using paceline::Hub;
using paceline::Message;
using paceline::Receipt;
using paceline::Result;

namespace {

const Error REFUSED(Code::Full, "no room for it");

/// Hears the texts of what nobody waits for, while it lives.
class Listener {
public:
    Listener() {
        before_ = paceline::on_unhandled([this](std::exception_ptr thrown) {
            try {
                std::rethrow_exception(thrown);
            } catch (const paceline::Exception &exception) {
                CHECK(exception.code() == Code::Full);
                CHECK(std::string(exception.what()) == "no room for it");
                heard.set();
            }
        });
    }
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;
    ~Listener() { (void)paceline::on_unhandled(std::move(before_)); }

    Signal heard;

private:
    paceline::Unhandled before_;
};

/// A message that this handler gets is a dead letter, with the error's text.
template <class Handler>
void fails(const Hub &hub, Handler handler) {
    const auto subscription = hub.subscribe("a", std::move(handler)).value();
    (void)hub.publish("a", "x").value();
    while (hub.dead_letters().value().empty()) {
        std::this_thread::yield();
    }
    CHECK(hub.remove_dead_letters().value().at(0).failure == "no room for it");
}

struct Codec {
    Result<std::string> encode(const int &) const { return std::string(); }
    Result<int> decode(std::string_view) const { return 1; }
};

} // namespace

TEST_CASE("an error that a handler of the hub returns is a failure of its message") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    fails(hub, [](const Message &) -> Result<Receipt> { return REFUSED; });
    fails(hub, [](const Message &) -> Result<void> { return REFUSED; });
    fails(hub, [](const Message &) { return REFUSED; });
    Signal handled;
    const auto succeeds =
        hub.subscribe("b", [&](const Message &) -> Result<int> { return handled.set(), 0; }).value();
    (void)hub.publish("b", "x").value();
    CHECK(handled.wait());
    const auto topic = hub.topic<int>("c", Codec());
    const auto values = topic.subscribe([](const int &) -> Result<int> { return REFUSED; }).value();
    (void)topic.publish(1).value();
    while (hub.dead_letters().value().empty()) {
        std::this_thread::yield();
    }
    CHECK(hub.remove_dead_letters().value().at(0).failure == "no room for it");
}

TEST_CASE("an error that a task returns to nobody is told and counted") {
    const Listener listener;
    auto &heard = const_cast<Listener &>(listener).heard;
    const Pool pool = make_pool();
    const auto strand = pool.strand().value();
    const auto refuses = []() -> Result<int> { return REFUSED; };
    pool.post(refuses).value();
    pool.post([large = std::string(100, 'x')] { return Error(REFUSED); }).value();
    pool.post([words = std::array<std::uint64_t, 3>()] {
            return words[0] == 0 ? Result<void>(REFUSED) : Result<void>();
        })
        .value();
    strand.post(refuses).value();
    pool.after(1ns, refuses).value();
    pool.post([]() -> Result<int> { return 1; }).value();
    CHECK(heard.wait(5));
    // Whoever waits gets what was returned.
    CHECK(pool.submit(refuses).value().wait().value().error() == Code::Full);
    finish(pool);
    CHECK(pool.audit().value().failed == 5);
}

TEST_CASE("an error that an attempt returns is its failure") {
    const Pool pool = make_pool();
    const auto workers = paceline::WorkerPool::create(pool).value();
    paceline::TaskTypeConfig config;
    config.retry = paceline::Retry::fixed(2, 1ms);
    const auto kind = workers.task_type("refuses", config).value();
    const auto report =
        kind.submit([]() -> Result<int> { return REFUSED; }).value().wait(PATIENCE).value();
    CHECK(report.status == paceline::TaskStatus::Failed);
    CHECK(report.attempts == 3);
    CHECK(report.message == "no room for it");
    CHECK_FALSE(report.value);
    std::atomic<int> calls{0};
    const auto later = kind.submit([&calls]() -> Result<int> {
                               return ++calls == 1 ? Result<int>(REFUSED) : Result<int>(7);
                           })
                           .value()
                           .wait(PATIENCE)
                           .value();
    CHECK(later.completed());
    CHECK(later.attempts == 2);
    CHECK(later.value.value().value() == 7);
    const auto nothing =
        kind.submit([]() -> Result<void> { return REFUSED; }).value().wait(PATIENCE).value();
    CHECK(nothing.message == "no room for it");
}

TEST_CASE("an error that a route returns is a 500, told and counted") {
    const Listener listener;
    const Pool pool = make_pool();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/",
               [](const paceline::Request &, paceline::Response) -> Result<void> { return REFUSED; })
        .value();
    http.start(paceline::HttpConfig().add_listener(paceline::Listen{"127.0.0.1:0"})).value();
    Client client(http);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(client.receive().substr(0, 12) == "HTTP/1.1 500");
    CHECK(const_cast<Listener &>(listener).heard.wait());
    CHECK(http.stats().value().panics == 1);
}

TEST_CASE("what is asked too early, or of no time, names the cause") {
    const Pool pool = make_pool();
    const auto http = paceline::Http::create(pool).value();
    const std::string early = "the HTTP server was not started: call start() before";
    CHECK(http.address().error().message() == early);
    CHECK(http.wait().error().message() == early);
    CHECK(http.drain(1s).error().message() == early);
    const std::string negative = "period is negative, but must be 1 microsecond to 100 years";
    CHECK(pool.every(-1s, [] { return Flow::Wait; }).error().message() == negative);
    const auto workers = paceline::WorkerPool::create(pool).value();
    CHECK(workers.task_type("x").value().every(-1s, [] {}).error().message() == negative);
    const auto queue = paceline::CompletionQueue::create(pool).value();
    CHECK(queue.every(-1s, 1).error().message() == negative);
}

TEST_CASE("a level handle without an interest is called when there is something to read") {
    const Pool pool = make_pool();
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    std::atomic<int> idle{0};
    Signal came;
    const auto handle = pool.register_fd(ends[0], paceline::HandleOptions().set_level(),
                                         [&](int fd, Ready ready) {
                                             if (!ready.readable()) {
                                                 ++idle;
                                             } else if (read_all(fd) == "x") {
                                                 came.set();
                                             }
                                             return Flow::Wait;
                                         })
                            .value();
    for (int n = 0; n < 100; ++n) {
        pool.submit([] {}).value().wait().value();
    }
    REQUIRE(::write(ends[1], "x", 1) == 1);
    CHECK(came.wait());
    CHECK(idle == 0);
    CHECK(paceline::HandleOptions().set_level().native().interest == PACE_INTEREST_READABLE);
    CHECK(paceline::HandleOptions().native().interest ==
          (PACE_INTEREST_READABLE | PACE_INTEREST_WRITABLE));
    (void)::close(ends[1]);
}

} // namespace of_outcomes
