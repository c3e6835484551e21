// The end in phases: no new tasks, a drain, a stop of what is left, hooks that clean up; and a report.
//
// feature: workers/shutdown
// prints:
//   the task is asked to stop
//   the hook closes the database
//   drained: false, threads that are stuck: 0
//   another task: PACE_ESHUTDOWN

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/workers.hpp>
#include <thread>

using namespace std::chrono_literals;

int main() {
    std::promise<void> running;
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("endless").value();
    workers.on_shutdown("close the database", [] { std::cout << "the hook closes the database\n"; })
        .value();
    const auto until_stopped = [&running](paceline::Attempt &attempt) {
        running.set_value();
        while (!attempt.is_cancelled()) {
            std::this_thread::sleep_for(1ms);
        }
        std::cout << "the task is asked to stop\n";
    };
    const auto task = type.submit(until_stopped).value();
    running.get_future().wait();

    // Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute.
    const auto report = workers.shutdown({10ms, 1min, 1min}).value();
    std::cout << std::boolalpha << "drained: " << report.drained
              << ", threads that are stuck: " << report.stuck << '\n';
    const auto late = type.submit([] {});
    std::cout << "another task: " << paceline::name(late.error().code()) << '\n';
    return 0;
}
