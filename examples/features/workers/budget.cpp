// A budget for retries: while a backend is down, only some of its failures are tried again.
//
// feature: workers/budget

#include "../check.h"
#include <chrono>
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
        CHECK(!task.wait().value().completed());
    }
    CHECK(workers.shutdown().value().drained);
    const auto stats = type.stats().value();
    CHECK(stats.failed == 50 && stats.retries_refused > 0 && stats.retried < 150);
    return 0;
}
