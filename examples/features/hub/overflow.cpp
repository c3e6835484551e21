// A full mailbox: the publisher is refused, or waits, or something is dropped; each loss is counted and told.
//
// feature: hub/overflow

#include "../check.h"
#include <atomic>
#include <cstdint>
#include <paceline/hub.hpp>
#include <string>

using paceline::Message;
using paceline::Overflow;
using paceline::SubscriptionConfig;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    std::atomic<bool> closed{false}, opened{false};
    std::uint64_t lost = 0;
    std::string last;
    const auto small = SubscriptionConfig().set_capacity(2);
    const auto drops = hub.subscribe(
                              "news",
                              [&](const Message &message) {
                                  closed = true;
                                  WAIT_FOR(opened);
                                  lost += message.lost_before;
                                  last = message.text();
                              },
                              // Or DropNewest, Conflate, Block.
                              SubscriptionConfig(small).set_overflow(Overflow::DropOldest))
                           .value();
    (void)hub.publish("news", "0").value();
    WAIT_FOR(closed); // the handler is inside
    for (const char *each : {"1", "2", "3", "4"}) {
        (void)hub.publish("news", each).value();
    }

    const auto rejects = hub.subscribe(
                                "orders", [&](const Message &) { WAIT_FOR(opened); },
                                SubscriptionConfig(small).set_overflow(Overflow::Reject))
                             .value();
    bool refused = false;
    for (int n = 0; n < 4; ++n) {
        const auto receipt = hub.publish("orders", "x");
        refused = refused || !receipt || receipt->rejected > 0;
    }
    CHECK(refused);
    opened = true;
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(drops.stats().value().dropped == 2 && lost == 2 && last == "4");
    return 0;
}
