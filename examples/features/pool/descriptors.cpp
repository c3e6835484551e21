// Any descriptor that can be polled has a handler: here a pipe. What the handler answers says how it goes on.
//
// feature: pool/descriptors

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <unistd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    std::atomic<int> total{0};
    int ends[2];
    CHECK(pipe(ends) == 0);
    const auto pool = paceline::Pool::create().value();
    // Called as long as there is something to read, so it may read a part.
    const auto level = paceline::HandleOptions().set_level();
    const auto handle =
        pool.register_fd(ends[0], level,
                         [&total](int fd, Ready) {
                             char bytes[64];
                             const auto size = read(fd, bytes, sizeof bytes);
                             total += size > 0 ? static_cast<int>(size) : 0;
                             return size > 0 ? Flow::Wait : Flow::Done; // the other end is closed
                         })
            .value();

    CHECK(write(ends[1], "hello", 5) == 5);
    WAIT_FOR(total == 5);
    handle.pause().value(); // no calls for a while
    CHECK(write(ends[1], " world", 6) == 6);
    handle.resume().value();
    WAIT_FOR(total == 11);
    close(ends[1]);
    WAIT_FOR(!handle.is_open().value());
    close(ends[0]);
    return 0;
}
