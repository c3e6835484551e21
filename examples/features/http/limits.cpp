// Limits of HTTP: what is too large or too slow is refused; keep-alive and pipelined requests share a connection.
//
// feature: http/limits
// prints:
//   POST / with 2000 bytes: 413
//   GET /: 405
//   GET /none: 404
//   a head that does not end: 408
//   two requests over one connection: both are answered

#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/http.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;
using paceline::Request;
using paceline::Response;

// Sends bytes, and waits for all that comes.
static std::string send_and_read(const std::string &address, const std::string &bytes) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection to " + address);
    }
    send(fd, bytes.data(), bytes.size(), 0);
    std::string answer(4096, '\0');
    const auto size = recv(fd, answer.data(), answer.size(), MSG_WAITALL);
    close(fd);
    answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return answer;
}

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("POST", "/",
               [](const Request &request, Response response) { response.send(request.body()).value(); })
        .value();
    auto config = paceline::HttpConfig().set_max_body(1024); // also heads, targets, headers, rates
    config.set_head_timeout(500ms);
    http.start(config.add_listener(paceline::Listen().set_address("127.0.0.1:0"))).value();
    const std::string address = http.address().value();
    const auto print_status = [&address](const char *what, const std::string &bytes) {
        std::cout << what << ": " << send_and_read(address, bytes).substr(9, 3) << '\n';
    };
    print_status("POST / with 2000 bytes",
                 "POST / HTTP/1.0\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'));
    print_status("GET /", "GET / HTTP/1.0\r\n\r\n");
    print_status("GET /none", "GET /none HTTP/1.0\r\n\r\n");
    print_status("a head that does not end", "POST / HTTP/1.1\r\nHost:");

    const auto both = send_and_read(
        address, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none"
                 "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo");
    const bool answered = both.find("\r\n\r\none") < both.find("\r\n\r\ntwo");
    std::cout << "two requests over one connection: " << (answered ? "both are answered" : both) << '\n';
    return 0;
}
