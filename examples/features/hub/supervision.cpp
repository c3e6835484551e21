// Supervision: a handler that crashes is started anew and goes on with the next message; one that crashes too often is
// suspended for a while.
//
// feature: hub/supervision
// prints:
//   crash
//   crash
//   crash
//   suspended
//   resumed: true
//   work

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/hub.hpp>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;
using paceline::Message;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    paceline::quiet(); // no line on the standard error stream for each crash
    const auto handle = [](const Message &message) {
        std::cout << message.text() << '\n';
        if (message.text() == "crash") {
            throw 42; // what is no std::exception is a crash
        }
    };
    // Where the handler has a state, it is made anew here.
    const auto start_anew = [](std::string_view, std::uint64_t) {};
    // A third crash within a minute suspends it for an hour.
    const auto config = paceline::SubscriptionConfig().set_intensity({2, 1min, 1h, 1h});
    const auto jobs = hub.subscribe("jobs", handle, start_anew, config).value();
    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("jobs", "crash").value();
    }
    while (!jobs.stats().value().suspended) {
        std::this_thread::sleep_for(1ms);
    }
    std::cout << "suspended\n";
    const bool resumed = jobs.resume().value(); // or after the suspension, by itself
    std::cout << std::boolalpha << "resumed: " << resumed << '\n';
    (void)hub.publish("jobs", "work").value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
