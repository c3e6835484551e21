// A response that is sent later, by another thread.
//
// feature: http/later
// prints:
//   the handler returns without an answer
//   the task answers
//   202 {"ok":true}

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <memory>
#include <paceline/http.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

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
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/slow",
               [&pool](const Request &, Response response) { // the request is lent until this returns
                   std::cout << "the handler returns without an answer\n";
                   const auto kept = std::make_shared<Response>(std::move(response));
                   pool.post([kept] {
                           std::cout << "the task answers\n";
                           kept->status(202).json("{\"ok\":true}").value();
                       })
                       .value();
               })
        .value();
    http.serve("127.0.0.1:0").value(); // a free port
    const auto answer = ask(http.address().value(), "GET /slow", "");
    std::cout << answer.substr(9, 3) << ' ' << answer.substr(answer.find("\r\n\r\n") + 4) << '\n';
    return 0;
}
