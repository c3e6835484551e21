// A completion queue: descriptors, ticks, timers and tags of the program's own come out of one wait as data, for programs
// that cannot be called back, or do not want to be. Each entry is completed, by any thread.
//
// feature: cq/pool
// prints:
//   a tag of the program's own
//   the pipe: x
//   a timer
//   a tick
//   a tick

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>
#include <unistd.h>

using namespace std::chrono_literals;

enum Tag : std::uint64_t { Pipe, Ticker, Once, Posted };

// Waits for the next entry, prints it, and completes it.
static void print_next(const paceline::CompletionQueue &queue, int fd) {
    paceline::Entry room[1]; // or more: as many as have come are taken at once
    (void)queue.wait(room, paceline::forever).value();
    char byte = '?';
    switch (room[0].tag) {
    case Pipe:
        if (read(fd, &byte, 1) == 1) {
            std::cout << "the pipe: " << byte << '\n';
        }
        break;
    case Ticker: std::cout << "a tick\n"; break;
    case Once: std::cout << "a timer\n"; break;
    case Posted: std::cout << "a tag of the program's own\n"; break;
    }
    queue.done(room[0]).value(); // the next of the pipe and the ticker may come
}

int main() {
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.post(Posted).value();
    print_next(queue, ends[0]);
    const auto reader = queue.register_fd(ends[0], Pipe, paceline::HandleOptions().set_level()).value();
    if (write(ends[1], "x", 1) != 1) {
        return 1;
    }
    print_next(queue, ends[0]);
    const auto timer = queue.after(1ms, Once).value();
    print_next(queue, ends[0]);
    const auto ticker = queue.every(1ms, Ticker).value();
    print_next(queue, ends[0]);
    print_next(queue, ends[0]);
    return 0;
}
