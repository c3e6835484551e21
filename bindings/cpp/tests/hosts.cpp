// Host threads: joining for a while.

#include "common.hpp"

#include <poll.h>

namespace {
/// Without threads of its own.
Pool make_hosted() { return Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value(); }
} // namespace

TEST_CASE("a host that joins runs what is ready") {
    const Pool pool = Pool::create(paceline::Config().set_threads(0).set_max_turn(1s)).value();
    int ran = 0;
    for (int n = 0; n < 5; ++n) {
        pool.post([&ran] { ++ran; }).value();
    }
    CHECK(pool.join(0ns).value() == 5);
    CHECK(ran == 5);
    finish(pool);
}

TEST_CASE("a descriptor tells when to join") {
    const Pool pool = make_hosted();
    Pipe pipe;
    std::string text;
    auto handle = pool.register_fd(pipe.reader(),
                                   [&](int fd, Ready) {
                                       text += read_all(fd);
                                       return Flow::Wait;
                                   })
                      .value();
    pollfd waiting{pool.pollable().value(), POLLIN, 0};
    while (poll(&waiting, 1, 0) == 1) {
        pool.join(0ns).value();
    }
    pipe.write("ping");
    CHECK(poll(&waiting, 1, 60'000) == 1);
    while (text.empty()) {
        pool.join(0ns).value();
    }
    CHECK(text == "ping");
    handle.deregister().value();
    finish(pool);
}
