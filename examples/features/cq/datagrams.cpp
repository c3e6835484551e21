// Datagrams as data.
//
// feature: cq/datagrams

#include "../check.h"
#include <paceline/cq.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0";
    const auto udp = queue.udp(config, 7).value();
    const auto self = paceline::Ip::read(udp.address().value()).value();
    udp.send_to("hello", self).value();
    paceline::Entry room[1];
    CHECK(queue.wait(room, paceline::forever).value().size() == 1 && room[0].tag == 7);
    const auto datagram = room[0].datagram();
    CHECK(datagram.text == "hello" && datagram.peer.port == self.port);
    queue.done(room[0]).value();
    return 0;
}
