// A bounded queue for any number of threads, for use without a pool.
//
// feature: pool/queues
// prints:
//   sum of what two threads have pushed: 1001000
//   room for 8
//   taken out after the queue was closed: 8
//   then: PACE_ESHUTDOWN

#include <iostream>
#include <paceline/queue.hpp>
#include <thread>

int main() {
    const auto queue = paceline::Queue<int>::create(8).value();
    const auto produce = [&queue] {
        for (int number = 1; number <= 1000; ++number) {
            queue.push_timeout(number, paceline::forever).value();
        }
    };
    std::thread one(produce), other(produce);
    int sum = 0;
    for (int n = 0; n < 2000; ++n) {
        sum += queue.pop_timeout(paceline::forever).value();
    }
    one.join();
    other.join();
    std::cout << "sum of what two threads have pushed: " << sum << '\n';

    int room = 0;
    while (queue.push(room)) { // without waiting for room
        ++room;
    }
    std::cout << "room for " << room << '\n';
    queue.close().value();
    int rest[16];
    std::cout << "taken out after the queue was closed: " << queue.pop_batch(rest).value().size()
              << '\n';
    std::cout << "then: " << paceline::name(queue.pop().error().code()) << '\n';
    return 0;
}
