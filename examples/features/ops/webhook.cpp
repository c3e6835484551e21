// Notices by HTTP POST: what matches a pattern of the hub is sent to a URL, here of this program's own server.
//
// feature: ops/webhook

#include "../check.h"
#include <atomic>
#include <chrono>
#include <paceline/http.hpp>
#include <paceline/ops.hpp>

using paceline::Request;
using paceline::Response;

int main() {
    std::atomic<int> posted{0};
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("POST", "/notices",
               [&posted](const Request &request, Response response) {
                   CHECK(request.body()[0] == '{');
                   ++posted;
                   response.send("").value();
               })
        .value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();

    const auto hub = paceline::Hub::create(pool).value();
    // With retries, a time-out, headers.
    const auto webhook =
        paceline::Webhook::create("http://" + http.address().value() + "/notices").value();
    const auto forwards = webhook.forward(hub, "alarms.>").value();
    (void)hub.publish("alarms.roof", "{}").value();
    webhook.post("{\"by\":\"hand\"}").value();
    WAIT_FOR(posted == 2);
    webhook.flush(std::chrono::minutes(1)).value();
    CHECK(webhook.stats().value().delivered == 2);
    return 0;
}
