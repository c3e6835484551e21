// Output never blocks: what a slow reader has not taken waits in a bounded queue, and the hook hears when there is room.
// The peer may finish sending, and still read.
//
// feature: server/output

#include "../peer.h"
#include <cstddef>
#include <paceline/net.hpp>
#include <string>
#include <string_view>

using paceline::Conn;
using paceline::WriteStatus;

constexpr std::size_t chunk = 65536, chunks = 300;

struct Handler : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        write_on(conn);
        CHECK(left_ > 0); // more than the buffers of the kernel and the queue hold
        return bytes.size();
    }
    void writable(Conn &conn) override {
        write_on(conn);
        if (left_ == 0) {
            conn.close(); // when all is sent
        }
    }

private:
    void write_on(Conn &conn) {
        auto wrote = WriteStatus::Sent;
        while (left_ > 0 && wrote != WriteStatus::AboveHighMark) {
            wrote = conn.write(std::string(chunk, 'x')).value();
            --left_;
        }
    }
    std::size_t left_ = chunks;
};

int main() {
    const auto pool = paceline::Pool::create().value();
    auto listen = paceline::Listen().set_address("127.0.0.1:0");
    listen.set_output_marks(1 << 16, 1 << 18, 1 << 20);
    listen.set_allow_half_open(); // stays open though the peer has finished sending
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Handler>(pool, config).value();

    const int peer = peer_connect(server.address().value().c_str());
    peer_send(peer, "!");
    CHECK(shutdown(peer, SHUT_WR) == 0);
    usleep(10000); // reads nothing for a while
    std::size_t total = 0;
    static char bytes[chunk];
    for (ssize_t got = 1; got > 0; total += static_cast<std::size_t>(got)) {
        got = recv(peer, bytes, sizeof bytes, 0);
        CHECK(got >= 0);
    }
    CHECK(total == chunk * chunks);
    close(peer);
    return 0;
}
