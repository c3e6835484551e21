// The hub publishes what happens and goes wrong in it under $SYS, and keeps its latest errors for queries.
//
// feature: hub/notices
// prints:
//   notice: $SYS.subscription.overflow
//   error: subscription.overflow

#include <future>
#include <iostream>
#include <paceline/hub.hpp>
#include <string>

using paceline::Message;

int main() {
    std::promise<std::string> noticed;
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    // The key of a notice says what it is about, and its payload is JSON.
    const auto notice = [&noticed](const Message &message) {
        noticed.set_value(std::string(message.key_text()));
    };
    const auto notices = hub.subscribe("$SYS.subscription.overflow", notice).value();
    const auto small =
        paceline::SubscriptionConfig().set_capacity(1).set_overflow(paceline::Overflow::DropOldest);
    const auto orders = hub.mailbox("orders", small).value();
    (void)hub.publish("orders", "1").value();
    (void)hub.publish("orders", "2").value(); // drops the first
    std::cout << "notice: " << noticed.get_future().get() << '\n';

    paceline::ErrorFilter serious;
    serious.severity = paceline::Severity::Warning;
    for (const auto &error : hub.errors(serious).value()) {
        std::cout << "error: " << error.event << '\n';
    }
    return 0;
}
