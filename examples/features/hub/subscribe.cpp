// Publish and subscribe: keys, patterns, how many got a message, and an end after which no handler runs.
//
// feature: hub/subscribe

#include "../check.h"
#include <chrono>
#include <paceline/hub.hpp>
#include <string_view>

using paceline::Message;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    int exact = 0, all = 0; // serial, by default: one thread at a time, so these need no lock
    auto one = hub.subscribe("orders.eu",
                             [&exact](const Message &message) {
                                 CHECK(message.text() == "order");
                                 ++exact;
                             })
                   .value();
    auto other = hub.subscribe("orders.>", [&all](const Message &) { ++all; }).value(); // or "orders.*"
    CHECK(hub.subscriber_count("orders.eu").value() == 2);

    const auto receipt = hub.publish("orders.eu", "order").value();
    CHECK(receipt.matched == 2 && receipt.is_complete());
    (void)hub.publish("orders.us.ny", "order").value();
    const auto key = hub.key("orders.eu").value(); // looked up once, for many messages
    const std::string_view batch[] = {"order", "order", "order"};
    (void)key.publish_batch(batch).value();
    CHECK(hub.publish("orders..eu", "order").error() == paceline::Code::Invalid);

    CHECK(one.drain(std::chrono::minutes(1)).value() == 0); // what waits is handled
    CHECK(other.drain(std::chrono::minutes(1)).value() == 0);
    CHECK(exact == 4 && all == 5);
    return 0;
}
