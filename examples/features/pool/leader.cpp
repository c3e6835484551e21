// Leader and followers: a handler that is about to block hands the lead on, and another thread sees the next event.
//
// feature: pool/leader
// prints:
//   the first handler hands the lead on, and blocks
//   the second handler runs
//   the first handler returns
//   one thread leads: true

#include <future>
#include <iostream>
#include <optional>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    std::promise<void> blocked, unblocked, returns;
    // One handle set: one leader at a time.
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(2).set_leaders(1)).value();
    const int first = eventfd(1, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);

    const auto second_handler = [&unblocked](int, Ready ready) {
        if (!ready.readable()) {
            return Flow::Wait;
        }
        std::cout << "the second handler runs\n";
        unblocked.set_value();
        return Flow::Done;
    };
    const auto first_handler = [&](int, Ready) {
        std::cout << "the first handler hands the lead on, and blocks\n";
        paceline::promote_new_leader().value(); // from here on another thread waits for events
        blocked.set_value();
        unblocked.get_future().wait();
        std::cout << "the first handler returns\n";
        returns.set_value();
        return Flow::Done;
    };
    const auto two = pool.register_fd(second, second_handler).value();
    const auto one = pool.register_fd(first, first_handler).value();
    blocked.get_future().wait();
    eventfd_write(second, 1);
    returns.get_future().wait();

    // The statistics report which thread leads; there is none while the lead is handed on.
    std::optional<std::uint32_t> leader;
    while (!leader) {
        leader = pool.stats().value().sets[0].leader;
    }
    std::cout << std::boolalpha << "one thread leads: " << (*leader < 2) << '\n';
    return 0;
}
