// Several messages that all mailboxes take, or none.
//
// feature: hub/together
// prints:
//   mailboxes that have taken theirs: 2
//   one mailbox is full: PACE_EFULL
//   waiting in the other one: 1

#include <iostream>
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
    std::cout << "mailboxes that have taken theirs: " << hub.publish_all(messages).value().enqueued
              << '\n';
    const auto refused = hub.publish_all(messages); // `to` has no room
    std::cout << "one mailbox is full: " << paceline::name(refused.error().code()) << '\n';
    // So this has not got a second one.
    std::cout << "waiting in the other one: " << from.stats().value().waiting << '\n';
    return 0;
}
