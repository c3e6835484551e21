// Thresholds: a function hears when a figure of the hub crosses a limit, and when it is back.
//
// feature: hub/thresholds

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/ops.hpp>

using paceline::Threshold;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool, paceline::HubConfig().set_name("shop")).value();
    const auto orders = hub.mailbox("orders").value();
    std::atomic<int> state{0};
    // A number; also its rate(), or a quantile().
    const auto full = Threshold::above("paceline_hub_waiting", 2.5).label("hub", "shop").back_at(0);
    const auto watch =
        hub.watch(std::chrono::milliseconds(5), {full},
                  [&state](const paceline::Crossing &crossing) { state = crossing.crossed ? 1 : 2; })
            .value();
    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("orders", "").value();
    }
    WAIT_FOR(state == 1);
    (void)orders.unsubscribe().value(); // discards them
    WAIT_FOR(state == 2);
    return 0;
}
