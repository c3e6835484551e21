// paceline inside a host that has a poll loop of its own.
//
// The pool has no threads: everything runs on the host's, when the host says so. One descriptor of the
// pool stands in the host's poll beside the host's own, and tells when there is something to do.
//
//     c++ -std=c++17 examples/cpp/embed.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o embed
//
// feature: pool/join

#include <array>
#include <chrono>
#include <fcntl.h>
#include <iostream>
#include <paceline/pool.hpp>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

using namespace std::chrono_literals;
using paceline::Flow;
using paceline::Ready;

// The reading end of a pipe. The handler owns it, so it is closed when the handler is gone.
class Reader {
public:
    explicit Reader(int fd) : fd_(fd) {}
    Reader(Reader &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Reader &operator=(Reader &&) = delete;
    ~Reader() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }

private:
    int fd_;
};

int main() {
    // The host's thread is the only one, so what the callbacks share needs no lock.
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(0)).value();
    int ticks = 0, messages = 0;
    bool over = false;

    std::array<int, 2> pipe;
    if (pipe2(pipe.data(), O_NONBLOCK | O_CLOEXEC) != 0) {
        return 1;
    }
    const auto reader =
        pool.register_fd(pipe[0],
                         [&messages, own = Reader(pipe[0])](int fd, Ready) {
                             std::array<char, 64> text;
                             ssize_t size;
                             while ((size = read(fd, text.data(), text.size())) > 0) {
                                 const auto length = static_cast<std::size_t>(size);
                                 std::cout << "a message: " << std::string_view(text.data(), length)
                                           << '\n';
                                 ++messages;
                             }
                             return size == 0 ? Flow::Done : Flow::Wait;
                         })
            .value();
    const auto ticker = pool.every(10ms,
                                   [&ticks] {
                                       std::cout << "tick " << ++ticks << '\n';
                                       return ticks == 3 ? Flow::Done : Flow::Wait;
                                   })
                            .value();
    pool.after(100ms,
               [&] {
                   std::cout << "game over after " << ticks << " ticks and " << messages << " message\n";
                   over = true;
               })
        .value();
    if (write(pipe[1], "hello", 5) != 5) {
        return 1;
    }

    // The host's loop, with whatever else it waits for.
    std::array<pollfd, 1> waits{{{pool.pollable().value(), POLLIN, 0}}};
    while (!over) {
        if (poll(waits.data(), waits.size(), -1) > 0) {
            pool.join(0ns).value();
        }
    }
    close(pipe[1]);
}
