// A completion queue: descriptors, ticks, timers and tags of the program's own come out of one wait as data, for programs
// that cannot be called back, or do not want to be. Each entry is completed, by any thread.
//
// feature: cq/pool

#include "../check.h"
#include <chrono>
#include <cstdint>
#include <paceline/cq.hpp>
#include <set>
#include <unistd.h>

using namespace std::chrono_literals;

int main() {
    enum Tag : std::uint64_t { Pipe, Ticker, Once, Posted };
    int ends[2];
    CHECK(pipe(ends) == 0);
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto reader = queue.register_fd(ends[0], Pipe, paceline::HandleOptions().set_level()).value();
    const auto ticker = queue.every(1ms, Ticker).value();
    const auto timer = queue.after(1ms, Once).value();
    queue.post(Posted).value();
    CHECK(write(ends[1], "x", 1) == 1);

    int ticks = 0;
    std::set<std::uint64_t> seen;
    while (ticks < 3 || seen.size() < 4) {
        paceline::Entry room[8];
        const auto entries = queue.wait(room, paceline::forever).value();
        for (const paceline::Entry &entry : entries) {
            char byte = 0;
            CHECK(entry.tag != Pipe || read(ends[0], &byte, 1) == 1);
            ticks += entry.tag == Ticker;
            seen.insert(entry.tag);
        }
        queue.done(entries).value(); // the next of the pipe and the ticker may come
    }
    const auto stats = queue.stats().value();
    CHECK(stats.brought == stats.completed + stats.withdrawn + stats.out);
    return 0;
}
