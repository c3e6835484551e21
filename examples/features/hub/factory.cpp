// A factory makes a handler anew when it was restarted, so nothing that was half changed is used again.
//
// feature: hub/factory
// prints:
//   a handler is made
//   work, handled by it: 1
//   crash
//   a handler is made
//   work, handled by it: 1
//   work, handled by it: 2

#include <iostream>
#include <paceline/hub.hpp>

using paceline::Message;

int main() {
    paceline::quiet(); // no line on the standard error stream
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto make = [] {
        std::cout << "a handler is made\n";
        return [handled = 0](const Message &message) mutable {
            if (message.text() == "crash") {
                std::cout << "crash\n";
                handled = -1; // half changed, and never seen again
                throw 42;     // what is no std::exception is a crash
            }
            std::cout << "work, handled by it: " << ++handled << '\n';
        };
    };
    const auto jobs = hub.subscribe_factory("jobs", make).value();
    for (const char *each : {"work", "crash", "work", "work"}) {
        (void)hub.publish("jobs", each).value();
    }
    pool.shutdown(paceline::forever).value();
    return 0;
}
