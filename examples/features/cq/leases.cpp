// A lease: an entry that is not completed in time is brought again, and the first token for it is stale.
//
// feature: cq/leases

#include "../check.h"
#include <chrono>
#include <paceline/cq.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool, std::chrono::milliseconds(20)).value();
    const auto mailbox = hub.mailbox("orders").value();
    queue.attach(mailbox, 7).value();
    (void)hub.publish("orders", "42").value();
    paceline::Entry first[1], again[1];
    (void)queue.wait(first, paceline::forever).value();
    (void)queue.wait(again, paceline::forever).value(); // the thread that has it is gone; another waits
    CHECK(again[0].is_again() && again[0].message().text() == "42");
    CHECK(queue.done(first[0]).error() == paceline::Code::Stale);
    while (!queue.done(again[0])) { // this thread was too slow itself
        (void)queue.wait(again, paceline::forever).value();
    }
    const auto stats = queue.stats().value();
    CHECK(stats.brought >= 2 && stats.brought == stats.withdrawn + 1 && stats.completed == 1);
    return 0;
}
