// A task that does not return after its time is over cannot be killed: its thread is reported as stuck until it returns.
//
// feature: workers/stuck

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/workers.hpp>

using namespace std::chrono_literals;

int main() {
    std::atomic<bool> opened{false};
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2)).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("hang").value();
    paceline::TaskOptions options;
    options.timeout = options.grace = 5ms;
    auto task = type.submit([&opened] { WAIT_FOR(opened); }, options).value();
    // Nobody waits for the thread.
    CHECK(task.wait().value().status == paceline::TaskStatus::TimedOut);
    WAIT_FOR(workers.health().value().stuck == 1);
    opened = true;
    WAIT_FOR(workers.health().value().stuck == 0);
    return 0;
}
