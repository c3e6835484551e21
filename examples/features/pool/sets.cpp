// Several handle sets, each with a leader of its own. A set whose leader is inside a slow handler is served by other
// threads.
//
// feature: pool/sets

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>
#include <vector>

using paceline::Flow;
using paceline::Ready;

int main() {
    constexpr int all = 8;
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(3).set_leaders(2)).value();
    CHECK(pool.stats().value().sets.size() == 2);
    std::atomic<int> ran{0};
    std::vector<paceline::Handle> handles;
    for (int n = 0; n < all; ++n) {
        handles.push_back(pool.register_fd(eventfd(1, EFD_NONBLOCK),
                                           [&ran](int, Ready) {
                                               if (ran++ == 0) {
                                                   WAIT_FOR(ran ==
                                                            all); // in whichever set the others are
                                               }
                                               return Flow::Done;
                                           })
                              .value());
    }
    WAIT_FOR(ran == all);
    return 0;
}
