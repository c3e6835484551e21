// An access log: a line in Apache's combined format for each request, which the log's thread gives to a function.
//
// feature: http/access_log
// prints:
//   from 127.0.0.1: "GET / HTTP/1.0" 200 5 "-" "-"

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/http.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Request;
using paceline::Response;

// The other side: sends a request, and waits for the whole answer.
static std::string ask(const std::string &address, const std::string &what, const std::string &body) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection to " + address);
    }
    const auto request =
        what + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    send(fd, request.data(), request.size(), 0);
    std::string answer(4096, '\0');
    const auto size = recv(fd, answer.data(), answer.size(), MSG_WAITALL);
    close(fd);
    answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return answer;
}

int main() {
    paceline::LogConfig config;
    config.on_record = [](const paceline::LogRecord &record) {
        if (record.event == "request.ended") {
            // 127.0.0.1 - - [30/Nov/2026:00:05:21 +0000] "GET / HTTP/1.0" 200 5 "-" "-", here without the time
            const std::string line(record.message);
            std::cout << "from " << line.substr(0, line.find(' ')) << ": " << line.substr(line.find('"'))
                      << '\n';
        }
    };
    const auto log =
        paceline::Log::create(config).value(); // what was logged is printed before it is destroyed
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.text("hello").value(); })
        .value();
    // Without a log: the pool's. AccessFormat::Json: fields, which the file of a log has as JSON.
    http.access_log(paceline::AccessFormat::Combined, log).value();
    http.serve("127.0.0.1:0").value(); // a free port
    ask(http.address().value(), "GET /", "");
    return 0;
}
