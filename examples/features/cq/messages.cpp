// Messages and replies of the hub as data.
//
// feature: cq/messages
// prints:
//   order: 1
//   order: 2
//   reply: pong

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>

using paceline::Message;

enum Tag : std::uint64_t { Orders, Replies };

// Waits for the next entry, prints it, and completes it.
static void print_next(const paceline::CompletionQueue &queue) {
    paceline::Entry room[1]; // or more: as many as have come are taken at once
    (void)queue.wait(room, paceline::forever).value();
    if (room[0].tag == Orders) {
        std::cout << "order: " << room[0].message().text() << '\n';
    } else {
        std::cout << "reply: " << room[0].reply().value().text()
                  << '\n'; // or Code::TimedOut, for example
    }
    queue.done(room[0]).value(); // or complete() with Completion::fail(): a dead letter
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto mailbox = hub.mailbox("orders.>").value();
    queue.attach(mailbox, Orders).value();
    (void)hub.publish("orders.eu", "1").value();
    (void)hub.publish("orders.us", "2").value();
    print_next(queue);
    print_next(queue);

    const auto answer = [&hub](const Message &request) { (void)hub.reply(request, "pong").value(); };
    const auto answers = hub.subscribe("ping", answer).value();
    const auto ping = hub.key("ping").value();
    (void)queue.request(ping, "?", std::chrono::minutes(1), Replies).value();
    print_next(queue);
    return 0;
}
