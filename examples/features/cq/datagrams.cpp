// Datagrams as data.
//
// feature: cq/datagrams
// prints:
//   a datagram with the tag 7: hello
//   from the socket itself: true

#include <iostream>
#include <paceline/cq.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0"; // a free port
    const auto udp = queue.udp(config, 7).value();
    const auto self = paceline::Ip::read(udp.address().value()).value();
    udp.send_to("hello", self).value();
    paceline::Entry room[1];
    (void)queue.wait(room, paceline::forever).value();
    const auto datagram = room[0].datagram();
    std::cout << "a datagram with the tag " << room[0].tag << ": " << datagram.text << '\n';
    std::cout << std::boolalpha << "from the socket itself: " << (datagram.peer.port == self.port)
              << '\n';
    queue.done(room[0]).value();
    return 0;
}
