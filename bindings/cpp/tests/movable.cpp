// Callables that can only be moved are taken everywhere. tests/cpp.rs compares the places with those that take code of
// the user.

#include "common.hpp"

#include <csignal>

// Its names are its own: all tests are one translation unit.
namespace of_what_can_only_be_moved {

using paceline::Function;
using paceline::Hub;
using paceline::Message;

namespace {

/// A callable of any arguments that can only be moved, and answers with what it was made of, if anything.
template <class R>
auto movable(R answer) {
    return [answer = std::move(answer), is = std::make_unique<int>(1)](const auto &...) mutable -> R {
        return std::move(answer);
    };
}
auto movable() {
    return [is = std::make_unique<int>(1)](const auto &...) mutable {};
}
/// Of what is moved into it.
template <class... Given>
auto movable_of() {
    return [is = std::make_unique<int>(1)](Given...) {};
}

struct Codec {
    std::unique_ptr<int> is{};
    paceline::Result<std::string> encode(const int &) const { return std::string(); }
    paceline::Result<int> decode(std::string_view) const { return 1; }
};

/// It is compiled: each line names what it calls.
#define PLACE(name, ...) (void)name, (void)(__VA_ARGS__)

[[maybe_unused]] void every_place(const Pool &pool) {
    const auto lane = pool.lane(paceline::Lane::High);
    std::vector<decltype(movable())> batch;
    PLACE("Posting::post", lane.post(movable()));
    PLACE("Posting::try_post", lane.try_post(movable()));
    PLACE("Posting::submit", lane.submit(movable(1)));
    PLACE("Posting::try_submit", lane.try_submit(movable(1)));
    PLACE("Posting::post_batch", lane.post_batch(batch));
    PLACE("Pool::post", pool.post(movable()));
    PLACE("Pool::try_post", pool.try_post(movable()));
    PLACE("Pool::submit", pool.submit(movable(1)));
    PLACE("Pool::try_submit", pool.try_submit(movable(1)));
    PLACE("Pool::post_batch", pool.post_batch(batch));
    PLACE("Pool::register_fd", pool.register_fd(0, movable(Flow::Done)));
    PLACE("Pool::every", pool.every(1ms, movable(Flow::Done)));
    PLACE("Pool::after", pool.after(1ms, movable()));
    const auto strand = pool.strand().value();
    PLACE("Strand::post", strand.post(movable()));
    PLACE("Strand::post_batch", strand.post_batch(batch));
    PLACE("Strand::try_post", strand.try_post(movable()));
    PLACE("Strand::submit", strand.submit(movable(1)));
    PLACE("Strand::try_submit", strand.try_submit(movable(1)));
    PLACE("Ring::serial", paceline::Ring<int>::serial(pool, 1, movable()));
    PLACE("Ring::concurrent",
          paceline::Ring<int>::concurrent(pool, 1, movable_of<paceline::Events<int>>()));
    paceline::Scope scope(pool);
    PLACE("Scope::post", scope.post(movable()));
    const std::int32_t numbers[] = {SIGUSR2};
    PLACE("Signals::create", paceline::Signals::create(pool, numbers, movable()));
    PLACE("on_unhandled", paceline::on_unhandled(movable()));

    paceline::Config config;
    PLACE("Config::on_start", config.on_start = movable());
    PLACE("Config::on_stop", config.on_stop = movable());
    PLACE("Config::on_slow", config.on_slow = movable());
    PLACE("Config::set_on_start", config.set_on_start(movable()));
    PLACE("Config::set_on_stop", config.set_on_stop(movable()));
    PLACE("Config::set_on_slow", config.set_on_slow(1ms, movable()));
    paceline::LogConfig log;
    PLACE("LogConfig::on_record", log.on_record = movable());

    paceline::ServerConfig server;
    PLACE("ServerConfig::on_exhausted", server.on_exhausted = movable());
    PLACE("ServerConfig::set_on_exhausted", server.set_on_exhausted(movable()));
    using Handler = std::unique_ptr<paceline::ConnHandler>;
    PLACE("Server::create", paceline::Server::create(pool, server, movable(Handler())));
    paceline::Listen listen{"127.0.0.1:0"};
    PLACE("Listen::filter", listen.filter = movable(std::unique_ptr<paceline::Filter>()));
    PLACE("Listen::set_filter", listen.set_filter(movable(std::unique_ptr<paceline::Filter>())));

    auto http = paceline::Http::create(pool).value();
    PLACE("Http::route",
          http.route("GET", "/", movable_of<const paceline::Request &, paceline::Response>()));
    PLACE("Http::route_streaming",
          http.route_streaming("GET", "/", movable(std::unique_ptr<paceline::RequestBody>())));
    PLACE("Http::around",
          http.around(movable_of<const paceline::Request &, paceline::Response, paceline::Next>()));
    PLACE("Http::fallback", http.fallback(movable_of<const paceline::Request &, paceline::Response>()));
    PLACE("Http::on_end", http.on_end(movable_of<const paceline::RequestEnd &>()));
    const auto of_a_body = [](paceline::Body &body) {
        PLACE("Body::on_writable", body.on_writable(movable()));
        PLACE("Body::pump", body.pump(movable(Flow::Done)));
    };
    (void)of_a_body;

    const auto workers = paceline::WorkerPool::create(pool, movable()).value();
    PLACE("WorkerPool::create", workers);
    PLACE("WorkerPool::on_shutdown", workers.on_shutdown("", movable()));
    const auto kind = workers.task_type("").value();
    PLACE("TaskType::submit", kind.submit(movable(1)));
    PLACE("TaskType::post", kind.post(movable()));
    PLACE("TaskType::post_batch", kind.post_batch(paceline::span<decltype(movable())>(batch)));
    PLACE("TaskType::submit_batch", kind.submit_batch(batch));
    PLACE("TaskType::every", kind.every(1ms, movable()));
    PLACE("WorkTask::on_end", kind.submit(movable()).value().on_end(movable()));

    const auto hub = Hub::create(pool).value();
    PLACE("MessageFilter::test", paceline::MessageFilter::test(movable(true)));
    PLACE("Hub::subscribe", hub.subscribe("a", movable(), movable()));
    PLACE("Hub::subscribe", hub.subscribe("a", movable_of<const Message &>()));
    PLACE("Hub::replay", hub.replay("a", paceline::ReplayFrom::now(), movable_of<const Message &>()));
    auto factory = [only = std::make_unique<int>(1)] { return movable_of<const Message &>(); };
    PLACE("Hub::subscribe_factory", hub.subscribe_factory("a", std::move(factory)));
    PLACE("Hub::replay_factory",
          hub.replay_factory("a", paceline::ReplayFrom::now(), std::move(factory)));
    PLACE("Hub::replay", hub.replay("a", paceline::ReplayFrom::now(), movable(), movable()));
    PLACE("Hub::watch", hub.watch(1ms, {}, movable()));
    PLACE("Hub::topic", hub.topic<int>("a", Codec()));
    PLACE("Topic::subscribe", hub.topic<int>("a", Codec()).subscribe(movable_of<const int &>()));
    PLACE("Key::request_async", hub.key("a").value().request_async(
                                    "", 1ms, movable_of<paceline::Result<paceline::OwnedMessage>>()));
    PLACE("Service::start", paceline::Service::start(pool, movable(true)));
    PLACE("PendingStore::then", paceline::Bridge::open(hub, paceline::BridgeConfig())
                                    .value()
                                    .publish("a", "")
                                    .value()
                                    .then(movable_of<paceline::Result<void>>()));
    PLACE("DurableQueue::task", paceline::DurableQueue::create(workers, "", "")
                                    .value()
                                    .task("", movable_of<const paceline::DurableJob &>()));
}

} // namespace

TEST_CASE("a Function keeps what can only be moved, and copies what can be copied") {
    Function<int(int)> once = [is = std::make_unique<int>(1)](int more) { return *is += more; };
    const auto same = once;
    CHECK(once(1) == 2);
    CHECK(same(1) == 3);
    Function<int()> counts = [count = 0]() mutable { return ++count; };
    const auto other = counts;
    CHECK(counts() == 1);
    CHECK(counts() == 2);
    CHECK(other() == 1);
    const std::function<int()> none;
    int (*const nowhere)() = nullptr;
    CHECK_FALSE(Function<int()>(none));
    CHECK_FALSE(Function<int()>(nowhere));
    CHECK_FALSE(Function<int()>(nullptr));
    CHECK_FALSE(Function<int()>());
    CHECK(Function<int()>([] { return 1; }));
}

TEST_CASE("a setting that can only be moved is called") {
    Signal started;
    const auto config = paceline::Config().set_threads(1).set_pin("none").set_on_start(
        [&started, is = std::make_unique<int>(1)](std::uint32_t) { started.set(); });
    const Pool pool = Pool::create(config).value();
    CHECK(started.wait());
}

} // namespace of_what_can_only_be_moved
