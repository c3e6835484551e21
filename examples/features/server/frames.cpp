// Where a message ends: at a delimiter, after a length in front of it, or after a fixed length.
//
// feature: server/frames

#include "../peer.h"
#include <cstddef>
#include <paceline/net.hpp>
#include <string>
#include <string_view>

struct Lines : paceline::ConnHandler {
    // Answers each whole line with a '+' in front, and leaves a part of a line for the next call.
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        std::size_t consumed = 0;
        while (const auto frame = line_.next(bytes.substr(consumed)).value()) {
            conn.write("+" + std::string(frame->body) + "\n").value();
            consumed += frame->length;
        }
        return consumed;
    }

private:
    paceline::Delimited line_{"\n", 1024};
};

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Lines>(pool, config).value();
    const int peer = peer_connect(server.address().value().c_str());
    peer_send(peer, "one\ntwo\nthr");
    CHECK(peer_read(peer, 10) == std::string_view("+one\n+two\n"));
    peer_send(peer, "ee\n");
    CHECK(peer_read(peer, 7) == std::string_view("+three\n"));
    close(peer);

    const paceline::LengthPrefixed prefixed(2, 1024); // two bytes of length
    const auto abc = prefixed.next(std::string_view("\0\3abcd", 6)).value();
    CHECK(abc && abc->body == "abc" && abc->length == 5);
    const auto fixed = paceline::FixedLength(3).next("abcd").value();
    CHECK(fixed && fixed->body == "abc");
    return 0;
}
