// Tasks with a report of how each ended; many at once; and those for which nobody waits.
//
// feature: workers/tasks
// prints:
//   square: completed, attempts: 1, result: 25
//   a batch: 1 4 9 16
//   nobody waits for this

#include <functional>
#include <iostream>
#include <paceline/workers.hpp>
#include <vector>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto squares = workers.task_type("square").value();

    auto task = squares.submit([] { return 5 * 5; }).value();
    const auto report = task.wait().value();
    std::cout << report.name << (report.completed() ? ": completed" : ": failed")
              << ", attempts: " << report.attempts << ", result: " << report.value.value() << '\n';

    std::vector<std::function<int()>> work;
    for (int n = 1; n <= 4; ++n) {
        work.push_back([n] { return n * n; });
    }
    auto tasks = squares.submit_batch(work).value();
    std::cout << "a batch:";
    for (auto &each : tasks) {
        std::cout << ' ' << each.wait().value().value.value();
    }
    std::cout << '\n';

    squares.post([] { std::cout << "nobody waits for this\n"; }).value(); // fire and forget
    workers.shutdown().value();
    return 0;
}
