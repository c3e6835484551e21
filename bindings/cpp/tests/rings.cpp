// Rings and queues: fixed-size values from any number of threads.

#include "common.hpp"

#include <algorithm>
#include <numeric>
#include <poll.h>

using paceline::Events;
using paceline::Queue;
using paceline::Ring;

namespace {
/// Its size is none of the library's, so that events lie further apart than they are long.
struct Odd {
    std::uint32_t number, twice, square;
};
Odd odd(std::uint32_t number) { return {number, 2 * number, number * number}; }
bool is_right(const Odd &value, std::uint32_t number) {
    return value.number == number && value.twice == 2 * number && value.square == number * number;
}
} // namespace

TEST_CASE("a serial ring keeps the order") {
    const Pool pool = make_pool();
    std::uint32_t next = 0;
    bool in_order = true;
    {
        const auto ring = Ring<Odd>::serial(pool, 64, [&](Events<Odd> events) {
                              CHECK_FALSE(events.empty());
                              for (const Odd &event : events) {
                                  in_order &= is_right(event, next++);
                              }
                              in_order &= &events[events.size() - 1] == &*(events.end() - 1);
                          }).value();
        for (std::uint32_t n = 0; n < 100; ++n) {
            ring.publish(odd(n)).value();
        }
        std::vector<Odd> batch;
        for (std::uint32_t n = 100; n < 1000; ++n) {
            batch.push_back(odd(n));
        }
        CHECK(ring.publish_batch(batch).value() == batch.size());
        while (ring.counts().value().handled < 1000) {
            std::this_thread::yield();
        }
        CHECK(ring.counts().value().published == 1000);
        CHECK(ring.close().has_value());
        CHECK(ring.publish(odd(0)).error() == Code::ShutDown);
        CHECK(ring.try_publish(odd(0)).error() == Code::ShutDown);
        CHECK(ring.publish_batch(batch).error() == Code::ShutDown);
    }
    finish(pool);
    CHECK(in_order);
    CHECK(next == 1000);
}

TEST_CASE("a concurrent ring loses nothing") {
    const Pool pool = make_pool();
    std::atomic<std::uint64_t> sum{0};
    std::atomic<int> alive{0};
    {
        const auto ring =
            Ring<std::uint64_t>::concurrent(pool, 256, [&, c = Counted(alive)](auto events) {
                sum += std::accumulate(events.begin(), events.end(), std::uint64_t{0});
            }).value();
        std::vector<std::thread> producers;
        for (int n = 0; n < 3; ++n) {
            producers.emplace_back([&ring] {
                for (std::uint64_t number = 1; number <= 1000; ++number) {
                    ring.publish(number).value();
                }
            });
        }
        for (auto &producer : producers) {
            producer.join();
        }
        while (ring.counts().value().handled < 3000) {
            std::this_thread::yield();
        }
    }
    finish(pool);
    CHECK(sum.load() == 3 * 500500);
    CHECK(alive.load() == 0);
}

TEST_CASE("events are a random-access range") {
    const std::uint64_t cells[] = {0x0000000100000000, 7, 0x0000000300000002, 7};
    const Events<std::uint32_t> events(cells, 16, 2);
    CHECK(events.size() == 2);
    CHECK(events[0] == 0);
    CHECK(events[1] == 2);
    auto it = events.begin();
    CHECK(it++ == events.begin());
    CHECK(*it == 2);
    CHECK(it - events.begin() == 1);
    CHECK((events.begin() < it && it >= events.begin() && it != events.end()));
    CHECK(*(it -= 1) == 0);
    CHECK(std::find(events.begin(), events.end(), 2u) == events.begin() + 1);
}

TEST_CASE("a ring that is refused gives its handler back") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    auto handler = [c = Counted(alive)](Events<int>) { CHECK(c.is_whole()); };
    CHECK(Ring<int>::serial(pool, 0, std::move(handler)).error() == Code::Invalid);
    CHECK(Ring<int>::concurrent(pool, 0, std::move(handler)).error() == Code::Invalid);
    handler(Events<int>(nullptr, 8, 0));
    CHECK(alive.load() == 1);
    finish(pool);
}

TEST_CASE("a full ring says so inside a handler, and when it is only tried") {
    const Pool pool = make_pool(1);
    const auto ring = Ring<int>::serial(pool, 2, [](Events<int>) {}).value();
    {
        Hold hold(pool);
        while (ring.try_publish(1)) {
        }
        CHECK(ring.try_publish(1).error() == Code::Full);
    }
    auto inside = pool.submit([&] {
                          int count = 0;
                          while (ring.publish(1)) {
                              ++count;
                          }
                          return count;
                      })
                      .value();
    CHECK(inside.wait().value() >= 0);
    finish(pool);
}

