// Host threads: joining for a while.

#include "common.hpp"

#include <poll.h>

namespace {
/// Without threads of its own.
Pool make_hosted() { return Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value(); }
} // namespace

TEST_CASE("a host that joins runs what is ready") {
    const Pool pool = Pool::create(paceline::Config().set_threads(0).set_max_turn(1s)).value();
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

TEST_CASE("who waits in a pool without threads takes part") {
    const Pool pool = make_hosted();
    int timers = 0;
    pool.after(1ms, [&] { ++timers; }).value();
    auto task = pool.submit([] { return 7; }).value();
    CHECK(task.wait().value() == 7);
    CHECK(pool.strand().value().submit([] { return 8; }).value().wait_timeout(PATIENCE).value() == 8);
    pool.after(1ms, [&] { ++timers; }).value().wait().value();
    CHECK(timers >= 1);
    const auto workers = paceline::WorkerPool::create(pool).value();
    paceline::TaskTypeConfig config;
    config.retry = paceline::Retry::fixed(1, 1ms);
    const auto kind = workers.task_type("hosted", config).value();
    std::atomic<int> calls{0};
    const auto report = kind.submit([&] {
                                if (++calls == 1) {
                                    throw std::runtime_error("the first fails");
                                }
                            })
                            .value()
                            .wait()
                            .value();
    CHECK(report.completed());
    CHECK(report.attempts == 2);
    // It gives up in time, and what nobody runs is an error of whoever waits inside.
    Signal go;
    auto waits = pool.submit([&] { return go.wait(); }).value();
    CHECK(waits.wait_timeout(0ns).error() == Code::TimedOut);
    go.set();
    CHECK(waits.wait().value());
    auto inside =
        pool.submit([&] { return pool.submit([] { return 1; }).value().wait().error().code(); }).value();
    CHECK(inside.wait().value() == Code::WouldDeadlock);
    finish(pool);
}
