// A fixed pool of threads, made at its start and pinned to CPUs.
//
// feature: pool/threads
// prints:
//   2 threads
//   pinned to the CPU that was asked for: true
//   begun: 2, ended: 2

#include <atomic>
#include <cstdint>
#include <iostream>
#include <paceline/pool.hpp>
#include <sched.h>
#include <string>

int main() {
    std::atomic<int> begun{0}, ended{0};
    const int cpu = sched_getcpu();
    const auto config = paceline::Config()
                            .set_threads(2)
                            .set_max_joined(0) // no places for threads of the program
                            .set_name("pinned")
                            .set_pin(std::to_string(cpu)) // or "compact", "spread", "none"
                            .set_pin_strict()
                            .set_on_start([&begun](std::uint32_t) { ++begun; })
                            .set_on_stop([&ended](std::uint32_t) { ++ended; });
    {
        const auto pool = paceline::Pool::create(config).value();
        const auto threads = pool.stats().value().threads;
        std::cout << threads.size() << " threads\n";
        std::cout << std::boolalpha << "pinned to the CPU that was asked for: "
                  << (threads[1].cpu == static_cast<std::uint32_t>(cpu)) << '\n';
    } // the pool is destroyed: its threads end
    std::cout << "begun: " << begun << ", ended: " << ended << '\n';
    return 0;
}
