// The hub publishes what happens and goes wrong in it under $SYS, and keeps its latest errors for queries.
//
// feature: hub/notices

#include "../check.h"
#include <atomic>
#include <paceline/hub.hpp>

using paceline::Message;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    std::atomic<int> notices{0};
    // The key of a notice says what it is about, and its payload is JSON.
    const auto told =
        hub.subscribe("$SYS.subscription.overflow", [&notices](const Message &) { ++notices; }).value();
    const auto small =
        paceline::SubscriptionConfig().set_capacity(1).set_overflow(paceline::Overflow::DropOldest);
    const auto orders = hub.mailbox("orders", small).value();
    (void)hub.publish("orders", "1").value();
    (void)hub.publish("orders", "2").value(); // drops the first
    WAIT_FOR(notices > 0);
    paceline::ErrorFilter serious;
    serious.severity = paceline::Severity::Warning;
    const auto errors = hub.errors(serious).value();
    CHECK(errors.size() == 1 && errors[0].event == "subscription.overflow");
    return 0;
}
