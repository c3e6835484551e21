// A change of protocol: after a request the connection has a handler of its own.
//
// feature: http/upgrade

#include "../peer.h"
#include <cstddef>
#include <memory>
#include <paceline/http.hpp>
#include <string>
#include <string_view>

using paceline::Request;
using paceline::Response;

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/",
               [](const Request &request, Response response) {
                   CHECK(request.upgrade() == "echo"); // what the peer asks for
                   response.upgrade("echo", std::make_unique<Echo>()).value();
               })
        .value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    const int peer = peer_connect(http.address().value().c_str());
    peer_send(peer, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
        head += peer_read(peer, 1);
    }
    CHECK(head.find("HTTP/1.1 101 ") == 0);
    peer_send(peer, "hello");
    CHECK(peer_read(peer, 5) == std::string_view("hello"));
    close(peer);
    return 0;
}
