// Datagram sockets.

#include "common.hpp"

using paceline::Datagram;
using paceline::Ip;
using paceline::Reason;
using paceline::span;
using paceline::Udp;
using paceline::UdpConfig;
using paceline::UdpHandler;
using paceline::UdpRef;

namespace {

struct Post {
    Signal came, closed;
    std::mutex mutex;
    std::vector<std::string> words;
};

/// Keeps what comes, and answers it if that is asked for.
struct Keeper : UdpHandler {
    Keeper(Post &p, bool a) : post(p), answers(a) {}
    void data(UdpRef udp, span<const Datagram> datagrams) override {
        for (const Datagram &datagram : datagrams) {
            {
                const std::lock_guard<std::mutex> lock(post.mutex);
                post.words.push_back(std::string(datagram.text()) +
                                     (datagram.is_truncated() ? " …" : ""));
            }
            if (answers) {
                udp.send_to("answer", datagram.peer_ip()).value();
            }
            post.came.set();
        }
    }
    void close(UdpRef, Reason reason) override {
        CHECK((reason == Reason::Local || reason == Reason::Drained));
        post.closed.set();
    }

    Post &post;
    const bool answers;
};

UdpConfig at(const std::string &bind, const std::string &connect = "") {
    UdpConfig config;
    config.bind = bind;
    config.connect = connect;
    return config;
}

} // namespace

TEST_CASE("datagrams are received, answered and counted") {
    Post here, there;
    auto pool = Pool::create({2}).value();
    auto config = at("127.0.0.1:0");
    config.max_datagram = 8;
    auto server = Udp::create(pool, config, std::make_unique<Keeper>(here, true)).value();
    const std::string address = server.address().value();
    auto client =
        Udp::create(pool, at("127.0.0.1:0", address), std::make_unique<Keeper>(there, false)).value();
    client.send("one").value();
    REQUIRE(there.came.wait());
    const Ip to = Ip::read(address).value();
    CHECK(to.text().value() == address);
    const Datagram several[] = {{"two", to}, {"too long for it", to}};
    CHECK(client.send_batch(several).value() == 2);
    REQUIRE(there.came.wait(3));
    CHECK(here.words == std::vector<std::string>{"one", "two", "too long …"});
    CHECK(there.words == std::vector<std::string>(3, "answer"));
    const auto stats = server.stats().value();
    CHECK(stats.received == 3);
    CHECK(stats.truncated == 1);
    CHECK(stats.sent == 3);
    CHECK(server.drain(PATIENCE).value());
    REQUIRE(here.closed.wait());
    CHECK(client.is_open().value());
    client.close().value();
    CHECK_FALSE(client.is_open().value());
    client.wait().value();
    REQUIRE(there.closed.wait());
    CHECK(client.send("late").error() == Code::Stale);
}

TEST_CASE("a datagram socket that cannot be names the reason, and deletes its handler") {
    std::atomic<int> alive{0};
    struct Quiet : UdpHandler {
        explicit Quiet(std::atomic<int> &a) : counted(a) {}
        void data(UdpRef, span<const Datagram>) override {}

        Counted counted;
    };
    auto pool = Pool::create({2}).value();
    const auto error = [&](const UdpConfig &config) {
        return Udp::create(pool, config, std::make_unique<Quiet>(alive)).error();
    };
    CHECK(error({}) == Code::Invalid);
    auto batch = at("127.0.0.1:0");
    batch.batch = 65;
    CHECK(std::string(error(batch).message()).find("batch") != std::string::npos);
    auto first = Udp::create(pool, at("127.0.0.1:0"), std::make_unique<Quiet>(alive)).value();
    const std::string taken = first.address().value();
    CHECK(std::string(error(at(taken)).message()).find(taken) != std::string::npos);
    CHECK(Udp::create(pool, at(taken), nullptr).error() == Code::Invalid);
    CHECK(Ip::read("nowhere").error() == Code::Invalid);
    CHECK(alive == 1);
}
