// An operations endpoint: a live page, figures and health of a pool, by itself and in a server of the program's own.
//
// feature: ops/endpoint

#include "../peer.h"
#include <paceline/ops.hpp>

using paceline::Request;
using paceline::Response;

namespace {

bool answers(const std::string &address, const std::string &path, const char *part) {
    const int fd = peer_connect(address.c_str());
    peer_send(fd, ("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").c_str());
    const bool found = std::strstr(peer_read_all(fd), part) != nullptr;
    close(fd);
    return found;
}

} // namespace

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto ops = paceline::Ops::serve(pool, "127.0.0.1:0").value(); // then open it in a browser
    const std::string address = ops.address().value();
    CHECK(answers(address, "/", "<title>paceline</title>"));
    CHECK(answers(address, "/metrics", "paceline_thread_led_total"));
    CHECK(answers(address, "/health/ready", "200 OK"));

    // Other machines are answered with a token only.
    const auto open = paceline::OpsConfig().set_address("0.0.0.0:0");
    CHECK(paceline::Ops::serve(pool, open).error() == paceline::Code::Invalid);
    const auto closed = paceline::OpsConfig(open).set_token("correct-horse-battery");
    const auto other = paceline::Ops::serve(pool, closed).value();

    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.send("mine").value(); })
        .value();
    ops.mount(http, "/ops").value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    CHECK(answers(http.address().value(), "/ops/stats.json", "\"threads\""));
    CHECK(answers(http.address().value(), "/", "mine"));
    return 0;
}
