// Connections as data: what has arrived comes as an entry, and its completion says what is written, and what next.
//
// feature: cq/server
// prints:
//   a connection was opened
//   client: hello
//   client: bye

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

using paceline::Completion;
using paceline::ConnEventKind;

static void serve(const paceline::CompletionQueue &queue) {
    paceline::Entry room[1];
    while (const auto entries = queue.wait(room, paceline::forever)) { // until it is closed
        const paceline::Entry &entry = room[0];
        if (entry.what() != paceline::EntryKind::Conn) {
            continue; // the server has ended
        }
        Completion completion(entry);
        if (entry.conn().event == ConnEventKind::Opened) {
            std::cout << "a connection was opened\n";
        } else if (entry.conn().event == ConnEventKind::Data) {
            completion.write(entry.text()); // an echo
            if (entry.text() == "bye") {
                completion.close();
            }
        }
        (void)queue.complete(completion).value();
    }
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
    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    const auto server =
        queue.server(paceline::ServerConfig().add_listener(listen), 1, PACE_WANTED_OPENED).value();
    std::thread thread([&queue] { serve(queue); }); // or several of them

    const int client = connect_to(server.address().value());
    send(client, "hello", 5, 0);
    const auto hello = read_from(client, 5);
    std::cout << "client: " << hello << '\n';
    send(client, "bye", 3, 0);
    std::cout << "client: " << read_from(client, 64) << '\n';
    close(client);
    server.drain(paceline::forever).value();
    queue.close().value();
    thread.join();
    return 0;
}
