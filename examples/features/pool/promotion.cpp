// Eager promotion: before each handler another thread begins to lead. It is for handlers that block as a rule; by default
// a thread that watches takes over the lead from a handler that is slow.
//
// feature: pool/promotion

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    const auto config = paceline::Config().set_threads(3).set_promotion(paceline::Promotion::Eager);
    const auto pool = paceline::Pool::create(config).value();
    std::atomic<int> inside{0};
    // Both handlers are inside at once, though neither says that it blocks.
    const auto meet = [&inside](int, Ready) {
        ++inside;
        WAIT_FOR(inside == 2);
        return Flow::Done;
    };
    const auto one = pool.register_fd(eventfd(1, EFD_NONBLOCK), meet).value();
    const auto other = pool.register_fd(eventfd(1, EFD_NONBLOCK), meet).value();
    WAIT_FOR(inside == 2);
    return 0;
}
