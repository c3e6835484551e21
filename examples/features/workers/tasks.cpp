// Tasks with a report of how each ended; many at once; and those for which nobody waits.
//
// feature: workers/tasks

#include "../check.h"
#include <atomic>
#include <functional>
#include <paceline/workers.hpp>
#include <string_view>
#include <vector>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto squares = workers.task_type("square").value();

    auto task = squares.submit([] { return 5 * 5; }).value();
    const auto report = task.wait().value();
    CHECK(report.completed() && report.attempts == 1 && report.value == 25);
    CHECK(report.name == std::string_view("square"));

    std::vector<std::function<int()>> work;
    for (int n = 1; n <= 4; ++n) {
        work.push_back([n] { return n * n; });
    }
    int sum = 0;
    auto tasks = squares.submit_batch(work).value();
    for (auto &each : tasks) {
        sum += each.wait().value().value.value();
    }
    CHECK(sum == 30);

    std::atomic<int> posted{0};
    squares.post([&posted] { ++posted; }).value(); // fire and forget
    WAIT_FOR(posted == 1);
    return 0;
}
