// A response that is sent later, by another thread.
//
// feature: http/later

#include "../peer.h"
#include <memory>
#include <paceline/http.hpp>
#include <string>
#include <string_view>
#include <utility>

using paceline::Request;
using paceline::Response;

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/slow",
               [&pool](const Request &, Response response) { // the request is lent until this returns
                   const auto kept = std::make_shared<Response>(std::move(response));
                   pool.post([kept] { kept->status(202).json("{\"ok\":true}").value(); }).value();
               })
        .value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    const std::string_view answer = peer_ask(http.address().value().c_str(), "GET /slow", "");
    CHECK(answer.find("HTTP/1.1 202 Accepted\r\n") == 0);
    CHECK(answer.find("{\"ok\":true}") != std::string_view::npos);
    return 0;
}
