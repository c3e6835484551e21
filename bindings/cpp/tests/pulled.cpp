// What is pulled: connections, requests, datagrams; and what stands beside it: framing, filters, sockets
// from a supervisor.

#include "client.hpp"

using paceline::Accepted;
using paceline::Answer;
using paceline::ConnCompletion;
using paceline::ConnEvent;
using paceline::Delimited;
using paceline::Filter;
using paceline::FilterRead;
using paceline::FixedLength;
using paceline::Http;
using paceline::HttpConfig;
using paceline::Ip;
using paceline::LengthPrefixed;
using paceline::Listen;
using paceline::PulledRequests;
using paceline::PulledServer;
using paceline::PulledUdp;
using paceline::Reason;
using paceline::RequestEvent;
using paceline::Server;
using paceline::ServerConfig;
using paceline::Sink;
using paceline::UdpConfig;
using paceline::UdpEvent;

namespace {

const ServerConfig HERE = ServerConfig().add_listener(Listen{"127.0.0.1:0"});

template <class Source, class Event>
Event pull_one(const Source &source, Event event) {
    std::array<Event, 1> room{event};
    const auto got = source.pull(room, PATIENCE).value();
    REQUIRE(got.size() == 1);
    return got[0];
}

ConnEvent event_of(const PulledServer &server, ConnEvent::Kind kind) {
    const ConnEvent event = pull_one(server, ConnEvent());
    REQUIRE(event.what() == kind);
    return event;
}

RequestEvent event_of(const PulledRequests &requests, RequestEvent::Kind kind) {
    const RequestEvent event = pull_one(requests, RequestEvent());
    REQUIRE(event.what() == kind);
    return event;
}

} // namespace

TEST_CASE("events of connections are pulled, completed and counted") {
    auto pool = Pool::create({2}).value();
    auto server = PulledServer::create(pool, HERE).value();
    CHECK(server.pollable().value() >= 0);
    {
        std::array<ConnEvent, 4> room;
        CHECK(server.pull(room, std::chrono::nanoseconds(0)).error() == Code::TimedOut);
        CHECK(server.pull({}, std::chrono::nanoseconds(0)).error() == Code::Invalid);
    }
    {
        Client client(server);
        client.send("one two");
        const ConnEvent opened = event_of(server, ConnEvent::Opened);
        const ConnEvent data = event_of(server, ConnEvent::Data);
        CHECK(data.text() == "one two");
        CHECK(server.conn(data) == server.conn(opened));
        std::array<ConnCompletion, 1> done{ConnCompletion(data)};
        done[0].set_consumed(4).set_text("ONE");
        server.complete(done).value();
        CHECK(done[0].outcome == PACE_OK);
        CHECK(server.complete(done).error() == Code::Stale);
        CHECK(client.receive(3) == "ONE");
        server.conn(data).write_tracked("!", 7).value();
        CHECK(event_of(server, ConnEvent::Written).token == 7);
        client.send(" three");
        const ConnEvent rest = event_of(server, ConnEvent::Data);
        CHECK(rest.text() == "two three");
        std::array<ConnCompletion, 1> last{ConnCompletion(rest, PACE_COMPLETE_CLOSE)};
        server.complete(last).value();
        CHECK(client.receive() == "!");
    }
    const ConnEvent closed = event_of(server, ConnEvent::Closed);
    CHECK(closed.reason() == Reason::Local);
    server.done().value();
    // One that is made here, by its name.
    const auto made = server.connect(server.address().value()).value();
    bool is_open = false;
    while (!is_open) {
        const ConnEvent event = event_of(server, ConnEvent::Opened);
        is_open = event.conn.id == made.id();
    }
    made.abort().value();
    server.done().value();
    CHECK(server.conn(ConnEvent()).write("x").error() == Code::Stale);
    std::thread host([&] {
        std::array<ConnEvent, 8> room;
        while (server.pull(room, paceline::forever)) {
        }
    });
    CHECK(server.drain(PATIENCE).value().drained);
    host.join();
    CHECK(server.stats().value().balances);
    CHECK(server.stats().value().open == 0);
    std::array<ConnEvent, 1> room;
    CHECK(server.pull(room, PATIENCE).error() == Code::ShutDown);
    finish(pool);
}

