// A lease: an entry that is not completed in time is brought again, and the first token for it is stale.
//
// feature: cq/leases
// prints:
//   first: 42
//   again: 42
//   the first token: PACE_ESTALE
//   completed: 1

#include <chrono>
#include <iostream>
#include <paceline/cq.hpp>

static void print(const paceline::Entry &entry) {
    std::cout << (entry.is_again() ? "again: " : "first: ") << entry.message().text() << '\n';
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool, std::chrono::milliseconds(200)).value();
    const auto mailbox = hub.mailbox("orders").value();
    queue.attach(mailbox, 7).value();
    (void)hub.publish("orders", "42").value();
    paceline::Entry first[1], again[1];
    (void)queue.wait(first, paceline::forever).value();
    print(first[0]);
    (void)queue.wait(again, paceline::forever).value(); // the thread that has it is gone; another waits
    print(again[0]);
    std::cout << "the first token: " << paceline::name(queue.done(first[0]).error().code()) << '\n';
    while (!queue.done(again[0])) { // this thread was too slow itself
        (void)queue.wait(again, paceline::forever).value();
    }
    std::cout << "completed: " << queue.stats().value().completed << '\n';
    return 0;
}
