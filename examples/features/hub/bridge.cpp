// A bridge: keys of one hub reach another one over a NATS server, here of the same process. The address of a server with
// streams (nats-server -js) is in NATS_URL; without one there is nothing to show.
//
// feature: hub/bridge
#include "../check.h"
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <paceline/bridge.hpp>
#include <string>
#include <thread>

using namespace std::chrono_literals;

int main() {
    const char *url = std::getenv("NATS_URL");
    if (url == nullptr) {
        std::puts("There is no NATS_URL, the address of a NATS server.");
        return 0;
    }
    const auto pool = paceline::Pool::create().value();
    const auto here = paceline::Hub::create(pool).value(), there = paceline::Hub::create(pool).value();

    // At least once: the server stores what is published, and it is acknowledged when handlers have dealt with it.
    const auto from = paceline::Bridge::open(
                          here, paceline::BridgeConfig(url).add_export(
                                    paceline::Export("example.cpp.>").set_at_least_once("EXAMPLE_CPP")))
                          .value();
    std::atomic<int> handled{0};
    const auto handler = there
                             .subscribe("example.cpp.*",
                                        [&](const paceline::Message &message) -> paceline::Result<void> {
                                            CHECK(message.text() == "42");
                                            // The first attempt fails: the message comes again, here or in another process.
                                            if (handled++ == 0) {
                                                return paceline::Error(paceline::Code::Failed);
                                            }
                                            return {};
                                        })
                             .value();
    // Processes that import with the name "billing" take turns.
    const auto to =
        paceline::Bridge::open(
            there, paceline::BridgeConfig(url).add_import(
                       paceline::Import("example.cpp.>").set_at_least_once("EXAMPLE_CPP", "billing")))
            .value();

    from.publish("example.cpp.order", "42").value().wait(60s).value(); // it is stored now
    WAIT_FOR(to.stats().value().imports[0].acknowledged == 1);
    CHECK(handled >= 2);
    CHECK(from.close(60s).value() == 0);
    return 0;
}
