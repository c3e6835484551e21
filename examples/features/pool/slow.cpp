// A hook hears of handlers that take too long: once for each.
//
// feature: pool/slow

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;

int main() {
    std::atomic<int> told{0};
    const auto hear = [&told](const paceline::SlowReport &report) {
        CHECK(report.elapsed >= 10ms && report.running); // false: it has returned meanwhile
        ++told;
    };
    const auto config = paceline::Config().set_threads(2).set_on_slow(10ms, hear);
    const auto pool = paceline::Pool::create(config).value();
    pool.post([&told] { WAIT_FOR(told == 1); }).value();
    WAIT_FOR(told == 1);
    return 0;
}
