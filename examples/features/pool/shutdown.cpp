// The end: a drain completes what was accepted, a stop cancels what has not begun, and every task is accounted for.
//
// feature: pool/shutdown

#include "../check.h"
#include <chrono>
#include <paceline/pool.hpp>
#include <thread>

static paceline::Pool busy_pool() {
    auto pool = paceline::Pool::create(paceline::Config().set_threads(1)).value();
    for (int n = 0; n < 100; ++n) {
        pool.post([] { std::this_thread::sleep_for(std::chrono::microseconds(100)); }).value();
    }
    return pool;
}

int main() {
    const auto drained = busy_pool();
    CHECK(drained.shutdown(paceline::forever).value().drained);
    CHECK(drained.audit().value().completed == 100 && drained.audit().value().balances);
    CHECK(drained.post([] {}).error() == paceline::Code::ShutDown);

    const auto stopped = busy_pool();
    const auto report = stopped.stop_now().value();
    const auto audit = stopped.audit().value();
    CHECK(audit.completed + audit.cancelled == 100 && audit.cancelled == report.cancelled);
    CHECK(audit.balances && audit.in_flight == 0);
    return 0;
}
