// Threads are not added; how many of them take tasks follows the wait in the queue, between a minimum and all.
//
// feature: workers/scaling
// prints:
//   the queue grows: another thread takes tasks
//   by hand: all 4 threads take tasks

#include <atomic>
#include <chrono>
#include <iostream>
#include <paceline/workers.hpp>
#include <thread>

using namespace std::chrono_literals;

int main() {
    std::atomic<int> inside{0};
    std::atomic<bool> two_at_once{false};
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
    const auto work = [&] {
        if (++inside == 2) {
            two_at_once = true;
        }
        std::this_thread::sleep_for(1ms);
        --inside;
    };
    while (!two_at_once) { // more than one thread can run
        for (int n = 0; n < 4; ++n) {
            type.submit(work).value().detach();
        }
        std::this_thread::sleep_for(1ms);
    }
    std::cout << "the queue grows: another thread takes tasks\n";
    pool.set_active(4).value();
    std::cout << "by hand: all 4 threads take tasks\n";
    workers.shutdown().value();
    return 0;
}
