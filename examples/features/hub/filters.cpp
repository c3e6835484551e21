// Filters: what a subscription does not want never comes to its mailbox.
//
// feature: hub/filters

#include "../check.h"
#include <paceline/hub.hpp>

using paceline::Message;
using paceline::MessageFilter;
using paceline::Publication;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto urgent = MessageFilter::header("kind", "urgent").value();
    const auto is_long =
        MessageFilter::test([](const Message &message) { return message.size >= 5; }).value();
    int got = 0;
    const auto news = hub.subscribe(
                             "news", [&got](const Message &) { ++got; },
                             // Also: bytes(), published(), at_most(); ||, !.
                             paceline::SubscriptionConfig().set_filter(urgent && is_long))
                          .value();

    const auto key = hub.key("news").value();
    const auto with = Publication().add_header("kind", "urgent");
    (void)key.publish("short", with).value();
    (void)key.publish("no", with).value();
    (void)key.publish("without").value();
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(got == 1);
    return 0;
}
