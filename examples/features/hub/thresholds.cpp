// Thresholds: a function is called when a figure of the hub crosses a limit, and when it is back.
//
// feature: hub/thresholds
// prints:
//   3 messages wait: above the limit
//   0 messages wait: back

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/ops.hpp>

using paceline::Threshold;

int main() {
    std::promise<void> above, back;
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool, paceline::HubConfig().set_name("shop")).value();
    const auto orders = hub.mailbox("orders").value();
    // A number; also its rate(), or a quantile().
    const auto full = Threshold::above("paceline_hub_waiting", 2.5).label("hub", "shop").back_at(0);
    const auto print = [&](const paceline::Crossing &crossing) {
        std::cout << crossing.figure
                  << (crossing.crossed ? " messages wait: above the limit\n" : " messages wait: back\n");
        (crossing.crossed ? above : back).set_value();
    };
    const auto watch = hub.watch(std::chrono::milliseconds(5), {full}, print).value();

    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("orders", "").value();
    }
    above.get_future().wait();
    (void)orders.unsubscribe().value(); // discards them
    back.get_future().wait();
    return 0;
}
