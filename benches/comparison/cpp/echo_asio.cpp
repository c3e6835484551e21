// Stands for the usual C++ networking library: Asio, one io_context that N threads run, a chain of
// asynchronous reads and writes per connection.

#include <asio.hpp>

#include <memory>
#include <thread>
#include <vector>

#include "echo.hpp"

using asio::ip::tcp;

struct Connection : std::enable_shared_from_this<Connection> {
    tcp::socket socket;
    int sleep_us;
    std::vector<char> buffer = std::vector<char>(echo::kReadBuffer);

    Connection(tcp::socket s, int us) : socket(std::move(s)), sleep_us(us) {}

    void read() {
        socket.async_read_some(asio::buffer(buffer),
                               [self = shared_from_this()](std::error_code error, size_t n) {
                                   if (error) return;
                                   echo::hold(self->buffer.data(), self->sleep_us);
                                   self->write(n);
                               });
    }

    void write(size_t n) {
        asio::async_write(socket, asio::buffer(buffer.data(), n),
                          [self = shared_from_this()](std::error_code error, size_t) {
                              if (!error) self->read();
                          });
    }
};

static void accept(tcp::acceptor &acceptor, int sleep_us) {
    acceptor.async_accept([&acceptor, sleep_us](std::error_code error, tcp::socket socket) {
        if (!error) {
            socket.set_option(tcp::no_delay(true));
            std::make_shared<Connection>(std::move(socket), sleep_us)->read();
        }
        accept(acceptor, sleep_us);
    });
}

int main(int argc, char **argv) {
    const auto options = echo::parse(argc, argv);
    asio::io_context context(options.threads);
    tcp::acceptor acceptor(context);
    acceptor.assign(tcp::v4(), echo::listen_on(options));
    accept(acceptor, options.sleep_us);
    std::vector<std::thread> threads;
    for (int i = 1; i < options.threads; i++) threads.emplace_back([&] { context.run(); });
    context.run();
}
