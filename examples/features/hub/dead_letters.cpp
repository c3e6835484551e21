// A message that a handler fails at is tried again, and then becomes a dead letter, which can be delivered once more.
//
// feature: hub/dead_letters

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/hub.hpp>
#include <stdexcept>

using paceline::Message;
using paceline::OnExhausted;
using paceline::Retry;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    std::atomic<int> attempts{0};
    std::atomic<bool> is_mended{false};
    const auto twice_more = Retry::fixed(2, std::chrono::milliseconds(1));
    const auto orders =
        hub.subscribe(
               "orders",
               [&](const Message &) {
                   ++attempts;
                   if (!is_mended) {
                       throw std::runtime_error("the database is down");
                   }
               },
               paceline::SubscriptionConfig().set_on_failure(OnExhausted::DeadLetter, twice_more))
            .value();
    (void)hub.publish("orders", "42").value();
    WAIT_FOR(hub.dead_letters().value().size() == 1);
    const auto letter = hub.dead_letters().value()[0];
    CHECK(letter.attempts == 3 && letter.failure == "the database is down" && letter.payload == "42");

    is_mended = true;
    CHECK(hub.redeliver().value().enqueued == 1);
    WAIT_FOR(attempts == 4);
    CHECK(hub.dead_letters().value().empty());
    return 0;
}
