// Without descriptors to spare a server stops accepting for a moment, reports it, and goes on when there are some.
//
// feature: server/exhausted
// prints:
//   no descriptor is free: the server does not accept for a moment
//   descriptors are free
//   client: hello

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <paceline/net.hpp>
#include <semaphore.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

int main() {
    sem_t exhausted;
    sem_init(&exhausted, 0, 0);
    std::once_flag reported;
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    auto config = paceline::ServerConfig().add_listener(listen);
    config.set_on_exhausted([&](const char *) { // with the system's reason
        std::call_once(reported, [&] {
            std::cout << "no descriptor is free: the server does not accept for a moment\n";
            sem_post(&exhausted);
        });
    });
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();

    const std::string address = server.address().value();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{static_cast<rlim_t>(client) + 1, before.rlim_max}; // all are in use
    setrlimit(RLIMIT_NOFILE, &few);
    // The kernel has the connection, but the server cannot accept it.
    if (connect(client, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        return 1;
    }
    send(client, "hello", 5, 0);
    sem_wait(&exhausted);
    std::cout << "descriptors are free\n";
    setrlimit(RLIMIT_NOFILE, &before);
    char answer[8] = "";
    recv(client, answer, 5, MSG_WAITALL);
    std::cout << "client: " << answer << '\n';
    close(client);
    return 0;
}
