// Messages and replies of the hub as data.
//
// feature: cq/messages

#include "../check.h"
#include <chrono>
#include <cstdint>
#include <paceline/cq.hpp>

using paceline::Message;

int main() {
    enum Tag : std::uint64_t { Orders, Replies };
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto mailbox = hub.mailbox("orders.>").value();
    queue.attach(mailbox, Orders).value();
    const auto answers =
        hub.subscribe("ping",
                      [&hub](const Message &request) { (void)hub.reply(request, "pong").value(); })
            .value();

    const auto ping = hub.key("ping").value();
    (void)queue.request(ping, "?", std::chrono::minutes(1), Replies).value();
    for (int n = 0; n < 3; ++n) {
        (void)hub.publish("orders.eu", "42").value();
    }
    int orders = 0, replies = 0;
    while (orders + replies < 4) {
        paceline::Entry room[8];
        const auto entries = queue.wait(room, paceline::forever).value();
        for (const paceline::Entry &entry : entries) {
            if (entry.tag == Orders) {
                CHECK(entry.message().text() == "42");
                ++orders;
            } else {
                CHECK(entry.reply().value().text() == "pong");
                ++replies;
            }
        }
        queue.done(entries).value(); // or complete() with Completion::fail(): a dead letter
    }
    return 0;
}
