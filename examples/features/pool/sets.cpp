// Several handle sets, each with a leader of its own. A set whose leader is inside a slow handler is served by other
// threads.
//
// feature: pool/sets
// prints:
//   2 sets
//   one handler blocks until the 7 others have run

#include <atomic>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>
#include <vector>

using paceline::Flow;
using paceline::Ready;

int main() {
    constexpr int all = 8;
    std::atomic<int> begun{0}, others{0};
    std::promise<void> others_ran, end;
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(3).set_leaders(2)).value();
    std::cout << pool.stats().value().sets.size() << " sets\n";
    // The first of them waits for all others, in whichever set they are.
    const auto run = [&](int, Ready) {
        if (begun++ == 0) {
            others_ran.get_future().wait();
            std::cout << "one handler blocks until the " << others << " others have run\n";
            end.set_value();
        } else if (++others == all - 1) {
            others_ran.set_value();
        }
        return Flow::Done;
    };
    std::vector<paceline::Handle> handles;
    for (int n = 0; n < all; ++n) {
        handles.push_back(pool.register_fd(eventfd(1, EFD_NONBLOCK), run).value());
    }
    end.get_future().wait();
    return 0;
}
