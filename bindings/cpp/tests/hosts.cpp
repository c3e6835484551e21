// Host threads: joining for a while, and pulling events as data.

#include "common.hpp"

#include <poll.h>

using paceline::Event;

namespace {
/// Without threads of its own.
Pool make_hosted() { return Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value(); }
} // namespace

TEST_CASE("a host that joins runs what is ready") {
    const Pool pool = make_hosted();
    int ran = 0;
    for (int n = 0; n < 5; ++n) {
        pool.post([&ran] { ++ran; }).value();
    }
    CHECK(pool.join(0ns).value() == 5);
    CHECK(ran == 5);
    finish(pool);
}

TEST_CASE("a descriptor tells when to join") {
    const Pool pool = make_hosted();
    Pipe pipe;
    std::string text;
    auto handle = pool.register_fd(pipe.reader(),
                                   [&](int fd, Ready) {
                                       text += read_all(fd);
                                       return Flow::Wait;
                                   })
                      .value();
    pollfd waiting{pool.pollable().value(), POLLIN, 0};
    while (poll(&waiting, 1, 0) == 1) {
        pool.join(0ns).value();
    }
    pipe.write("ping");
    CHECK(poll(&waiting, 1, 60'000) == 1);
    while (text.empty()) {
        pool.join(0ns).value();
    }
    CHECK(text == "ping");
    handle.deregister().value();
    finish(pool);
}

TEST_CASE("a host pulls events as data") {
    const Pool pool = make_hosted();
    Pipe pipe;
    auto handle =
        pool.pull_register(pipe.reader(), 11,
                           paceline::HandleOptions().set_interest(paceline::Interest::readable()))
            .value();
    auto ticks = pool.pull_every(1ms, 12).value();
    auto timer = pool.pull_after(1ms, 13).value();
    pool.pull_post(14).value();
    const std::uint64_t tokens[] = {15, 16};
    CHECK(pool.pull_post_batch(tokens).value() == 2);
    pipe.write("x");

    std::array<int, 17> seen{};
    std::array<Event, 4> events;
    const auto all_seen = [&] {
        return seen[11] && seen[12] && seen[13] && seen[14] && seen[15] && seen[16];
    };
    while (!all_seen()) {
        for (const Event &event : pool.pull(events, PATIENCE).value()) {
            ++seen[event.token];
            switch (event.token) {
            case 11:
                CHECK(event.is_ready());
                CHECK(event.readiness().readable());
                CHECK(read_all(pipe.reader()) == "x");
                break;
            case 12: CHECK(event.is_tick()); break;
            case 13: CHECK(event.is_timer()); break;
            default: CHECK(event.is_task());
            }
        }
    }
    CHECK(pool.pull_done().has_value());
    CHECK((seen[11] == 1 && seen[13] == 1 && seen[14] == 1));
    CHECK(ticks.deregister().has_value());
    CHECK(handle.deregister().has_value());
    CHECK(pool.pull(events, 0ns).error() == Code::TimedOut);
    CHECK_FALSE(timer.is_pending().value());
    finish(pool);
    CHECK(pool.pull(events, paceline::forever).error() == Code::ShutDown);
}

TEST_CASE("an event may be completed early, with another answer") {
    const Pool pool = make_hosted();
    Pipe pipe;
    auto handle =
        pool.pull_register(pipe.reader(), 1,
                           paceline::HandleOptions().set_interest(paceline::Interest::readable()))
            .value();
    pipe.write("stays unread");
    std::array<Event, 4> events;
    auto pulled = pool.pull(events, PATIENCE).value();
    REQUIRE(pulled.size() == 1);
    CHECK(pool.pull_complete(pulled[0].handle, Flow::Again).has_value());
    pulled = pool.pull(events, PATIENCE).value();
    REQUIRE(pulled.size() == 1);
    CHECK(pulled[0].token == 1);
    CHECK(pool.pull_complete(pulled[0].handle, Flow::Done).has_value());
    CHECK(pool.pull_complete(pulled[0].handle, Flow::Wait).error() == Code::Stale);
    CHECK_FALSE(handle.is_open().value());
    finish(pool);
}
