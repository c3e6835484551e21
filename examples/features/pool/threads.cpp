// A fixed pool of threads, made at its start and pinned to CPUs.
//
// feature: pool/threads

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <sched.h>
#include <string>

int main() {
    std::atomic<int> begun{0}, ended{0};
    const int cpu = sched_getcpu();
    {
        const auto pool =
            paceline::Pool::create(paceline::Config()
                                       .set_threads(2)
                                       .set_max_joined(0) // no places for threads of the program
                                       .set_name("pinned")
                                       .set_pin(std::to_string(cpu)) // or "compact", "spread", "none"
                                       .set_pin_strict()
                                       .set_on_start([&begun](std::uint32_t) { ++begun; })
                                       .set_on_stop([&ended](std::uint32_t) { ++ended; }))
                .value();
        const auto threads = pool.stats().value().threads;
        CHECK(threads.size() == 2);
        CHECK(threads[1].cpu == static_cast<std::uint32_t>(cpu) && !threads[1].pin_failed);
    } // the pool is destroyed: its threads end
    CHECK(begun == 2 && ended == 2);
    return 0;
}
