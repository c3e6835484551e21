// Any descriptor that can be polled has a handler: here a pipe. What the handler returns says how it goes on.
//
// feature: pool/descriptors
// prints:
//   read: hello
//   paused
//   read: world
//   the other end is closed

#include <iostream>
#include <paceline/pool.hpp>
#include <semaphore.h>
#include <string_view>
#include <unistd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    sem_t called;
    sem_init(&called, 0, 0);
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    const auto pool = paceline::Pool::create().value();
    const auto read_some = [&called](int fd, Ready) {
        char bytes[64];
        const auto size = read(fd, bytes, sizeof bytes);
        if (size > 0) {
            std::cout << "read: " << std::string_view(bytes, static_cast<std::size_t>(size)) << '\n';
        } else {
            std::cout << "the other end is closed\n";
        }
        sem_post(&called);
        return size > 0 ? Flow::Wait : Flow::Done;
    };
    // Called as long as there is something to read, so it may read a part.
    const auto level = paceline::HandleOptions().set_level();
    const auto handle = pool.register_fd(ends[0], level, read_some).value();

    if (write(ends[1], "hello", 5) != 5) {
        return 1;
    }
    sem_wait(&called);
    handle.pause().value(); // no calls for a while
    if (write(ends[1], "world", 5) != 5) {
        return 1;
    }
    std::cout << "paused\n";
    handle.resume().value();
    sem_wait(&called);
    close(ends[1]);
    sem_wait(&called);
    close(ends[0]);
    return 0;
}
