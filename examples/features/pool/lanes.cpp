// Lanes of priority: what waits in a higher lane begins first.
//
// feature: pool/lanes
// prints:
//   critical
//   high
//   normal
//   low

#include <future>
#include <iostream>
#include <paceline/pool.hpp>

using paceline::Lane;

int main() {
    std::promise<void> busy, go_on;
    // By default a task that has waited for a second gets a turn, too.
    const auto config = paceline::Config().set_threads(1).set_ageing(paceline::forever);
    const auto pool = paceline::Pool::create(config).value();

    pool.post([&] {
            busy.set_value();
            go_on.get_future().wait();
        })
        .value();
    busy.get_future().wait(); // from here on all tasks wait
    pool.lane(Lane::Low).post([] { std::cout << "low\n"; }).value();
    pool.lane(Lane::Normal).post([] { std::cout << "normal\n"; }).value();
    pool.lane(Lane::High).post([] { std::cout << "high\n"; }).value();
    pool.lane(Lane::Critical).post([] { std::cout << "critical\n"; }).value();
    go_on.set_value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
