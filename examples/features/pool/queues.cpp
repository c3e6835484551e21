// A bounded queue for any number of threads, for use without a pool.
//
// feature: pool/queues

#include "../check.h"
#include <paceline/queue.hpp>
#include <thread>

using paceline::Code;

int main() {
    const auto queue = paceline::Queue<int>::create(8).value();
    CHECK(queue.pop().error() == Code::Empty);
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
    CHECK(sum == 1001000);

    int pushed = 0;
    while (queue.push(pushed)) {
        ++pushed;
    }
    CHECK(pushed == 8); // it is full
    queue.close().value();
    int rest[16];
    CHECK(queue.pop_batch(rest).value().size() == 8);
    CHECK(queue.pop().error() == Code::ShutDown);
    return 0;
}
