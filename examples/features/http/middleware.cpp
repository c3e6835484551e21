// What surrounds routes: middleware, a fallback for what has no route, and a hook that hears how each request ended.
//
// feature: http/middleware
// prints:
//   the middleware runs
//   ended with 200
//   hello
//   the middleware runs
//   ended with 404
//   nothing here

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/http.hpp>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

using paceline::Next;
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
    sem_t ended;
    sem_init(&ended, 0, 0);
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.text("hello").value(); })
        .value();
    http.around([](const Request &request, Response response, Next next) {
            std::cout << "the middleware runs\n";
            response.header("X-Served-By", "example"); // or answers here, and runs nothing
            next.run(request, std::move(response));
        })
        .value();
    http.fallback([](const Request &, Response response) {
            response.status(404).text("nothing here").value();
        })
        .value();
    http.on_end([&ended](const paceline::RequestEnd &end) {
            std::cout << "ended with " << end.status.value() << '\n';
            sem_post(&ended);
        })
        .value();
    http.serve("127.0.0.1:0").value(); // a free port
    for (const char *request : {"GET /", "GET /none"}) {
        const auto answer = ask(http.address().value(), request, "");
        sem_wait(&ended);
        std::cout << answer.substr(answer.find("\r\n\r\n") + 4) << '\n';
    }
    return 0;
}
