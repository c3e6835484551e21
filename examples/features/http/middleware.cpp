// What surrounds routes: middleware, a fallback for what has no route, and a hook that hears how each request ended.
//
// feature: http/middleware

#include "../peer.h"
#include <atomic>
#include <paceline/http.hpp>
#include <string>
#include <string_view>
#include <utility>

using paceline::Next;
using paceline::Request;
using paceline::Response;

int main() {
    std::atomic<int> ended{0};
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.text("hello").value(); })
        .value();
    http.around([](const Request &request, Response response, Next next) {
            response.header("X-Served-By", "example"); // or answers here, and runs nothing
            next.run(request, std::move(response));
        })
        .value();
    http.fallback([](const Request &, Response response) {
            response.status(404).text("nothing here").value();
        })
        .value();
    http.on_end([&ended](const paceline::RequestEnd &end) { ended += end.status.has_value(); }).value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    const auto address = http.address().value();
    std::string_view answer = peer_ask(address.c_str(), "GET /", "");
    CHECK(answer.find("X-Served-By: example\r\n") != std::string_view::npos);
    answer = peer_ask(address.c_str(), "GET /none", "");
    CHECK(answer.find("nothing here") != std::string_view::npos);
    WAIT_FOR(ended == 2);
    return 0;
}
