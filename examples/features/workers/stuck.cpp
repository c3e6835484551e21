// A task that does not return after its time is over cannot be killed: its thread is reported as stuck until it returns.
//
// feature: workers/stuck
// prints:
//   the task: timed out
//   threads that are stuck: 1
//   the task returns
//   threads that are stuck: 0

#include <chrono>
#include <cstddef>
#include <future>
#include <iostream>
#include <paceline/workers.hpp>
#include <thread>

using namespace std::chrono_literals;

static void wait_until_stuck(const paceline::WorkerPool &workers, std::size_t threads) {
    while (workers.health().value().stuck != threads) {
        std::this_thread::sleep_for(1ms);
    }
    std::cout << "threads that are stuck: " << threads << '\n';
}

int main() {
    std::promise<void> go_on;
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2)).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("hang").value();
    paceline::TaskOptions options;
    options.timeout = options.grace = 5ms;
    const auto hang = [&go_on] {
        go_on.get_future().wait(); // does not ask whether it is cancelled
        std::cout << "the task returns\n";
    };
    auto task = type.submit(hang, options).value();
    const bool timed_out = task.wait().value().status == paceline::TaskStatus::TimedOut;
    std::cout << "the task: " << (timed_out ? "timed out\n" : "in time\n"); // its thread still hangs
    wait_until_stuck(workers, 1);
    go_on.set_value();
    wait_until_stuck(workers, 0);
    return 0;
}
