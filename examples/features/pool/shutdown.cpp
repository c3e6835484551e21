// The end: a drain completes what was accepted, a stop cancels what has not begun, and every task is accounted for.
//
// feature: pool/shutdown
// prints:
//   drained: 100 of 100 tasks are completed
//   another task: PACE_ESHUTDOWN
//   stopped: 100 of 100 tasks are completed or cancelled

#include <chrono>
#include <iostream>
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
    const auto report = drained.shutdown(paceline::forever).value();
    std::cout << (report.drained ? "drained: " : "not drained: ") << drained.audit().value().completed
              << " of 100 tasks are completed\n";
    const auto late = drained.post([] {});
    std::cout << "another task: " << paceline::name(late.error().code()) << '\n';

    const auto stopped = busy_pool();
    stopped.stop_now().value();
    const auto audit = stopped.audit().value();
    std::cout << "stopped: " << audit.completed + audit.cancelled
              << " of 100 tasks are completed or cancelled\n";
    return 0;
}
