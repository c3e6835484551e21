// A program of its own, for -fno-exceptions -fno-rtti: errors are values there too.

#include "paceline.hpp"
#include "paceline.hpp" // once is enough, twice does no harm

#include <cstdio>

int main() {
    auto pool = paceline::Pool::create(paceline::Config().set_threads(2).set_pin("none"));
    if (!pool) {
        return 1;
    }
    auto task = pool->submit([] { return 6 * 7; });
    if (!task) {
        return 2;
    }
    const auto answer = task->wait_timeout(std::chrono::minutes(1));
    if (!answer || *answer != 42) {
        return 3;
    }
    if (paceline::Pool::create(paceline::Config().set_threads(100'000)).has_value()) {
        return 4;
    }
    const auto report = pool->shutdown(std::chrono::minutes(1));
    return report && report->drained ? std::puts("42") < 0 : 5;
}
