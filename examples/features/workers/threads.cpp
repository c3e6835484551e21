// What each thread has run for a worker pool: the thread of a task, and the figures of each.
//
// feature: workers/threads

#include "../check.h"
#include <cstdint>
#include <paceline/workers.hpp>

int main() {
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2)).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("work").value();
    for (int n = 0; n < 10; ++n) {
        const auto report = type.submit([] {}).value().wait().value();
        CHECK(report.completed() && report.worker.value() < 2);
    }
    std::uint64_t attempts = 0;
    for (const auto &thread : workers.worker_stats().value()) {
        attempts += thread.attempts;
        CHECK(!thread.stuck && thread.failed == 0 && thread.utilisation <= 1);
    }
    CHECK(attempts == 10);
    return 0;
}
