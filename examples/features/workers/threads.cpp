// What each thread has run for a worker pool: the thread of a task, and the figures of each.
//
// feature: workers/threads
// prints:
//   each task has run on one of the 2 threads: true
//   attempts of both: 10, failed: 0

#include <cstdint>
#include <iostream>
#include <paceline/workers.hpp>

int main() {
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2)).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("work").value();
    bool known = true;
    for (int n = 0; n < 10; ++n) {
        known = known && type.submit([] {}).value().wait().value().worker.value() < 2;
    }
    std::cout << std::boolalpha << "each task has run on one of the 2 threads: " << known << '\n';
    std::uint64_t attempts = 0, failed = 0;
    for (const auto &thread : workers.worker_stats().value()) {
        attempts += thread.attempts;
        failed += thread.failed;
    }
    std::cout << "attempts of both: " << attempts << ", failed: " << failed << '\n';
    return 0;
}
