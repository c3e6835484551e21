// Tasks that begin later, at a rate, or one at a time for each key.
//
// feature: workers/delayed
// prints:
//   a delayed task, after 20 ms: true
//   tasks of two keys, without a lock: 100 and 100
//   5 tasks at a rate of 100 per second, in 30 ms or more: true

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/workers.hpp>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("work").value();

    paceline::TaskOptions later;
    later.delay = 20ms;
    const auto begun = Clock::now();
    type.submit([] {}, later).value().wait().value();
    std::cout << std::boolalpha << "a delayed task, after 20 ms: " << (Clock::now() - begun >= 20ms)
              << '\n';

    int counters[2] = {0, 0}; // tasks of one key run one at a time and in order: no lock is needed
    std::vector<paceline::WorkTask<void>> tasks;
    for (std::uint64_t n = 0; n < 200; ++n) {
        paceline::TaskOptions keyed;
        keyed.key = n % 2;
        tasks.push_back(type.submit([&counters, n] { ++counters[n % 2]; }, keyed).value());
    }
    for (auto &task : tasks) {
        task.wait().value();
    }
    std::cout << "tasks of two keys, without a lock: " << counters[0] << " and " << counters[1] << '\n';

    paceline::TaskTypeConfig config;
    config.rate = paceline::Rate{100, 1s, 1};
    config.max_running = 1; // at once
    const auto slow = workers.task_type("slow", config).value();
    const auto before = Clock::now();
    std::vector<paceline::WorkTask<void>> slow_tasks;
    for (int n = 0; n < 5; ++n) {
        slow_tasks.push_back(slow.submit([] {}).value());
    }
    for (auto &task : slow_tasks) {
        task.wait().value();
    }
    // The first begins at once.
    std::cout << slow_tasks.size() << " tasks at a rate of 100 per second, in 30 ms or more: "
              << (Clock::now() - before >= 30ms) << '\n';
    return 0;
}
