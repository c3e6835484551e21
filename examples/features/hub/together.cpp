// Several messages that all mailboxes take, or none.
//
// feature: hub/together

#include "../check.h"
#include <paceline/hub.hpp>

using paceline::Overflow;
using paceline::PublishItem;
using paceline::SubscriptionConfig;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto rejects = SubscriptionConfig().set_overflow(Overflow::Reject);
    const auto from = hub.mailbox("account.one", rejects).value();
    const auto to = hub.mailbox("account.other", SubscriptionConfig(rejects).set_capacity(1)).value();
    const auto one = hub.key("account.one").value(), other = hub.key("account.other").value();
    const PublishItem messages[] = {{one, "-10"}, {other, "+10"}};

    CHECK(hub.publish_all(messages).value().enqueued == 2);
    CHECK(hub.publish_all(messages).error() == paceline::Code::Full); // `to` has no room
    CHECK(from.stats().value().waiting == 1);                         // so this has not got a second one
    return 0;
}
