// Filters: what a subscription does not want never comes to its mailbox.
//
// feature: hub/filters
// prints:
//   handled: long and urgent

#include <iostream>
#include <paceline/hub.hpp>

using paceline::Message;
using paceline::MessageFilter;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto urgent = MessageFilter::header("kind", "urgent").value();
    const auto is_long = MessageFilter::test([](const Message &m) { return m.size >= 10; }).value();
    const auto print = [](const Message &m) { std::cout << "handled: " << m.text() << '\n'; };
    // Also: bytes(), published(), at_most(); ||, !.
    const auto config = paceline::SubscriptionConfig().set_filter(urgent && is_long);
    const auto news = hub.subscribe("news", print, config).value();

    const auto key = hub.key("news").value();
    const auto with = paceline::Publication().add_header("kind", "urgent");
    (void)key.publish("urgent", with).value();
    (void)key.publish("long, but not urgent").value();
    (void)key.publish("long and urgent", with).value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
