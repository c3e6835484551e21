// Without descriptors to spare a server stops accepting for a moment, tells so, and goes on when there are some.
//
// feature: server/exhausted

#include "../peer.h"
#include <atomic>
#include <cstddef>
#include <paceline/net.hpp>
#include <string_view>
#include <sys/resource.h>

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

int main() {
    std::atomic<int> told{0};
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    auto config = paceline::ServerConfig().add_listener(listen);
    config.set_on_exhausted([&told](const char *) { ++told; });
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();
    const auto address = server.address().value();

    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    rlimit before{};
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit few{static_cast<rlim_t>(peer) + 1, before.rlim_max}; // all are in use
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    peer_join(peer, address.c_str()); // the kernel has it, but the server cannot accept it
    peer_send(peer, "hello");
    WAIT_FOR(told == 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(peer_read(peer, 5) == std::string_view("hello"));
    close(peer);
    return 0;
}