TEST_CASE("a queue gives back what was put in") {
    const auto queue = Queue<Odd>::create(4).value();
    CHECK(queue.capacity().value() == 4);
    CHECK(queue.pop().error() == Code::Empty);
    CHECK(queue.pop_timeout(1ms).error() == Code::TimedOut);
    CHECK(queue.push(odd(1)).has_value());
    CHECK(queue.push_timeout(odd(2), 1s).has_value());
    const std::vector<Odd> more{odd(3), odd(4), odd(5)};
    CHECK(queue.push_batch(more).value() == 2);
    CHECK(queue.push_batch(more).error() == Code::Full);
    CHECK(queue.push(odd(6)).error() == Code::Full);
    CHECK(queue.push_timeout(odd(6), 1ms).error() == Code::TimedOut);
    CHECK(queue.size().value() == 4);
    CHECK(is_right(queue.pop().value(), 1));
    Odd rest[8];
    const auto popped = queue.pop_batch(rest, 1s).value();
    REQUIRE(popped.size() == 3);
    CHECK(is_right(popped[0], 2));
    CHECK(is_right(rest[2], 4));
    CHECK(queue.pop_batch(rest).error() == Code::Empty);
    CHECK_FALSE(queue.is_closed().value());
    CHECK(queue.push(odd(7)).has_value());
    CHECK(queue.close().has_value());
    CHECK(queue.is_closed().value());
    CHECK(queue.push(odd(8)).error() == Code::ShutDown);
    CHECK(is_right(queue.pop_timeout(paceline::forever).value(), 7));
    CHECK(queue.pop_timeout(paceline::forever).error() == Code::ShutDown);
}

TEST_CASE("large values go through queues and rings") {
    struct Large {
        std::uint32_t number;
        char text[65532];
    };
    const auto large = std::make_unique<Large>();
    const auto queue = Queue<Large>::create(2).value();
    const Pool pool = make_pool();
    std::uint32_t next = 1;
    {
        const auto ring = Ring<Large>::serial(pool, 2, [&](Events<Large> events) {
                              for (const Large &event : events) {
                                  CHECK(event.number == next++);
                                  CHECK(event.text[65531] == static_cast<char>(event.number));
                              }
                          }).value();
        for (std::uint32_t n = 1; n <= 9; ++n) {
            large->number = n;
            large->text[65531] = static_cast<char>(n);
            CHECK(queue.push(*large).has_value());
            CHECK(queue.pop_batch({large.get(), 1}).value()[0].number == n);
            CHECK(ring.publish(*large).has_value());
        }
    }
    finish(pool);
    CHECK(next == 10);
}

TEST_CASE("a queue crosses threads, and can be polled") {
    const auto queue = Queue<std::uint64_t>::create(16).value();
    pollfd waiting{queue.pollable().value(), POLLIN, 0};
    CHECK(poll(&waiting, 1, 0) == 0);
    std::thread producer([&] {
        for (std::uint64_t n = 1; n <= 10'000; ++n) {
            queue.push_timeout(n, PATIENCE).value();
        }
        queue.close().value();
    });
    std::uint64_t sum = 0;
    for (;;) {
        REQUIRE(poll(&waiting, 1, 60'000) == 1);
        auto item = queue.pop();
        while (item) {
            sum += *item;
            item = queue.pop();
        }
        if (item.error() == Code::ShutDown) {
            break;
        }
    }
    producer.join();
    CHECK(sum == 50'005'000);
}

TEST_CASE("rings and queues that were moved from refuse") {
    const Pool pool = make_pool(1);
    auto ring = Ring<int>::serial(pool, 2, [](Events<int>) {}).value();
    auto queue = Queue<int>::create(2).value();
    auto other_ring = std::move(ring);
    auto other_queue = std::move(queue);
    CHECK(ring.publish(1).error() == Code::Invalid);
    CHECK(queue.push(1).error() == Code::Invalid);
    other_ring = std::move(ring);
    other_queue = std::move(queue);
    // Nothing was moved back: what they held has ended.
    CHECK(ring.publish(1).error() == Code::Invalid);
    CHECK(other_ring.publish(1).error() == Code::Invalid);
    CHECK(other_queue.push(1).error() == Code::Invalid);
    finish(pool);
}
