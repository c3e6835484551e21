// An access log: a line in Apache's combined format for each request, which the log's thread gives to a function.
//
// feature: http/access_log

#include "../peer.h"
#include <atomic>
#include <paceline/http.hpp>
#include <string_view>

using paceline::Request;
using paceline::Response;

int main() {
    std::atomic<int> lines{0};
    paceline::LogConfig config;
    config.on_record = [&lines](const paceline::LogRecord &record) {
        if (record.event == "request.ended") {
            const std::string_view line = record.message; // to be written somewhere
            CHECK(line.find("] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"") != std::string_view::npos);
            ++lines;
        }
    };
    const auto log = paceline::Log::create(config).value();
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.text("hello").value(); })
        .value();
    // Without a log: the pool's. AccessFormat::Json: fields, which the file of a log has as JSON.
    http.access_log(paceline::AccessFormat::Combined, log).value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    const std::string_view answer = peer_ask(http.address().value().c_str(), "GET /", "");
    CHECK(answer.find("hello") != std::string_view::npos);
    WAIT_FOR(lines == 1);
    return 0;
}
