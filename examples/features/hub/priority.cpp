// Priority of messages: in a mailbox of this kind what is more urgent comes first.
//
// feature: hub/priority
// prints:
//   first
//   high
//   normal
//   low

#include <future>
#include <iostream>
#include <paceline/hub.hpp>

using paceline::Message;
using paceline::Priority;
using paceline::Publication;

int main() {
    std::promise<void> busy, go_on;
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto print = [&](const Message &message) {
        std::cout << message.text() << '\n';
        if (message.text() == "first") {
            busy.set_value();
            go_on.get_future().wait();
        }
    };
    const auto by_priority = paceline::SubscriptionConfig().set_by_priority(true);
    const auto news = hub.subscribe("news", print, by_priority).value();
    const auto key = hub.key("news").value();
    (void)key.publish("first").value();
    busy.get_future().wait(); // the handler is inside: the others wait
    (void)key.publish("low", Publication().set_priority(Priority::Low)).value();
    (void)key.publish("normal").value();
    (void)key.publish("high", Publication().set_priority(Priority::High)).value();
    go_on.set_value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
