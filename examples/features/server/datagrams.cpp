// Datagrams of UDP: a handler gets them in batches, and answers each of their senders.
//
// feature: server/datagrams
// prints:
//   answer: one
//   answer: two
//   answer: three

#include <iostream>
#include <memory>
#include <paceline/udp.hpp>
#include <semaphore.h>

using paceline::Datagram;
using paceline::span;
using paceline::UdpRef;

static sem_t answered;

struct Echo : paceline::UdpHandler {
    void data(UdpRef udp, span<const Datagram> datagrams) override {
        for (const Datagram &each : datagrams) {
            udp.send_to(each.text(), each.peer_ip()).value();
        }
    }
};

struct Print : paceline::UdpHandler {
    void data(UdpRef, span<const Datagram> datagrams) override {
        for (const Datagram &each : datagrams) {
            std::cout << "answer: " << each.text() << '\n';
            sem_post(&answered);
        }
    }
};

int main() {
    sem_init(&answered, 0, 0);
    const auto pool = paceline::Pool::create().value();
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0"; // a free port
    const auto server = paceline::Udp::create(pool, config, std::make_unique<Echo>()).value();
    const auto client = paceline::Udp::create(pool, config, std::make_unique<Print>()).value();
    const auto to = paceline::Ip::read(server.address().value()).value();
    const char *const texts[] = {"one", "two", "three"};
    for (const char *each : texts) {
        client.send_to(each, to).value();
    }
    for (int n = 0; n < 3; ++n) {
        sem_wait(&answered);
    }
    return 0;
}
