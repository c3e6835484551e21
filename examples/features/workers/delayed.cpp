// Tasks that begin later, at a rate, or one at a time for each key.
//
// feature: workers/delayed

#include "../check.h"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <paceline/workers.hpp>
#include <vector>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("count").value();

    paceline::TaskOptions later;
    later.delay = 20ms;
    const auto begun = std::chrono::steady_clock::now();
    CHECK(type.submit([] {}, later).value().wait().value().completed());
    CHECK(std::chrono::steady_clock::now() - begun >= 20ms);

    int counters[2] = {0, 0}; // tasks of one key run one at a time and in order: no lock is needed
    std::vector<paceline::WorkTask<void>> tasks;
    for (std::uint64_t n = 0; n < 200; ++n) {
        paceline::TaskOptions keyed;
        keyed.key = n % 2;
        tasks.push_back(type.submit([&counters, n] { ++counters[n % 2]; }, keyed).value());
    }
    for (auto &task : tasks) {
        CHECK(task.wait().value().completed());
    }
    CHECK(counters[0] == 100 && counters[1] == 100);

    paceline::TaskTypeConfig config;
    config.rate = paceline::Rate{100, 1s, 1};
    config.max_running = 1; // at once
    const auto slow = workers.task_type("slow", config).value();
    const auto before = std::chrono::steady_clock::now();
    for (int n = 0; n < 5; ++n) {
        tasks.push_back(slow.submit([] {}).value());
    }
    for (int n = 0; n < 5; ++n) {
        CHECK(tasks[200 + static_cast<std::size_t>(n)].wait().value().completed());
    }
    CHECK(std::chrono::steady_clock::now() - before >= 30ms); // the first begins at once
    return 0;
}
