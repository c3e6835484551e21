// Timers: one that rings once, one that is periodic, and one that is put off and then cancelled.
//
// feature: pool/timers
// prints:
//   it rang
//   tick 1
//   tick 2
//   tick 3
//   put off: true, cancelled: true

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;
using paceline::Flow;

int main() {
    std::promise<void> third;
    int ticks = 0;
    const auto pool = paceline::Pool::create().value();

    pool.after(1ms, [] { std::cout << "it rang\n"; }).value().wait().value();

    const auto tick = [&] {
        std::cout << "tick " << ++ticks << '\n';
        if (ticks < 3) {
            return Flow::Wait;
        }
        third.set_value();
        return Flow::Done;
    };
    const auto ticker = pool.every(1ms, tick).value();
    third.get_future().wait();

    const auto timer = pool.after(1h, [] { std::cout << "it never rings\n"; }).value();
    const bool put_off = timer.postpone(2h).value(); // from now
    const bool cancelled = timer.cancel().value();
    std::cout << std::boolalpha << "put off: " << put_off << ", cancelled: " << cancelled << '\n';
    return 0;
}
