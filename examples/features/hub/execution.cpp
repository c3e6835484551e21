// Where a handler runs: serially on the pool, in the publisher's thread, on several threads, or in one order with others.
//
// feature: hub/execution

#include "../check.h"
#include <atomic>
#include <paceline/hub.hpp>
#include <string>
#include <thread>

using paceline::Execution;
using paceline::Message;
using paceline::SubscriptionConfig;

int main() {
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(3)).value();
    const auto hub = paceline::Hub::create(pool).value();

    const auto publisher = std::this_thread::get_id();
    const auto one =
        hub.subscribe(
               "inline",
               [publisher](const Message &) { CHECK(std::this_thread::get_id() == publisher); },
               SubscriptionConfig().set_execution(Execution::Inline))
            .value();
    (void)hub.publish("inline", "").value();

    std::atomic<int> inside{0};
    const auto two = hub.subscribe(
                            "concurrent",
                            [&inside](const Message &) {
                                ++inside;
                                WAIT_FOR(inside == 2); // two messages at once
                            },
                            SubscriptionConfig().set_execution(Execution::Concurrent, 2))
                         .value();
    (void)hub.publish("concurrent", "").value();
    (void)hub.publish("concurrent", "").value();

    // Of several subscriptions, but all of the hub's one strand: one at a time, in one order over all keys.
    std::string order;
    const auto on_strand = SubscriptionConfig().set_execution(Execution::Strand);
    const auto note = [&order](const Message &message) { order += message.text(); };
    const auto a = hub.subscribe("strand.a", note, on_strand).value();
    const auto b = hub.subscribe("strand.b", note, on_strand).value();
    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("strand.a", "a").value();
        (void)hub.publish("strand.b", "b").value();
    }
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(inside == 2 && order == "ababab");
    return 0;
}
