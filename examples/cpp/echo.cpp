// An echo server.
//
// Both handlers are edge-triggered: they are told once that something has become possible, so they go
// on until the kernel says EAGAIN, and only then answer Flow::Wait. A connection that does not read
// what it asked for is held to one buffer's worth, because nothing more is read until that is sent.
//
//     c++ -std=c++17 examples/cpp/echo.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o echo
//     ./echo --listen 127.0.0.1:7007 --threads 2

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <paceline/pool.hpp>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;
using paceline::Flow;
using paceline::HandleRef;
using paceline::Pool;
using paceline::Ready;

// Accepts or reads before others have their turn.
constexpr int TURN = 64;
constexpr auto RETRY = 50ms;

// A descriptor of somebody's.
class Fd {
public:
    explicit Fd(int number) : number_(number) {}
    Fd(Fd &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Fd &operator=(Fd &&) = delete;
    ~Fd() {
        if (number_ >= 0) {
            close(number_);
        }
    }

    int get() const { return number_; }

private:
    int number_;
};

// One connection: the handler owns it, so it ends when the handler does.
class Echo {
public:
    explicit Echo(Fd fd) : fd_(std::move(fd)), bytes_(std::make_unique<Buffer>()) {}

    Flow operator()(int fd, Ready) {
        for (int turn = 0; turn < TURN; ++turn) {
            if (!send_rest()) {
                return errno == EAGAIN ? Flow::Wait : Flow::Done;
            }
            const ssize_t size = recv(fd, bytes_->data(), bytes_->size(), 0);
            if (size == 0) {
                return Flow::Done;
            }
            if (size < 0 && errno != EINTR) {
                return errno == EAGAIN ? Flow::Wait : Flow::Done;
            }
            if (size > 0) {
                unsent_ = {bytes_->data(), static_cast<std::size_t>(size)};
            }
        }
        return Flow::Again;
    }

private:
    using Buffer = std::array<char, 16384>;

    // False: the socket takes no more now, or is broken (errno).
    bool send_rest() {
        while (!unsent_.empty()) {
            const ssize_t sent = send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
            if (sent < 0 && errno != EINTR) {
                return false;
            }
            if (sent > 0) {
                unsent_ = unsent_.subspan(static_cast<std::size_t>(sent));
            }
        }
        return true;
    }

    Fd fd_;
    std::unique_ptr<Buffer> bytes_;
    paceline::span<const char> unsent_;
};

void add(const Pool &pool, Fd client) {
    const int fd = client.get();
    if (auto handle = pool.register_fd(fd, Echo(std::move(client)))) {
        handle->detach(); // it ends by itself
    }
}

// Accepts what waits. When descriptors or memory run out, stops for a while instead of spinning.
Flow accept_all(const Pool &pool, HandleRef self, int listener) {
    for (int turn = 0; turn < TURN; ++turn) {
        const int client = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            add(pool, Fd(client));
        } else if (errno == EAGAIN) {
            return Flow::Wait;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            const auto retry = pool.after(RETRY, [self] { (void)self.resume(); });
            return retry ? Flow::Pause : Flow::Wait;
        } // else this connection is gone already; the next may be well
    }
    return Flow::Again;
}

Fd listen_at(const std::string &text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    const auto colon = text.find(':');
    if (colon == std::string::npos ||
        inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
        throw std::invalid_argument("--listen needs an address like 127.0.0.1:7007");
    }
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1))));

    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    socklen_t length = sizeof address;
    auto *raw = reinterpret_cast<sockaddr *>(&address);
    if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd.get(), raw, length) != 0 || listen(fd.get(), 4096) != 0 ||
        getsockname(fd.get(), raw, &length) != 0) {
        throw std::runtime_error("this address cannot be listened at");
    }
    std::cout << "listening on " << text.substr(0, colon) << ':' << ntohs(address.sin_port) << std::endl;
    return fd;
}

struct Options {
    std::string address = "127.0.0.1:7007";
    paceline::Config config;
};

Options parse(int count, char **arguments) {
    Options options;
    for (int n = 1; n < count; n += 2) {
        const std::string flag = arguments[n];
        if (n + 1 == count || (flag != "--listen" && flag != "--threads")) {
            throw std::invalid_argument("usage: echo [--listen ADDRESS:PORT] [--threads N]");
        }
        if (flag == "--listen") {
            options.address = arguments[n + 1];
        } else {
            options.config.set_threads(static_cast<std::uint32_t>(std::stoul(arguments[n + 1])));
        }
    }
    return options;
}

void show(const paceline::Stats &stats) {
    std::puts("\nthread        led   events  handled");
    for (std::size_t n = 0; n < stats.threads.size(); ++n) {
        const auto &thread = stats.threads[n];
        if (thread.terms > 0) {
            std::printf("%6zu %10llu %8llu %8llu\n", n, static_cast<unsigned long long>(thread.terms),
                        static_cast<unsigned long long>(thread.events),
                        static_cast<unsigned long long>(thread.handled));
        }
    }
}

void serve(const Options &options) {
    // Threads of the pool block signals anyway; this one waits for them.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);

    const Pool pool = Pool::create(options.config).value();
    Fd listener = listen_at(options.address);
    const auto readable = paceline::HandleOptions().set_interest(paceline::Interest::readable());
    const auto acceptor =
        pool.register_fd(listener.get(), readable,
                         [&pool](HandleRef self, int fd, Ready) { return accept_all(pool, self, fd); })
            .value();
    int caught = 0;
    sigwait(&signals, &caught);

    pool.shutdown(0ns).value(); // closes every connection
    show(pool.stats().value());
}

int main(int count, char **arguments) {
    try {
        serve(parse(count, arguments));
    } catch (const std::exception &exception) {
        std::cerr << "echo: " << exception.what() << '\n';
        return 1;
    }
}
