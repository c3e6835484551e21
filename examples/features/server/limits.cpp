// Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
//
// feature: server/limits

#include "../peer.h"
#include <chrono>
#include <cstddef>
#include <paceline/net.hpp>
#include <string_view>

using namespace std::chrono_literals;

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

static paceline::Server serve(const paceline::Pool &pool, const paceline::Listen &listen) {
    return paceline::Server::create_for<Echo>(pool, paceline::ServerConfig().add_listener(listen))
        .value();
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto free_port = paceline::Listen().set_address("127.0.0.1:0");
    const auto small =
        serve(pool, paceline::Listen(free_port).set_max_connections(1).set_refusal("too many\n"));
    const auto strict = serve(pool, paceline::Listen(free_port).set_idle_timeout(20ms));

    const auto address = small.address().value();
    const int first = peer_connect(address.c_str());
    peer_send(first, "hello");
    CHECK(peer_read(first, 5) == std::string_view("hello"));
    const int second = peer_connect(address.c_str());
    CHECK(peer_read_all(second) == std::string_view("too many\n")); // and the end
    close(first), close(second);
    small.drain(paceline::forever).value(); // the counters are exact at rest
    CHECK(small.stats().value().turned_away == 1);

    const int silent = peer_connect(strict.address().value().c_str());
    CHECK(peer_read_all(silent) == std::string_view()); // it says nothing, and is closed
    close(silent);
    strict.drain(paceline::forever).value();
    const auto stats = strict.stats().value();
    CHECK(stats.closed_timed_out == 1 && stats.balances);
    return 0;
}
