// A periodic task: again and again, beside the others, until its object goes.
//
// feature: workers/periodic

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/workers.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("heartbeat").value();
    std::atomic<int> beats{0};
    // A tick that comes while the last one still runs is skipped, or made up for later (Coalesce).
    const auto periodic =
        type.every(
                std::chrono::milliseconds(1), [&beats] { ++beats; }, paceline::MissedTick::Skip)
            .value();
    WAIT_FOR(beats >= 3);
    CHECK(periodic.counts().value().runs >= 3);
    return 0;
}
