// Supervision: a handler that crashes is started anew and goes on with the next message; one that crashes too often is
// suspended for a while.
//
// feature: hub/supervision

#include "../check.h"
#include <chrono>
#include <cstdint>
#include <paceline/hub.hpp>
#include <string_view>

using namespace std::chrono_literals;
using paceline::Message;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    int handled = 0;
    std::uint64_t restarts = 0;
    paceline::quiet(); // no line on the standard error stream for each crash
    // A third crash within a minute suspends it for an hour.
    const auto config = paceline::SubscriptionConfig().set_intensity({2, 1min, 1h, 1h});
    const auto jobs = hub.subscribe(
                             "jobs",
                             [&](const Message &message) {
                                 if (message.text() == "crash") {
                                     throw 42; // what is no std::exception is a crash
                                 }
                                 ++handled;
                             },
                             [&](std::string_view, std::uint64_t count) {
                                 handled = 0; // the state of the handler is made anew
                                 restarts = count;
                             },
                             config)
                          .value();
    for (const char *each : {"crash", "crash", "crash"}) {
        (void)hub.publish("jobs", each).value();
    }
    WAIT_FOR(jobs.stats().value().suspended);
    CHECK(jobs.resume().value()); // or after the suspension, by itself
    (void)hub.publish("jobs", "work").value();
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(handled == 1 && restarts >= 2);
    return 0;
}
