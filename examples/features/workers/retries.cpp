// Retries: with a back-off, as long as it may help; not after a permanent failure; at a time that the attempt says.
//
// feature: workers/retries

#include "../check.h"
#include <chrono>
#include <paceline/workers.hpp>
#include <stdexcept>
#include <string>

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
        return attempt.number();
    };
    int types = 0;
    for (const Retry &retry : {Retry::fixed(5, 1ms), Retry::linear(5, 1ms), Retry::random(5, 1ms, 3ms),
                               Retry::exponential(5, 1ms, 10ms)}) {
        paceline::TaskTypeConfig config;
        config.retry = retry;
        const auto name = "fetch " + std::to_string(++types); // a name has settings of its own
        const auto type = workers.task_type(name.c_str(), config).value();
        const auto report = type.submit(third_time).value().wait().value();
        CHECK(report.attempts == 3 && report.value == 3U);
        const auto permanent = [](Attempt &attempt) {
            attempt.permanent();
            throw std::runtime_error("no such number");
        };
        const auto failed = type.submit(permanent).value().wait().value();
        CHECK(failed.status == paceline::TaskStatus::Failed && failed.attempts == 1);
        CHECK(failed.message == "std::runtime_error: no such number");
    }
    return 0;
}
