// Connections as data: what has arrived comes as an entry, and its completion says what is written, and what next.
//
// feature: cq/server

#include "../peer.h"
#include <paceline/cq.hpp>
#include <string_view>
#include <thread>

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
        if (entry.conn().event == ConnEventKind::Data) {
            completion.write(entry.text()); // an echo
            if (entry.text().find('\n') != std::string_view::npos) {
                completion.close();
            }
        }
        (void)queue.complete(completion).value();
    }
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    const auto server =
        queue.server(paceline::ServerConfig().add_listener(listen), 1, PACE_WANTED_OPENED).value();
    std::thread thread([&queue] { serve(queue); }); // or several of them

    const int peer = peer_connect(server.address().value().c_str());
    peer_send(peer, "hello");
    CHECK(peer_read(peer, 5) == std::string_view("hello"));
    peer_send(peer, "bye\n");
    CHECK(peer_read_all(peer) == std::string_view("bye\n"));
    close(peer);
    server.drain(paceline::forever).value();
    queue.close().value();
    thread.join();
    return 0;
}
