// An operations endpoint: a live page, figures and health of a pool, by itself and in a server of the program's own.
//
// feature: ops/endpoint
// prints:
//   /metrics: 200
//   all threads are busy: /health/live: 200
//   a task waits: /health/live: 503
//   the threads are free: /health/live: 200
//   for other machines, without a token: PACE_EINVAL
//   in a server of the program's own: /ops/stats.json: 200

#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <paceline/ops.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;
using paceline::OpsConfig;

// Asks until there is a part in the answer, and prints the status.
static void ask_until(const std::string &address, const std::string &path, const std::string &part) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    std::string answer;
    while (answer.find(part) == std::string::npos) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
            throw std::runtime_error("no connection to " + address);
        }
        send(fd, request.data(), request.size(), 0);
        answer.assign(4096, '\0');
        const auto size = recv(fd, answer.data(), answer.size(), MSG_WAITALL);
        answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        close(fd);
    }
    std::cout << path << ": " << answer.substr(9, 3) << '\n';
}

int main() {
    std::promise<void> busy, go_on;
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(1)).value();
    auto config = OpsConfig().set_address("127.0.0.1:0"); // a free port; or Ops::serve(pool, address)
    config.set_blocked_after(10ms).set_ready_after(20ms).set_dead_after(50ms); // by default seconds
    const auto ops = paceline::Ops::serve(pool, config).value(); // then open it in a browser
    const std::string address = ops.address().value();
    ask_until(address, "/metrics", "paceline_");

    pool.post([&] {
            busy.set_value();
            go_on.get_future().wait();
        })
        .value();
    busy.get_future().wait();
    std::cout << "all threads are busy: "; // for however long: the pool is alive and ready
    ask_until(address, "/health/live", "thread 0 is blocked");
    pool.post([] {}).value();
    std::cout << "a task waits: ";
    ask_until(address, "/health/live", "the pool starves");
    go_on.set_value();
    std::cout << "the threads are free: ";
    ask_until(address, "/health/live", "200 OK");

    // With a token they are answered: set_token("correct-horse-battery").
    const auto refused = paceline::Ops::serve(pool, OpsConfig().set_address("0.0.0.0:0"));
    std::cout << "for other machines, without a token: " << paceline::name(refused.error().code())
              << '\n';

    auto http = paceline::Http::create(pool).value();
    ops.mount(http, "/ops").value();
    http.serve("127.0.0.1:0").value();
    std::cout << "in a server of the program's own: ";
    ask_until(http.address().value(), "/ops/stats.json", "200 OK");
    return 0;
}
