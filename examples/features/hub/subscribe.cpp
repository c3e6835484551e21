// Publish and subscribe: keys, patterns, how many got a message, and an end after which no handler runs.
//
// feature: hub/subscribe
// prints:
//   subscriptions that got the message: 2
//   a key with an empty part: PACE_EINVAL
//   orders.eu: 4 messages
//   orders.>: 5 messages

#include <chrono>
#include <iostream>
#include <paceline/hub.hpp>
#include <string_view>

using namespace std::chrono_literals;
using paceline::Message;

int main() {
    int exact = 0, all = 0; // serial, by default: one thread at a time, so these need no lock
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    auto one = hub.subscribe("orders.eu", [&exact](const Message &) { ++exact; }).value();
    auto other = hub.subscribe("orders.>", [&all](const Message &) { ++all; }).value(); // or "orders.*"

    const auto receipt = hub.publish("orders.eu", "order").value();
    std::cout << "subscriptions that got the message: " << receipt.enqueued << '\n';
    (void)hub.publish("orders.us.ny", "order").value();
    const auto key = hub.key("orders.eu").value(); // looked up once, for many messages
    const std::string_view batch[] = {"order", "order", "order"};
    (void)key.publish_batch(batch).value();
    const auto wrong = hub.publish("orders..eu", "order");
    std::cout << "a key with an empty part: " << paceline::name(wrong.error().code()) << '\n';

    one.drain(1min).value(); // what waits is handled
    other.drain(1min).value();
    std::cout << "orders.eu: " << exact << " messages\norders.>: " << all << " messages\n";
    return 0;
}
