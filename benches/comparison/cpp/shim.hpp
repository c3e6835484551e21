// The C interface between the C++ rivals and the harness. The harness' side is src/submit/work.rs.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// The empty task: one increment of the executing thread's counter.
void comparison_tick();
// The task of the wake-up measurement: notes the time.
void comparison_started();
// Announces `count` tasks posted from inside the pool; false when it is enough.
bool comparison_go_on(size_t count);
// Tasks posted and not executed yet.
size_t comparison_in_flight();
}

// Posted from inside between two looks at the clock, and the most in flight at a time.
constexpr size_t kBurst = 256;
constexpr size_t kInFlight = 8192;

// One turn of the task that posts from inside, as `burst` in work.rs.
template <typename PostTick>
bool burst_of(PostTick post_tick) {
    if (comparison_in_flight() + kBurst < kInFlight) {
        if (!comparison_go_on(kBurst)) return false;
        for (size_t i = 0; i < kBurst; i++) post_tick();
    }
    return true;
}
