// Empty callables are refused by the call that is given them, with the parameter's name. tests/cpp.rs compares the places
// with those that take code of the user.

#include "client.hpp"

#include <csignal>
#include <functional>

// Its names are its own: all tests are one translation unit.
namespace of_what_is_empty {

using paceline::Hub;
using paceline::Message;
using paceline::Result;

namespace {

template <class... A>
using Hook = std::function<void(A...)>;
using Task = void (*)();

template <class T>
void refuses(const char *place, const Result<T> &result, const std::string &parameter) {
    INFO(std::string(place));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error() == Code::Invalid);
    CHECK(std::string(result.error().message()) == parameter + " is empty, but must be a callable");
}

struct Codec {
    Result<std::string> encode(const int &) const { return std::string(); }
    Result<int> decode(std::string_view) const { return 1; }
};

/// A setting that is empty is one that is not set.
constexpr const char *MAY_BE_EMPTY[] = {
    "Config::on_start", "Config::on_stop", "Config::on_slow", "Config::set_on_start",
    "Config::set_on_stop", "Config::set_on_slow", "LogConfig::on_record", "Listen::filter",
    "Listen::set_filter", "ServerConfig::on_exhausted", "ServerConfig::set_on_exhausted", "on_unhandled",
    // An object and not a function.
    "Hub::topic"};

} // namespace

