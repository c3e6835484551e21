// Stands for the pattern's own library: ACE with its leader/followers reactor, ACE_TP_Reactor, run
// by N threads. It waits with select(), so it cannot hold more than about a thousand connections.

#include <ace/Event_Handler.h>
#include <ace/Init_ACE.h>
#include <ace/Reactor.h>
#include <ace/TP_Reactor.h>

#include <thread>
#include <vector>

#include "echo.hpp"

static int sleep_us;

struct Connection : ACE_Event_Handler {
    int fd;
    explicit Connection(int f) : fd(f) {}
    ACE_HANDLE get_handle() const override { return fd; }

    int handle_input(ACE_HANDLE) override {
        thread_local std::vector<char> buffer(echo::kReadBuffer);
        const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (n <= 0) return -1;
        echo::hold(buffer.data(), sleep_us);
        for (ssize_t sent = 0; sent < n;) {
            const ssize_t m = ::send(fd, buffer.data() + sent, n - sent, MSG_NOSIGNAL);
            if (m <= 0) return -1;
            sent += m;
        }
        return 0;
    }

    int handle_close(ACE_HANDLE, ACE_Reactor_Mask) override {
        ::close(fd);
        delete this;
        return 0;
    }
};

struct Acceptor : ACE_Event_Handler {
    int fd;
    explicit Acceptor(int f) : fd(f) {}
    ACE_HANDLE get_handle() const override { return fd; }

    int handle_input(ACE_HANDLE) override {
        const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
        if (accepted < 0) return 0;
        echo::set_nodelay(accepted);
        auto *connection = new Connection(accepted);
        const auto mask = ACE_Event_Handler::READ_MASK;
        if (ACE_Reactor::instance()->register_handler(connection, mask) < 0) {
            ::close(accepted);
            delete connection;
        }
        return 0;
    }
};

int main(int argc, char **argv) {
    const auto options = echo::parse(argc, argv);
    sleep_us = options.sleep_us;
    ACE::init();
    ACE_Reactor reactor(new ACE_TP_Reactor, true);
    ACE_Reactor::instance(&reactor);
    Acceptor acceptor(echo::listen_on(options));
    reactor.register_handler(&acceptor, ACE_Event_Handler::ACCEPT_MASK);
    std::vector<std::thread> threads;
    auto run = [&] {
        while (reactor.handle_events() >= 0) {
        }
    };
    for (int i = 1; i < options.threads; i++) threads.emplace_back(run);
    run();
}
