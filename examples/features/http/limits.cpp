// Limits of HTTP: what is too large or too slow is refused; keep-alive and pipelined requests share a connection.
//
// feature: http/limits

#include "../peer.h"
#include <chrono>
#include <paceline/http.hpp>
#include <string>
#include <string_view>

using namespace std::chrono_literals;
using paceline::Request;
using paceline::Response;

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("POST", "/",
               [](const Request &request, Response response) { response.send(request.body()).value(); })
        .value();
    // Also heads, targets, headers, rates.
    auto config = paceline::HttpConfig().set_max_body(1024);
    http.start(config.add_listener(paceline::Listen().set_address("127.0.0.1:0"))).value();
    const auto address = http.address().value();
    const auto status = [&address](const char *what, const std::string &body) {
        return std::string(peer_ask(address.c_str(), what, body.c_str())).substr(9, 3);
    };
    CHECK(status("POST /", std::string(2000, 'x')) == "413");
    CHECK(status("GET /", "") == "405" && status("GET /none", "") == "404");

    int peer = peer_connect(address.c_str());
    peer_send(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none"
                    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo");
    const std::string_view both = peer_read_all(peer);
    CHECK(both.find("one") < both.find("two") && both.find("two") != std::string_view::npos);
    close(peer);

    auto strict = paceline::Http::create(pool).value();
    config.set_head_timeout(20ms);
    strict.start(config).value();
    peer = peer_connect(strict.address().value().c_str());
    peer_send(peer, "POST / HTTP/1.1\r\nHost:"); // and no more: such clients are not waited for
    CHECK(std::string_view(peer_read_all(peer)).substr(9, 3) == "408");
    close(peer);
    http.drain(paceline::forever).value(); // the counters are exact at rest
    const auto stats = http.stats().value();
    CHECK(stats.refused_body_too_large == 1 && stats.answered() == 2);
    return 0;
}
