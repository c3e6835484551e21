// A TCP server that echoes, with the limits that a server in production has: 4 threads, 20,000 connections, 120 s without a
// byte, 10,000 requests. It ends at SIGTERM or Ctrl-C, and drains first. For 20,000 connections: `ulimit -n 20100`.
//
//     c++ -std=c++17 examples/cpp/tcp.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o tcp
//     ./tcp 127.0.0.1:3333    # without an address: port 3333 of all addresses
//     nc 127.0.0.1 3333

#include <csignal>
#include <iostream>
#include <paceline/net.hpp>

using namespace std::chrono_literals;
using namespace paceline;

struct Echo : ConnHandler {
    std::size_t data(Conn &conn, std::string_view request) override {
        auto admission = conn.admit(); // one of 10,000; if there is none, the busy message is written
        if (admission) {
            conn.write(request).value();
            admission->answered(); // here at once; another thread may do it later
        }
        return request.size();
    }
};

int main(int argc, char **argv) {
    const auto pool = Pool::create(Config().set_threads(4)).value();
    const auto signals = Signals::create(pool, {SIGTERM, SIGINT}, [](int) {}).value();
    auto listen = Listen().set_address(argc > 1 ? argv[1] : "*:3333").set_idle_timeout(120s);
    listen.set_max_connections(20000).set_refusal("too many connections\n");
    listen.set_max_requests(10000).set_busy("too many requests\n");
    const auto config = ServerConfig().add_listener(listen);
    const auto server = Server::create_for<Echo>(pool, config).value();
    std::cout << "listening on " << server.address().value() << std::endl;
    signals.wait().value();
    const bool drained = server.drain(10s).value().drained;
    const auto stats = server.stats().value();
    std::cout << "drained: " << std::boolalpha << drained << ", connections: " << stats.accepted
              << ", requests: " << stats.answered << '\n';
}
