// A hundred tasks of mixed priority against a function that often fails: retries, a deadline, a periodic
// task beside them, a graceful stop, and a report.
//
//     c++ -std=c++17 examples/cpp/worker.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o worker
//
// feature: workers/retries
// feature: workers/shutdown

#include <paceline/workers.hpp>

#include <atomic>
#include <iomanip>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using paceline::Attempt;
using paceline::TaskStatus;

/// A backend as they are: it wants to be asked up to three times, does not know some numbers at all,
/// and never answers about 50.
static unsigned fetch(unsigned number, Attempt &attempt) {
    if (number == 50) {
        while (!attempt.is_cancelled()) {
            std::this_thread::sleep_for(1ms);
        }
        throw std::runtime_error("gave up");
    }
    if (number % 25 == 13) {
        attempt.permanent();
        throw std::runtime_error("there is no such number");
    }
    if (attempt.number() <= number % 3) {
        throw std::runtime_error("busy, ask again");
    }
    return number * number;
}

static const char *name(TaskStatus status) {
    switch (status) {
    case TaskStatus::Completed: return "COMPLETED";
    case TaskStatus::Failed: return "FAILED";
    case TaskStatus::TimedOut: return "TIMED_OUT";
    default: return "CANCELLED";
    }
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();

    // A name has settings, which single tasks may override.
    paceline::TaskTypeConfig settings;
    settings.retry = paceline::Retry::fixed(3, 5ms);
    settings.deadline = 60s;
    const auto kind = workers.task_type("fetch", settings).value();
    workers.on_shutdown("say goodbye", [] { std::cout << "clean-up: the backend is told goodbye\n"; })
        .value();

    // Every 5 ms, beside the tasks, until it goes.
    std::atomic<unsigned> ticks{0};
    auto heartbeat = std::make_optional(
        workers.task_type("heartbeat").value().every(5ms, [&ticks] { ++ticks; }).value());

    std::vector<paceline::WorkTask<unsigned>> tasks;
    for (unsigned number = 0; number < 100; ++number) {
        paceline::TaskOptions options;
        options.lane = static_cast<paceline::Lane>(number % 4);
        if (number == 50) {
            options.deadline = 200ms;
        }
        const auto work = [number](Attempt &attempt) { return fetch(number, attempt); };
        tasks.push_back(kind.submit(work, options).value());
    }

    std::map<TaskStatus, unsigned> ends;
    std::map<std::string, unsigned> faults;
    unsigned sum = 0;
    for (auto &task : tasks) {
        const auto report = task.wait().value();
        ++ends[report.status];
        sum += report.value.value_or(0);
        if (report.status == TaskStatus::Failed) {
            ++faults[report.message];
        }
    }
    while (ticks < 3) {
        std::this_thread::sleep_for(1ms);
    }
    heartbeat.reset();

    std::cout << std::left << std::setw(12) << "status" << std::right << std::setw(6) << "tasks" << '\n';
    for (const auto &[status, count] : ends) {
        std::cout << std::left << std::setw(12) << name(status) << std::right << std::setw(6) << count
                  << '\n';
    }
    std::cout << "the squares add up to " << sum << '\n';
    for (const auto &[fault, count] : faults) {
        std::cout << count << " failed, because " << fault << '\n';
    }
    std::cout << "attempts that were followed by another: " << kind.stats().value().retried << '\n'
              << "the periodic task ran at least 3 times\n";

    const auto report = workers.shutdown().value();
    std::cout << std::boolalpha << "drained: " << report.drained << ", stuck: " << report.stuck
              << "\nthe books balance: " << workers.audit().value().balances << '\n';
}
