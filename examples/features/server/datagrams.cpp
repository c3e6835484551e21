// Datagrams of UDP: a handler gets them in batches, and answers each of their senders.
//
// feature: server/datagrams

#include "../check.h"
#include <atomic>
#include <memory>
#include <paceline/udp.hpp>

using paceline::Datagram;
using paceline::span;
using paceline::UdpRef;

struct Echo : paceline::UdpHandler {
    void data(UdpRef udp, span<const Datagram> datagrams) override {
        for (const Datagram &each : datagrams) {
            udp.send_to(each.text(), each.peer_ip()).value();
        }
    }
};

struct Receive : paceline::UdpHandler {
    explicit Receive(std::atomic<int> &answers) : answers_(answers) {}
    void data(UdpRef, span<const Datagram> datagrams) override {
        for (const Datagram &each : datagrams) {
            CHECK(each.text() == "hello");
            ++answers_;
        }
    }

private:
    std::atomic<int> &answers_;
};

int main() {
    std::atomic<int> answers{0};
    const auto pool = paceline::Pool::create().value();
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0";
    const auto server = paceline::Udp::create(pool, config, std::make_unique<Echo>()).value();
    const auto client = paceline::Udp::create(pool, config, std::make_unique<Receive>(answers)).value();
    const auto to = paceline::Ip::read(server.address().value()).value();
    for (int n = 0; n < 10; ++n) {
        client.send_to("hello", to).value();
    }
    WAIT_FOR(answers == 10);
    client.drain(paceline::forever).value();
    return 0;
}
