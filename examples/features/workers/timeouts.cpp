// Limits in time, of one attempt and of all of them, and cancellation. No code is killed: an attempt sees that it should
// end.
//
// feature: workers/timeouts
// prints:
//   5 ms for each attempt: timed out
//   5 ms for the task: timed out
//   cancelled: true

#include <chrono>
#include <iostream>
#include <paceline/workers.hpp>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using paceline::Attempt;
using paceline::TaskStatus;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("slow").value();
    const auto until_cancelled = [](Attempt &attempt) {
        while (!attempt.is_cancelled()) {
            std::this_thread::sleep_for(1ms);
        }
        throw std::runtime_error("given up");
    };
    const auto run = [&](const char *limit, const paceline::TaskOptions &options) {
        const auto report = type.submit(until_cancelled, options).value().wait().value();
        std::cout << limit << (report.status == TaskStatus::TimedOut ? ": timed out\n" : ": ended\n");
    };

    paceline::TaskOptions of_attempts;
    of_attempts.timeout = 5ms;
    of_attempts.retry = paceline::Retry::fixed(2, 1ms);
    run("5 ms for each attempt", of_attempts);

    paceline::TaskOptions of_all;
    of_all.deadline = 5ms; // of all attempts, and of the waits between them
    run("5 ms for the task", of_all);

    auto task = type.submit(until_cancelled).value();
    // True: it waited, and has ended. False: it runs, and sees that it should end.
    (void)task.cancel().value();
    std::cout << std::boolalpha << "cancelled: " << (task.wait().value().status == TaskStatus::Cancelled)
              << '\n';
    return 0;
}
