// A full mailbox: the publisher is refused, or waits, or something is dropped; each loss is counted and reported.
//
// feature: hub/overflow
// prints:
//   news 0, lost before it: 0
//   orders: PACE_EFULL
//   news 3, lost before it: 2
//   news 4, lost before it: 0

#include <future>
#include <iostream>
#include <paceline/hub.hpp>

using paceline::Message;
using paceline::Overflow;
using paceline::SubscriptionConfig;

int main() {
    std::promise<void> busy, go_on;
    const std::shared_future<void> goes_on = go_on.get_future().share();
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(3)).value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto small = SubscriptionConfig().set_capacity(2);
    const auto print = [&](const Message &message) {
        std::cout << "news " << message.text() << ", lost before it: " << message.lost_before << '\n';
        if (message.text() == "0") {
            busy.set_value();
            goes_on.wait();
        }
    };
    // Or DropNewest, Conflate, Block.
    const auto dropping = SubscriptionConfig(small).set_overflow(Overflow::DropOldest);
    const auto news = hub.subscribe("news", print, dropping).value();
    (void)hub.publish("news", "0").value();
    busy.get_future().wait(); // the handler is inside
    for (const char *each : {"1", "2", "3", "4"}) {
        (void)hub.publish("news", each).value();
    }

    const auto rejecting = SubscriptionConfig(small).set_overflow(Overflow::Reject);
    const auto hold = [goes_on](const Message &) { goes_on.wait(); };
    const auto orders = hub.subscribe("orders", hold, rejecting).value();
    auto receipt = hub.publish("orders", "x");
    while (receipt) {
        receipt = hub.publish("orders", "x");
    }
    std::cout << "orders: " << paceline::name(receipt.error().code())
              << '\n'; // no subscription has got it
    go_on.set_value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