TEST_CASE("requests of pulled connections are admitted, and the end says why") {
    auto pool = Pool::create({2}).value();
    auto listen = Listen{"127.0.0.1:0"}.set_max_requests(1).set_busy("busy");
    const auto config = ServerConfig().add_listener(std::move(listen));
    auto server = PulledServer::create(pool, config, PACE_WANTED_CLOSED).value();
    {
        Client client(server);
        client.send("one");
        const ConnEvent data = event_of(server, ConnEvent::Data);
        auto admission = server.admit(data).value();
        CHECK(server.admit(data).error() == Code::Full);
        CHECK(client.receive(4) == "busy");
        server.done().value();
        CHECK(server.admit(data).error() == Code::Stale);
        CHECK(server.stats().value().in_work == 1);
        admission.answered();
    }
    CHECK(event_of(server, ConnEvent::Closed).reason() == Reason::Peer);
    {
        Client client(server);
        client.send("two");
        const ConnEvent data = event_of(server, ConnEvent::Data);
        CHECK(server.admit(data).has_value());
        server.done().value();
        client.reset();
    }
    const Reason reason = event_of(server, ConnEvent::Closed).reason();
    CHECK(reason == Reason::Failed);
    CHECK(reason.os_error() == ECONNRESET);
    server.done().value();
    const auto stats = server.stats().value();
    CHECK(stats.requests == 2);
    CHECK(stats.answered == 1);
    CHECK(stats.requests_aborted == 1);
    CHECK(stats.busy == 1);
    server.close().value();
    finish(pool);
}

TEST_CASE("a pulled server takes no callbacks, and names what is wrong") {
    auto pool = Pool::create({1}).value();
    auto config = HERE;
    config.on_exhausted = [](const char *) {};
    CHECK(PulledServer::create(pool, config).error() == Code::Invalid);
    CHECK(PulledServer::create(pool, HERE, 1u << 9).error() == Code::Invalid);
    auto server = PulledServer::create(pool, HERE).value();
    auto other = PulledServer::create(pool, HERE).value();
    const auto address = server.address().value();
    other = std::move(server);
    CHECK(other.address().value() == address);
    other.close().value();
    std::array<ConnEvent, 1> room;
    CHECK(other.pull(room, PATIENCE).error() == Code::ShutDown);
    finish(pool);
}

TEST_CASE("requests are pulled and answered, with bodies both ways") {
    auto pool = Pool::create({2}).value();
    auto requests = PulledRequests::create(pool).value();
    auto upgraded = PulledServer::create(pool, {}).value();
    auto http = Http::create(pool).value();
    http.route_pulled("GET", "/hello/{name}", requests, 1).value();
    http.route_pulled_streaming("PUT", "/file", requests, 2).value();
    http.start(HttpConfig().add_listener({"127.0.0.1:0"})).value();
    CHECK(requests.pollable().value() >= 0);
    {
        Client client(http);
        client.send("GET /hello/you?x=1 HTTP/1.1\r\nHost: here\r\nX-A:  b \r\n\r\n");
        const auto asked = event_of(requests, RequestEvent::Request);
        CHECK(asked.route == 1);
        CHECK(asked.method() == "GET");
        CHECK(asked.target() == "/hello/you?x=1");
        CHECK(asked.path() == "/hello/you");
        CHECK(asked.query() == "x=1");
        CHECK(asked.version() == 1);
        CHECK(asked.body().empty());
        REQUIRE(asked.params().size() == 1);
        CHECK(asked.params()[0].name == "name");
        CHECK(asked.params()[0].value == "you");
        REQUIRE(asked.headers().size() == 2);
        CHECK(asked.headers()[1].name == "X-A");
        CHECK(asked.headers()[1].value == "b");
        std::array<Answer, 1> answers{Answer(asked.request, "hi", 201)};
        answers[0].set_headers("X-C: d\r\n");
        requests.answer(answers).value();
        CHECK(requests.answer(answers).error() == Code::Stale);
        std::string head;
        while (head.find("\r\n\r\n") == std::string::npos) {
            head += client.receive(1);
        }
        CHECK(head.rfind("HTTP/1.1 201 ", 0) == 0);
        CHECK(head.find("X-C: d\r\n") != std::string::npos);
        CHECK(client.receive(2) == "hi");

        client.send("PUT /file HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nabc");
        const auto upload = event_of(requests, RequestEvent::Request);
        CHECK(!upload.query());
        requests.read(upload.request).value();
        CHECK(event_of(requests, RequestEvent::Part).body() == "abc");
        requests.read(upload.request).value();
        client.send("de");
        CHECK(event_of(requests, RequestEvent::Part).body() == "de");
        requests.read(upload.request).value();
        event_of(requests, RequestEvent::End);
        CHECK(requests.read(upload.request).error() == Code::Stale);
        std::array<Answer, 2> both{Answer(upload.request, "O"), Answer(upload.request, "K")};
        both[0].set_more(2).set_close();
        requests.answer(both).value();
        const auto all = client.receive();
        CHECK(all.find("Content-Length: 2\r\n") != std::string::npos);
        CHECK(all.find("\r\n\r\nOK") != std::string::npos);
    }
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\n"
                    "Upgrade: echo\r\n\r\nping");
        const auto asked = event_of(requests, RequestEvent::Request);
        const auto id = requests.upgrade(asked.request, "echo", upgraded).value();
        CHECK(event_of(upgraded, ConnEvent::Opened).conn.id == id);
        const auto data = event_of(upgraded, ConnEvent::Data);
        CHECK(data.text() == "ping");
        std::array<ConnCompletion, 1> done{ConnCompletion(data)};
        done[0].set_text("pong");
        upgraded.complete(done).value();
        http.conn(id).close().value();
        const auto all = client.receive();
        CHECK(all.rfind("HTTP/1.1 101 ", 0) == 0);
        CHECK(all.find("\r\n\r\npong") != std::string::npos);
    }
    event_of(upgraded, ConnEvent::Closed);
    upgraded.done().value();
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.0\r\n\r\n");
        requests.drop(event_of(requests, RequestEvent::Request).request).value();
        CHECK(client.receive().rfind("HTTP/1.1 500 ", 0) == 0);
    }
    CHECK(http.stats().value().panics == 0);
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\n\r\n");
        const auto asked = event_of(requests, RequestEvent::Request).request;
        requests.fail(asked).value();
        CHECK(requests.fail(asked).error() == Code::Stale);
        CHECK(client.receive().rfind("HTTP/1.1 500 ", 0) == 0);
    }
    CHECK(http.stats().value().panics == 1);
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\n\r\n");
        const auto asked = event_of(requests, RequestEvent::Request);
        std::array<Answer, 1> answers{Answer(asked.request, "well")};
        requests.answer(answers).value();
        http.fail(asked.conn.id).value();
        CHECK(client.receive().rfind("HTTP/1.1 200 ", 0) == 0);
    }
    CHECK(http.stats().value().panics == 2);
    CHECK(http.drain(PATIENCE).value().drained);
    std::array<RequestEvent, 1> room;
    CHECK(requests.pull(room, PATIENCE).error() == Code::ShutDown);
    requests.close().value();
    CHECK(http.stats().value().balances);
    finish(pool);
}

