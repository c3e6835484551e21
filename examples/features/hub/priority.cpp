// Priority of messages: in a mailbox of this kind what is more urgent comes first.
//
// feature: hub/priority

#include "../check.h"
#include <atomic>
#include <paceline/hub.hpp>
#include <string>

using paceline::Message;
using paceline::Priority;
using paceline::Publication;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    std::atomic<bool> closed{false}, opened{false};
    std::string order;
    const auto news = hub.subscribe(
                             "news",
                             [&](const Message &message) {
                                 closed = true;
                                 WAIT_FOR(opened);
                                 order += message.text();
                             },
                             paceline::SubscriptionConfig().set_by_priority(true))
                          .value();
    const auto key = hub.key("news").value();
    (void)key.publish("0").value();
    WAIT_FOR(closed); // the handler is inside
    (void)key.publish("l", Publication().set_priority(Priority::Low)).value();
    (void)key.publish("n").value();
    (void)key.publish("h", Publication().set_priority(Priority::High)).value();
    opened = true;
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(order == "0hnl");
    return 0;
}
