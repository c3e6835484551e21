// A group: each message goes to one of its members.
//
// feature: hub/groups
// prints:
//   in turn: 5 and 5
//   by key: one member has got all 10, the other none

#include <iostream>
#include <paceline/hub.hpp>

using paceline::Balance;
using paceline::Message;
using paceline::SubscriptionConfig;

int main() {
    int counters[4] = {0, 0, 0, 0};
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto count = [&](const char *pattern, const SubscriptionConfig &config, int &counter) {
        return hub
            .subscribe(
                pattern, [&counter](const Message &) { ++counter; }, config)
            .value();
    };
    // Or least_loaded(), random(), by_key(), by_header("…").
    const auto workers = SubscriptionConfig().set_group("workers", Balance::round_robin());
    const auto first = count("jobs", workers, counters[0]);
    const auto second = count("jobs", workers, counters[1]);
    // All messages of a key go to the same member.
    const auto shops = SubscriptionConfig().set_group("shops", Balance::by_key());
    const auto third = count("orders.*", shops, counters[2]);
    const auto fourth = count("orders.*", shops, counters[3]);
    for (int n = 0; n < 10; ++n) {
        (void)hub.publish("jobs", "").value();
        (void)hub.publish("orders.one", "").value();
    }
    pool.shutdown(paceline::forever).value();
    std::cout << "in turn: " << counters[0] << " and " << counters[1] << '\n';
    std::cout << "by key: one member has got all " << counters[2] + counters[3] << ", the other "
              << (counters[2] * counters[3] == 0 ? "none\n" : "some\n");
    return 0;
}
