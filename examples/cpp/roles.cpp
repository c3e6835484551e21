// Who leads, and who handles: ten events, three workers. One worker leads, which means that it waits for events. It sees
// one, hands the lead on, and handles the event itself.
//
//     c++ -std=c++17 examples/cpp/roles.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o roles && ./roles

#include <atomic>
#include <cstdio>
#include <paceline/pool.hpp>
#include <thread>

using namespace std::chrono_literals;

static thread_local unsigned worker;

// The worker that leads now.
static unsigned leader(const paceline::Pool &pool) {
    for (;; std::this_thread::sleep_for(100us)) // between two leaders
        if (const auto thread = pool.stats().value().sets[0].leader) return unsigned(*thread) + 1;
}

int main() {
    const auto started = [](std::uint32_t thread) { worker = thread + 1; };
    const auto pool =
        paceline::Pool::create(paceline::Config().set_threads(3).set_leaders(1).set_on_start(started))
            .value();
    std::atomic<int> left{10};
    for (int event = 1; event <= 10; ++event) {
        const auto handle = [&pool, &left, event] {
            // By itself the lead is handed on when a handler takes long. A handler that knows that it will says so.
            paceline::promote_new_leader().value();
            std::printf("worker %u handles event %d, worker %u leads\n", worker, event, leader(pool));
            std::this_thread::sleep_for(30ms); // what the event takes
            --left;
        };
        // A timer is an event, as is a descriptor that becomes readable.
        pool.after(20ms * event, handle).value();
    }
    while (left > 0) std::this_thread::sleep_for(1ms);
}
