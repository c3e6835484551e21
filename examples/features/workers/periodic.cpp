// A periodic task: again and again, beside the others, until its object is destroyed.
//
// feature: workers/periodic
// prints:
//   beat 1
//   beat 2
//   beat 3

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/workers.hpp>

int main() {
    int beats = 0;
    std::promise<void> third;
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("heartbeat").value();
    const auto beat = [&] {
        if (++beats <= 3) {
            std::cout << "beat " << beats << '\n';
        }
        if (beats == 3) {
            third.set_value();
        }
    };
    // A tick that comes while the last one still runs is skipped, or made up for later (Coalesce).
    const auto periodic =
        type.every(std::chrono::milliseconds(1), beat, paceline::MissedTick::Skip).value();
    third.get_future().wait();
    return 0;
}
