// Leader and followers: a handler that is about to block hands the lead on, and another thread sees the next event.
//
// feature: pool/leader

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    // One handle set: one leader at a time.
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2).set_leaders(1)).value();
    std::atomic<bool> first_blocks{false}, second_ran{false};
    const int first = eventfd(1, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);

    const auto runs = pool.register_fd(second,
                                       [&](int, Ready ready) {
                                           second_ran = ready.readable();
                                           return Flow::Wait;
                                       })
                          .value();
    const auto blocks =
        pool.register_fd(first,
                         [&](int, Ready) {
                             paceline::promote_new_leader().value(); // another thread waits for events
                             first_blocks = true;
                             WAIT_FOR(second_ran);
                             return Flow::Done;
                         })
            .value();
    WAIT_FOR(first_blocks);
    CHECK(eventfd_write(second, 1) == 0);
    WAIT_FOR(second_ran);

    // The statistics tell who leads.
    WAIT_FOR(pool.stats().value().sets[0].leader.has_value());
    return 0;
}
