// Where a handler runs: serially on the pool, in the publisher's thread, on several threads, or in one order with others.
//
// feature: hub/execution
// prints:
//   inline: in the publisher's thread: true
//   concurrent: two messages at once
//   strand: ababab

#include <atomic>
#include <future>
#include <iostream>
#include <paceline/hub.hpp>
#include <string>
#include <thread>

using paceline::Execution;
using paceline::Message;
using paceline::SubscriptionConfig;

int main() {
    std::atomic<int> inside{0};
    std::promise<void> second;
    std::string order;
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(3)).value();
    const auto hub = paceline::Hub::create(pool).value();

    const auto publisher = std::this_thread::get_id();
    const auto in_publisher = [publisher](const Message &) {
        const bool same = std::this_thread::get_id() == publisher;
        std::cout << std::boolalpha << "inline: in the publisher's thread: " << same << '\n';
    };
    const auto one =
        hub.subscribe("inline", in_publisher, SubscriptionConfig().set_execution(Execution::Inline))
            .value();
    (void)hub.publish("inline", "").value();

    const auto meet = [&](const Message &) {
        if (++inside == 2) {
            second.set_value();
        } else {
            second.get_future().wait(); // for the other message
            std::cout << "concurrent: two messages at once\n";
        }
    };
    const auto on_two = SubscriptionConfig().set_execution(Execution::Concurrent, 2);
    const auto two = hub.subscribe("concurrent", meet, on_two).value();
    (void)hub.publish("concurrent", "").value();
    (void)hub.publish("concurrent", "").value();

    // Of several subscriptions, but all of the hub's one strand: one at a time, in one order over all keys.
    const auto on_strand = SubscriptionConfig().set_execution(Execution::Strand);
    const auto note = [&order](const Message &message) { order += message.text(); };
    const auto a = hub.subscribe("strand.a", note, on_strand).value();
    const auto b = hub.subscribe("strand.b", note, on_strand).value();
    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("strand.a", "a").value();
        (void)hub.publish("strand.b", "b").value();
    }
    pool.shutdown(paceline::forever).value();
    std::cout << "strand: " << order << '\n';
    return 0;
}
