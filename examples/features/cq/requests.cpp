// HTTP requests as data.
//
// feature: cq/requests

#include "../peer.h"
#include <paceline/cq.hpp>
#include <string>
#include <string_view>

using paceline::Completion;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    auto http = paceline::Http::create(pool).value();
    queue.route(http, "GET", "/hello/{name}", 7).value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();

    const int peer = peer_connect(http.address().value().c_str());
    peer_send(peer, "GET /hello/you HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    paceline::Entry room[1];
    CHECK(queue.wait(room, paceline::forever).value().size() == 1 && room[0].tag == 7);
    const auto request = room[0].request();
    CHECK(request.path() == "/hello/you" && request.params()[0].value == "you");
    const auto answer = Completion::answer(room[0], 200, "hello", "Content-Type: text/plain\r\n");
    (void)queue.complete(answer).value();
    const std::string_view text = peer_read_all(peer);
    CHECK(text.find("HTTP/1.1 200 OK\r\n") == 0 && text.find("\r\n\r\nhello") != std::string::npos);
    close(peer);
    return 0;
}
