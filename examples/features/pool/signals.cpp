// Signals of the process as events of the pool.
//
// feature: pool/signals

#include "../check.h"
#include <atomic>
#include <csignal>
#include <cstdint>
#include <paceline/pool.hpp>
#include <unistd.h>

int main() {
    const auto pool = paceline::Pool::create().value();
    std::atomic<int> number{0};
    const std::int32_t wanted[] = {SIGHUP};
    // In the main thread, before it starts others: they inherit what this blocks.
    const auto hang_ups =
        paceline::Signals::create(pool, wanted, [&number](int signal) { number = signal; }).value();
    const auto ends = paceline::Signals::shut_down(pool, paceline::forever).value(); // SIGTERM, SIGINT

    CHECK(kill(getpid(), SIGHUP) == 0);
    WAIT_FOR(number == SIGHUP);

    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK(ends.wait().value() == SIGTERM);
    CHECK(pool.shutdown(paceline::forever).value().drained);
    return 0;
}
