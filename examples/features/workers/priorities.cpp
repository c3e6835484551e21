// Priorities: what is more urgent begins first, and what is critical can have a thread of its own.
//
// feature: workers/priorities

#include "../check.h"
#include <atomic>
#include <paceline/workers.hpp>
#include <string>

using paceline::Lane;

int main() {
    // One thread, and one more for critical tasks alone. By default what has waited for a second is looked at, too.
    auto config = paceline::Config().set_threads(1).set_reserve(Lane::Critical, 1);
    config.set_ageing(paceline::forever);
    const auto pool = paceline::Pool::create(config).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("note").value();
    std::atomic<bool> closed{false}, opened{false};
    std::string order; // one thread writes it
    const auto in = [](Lane lane) {
        paceline::TaskOptions options;
        options.lane = lane;
        return options;
    };

    auto gate = type.submit([&] {
                        closed = true;
                        WAIT_FOR(opened);
                    })
                    .value();
    WAIT_FOR(closed);
    auto low = type.submit([&order] { order += 'l'; }, in(Lane::Low)).value();
    auto normal = type.submit([&order] { order += 'n'; }, in(Lane::Normal)).value();
    auto high = type.submit([&order] { order += 'h'; }, in(Lane::High)).value();
    // The thread of the pool is blocked, and this ends all the same.
    CHECK(type.submit([] {}, in(Lane::Critical)).value().wait().value().completed());
    opened = true;
    CHECK(workers.shutdown().value().drained && order == "hnl");
    return 0;
}