TEST_CASE("datagrams are pulled") {
    auto pool = Pool::create({2}).value();
    UdpConfig config;
    config.bind = "127.0.0.1:0";
    auto here = PulledUdp::create(pool, config).value();
    auto there = PulledUdp::create(pool, config, 1024).value();
    CHECK(PulledUdp::create(pool, config, 0).error() == Code::Invalid);
    CHECK(PulledUdp::create(pool, UdpConfig()).error() == Code::Invalid);
    const auto to = Ip::read(here.address().value()).value();
    there.send_to("hello", to).value();
    const UdpEvent event = pull_one(here, UdpEvent());
    CHECK(!event.is_error());
    CHECK(!event.is_truncated());
    CHECK(event.text() == "hello");
    CHECK(event.peer_ip().text().value() == there.address().value());
    CHECK(here.pollable().value() >= 0);
    CHECK(here.stats().value().received == 1);
    CHECK(here.stats().value().dropped == 0);
    there = std::move(here);
    there.close().value();
    std::array<UdpEvent, 1> room;
    CHECK(there.pull(room, PATIENCE).error() == Code::ShutDown);
    CHECK(there.send_to("x", to).error() == Code::Stale);
    finish(pool);
}

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

    FilterRead received(std::string_view bytes, Sink plain, Sink wire) override {
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
    bool written(std::string_view bytes, Sink wire) override {
        std::string turned(bytes);
        for (char &byte : turned) {
            byte = static_cast<char>(byte + 1);
        }
        wire.append(turned);
        return true;
    }
    void finish(Sink wire) override { wire.append("~"); }
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
    const auto make = [&alive, counted](const Accepted &accepted) {
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
        auto server = PulledServer::create(pool, filtered, 0).value();
        Client client(server);
        client.send("!bcd");
        CHECK(event_of(server, ConnEvent::Data).text() == "abc");
        // The same address once more: what has not started gives its filters back.
        auto twice = filtered;
        twice.add_listener(Listen{server.address().value()}.set_filter(make));
        CHECK(PulledServer::create(pool, twice).error() == Code::Os);
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
