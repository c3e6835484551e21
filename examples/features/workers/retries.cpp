// Retries: with a back-off, as long as it may help; not after a permanent failure; at a time that the attempt says.
//
// feature: workers/retries
// prints:
//   fixed: attempts: 3
//   linear: attempts: 3
//   random: attempts: 3
//   exponential: attempts: 3
//   std::runtime_error: no such number, attempts: 1

#include <chrono>
#include <iostream>
#include <paceline/workers.hpp>
#include <stdexcept>
#include <utility>

using namespace std::chrono_literals;
using paceline::Attempt;
using paceline::Retry;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto third_time = [](Attempt &attempt) {
        if (attempt.number() < 3) {
            attempt.retry_after(2ms); // what the backend has asked for
            throw std::runtime_error("busy, ask again");
        }
    };
    const std::pair<const char *, Retry> shapes[] = {
        {"fixed", Retry::fixed(5, 1ms)},
        {"linear", Retry::linear(5, 1ms)},
        {"random", Retry::random(5, 1ms, 3ms)},
        {"exponential", Retry::exponential(5, 1ms, 10ms)},
    };
    for (const auto &shape : shapes) {
        paceline::TaskTypeConfig config;
        config.retry = shape.second;
        const auto type = workers.task_type(shape.first, config).value();
        const auto report = type.submit(third_time).value().wait().value();
        std::cout << shape.first << ": attempts: " << report.attempts << '\n';
    }

    paceline::TaskOptions options;
    options.retry = Retry::fixed(5, 1ms);
    const auto in_vain = [](Attempt &attempt) {
        attempt.permanent();
        throw std::runtime_error("no such number");
    };
    const auto type = workers.task_type("in vain").value();
    const auto report = type.submit(in_vain, options).value().wait().value();
    std::cout << report.message << ", attempts: " << report.attempts << '\n';
    return 0;
}
