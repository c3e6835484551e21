// A bridge: keys of one hub reach another one over a NATS server, here of the same process. The address of a server with
// streams (nats-server -js) is in NATS_URL; without one there is nothing to show.
//
// feature: hub/bridge
// prints:
//   the message 42 comes, and the handler fails
//   the message 42 comes again
//   acknowledged
//   left to be sent: 0

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <paceline/bridge.hpp>
#include <thread>

using namespace std::chrono_literals;
using paceline::BridgeConfig;
using paceline::Message;
using paceline::Result;

int main() {
    const char *url = std::getenv("NATS_URL");
    if (url == nullptr) {
        std::cout << "There is no NATS_URL, the address of a NATS server.\n";
        return 0;
    }
    int attempts = 0; // of one thread at a time
    const auto pool = paceline::Pool::create().value();
    const auto here = paceline::Hub::create(pool).value(), there = paceline::Hub::create(pool).value();

    // At least once: the server stores what is published, and it is acknowledged when handlers have dealt with it.
    const auto out = paceline::Export("example.cpp.>").set_at_least_once("EXAMPLE_CPP");
    const auto from = paceline::Bridge::open(here, BridgeConfig(url).add_export(out)).value();
    // The first attempt fails: the message comes again, here or in another process.
    const auto handle = [&attempts](const Message &message) -> Result<void> {
        const bool fails = ++attempts == 1;
        std::cout << "the message " << message.text()
                  << (fails ? " comes, and the handler fails\n" : " comes again\n");
        return fails ? Result<void>(paceline::Error(paceline::Code::Failed)) : Result<void>();
    };
    const auto handler = there.subscribe("example.cpp.*", handle).value();
    // Processes that import with the name "billing" take turns.
    const auto in = paceline::Import("example.cpp.>").set_at_least_once("EXAMPLE_CPP", "billing");
    const auto to = paceline::Bridge::open(there, BridgeConfig(url).add_import(in)).value();

    from.publish("example.cpp.order", "42").value().wait(60s).value(); // it is stored now
    while (to.stats().value().imports[0].acknowledged == 0) {
        std::this_thread::sleep_for(1ms);
    }
    std::cout << "acknowledged\n";
    std::cout << "left to be sent: " << from.close(60s).value() << '\n';
    return 0;
}
