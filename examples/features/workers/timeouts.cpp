// Limits in time, of one attempt and of all of them, and cancellation. No code is killed: an attempt sees that it should
// end.
//
// feature: workers/timeouts

#include "../check.h"
#include <chrono>
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

    paceline::TaskOptions of_attempts;
    of_attempts.timeout = 5ms; // of an attempt, of which there may be several
    of_attempts.retry = paceline::Retry::fixed(2, 1ms);
    const auto report = type.submit(until_cancelled, of_attempts).value().wait().value();
    CHECK(report.status == TaskStatus::TimedOut && report.attempts == 3);

    paceline::TaskOptions of_all;
    of_all.deadline = 5ms; // of all attempts, and of the waits between them
    CHECK(type.submit(until_cancelled, of_all).value().wait().value().status == TaskStatus::TimedOut);

    auto task = type.submit(until_cancelled).value();
    // True: it waited, and has ended. False: it runs, and sees that it should end.
    (void)task.cancel().value();
    CHECK(task.wait().value().status == TaskStatus::Cancelled);
    return 0;
}
