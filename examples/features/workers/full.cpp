// Bounded: what a submission does when there is no room, here to be refused, to run at once, or to drop the oldest.
//
// feature: workers/full

#include "../check.h"
#include <atomic>
#include <paceline/workers.hpp>
#include <utility>
#include <vector>

using paceline::OverloadPolicy;

int main() {
    const auto pool =
        paceline::Pool::create(paceline::Config().set_threads(1).set_lane_capacity(4)).value();
    paceline::WorkersConfig config;
    config.max_droppable = 1;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("gate").value();
    const auto or_else = [](OverloadPolicy policy) {
        paceline::TaskOptions options;
        options.full = policy;
        return options;
    };
    std::atomic<bool> closed{false}, opened{false};
    const auto gate = type.submit([&] {
                              closed = true;
                              WAIT_FOR(opened);
                          })
                          .value();
    WAIT_FOR(closed); // the only thread is inside

    auto oldest = type.submit([] {}, or_else(OverloadPolicy::drop_oldest())).value();
    auto newer = type.submit([] {}, or_else(OverloadPolicy::drop_oldest())).value();
    CHECK(oldest.wait().value().status == paceline::TaskStatus::Rejected);

    std::vector<paceline::WorkTask<void>> accepted;
    while (auto task = type.submit([] {}, or_else(OverloadPolicy::reject()))) {
        accepted.push_back(*std::move(task));
        CHECK(accepted.size() < 100);
    }
    bool ran = false;
    const auto here = type.submit([&ran] { ran = true; }, or_else(OverloadPolicy::run_here())).value();
    CHECK(ran); // in this thread
    opened = true;
    auto waited = type.submit([] {}, or_else(OverloadPolicy::wait())).value();
    CHECK(waited.wait().value().completed());
    return 0;
}
