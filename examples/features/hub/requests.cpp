// Request and reply.
//
// feature: hub/requests

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/hub.hpp>

using namespace std::chrono_literals;
using paceline::Message;
using paceline::Result;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto answers =
        hub.subscribe("ping",
                      [&hub](const Message &request) { (void)hub.reply(request, "pong").value(); })
            .value();
    const auto ping = hub.key("ping").value(), nobody = hub.key("nobody").value();

    CHECK(ping.request("?", 1min).value().text() == "pong"); // waits
    std::atomic<bool> came{false};
    const auto asked = ping.request_async("?", 1min,
                                          [&came](Result<paceline::OwnedMessage> reply) {
                                              came = reply.value().text() == "pong";
                                          })
                           .value();
    (void)asked; // or hub.give_up(asked)
    WAIT_FOR(came);
    CHECK(nobody.request("?", 1min).error() == paceline::Code::NoResponders);
    return 0;
}
