// A bounded number of requests in work, and an answer that comes later from another thread.
//
// feature: server/requests

#include "../peer.h"
#include <atomic>
#include <cstddef>
#include <optional>
#include <paceline/net.hpp>
#include <string_view>

using paceline::Admission;
using paceline::Conn;
using paceline::ConnRef;

static std::optional<Admission> admission;
static ConnRef waiting;
static std::atomic<bool> is_admitted{false};

struct Handler : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        if (auto admitted = conn.admit()) { // else: the busy message is written
            admission.emplace(*std::move(admitted));
            waiting = conn.ref();
            is_admitted = true;
        }
        return bytes.size();
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    auto listen = paceline::Listen().set_address("127.0.0.1:0");
    listen.set_max_requests(1).set_busy("busy\n");
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Handler>(pool, config).value();
    const auto address = server.address().value();

    const int first = peer_connect(address.c_str()), second = peer_connect(address.c_str());
    peer_send(first, "?");
    WAIT_FOR(is_admitted);
    peer_send(second, "?");
    CHECK(peer_read(second, 5) == std::string_view("busy\n"));
    pool.post([] {
            waiting.write("done\n").value();
            admission->answered();
        })
        .value();
    CHECK(peer_read(first, 5) == std::string_view("done\n"));
    close(first), close(second);
    server.drain(paceline::forever).value();
    const auto stats = server.stats().value();
    CHECK(stats.answered == 1 && stats.busy == 1 && stats.in_work == 0);
    waiting = ConnRef();
    return 0;
}
