// A budget for retries: while a backend is down, only some of its failures are tried again.
//
// feature: workers/budget
// prints:
//   50 tasks have failed
//   retries that the budget has refused: some
//   retries without a budget: 150, with it: fewer

#include <chrono>
#include <iostream>
#include <paceline/workers.hpp>
#include <stdexcept>
#include <vector>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    paceline::TaskTypeConfig config;
    config.retry = paceline::Retry::fixed(3, std::chrono::milliseconds(1));
    config.retry_budget = paceline::RetryBudget{0.1, 1, 5}; // of the tasks, per second, burst
    const auto type = workers.task_type("fetch", config).value();
    std::vector<paceline::WorkTask<void>> tasks;
    for (int n = 0; n < 50; ++n) {
        tasks.push_back(type.submit([] { throw std::runtime_error("the backend is down"); }).value());
    }
    for (auto &task : tasks) {
        (void)task.wait().value();
    }
    workers.shutdown().value();
    const auto stats = type.stats().value();
    std::cout << stats.failed << " tasks have failed\n"
              << "retries that the budget has refused: "
              << (stats.retries_refused > 0 ? "some\n" : "none\n")
              << "retries without a budget: 150, with it: "
              << (stats.retried < 150 ? "fewer\n" : "as many\n");
    return 0;
}
