// What stands beside servers: where messages end, filters, sockets from a supervisor.

#include "client.hpp"

using paceline::AcceptedConn;
using paceline::Delimited;
using paceline::Filter;
using paceline::FilterRead;
using paceline::FilterSink;
using paceline::FixedLength;
using paceline::Http;
using paceline::HttpConfig;
using paceline::LengthPrefixed;
using paceline::Listen;
using paceline::Reason;
using paceline::Server;
using paceline::ServerConfig;

TEST_CASE("messages have ends") {
    Delimited lines("\r\n", 5);
    CHECK(!lines.next("").value());
    CHECK(!lines.next("abc\r").value());
    const auto line = lines.next("abc\r\ndef").value();
    REQUIRE(line);
    CHECK(line->body == "abc");
    CHECK(line->length == 5);
    CHECK(lines.next("abcdefgh").error() == Code::Full);
    CHECK(Delimited("", 5).next("abc").error() == Code::Invalid);
    const LengthPrefixed prefixed(2, 3);
    CHECK(!prefixed.next({"\0\3ab", 4}).value());
    const auto message = prefixed.next({"\0\3abcd", 6}).value();
    REQUIRE(message);
    CHECK(message->body == "abc");
    CHECK(message->length == 5);
    CHECK(prefixed.next({"\0\4", 2}).error() == Code::Full);
    CHECK(LengthPrefixed(9, 3).next("abc").error() == Code::Invalid);
    CHECK_FALSE(FixedLength(4).next("abc").value());
    CHECK_FALSE(FixedLength(1).next("").value());
    CHECK(FixedLength(0).next("abc").error() == Code::Invalid);
    CHECK(FixedLength(2).next("abc").value()->body == "ab");
    CHECK(FixedLength(2).next("abc").value()->length == 2);
}

namespace {

/// Turns letters by one, after a greeting.
struct Turning : Filter {
    explicit Turning(std::atomic<int> &count) : alive(count) { ++alive; }
    ~Turning() override { --alive; }

    FilterRead received(std::string_view bytes, FilterSink plain, FilterSink wire) override {
        if (!greeted) {
            if (bytes[0] != '!') {
                return FilterRead::Failed;
            }
            greeted = true;
            wire.append("?");
            bytes.remove_prefix(1);
        }
        for (const char byte : bytes) {
            if (byte == '#') {
                throw std::runtime_error("no such letter");
            }
            if (byte == '.') {
                return FilterRead::Ended;
            }
            plain.append(std::string(1, static_cast<char>(byte - 1)));
        }
        return FilterRead::Open;
    }
    bool written(std::string_view bytes, FilterSink wire) override {
        std::string turned(bytes);
        for (char &byte : turned) {
            byte = static_cast<char>(byte + 1);
        }
        wire.append(turned);
        return true;
    }
    void finish(FilterSink wire) override { wire.append("~"); }
    bool cut_off() override { return false; }

    std::atomic<int> &alive;
    bool greeted = false;
};

struct Shout : paceline::ConnHandler {
    Shout(Signal &signal, std::atomic<int> &why) : closed(signal), reason(why) {}
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
    void close(paceline::Conn &, Reason why) override {
        reason = static_cast<int>(why.kind());
        closed.set();
    }
    Signal &closed;
    std::atomic<int> &reason;
};

} // namespace

TEST_CASE("a filter stands between socket and handler, and goes with its connection") {
    std::atomic<int> alive{0}, factories{0};
    auto pool = Pool::create({2}).value();
    const auto counted = std::make_shared<Counted>(factories);
    const auto make = [&alive, counted](const AcceptedConn &accepted) {
        CHECK(accepted.peer().value().rfind("127.0.0.1:", 0) == 0);
        CHECK(accepted.local().value().rfind("127.0.0.1:", 0) == 0);
        return std::make_unique<Turning>(alive);
    };
    const auto ends = [&](std::string_view sent, std::string_view back, Reason::Kind why) {
        Signal closed;
        std::atomic<int> reason{-1};
        {
            auto server =
                Server::create(pool, ServerConfig().add_listener(Listen{"127.0.0.1:0"}.set_filter(make)),
                               [&](paceline::Conn &) { return std::make_unique<Shout>(closed, reason); })
                    .value();
            Client client(server);
            client.send(sent);
            CHECK(client.receive(back.size()) == back);
            client.finish();
            REQUIRE(closed.wait());
            CHECK(reason == static_cast<int>(why));
        }
        while (alive != 0) {
            std::this_thread::yield();
        }
    };
    ends("!bcd.", "?bcd~", Reason::Peer);
    ends("!bcd", "?bcd", Reason::Failed); // cut off
    ends("!b#", "?", Reason::Failed);     // thrown
    ends("what?", "", Reason::Failed);
    {
        auto http = Http::create(pool).value();
        http.route("GET", "/",
                   [](const paceline::Request &, paceline::Response response) {
                       response.text("hal").value();
                   })
            .value();
        http.start(HttpConfig().add_listener(Listen{"127.0.0.1:0"}.set_filter(make))).value();
        Client client(http);
        std::string asked = "GET / HTTP/1.0\r\n\r\n";
        for (char &byte : asked) {
            byte = static_cast<char>(byte + 1);
        }
        client.send("!" + asked);
        CHECK(client.receive().find("ibm~") != std::string::npos);
    }
    const ServerConfig filtered = ServerConfig().add_listener(Listen{"127.0.0.1:0"}.set_filter(make));
    {
        const auto queue = paceline::CompletionQueue::create(pool).value();
        const auto server = queue.server(filtered, 1, 0).value();
        Client client(server);
        client.send("!bcd");
        const auto data = next_entry(queue, paceline::EntryKind::Conn, 1);
        CHECK(data.conn().text == "abc");
        queue.done(data).value();
        // The same address once more: what has not started gives its filters back.
        auto twice = filtered;
        twice.add_listener(Listen{server.address().value()}.set_filter(make));
        CHECK(queue.server(twice, 2).error() == Code::Os);
        const auto none = [](paceline::Conn &) { return nullptr; };
        CHECK(Server::create(pool, twice, none).error() == Code::Os);
    }
    finish(pool);
    while (alive != 0 || counted.use_count() > 3) { // here, in `make`, and in `filtered`
        std::this_thread::yield();
    }
    CHECK(counted.use_count() == 3);
}

TEST_CASE("sockets of a supervisor: none here") {
    CHECK(paceline::inherited().value().empty());
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    {
        paceline::Inherited one(ends[0], "web");
        paceline::Inherited two(std::move(one));
        CHECK(one.fd() == -1);
        CHECK(two.name() == "web");
        CHECK(two.fd() == ends[0]);
    }
    CHECK(fcntl(ends[0], F_GETFD) == -1);
    paceline::Inherited three(ends[1], "");
    CHECK(three.release() == ends[1]);
    CHECK(::close(ends[1]) == 0);
}
