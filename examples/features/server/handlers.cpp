// A server with a TCP and a Unix listener, and with a handler object for each connection.
//
// feature: server/handlers

#include "../peer.h"
#include <atomic>
#include <cstddef>
#include <paceline/net.hpp>
#include <string>
#include <string_view>

using paceline::Conn;
using paceline::Listen;

static std::atomic<int> closed{0};

struct Count : paceline::ConnHandler {
    paceline::Accept open(Conn &conn) override {
        conn.write("hello\n").value();
        return paceline::Accept::Yes; // or Refuse
    }
    // Answers each byte with the number of bytes so far.
    std::size_t data(Conn &conn, std::string_view bytes) override {
        count_ += bytes.size();
        conn.write(std::to_string(count_) + "\n").value();
        return bytes.size(); // so many are consumed; what is left comes again, with more
    }
    void close(Conn &, paceline::Reason reason) override {
        CHECK(reason == paceline::Reason::Peer);
        ++closed;
    }

private:
    std::size_t count_ = 0;
};

int main() {
    const std::string name = "unix:@handlers-cpp-" + std::to_string(getpid());
    const auto pool = paceline::Pool::create().value();
    const auto config = paceline::ServerConfig()
                            .add_listener(Listen().set_address("127.0.0.1:0")) // a free port
                            .add_listener(Listen().set_address(name));
    const auto server = paceline::Server::create_for<Count>(pool, config).value();
    const int one = peer_connect(server.address().value().c_str()), other = peer_connect(name.c_str());
    CHECK(peer_read(one, 6) == std::string_view("hello\n"));
    CHECK(peer_read(other, 6) == std::string_view("hello\n"));
    peer_send(one, "abc");
    CHECK(peer_read(one, 2) == std::string_view("3\n"));
    peer_send(other, "x");
    CHECK(peer_read(other, 2) == std::string_view("1\n"));
    close(one), close(other);
    WAIT_FOR(closed == 2);
    return 0;
}
