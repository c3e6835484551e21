// Two thermometers publish to four subscribers: one adds up, one raises alarms, one refuses what
// cannot be, and one is too slow and loses by its policy. At the end, what became of every reading.
//
//     c++ -std=c++17 examples/cpp/hub.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o hub
//
// feature: hub/subscribe

#include <paceline/hub.hpp>

#include <algorithm>
#include <atomic>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using paceline::Code;
using paceline::Error;
using paceline::Message;
using paceline::Result;
using paceline::SubscriptionConfig;

constexpr int READINGS = 1000;
/// What a broken thermometer says.
constexpr int BROKEN = -300;

/// Degrees as text.
struct Degrees {
    Result<std::string> encode(const int &degrees) const { return std::to_string(degrees); }
    Result<int> decode(std::string_view text) const { return std::stoi(std::string(text)); }
};

/// Publishes degrees between -10 and 30, and a reading that cannot be.
static void measure(const paceline::Publisher &thermometer, const paceline::Key &key, int broken_at) {
    for (int number = 0; number < READINGS; ++number) {
        const int degrees = number == broken_at ? BROKEN : number % 41 - 10;
        (void)thermometer.publish(key, std::to_string(degrees)).value();
    }
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto readings = hub.topic<int>("temperature.*", Degrees{});

    // Serial, by default: one thread at a time, in order.
    std::atomic<long> sum{0};
    const auto large = SubscriptionConfig().set_capacity(4096);
    const auto adds =
        readings.subscribe([&](const int &degrees) { sum += std::max(degrees, -273); }, large).value();

    // In the publisher's own thread, and only what passes the filter.
    std::atomic<int> alarms{0};
    const auto hot = paceline::MessageFilter::test([](const Message &message) {
                         return std::stoi(std::string(message.text())) >= 30;
                     }).value();
    const auto alarm =
        hub.subscribe(
               "temperature.roof", [&](const Message &) { ++alarms; },
               SubscriptionConfig().set_execution(paceline::Execution::Inline).set_filter(hot))
            .value();

    // Fails at what cannot be; after two attempts the reading is a dead letter. That restarts no handler.
    const auto patient = SubscriptionConfig(large).set_on_failure(paceline::OnExhausted::DeadLetter,
                                                                  paceline::Retry::fixed(1, 1ms));
    const auto checks = hub.subscribe(
                               "temperature.*",
                               [](const Message &message) {
                                   if (std::stoi(std::string(message.text())) < -273) {
                                       throw std::runtime_error("colder than cold can be");
                                   }
                               },
                               patient)
                            .value();

    // Too slow for all of them: it shows the newest, and knows how many it has not shown.
    std::atomic<std::uint64_t> unseen{0};
    const auto display =
        hub.subscribe(
               "temperature.room",
               [&](const Message &message) {
                   unseen += message.lost_before;
                   std::this_thread::sleep_for(1ms);
               },
               SubscriptionConfig().set_capacity(8).set_overflow(paceline::Overflow::DropOldest))
            .value();

    const auto may = [](const char *key) { return paceline::PublisherConfig().add_allowed(key); };
    const auto roof = hub.publisher("roof", may("temperature.roof")).value();
    const auto room = hub.publisher("room", may("temperature.room")).value();
    const auto roof_key = hub.key("temperature.roof").value();
    const auto room_key = hub.key("temperature.room").value();
    std::thread up([&] { measure(roof, roof_key, 100); });
    std::thread down([&] { measure(room, room_key, 500); });
    up.join();
    down.join();
    std::cout << std::boolalpha << "the roof may not publish for the room: "
              << (roof.publish(room_key, "").error() == Code::Invalid) << '\n';

    // Everything that waits is delivered before the pool has drained.
    std::cout << "drained: " << pool.shutdown(60s).value().drained << '\n';

    std::cout << std::setw(10) << "" << std::setw(8) << "matched" << std::setw(11) << "delivered"
              << std::setw(7) << "dead" << std::setw(10) << "restarts" << '\n';
    const auto show = [](const char *name, const paceline::Subscription &subscription) {
        const auto stats = subscription.stats().value();
        std::cout << std::left << std::setw(10) << name << std::right << std::setw(8) << stats.matched
                  << std::setw(11) << stats.delivered << std::setw(7) << stats.dead_lettered
                  << std::setw(10) << stats.restarts << '\n';
    };
    show("adds", adds);
    show("alarm", alarm);
    show("checks", checks);
    const auto shown = display.stats().value();
    const bool accounted = shown.delivered + shown.dropped == shown.matched;
    std::cout << "the display has lost some: " << (shown.dropped > 0) << '\n'
              << "it was told of each: " << (accounted && unseen == shown.dropped) << '\n'
              << "the sum is " << sum << ", and there were " << alarms << " alarms\n";
    for (const char *key : {"temperature.roof", "temperature.room"}) {
        paceline::DeadFilter filter;
        filter.pattern = key;
        for (const auto &letter : hub.dead_letters(filter).value()) {
            std::cout << "dead letter of " << letter.key << " after " << letter.attempts
                      << " attempts: " << letter.failure << '\n';
        }
    }
    std::cout << "the books balance: " << hub.audit().value().balances << '\n';
}
