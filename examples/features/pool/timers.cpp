// Timers: one that rings once, one that rings again and again, and one that is put off and then cancelled.
//
// feature: pool/timers

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;
using paceline::Flow;

int main() {
    const auto pool = paceline::Pool::create().value();
    std::atomic<int> once{0}, never{0}, ticks{0};

    pool.after(1ms, [&once] { ++once; }).value();
    WAIT_FOR(once == 1);

    const auto ticker =
        pool.every(1ms, [&ticks] { return ++ticks < 3 ? Flow::Wait : Flow::Done; }).value();
    WAIT_FOR(ticks == 3);

    const auto timer = pool.after(1h, [&never] { ++never; }).value();
    CHECK(timer.postpone(2h).value()); // from now
    CHECK(timer.cancel().value() && never == 0);
    return 0;
}