TEST_CASE("an empty callable is refused by name") {
    CHECK(std::size(MAY_BE_EMPTY) > 0);
    const Pool pool = make_pool();
    const auto lane = pool.lane(paceline::Lane::High);
    const auto strand = pool.strand().value();
    const Task none = nullptr;
    const Hook<> empty;
    std::vector<Hook<>> batch{[] {}, {}};
    for (const auto &refused : {lane.post(none), lane.post(empty)}) {
        refuses("Posting::post", refused, "f");
    }
    refuses("Posting::try_post", lane.try_post(empty), "f");
    refuses("Posting::submit", lane.submit(empty), "f");
    refuses("Posting::try_submit", lane.try_submit(none), "f");
    refuses("Posting::post_batch", lane.post_batch(batch), "work[1]");
    refuses("Pool::post", pool.post(none), "f");
    refuses("Pool::try_post", pool.try_post(none), "f");
    refuses("Pool::submit", pool.submit(none), "f");
    refuses("Pool::try_submit", pool.try_submit(empty), "f");
    refuses("Pool::post_batch", pool.post_batch(batch), "work[1]");
    refuses("Pool::register_fd", pool.register_fd(0, std::function<Flow(int, Ready)>()), "handler");
    refuses("Pool::every", pool.every(1ms, paceline::Function<Flow()>()), "handler");
    refuses("Pool::after", pool.after(1ms, empty), "f");
    refuses("Strand::post", strand.post(none), "f");
    refuses("Strand::try_post", strand.try_post(empty), "f");
    refuses("Strand::post_batch", strand.post_batch(batch), "work[1]");
    refuses("Strand::submit", strand.submit(none), "f");
    refuses("Strand::try_submit", strand.try_submit(empty), "f");
    const Hook<paceline::Events<int>> events;
    refuses("Ring::serial", paceline::Ring<int>::serial(pool, 1, events), "handler");
    refuses("Ring::concurrent", paceline::Ring<int>::concurrent(pool, 1, events), "handler");
    paceline::Scope scope(pool);
    refuses("Scope::post", scope.post(none), "f");
    const std::int32_t numbers[] = {SIGUSR2};
    refuses("Signals::create", paceline::Signals::create(pool, numbers, Hook<int>()), "f");

    refuses("Server::create", paceline::Server::create(pool, {}, nullptr), "factory");
    auto http = paceline::Http::create(pool).value();
    refuses("Http::route", http.route("GET", "/", nullptr), "handler");
    refuses("Http::route_streaming", http.route_streaming("GET", "/", nullptr), "factory");
    using paceline::Request, paceline::Response, paceline::Next;
    refuses("Http::around", http.around(Hook<const Request &, Response, Next>()), "f");
    refuses("Http::fallback", http.fallback(Hook<const Request &, Response>()), "f");
    refuses("Http::on_end", http.on_end(Hook<const paceline::RequestEnd &>()), "f");
    http.route("GET", "/",
               [&](const Request &, Response response) {
                   auto body = response.stream().value();
                   refuses("Body::on_writable", body.on_writable(empty), "f");
                   refuses("Body::pump", body.pump(std::function<Flow(paceline::Body &)>()), "f");
                   body.finish().value();
               })
        .value();

    refuses("WorkerPool::create", paceline::WorkerPool::create(pool, Hook<pace_workers_config_t &>()),
            "change");
    const auto workers = paceline::WorkerPool::create(pool).value();
    refuses("WorkerPool::on_shutdown", workers.on_shutdown("x", empty), "f");
    const auto kind = workers.task_type("empty").value();
    refuses("TaskType::submit", kind.submit(none), "f");
    refuses("TaskType::post", kind.post(empty), "f");
    refuses("TaskType::post_batch", kind.post_batch(paceline::span<Hook<>>(batch)), "work[1]");
    refuses("TaskType::submit_batch", kind.submit_batch(batch), "work[1]");
    refuses("TaskType::every", kind.every(1ms, none), "f");
    refuses("WorkTask::on_end", kind.submit([] {}).value().on_end(Hook<paceline::TaskStatus>()), "f");
    paceline::WorkersConfig with;
    with.middleware = {nullptr};
    CHECK(std::string(paceline::WorkerPool::create(pool, with).error().message()) ==
          "middleware[0] is nullptr");

    const auto hub = Hub::create(pool, paceline::HubConfig().add_history({})).value();
    const Hook<const Message &> handler;
    const Hook<std::string_view, std::uint64_t> restarted;
    const auto now = paceline::ReplayFrom::now();
    const auto ignores = [](const Message &) {};
    refuses("MessageFilter::test", paceline::MessageFilter::test(std::function<bool(const Message &)>()),
            "says");
    refuses("Hub::subscribe", hub.subscribe("a", handler), "handler");
    refuses("Hub::subscribe", hub.subscribe("a", handler, [](std::string_view, std::uint64_t) {}),
            "handler");
    refuses("Hub::subscribe", hub.subscribe("a", ignores, restarted), "on_restart");
    refuses("Hub::subscribe_factory",
            hub.subscribe_factory("a", std::function<Hook<const Message &>()>()), "factory");
    CHECK(
        std::string(hub.subscribe_factory("a", [] { return Hook<const Message &>(); }).error().message())
            .find("the factory has returned an empty function") != std::string::npos);
    refuses("Hub::replay", hub.replay("a", now, handler), "handler");
    refuses("Hub::replay", hub.replay("a", now, handler, paceline::ReplayConfig()), "handler");
    refuses("Hub::replay", hub.replay("a", now, ignores, restarted), "on_restart");
    refuses("Hub::replay_factory",
            hub.replay_factory("a", now, std::function<Hook<const Message &>()>()), "factory");
    refuses("Hub::watch", hub.watch(1s, {}, Hook<const paceline::Crossing &>()), "on_crossing");
    refuses("Topic::subscribe", hub.topic<int>("a", Codec()).subscribe(Hook<const int &>()), "handler");
    refuses("Key::request_async",
            hub.key("a").value().request_async("", 1ms, Hook<Result<paceline::OwnedMessage>>()),
            "on_reply");
    refuses("Service::start", paceline::Service::start(pool, std::function<bool()>()), "is_well");
    const auto bridge =
        paceline::Bridge::open(hub, paceline::BridgeConfig("nats://127.0.0.1:1")
                                        .add_export(paceline::Export("a").set_at_least_once("A")));
    if (bridge) {
        refuses("PendingStore::then", bridge->publish("a", "").value().then(Hook<Result<void>>()),
                "stored");
        refuses("DurableQueue::task",
                paceline::DurableQueue::create(workers, "empty", "nats://127.0.0.1:1")
                    .value()
                    .task("x", Hook<const paceline::DurableJob &>()),
                "handler");
    }
    http.start(paceline::HttpConfig().add_listener(paceline::Listen{"127.0.0.1:0"})).value();
    Client client(http);
    client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    CHECK(client.receive().substr(0, 12) == "HTTP/1.1 200");
}

TEST_CASE("an empty function that is called all the same is an error") {
    const paceline::Function<void()> none;
    try {
        none();
        FAIL("it was called");
    } catch (const paceline::Exception &thrown) {
        CHECK(thrown.code() == Code::Invalid);
    }
}

} // namespace of_what_is_empty
