// Signals of the process as events of the pool.
//
// feature: pool/signals
// prints:
//   SIGHUP
//   SIGTERM has ended the pool: drained

#include <csignal>
#include <cstdint>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>
#include <unistd.h>

int main() {
    std::promise<int> hung_up;
    const auto pool = paceline::Pool::create().value();
    const std::int32_t wanted[] = {SIGHUP};
    // In the main thread, before it starts others: they inherit what this blocks. The handler runs on a thread of the
    // pool, so it may do whatever other functions may.
    const auto hang_ups = paceline::Signals::create(pool, wanted, [&hung_up](int number) {
                              hung_up.set_value(number);
                          }).value();
    const auto ends = paceline::Signals::shut_down(pool, paceline::forever).value(); // SIGTERM, SIGINT

    kill(getpid(), SIGHUP);
    std::cout << (hung_up.get_future().get() == SIGHUP ? "SIGHUP\n" : "another signal\n");

    kill(getpid(), SIGTERM);
    const bool terminated = ends.wait().value() == SIGTERM;
    const auto report = pool.shutdown(paceline::forever).value();
    std::cout << (terminated ? "SIGTERM" : "SIGINT")
              << " has ended the pool: " << (report.drained ? "drained" : "not drained") << '\n';
    return 0;
}
