// Threads are not added; how many of them take tasks follows the wait in the queue, between a minimum and all.
//
// feature: workers/scaling

#include "../check.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <paceline/workers.hpp>
#include <thread>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(4)).value();
    paceline::Scaling scaling;
    scaling.min_active = 1;
    scaling.high = 2ms;  // a longer wait: one thread more
    scaling.low = 200us; // a shorter one: one thread less
    scaling.period = 5ms;
    paceline::WorkersConfig config;
    config.scaling = scaling;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("work").value();
    std::atomic<int> inside{0}, most{0};
    for (int n = 0; n < 60000 && most < 2; ++n) {
        for (int more = 0; more < 4; ++more) {
            type.submit([&inside, &most] {
                    most = std::max(most.load(), ++inside);
                    std::this_thread::sleep_for(1ms);
                    --inside;
                })
                .value()
                .detach();
        }
        std::this_thread::sleep_for(1ms);
    }
    CHECK(most >= 2);
    pool.set_active(4).value(); // by hand: all
    CHECK(workers.shutdown().value().drained);
    return 0;
}
