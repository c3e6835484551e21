// A change of protocol: after a request the connection has a handler of its own.
//
// feature: http/upgrade
// prints:
//   asked for: echo
//   HTTP/1.1 101
//   the new protocol: hello

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <memory>
#include <paceline/http.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Request;
using paceline::Response;

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

static void upgrade(const Request &request, Response response) {
    std::cout << "asked for: " << request.upgrade().value() << '\n';
    response.upgrade("echo", std::make_unique<Echo>()).value();
}

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
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", upgrade).value();
    http.serve("127.0.0.1:0").value(); // a free port
    const int client = connect_to(http.address().value());
    const std::string request =
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    send(client, request.data(), request.size(), 0);
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
        head += read_from(client, 1);
    }
    std::cout << head.substr(0, 12) << '\n';
    send(client, "hello", 5, 0);
    std::cout << "the new protocol: " << read_from(client, 5) << '\n';
    close(client);
    return 0;
}
