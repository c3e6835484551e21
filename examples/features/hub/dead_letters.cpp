// A message that a handler fails at is tried again, and then becomes a dead letter, which can be delivered once more.
//
// feature: hub/dead_letters
// prints:
//   attempt 1
//   attempt 2
//   attempt 3
//   dead letter 42: the database is down
//   delivered again: 42

#include <atomic>
#include <chrono>
#include <iostream>
#include <paceline/hub.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using paceline::Message;

int main() {
    std::atomic<bool> is_mended{false};
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto handle = [&is_mended](const Message &message) {
        if (!is_mended) {
            std::cout << "attempt " << message.attempt << '\n';
            throw std::runtime_error("the database is down");
        }
        std::cout << "delivered again: " << message.text() << '\n';
    };
    const auto config = paceline::SubscriptionConfig().set_on_failure(paceline::OnExhausted::DeadLetter,
                                                                      paceline::Retry::fixed(2, 1ms));
    const auto orders = hub.subscribe("orders", handle, config).value();
    (void)hub.publish("orders", "42").value();

    std::vector<paceline::DeadLetter> letters;
    while (letters.empty()) {
        std::this_thread::sleep_for(1ms);
        letters = hub.dead_letters().value();
    }
    std::cout << "dead letter " << letters[0].payload << ": " << letters[0].failure << '\n';
    is_mended = true;
    (void)hub.redeliver().value();
    pool.shutdown(paceline::forever).value();
    return 0;
}
