// An online shop on an event hub, with orders, prices and reports as keys. The packer fails at one order, which becomes a dead
// letter, and crashes at another, and is restarted. A history keeps all of it, and a notice tells of the crash.
//
//     c++ -std=c++17 examples/cpp/orders.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o orders && ./orders

#include <atomic>
#include <future>
#include <iostream>
#include <paceline/hub.hpp>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using namespace paceline;

// Waits until a subscription has dealt with all that was published.
static void settle(const Subscription &subscription) {
    for (auto stats = subscription.stats().value(); stats.waiting + stats.running > 0;
         stats = subscription.stats().value())
        std::this_thread::sleep_for(1ms);
}

int main() {
    const auto pool = Pool::create().value();
    HubConfig config; // HistoryLogger: the last 100 messages
    config.histories = {HistoryConfig().set_pattern("shop.>").set_keep_count(100)};
    const auto hub = Hub::create(pool, config).value();
    std::atomic<bool> has_pears{false};
    const auto report = [&hub](const std::string &text) {
        (void)hub.publish("shop.reports", text).value();
    };

    // ResilientSubscriber: tries a message once more, and is restarted after a crash, which is no std::exception.
    const auto pack = [&](const Message &order) {
        if (order.text() == "pears" && !has_pears) throw std::runtime_error("pears are out of stock");
        if (order.text() == "melons" && order.attempt == 1) throw "melons are too heavy";
        report("packed " + std::string(order.text()));
    };
    const auto restarted = [&](std::string_view, std::uint64_t count) {
        report("the packer was restarted: " + std::to_string(count));
    };
    auto resilient = SubscriptionConfig().set_measured(true);
    resilient.set_on_failure(OnExhausted::DeadLetter, Retry::fixed(1, 1ms));
    auto packer = hub.subscribe("shop.orders", pack, restarted, resilient).value();
    // FilteredSubscriber: the prices of apples.
    const auto apples = SubscriptionConfig().set_filter(MessageFilter::bytes(0, "apples").value());
    const auto watch = [&](const Message &price) { report("new price: " + std::string(price.text())); };
    const auto watcher = hub.subscribe("shop.prices", watch, apples).value();
    const auto print = [](const Message &text) { std::cout << text.text() << '\n'; };
    const auto reporter = hub.subscribe("shop.reports", print).value();
    // NotificationService: what goes wrong in the hub is a message, too.
    std::promise<std::string> notice;
    const auto notify = [&](const Message &what) {
        notice.set_value(std::string(*what.header("event")));
    };
    const auto warnings =
        SubscriptionConfig().set_filter(MessageFilter::header("severity", "warning").value());
    const auto notifier = hub.subscribe("$SYS.>", notify, warnings).value();
    std::cout << "subscribers of shop.orders: " << hub.subscriber_count("shop.orders").value() << '\n';

    const std::string_view orders[] = {"apples", "pears", "melons", "plums"};
    (void)hub.key("shop.orders").value().publish_batch(orders).value();
    settle(packer), settle(reporter);
    const std::string_view prices[] = {"apples 3.20", "plums 4.10"};
    (void)hub.key("shop.prices").value().publish_batch(prices).value();
    settle(watcher), settle(reporter);
    std::cout << "notice: " << notice.get_future().get() << '\n';

    for (const auto &letter : hub.dead_letters().value())
        std::cout << "dead letter: " << letter.payload << ", " << letter.attempts << " attempts\n";
    has_pears = true;
    const auto redelivered = hub.redeliver().value();
    settle(packer), settle(reporter);
    std::cout << "redelivered: " << redelivered.enqueued << '\n';

    std::atomic<int> left{4};
    const auto again = [&left](const Message &order) {
        std::cout << "replayed: " << order.text() << '\n';
        --left;
    };
    const auto replay = hub.replay("shop.orders", ReplayFrom::beginning(), again).value();
    while (left > 0) std::this_thread::sleep_for(1ms);
    const auto stats = packer.stats().value(); // PerformanceMonitor
    std::cout << "orders: " << stats.matched << " matched, " << stats.delivered << " delivered, "
              << stats.restarts << " restarts\n"
              << "from publishing to packing, p99: " << stats.latency_p99_ns / 1000 << " us\n";
    (void)packer.unsubscribe().value();
    std::cout << "subscribers of shop.orders: " << hub.subscriber_count("shop.orders").value() << '\n';
}
