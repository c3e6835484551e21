// A group: each message goes to one of its members.
//
// feature: hub/groups

#include "../check.h"
#include <paceline/hub.hpp>

using paceline::Balance;
using paceline::Message;
using paceline::SubscriptionConfig;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    int counters[4] = {0, 0, 0, 0};
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
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(counters[0] == 5 && counters[1] == 5);
    CHECK(counters[2] * counters[3] == 0 && counters[2] + counters[3] == 10);
    return 0;
}
