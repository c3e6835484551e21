// The end in phases: no new tasks, a drain, a stop of what is left, hooks that clean up; and a report.
//
// feature: workers/shutdown

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/workers.hpp>
#include <thread>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("endless").value();
    std::atomic<bool> running{false}, cleaned{false};
    workers.on_shutdown("close the database", [&cleaned] { cleaned = true; }).value();
    const auto until_stopped = [&running](paceline::Attempt &attempt) {
        running = true;
        while (!attempt.is_cancelled()) {
            std::this_thread::sleep_for(1ms);
        }
    };
    const auto task = type.submit(until_stopped).value();
    WAIT_FOR(running);

    // Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute.
    const auto report = workers.shutdown({10ms, 1min, 1min}).value();
    CHECK(!report.drained && report.stuck == 0 && !report.lines.empty());
    CHECK(cleaned && report.failed_hooks == 0);
    CHECK(type.submit(until_stopped).error() == paceline::Code::ShutDown);
    CHECK(workers.audit().value().balances);
    return 0;
}
