// HTTP requests as data.
//
// feature: cq/requests
// prints:
//   a request with the tag 7: /hello/you
//   name: you
//   HTTP/1.1 200 OK
//   hello

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Completion;

// The other side: a client with a socket that blocks.
static int connect_to(const std::string &address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection to " + address);
    }
    return fd;
}

// The next `size` bytes that come, or what comes before the end.
static std::string read_from(int fd, std::size_t size) {
    std::string text(size, '\0');
    const auto got = recv(fd, text.data(), size, MSG_WAITALL);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    auto http = paceline::Http::create(pool).value();
    queue.route(http, "GET", "/hello/{name}", 7).value();
    http.serve("127.0.0.1:0").value(); // a free port

    const int client = connect_to(http.address().value());
    const std::string text = "GET /hello/you HTTP/1.0\r\n\r\n";
    send(client, text.data(), text.size(), 0);
    paceline::Entry room[1];
    (void)queue.wait(room, paceline::forever).value();
    const auto request = room[0].request();
    std::cout << "a request with the tag " << room[0].tag << ": " << request.path() << '\n'
              << request.params()[0].name << ": " << request.params()[0].value << '\n';
    const auto response = Completion::answer(room[0], 200, "hello", "Content-Type: text/plain\r\n");
    (void)queue.complete(response).value();

    const auto answer = read_from(client, 1024);
    std::cout << answer.substr(0, answer.find("\r\n")) << '\n'
              << answer.substr(answer.find("\r\n\r\n") + 4) << '\n';
    close(client);
    return 0;
}
