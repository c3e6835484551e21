// Servers: connections, their handlers, and other threads.

#include "client.hpp"

using paceline::Accept;
using paceline::Admission;
using paceline::Conn;
using paceline::ConnHandler;
using paceline::ConnRef;
using paceline::Listen;
using paceline::Reason;
using paceline::Server;
using paceline::ServerConfig;
using paceline::Timeout;
using paceline::TimeoutAction;

namespace {

const ServerConfig LOCAL{{Listen{"127.0.0.1:0"}}, {}, {}, {}};

struct Echo : ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

/// Tells what it sees.
struct Seen {
    Signal opened, closed, thrown;
    std::mutex mutex;
    std::vector<Reason::Kind> reasons;
    std::vector<std::string> words;

    void add(Reason reason) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            reasons.push_back(reason.kind());
        }
        closed.set();
    }
    void add(std::string word) {
        std::lock_guard<std::mutex> lock(mutex);
        words.push_back(std::move(word));
    }
};

} // namespace

TEST_CASE("a server echoes, and its books balance") {
    auto pool = Pool::create({2}).value();
    auto server = Server::create_for<Echo>(pool, LOCAL).value();
    std::string all;
    for (int n = 0; n < 20'000; ++n) {
        all += std::to_string(n) + ' ';
    }
    Client client(server);
    client.send("hello");
    CHECK(client.receive(5) == "hello");
    std::thread sender([&] { client.send(all); });
    CHECK(client.receive(all.size()) == all);
    sender.join();
    const auto stats = server.stats().value();
    CHECK(stats.accepted == 1);
    CHECK(stats.balances);
    const auto report = server.drain(PATIENCE).value();
    CHECK(report.drained);
    CHECK(client.receive() == "");
    CHECK(server.listener_stats(0).value().closed_drained == 1);
    CHECK(server.listener_stats(1).error() == Code::Invalid);
    server.wait().value();
}

TEST_CASE("hooks come in order, and a handler is deleted after close") {
    struct Lines : ConnHandler {
        Lines(Seen &s, std::atomic<int> &alive) : seen(s), counted(alive) {}
        Accept open(Conn &conn) override {
            seen.add("open " + std::string(conn.is_outgoing() ? "out" : "in"));
            conn.write_tracked("welcome\n", 7).value();
            return Accept::Yes;
        }
        std::size_t data(Conn &conn, std::string_view bytes) override {
            const auto end = bytes.find('\n');
            if (end == std::string_view::npos) {
                return 0;
            }
            seen.add("line " + std::string(bytes.substr(0, end)));
            const std::string_view pieces[] = {"<", bytes.substr(0, end), ">"};
            conn.write_vectored(pieces).value();
            return end + 1;
        }
        void written(Conn &, std::uint64_t token) override {
            seen.add("written " + std::to_string(token));
        }
        void finished(Conn &conn) override {
            seen.add("finished");
            conn.close();
        }
        void close(Conn &, Reason reason) override { seen.add(reason); }

        Seen &seen;
        Counted counted;
    };
    std::atomic<int> alive{0};
    Seen seen;
    auto pool = Pool::create({2}).value();
    auto server = Server::create(pool, LOCAL, [&](Conn &) {
                      return std::make_unique<Lines>(seen, alive);
                  }).value();
    {
        Client client(server);
        CHECK(client.receive(8) == "welcome\n");
        client.send("one\ntw");
        CHECK(client.receive(5) == "<one>");
        client.send("o\n");
        CHECK(client.receive(5) == "<two>");
        CHECK(alive == 1);
    }
    REQUIRE(seen.closed.wait());
    server.drain(PATIENCE).value();
    CHECK(alive == 0);
    CHECK(seen.words ==
          std::vector<std::string>{"open in", "written 7", "line one", "line two", "finished"});
    CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::Peer});
}

TEST_CASE("a buffer is given away, and comes back if it is refused") {
    struct Giving : ConnHandler {
        explicit Giving(std::shared_ptr<const std::string> s) : shared(std::move(s)) {}
        std::size_t data(Conn &conn, std::string_view bytes) override {
            conn.write_owned(std::string("short ")).value();
            conn.write_owned(std::vector<unsigned char>(1 << 20, 'v')).value();
            auto copy = shared;
            conn.write_owned(std::move(copy)).value();
            conn.shutdown_write();
            std::string late(100, 'l');
            CHECK(conn.write_owned(std::move(late)).error() == Code::Stale);
            CHECK(late == std::string(100, 'l'));
            return bytes.size();
        }
        std::shared_ptr<const std::string> shared;
    };
    auto shared = std::make_shared<const std::string>(1 << 20, 's');
    auto pool = Pool::create({2}).value();
    {
        auto server = Server::create_for<Giving>(pool, LOCAL, shared).value();
        Client client(server);
        client.send("go");
        CHECK(client.receive(6) == "short ");
        CHECK(client.receive(1 << 20) == std::string(1 << 20, 'v'));
        CHECK(client.receive(1 << 20) == *shared);
        CHECK(client.receive() == "");
        server.drain(PATIENCE).value();
        std::string late = "late";
        CHECK(ConnRef().write_owned(std::move(late)).error() != Code::Ok);
        CHECK(late == "late");
    }
    CHECK(shared.use_count() == 1);
}

TEST_CASE("other threads write, notify and close by a ConnRef") {
    struct Told : ConnHandler {
        Told(Seen &s, ConnRef &r) : seen(s), ref(r) {}
        Accept open(Conn &conn) override {
            ref = conn.ref();
            seen.opened.set();
            return Accept::Yes;
        }
        std::size_t data(Conn &, std::string_view bytes) override { return bytes.size(); }
        void notified(Conn &conn) override { conn.write("notified").value(); }
        void close(Conn &conn, Reason reason) override {
            CHECK(conn.ref() == ref);
            seen.add(reason);
        }

        Seen &seen;
        ConnRef &ref;
    };
    Seen seen;
    ConnRef ref;
    CHECK(ref.write("nowhere").error() == Code::Invalid);
    CHECK(ref.close().error() == Code::Stale);
    auto pool = Pool::create({2}).value();
    auto server =
        Server::create(pool, LOCAL, [&](Conn &) { return std::make_unique<Told>(seen, ref); }).value();
    Client client(server);
    REQUIRE(seen.opened.wait());
    ref.write("from afar").value();
    CHECK(client.receive(9) == "from afar");
    ref.notify().value();
    CHECK(client.receive(8) == "notified");
    CHECK(ref.is_open().value());
    CHECK(ref.local().value() == server.address().value());
    CHECK(server.conn(ref.id()) == ref);
    CHECK(ref.peer().value().substr(0, 10) == "127.0.0.1:");
    ref.close().value();
    CHECK(client.receive() == "");
    REQUIRE(seen.closed.wait());
    CHECK(ref.write("too late").error() == Code::Stale);
    CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::Local});
    // The name outlives the server, and is stale.
    { auto ended = std::move(server); }
    CHECK(ref.close().error() == Code::Stale);
}

TEST_CASE("a connection is refused by its handler, or by a factory that makes none") {
    struct Closed : Echo {
        Accept open(Conn &conn) override {
            conn.write("not today").value();
            return Accept::Refuse;
        }
    };
    auto pool = Pool::create({2}).value();
    std::atomic<int> made{0};
    auto server = Server::create(pool, LOCAL, [&](Conn &) -> std::unique_ptr<ConnHandler> {
                      return ++made == 1 ? std::make_unique<Closed>() : nullptr;
                  }).value();
    CHECK(Client(server).receive() == "not today");
    CHECK(Client(server).receive() == "");
    server.drain(PATIENCE).value();
    CHECK(server.stats().value().closed_refused == 2);
}

TEST_CASE("times that are over are told") {
    struct Patient : Echo {
        explicit Patient(Seen &s) : seen(s) {}
        Accept open(Conn &conn) override {
            conn.set_deadline(5ms);
            return Accept::Yes;
        }
        TimeoutAction timeout(Conn &conn, Timeout kind) override {
            CHECK(kind == Timeout::Deadline);
            if (seen.closed.count() == 0 && !asked) {
                asked = true;
                conn.set_deadline(5ms);
                conn.write("still there?").value();
                return TimeoutAction::Keep;
            }
            return TimeoutAction::Close;
        }
        void close(Conn &, Reason reason) override {
            CHECK(reason.timeout() == Timeout::Deadline);
            seen.add(reason);
        }

        Seen &seen;
        bool asked = false;
    };
    Seen seen;
    auto pool = Pool::create({2}).value();
    auto server =
        Server::create(pool, LOCAL, [&](Conn &) { return std::make_unique<Patient>(seen); }).value();
    Client client(server);
    CHECK(client.receive() == "still there?");
    REQUIRE(seen.closed.wait());
    CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::TimedOut});
}

TEST_CASE("requests in work are bounded, and a drain waits for them") {
    struct Worker : ConnHandler {
        explicit Worker(Seen &s, std::optional<Admission> &w) : seen(s), work(w) {}
        std::size_t data(Conn &conn, std::string_view bytes) override {
            if (auto admission = conn.admit()) {
                work.emplace(std::move(*admission));
                seen.opened.set();
            } else {
                CHECK(admission.error() == Code::Full);
            }
            return bytes.size();
        }

        Seen &seen;
        std::optional<Admission> &work;
    };
    Seen seen;
    std::optional<Admission> work;
    auto pool = Pool::create({2}).value();
    ServerConfig config;
    config.add_listener(Listen{"127.0.0.1:0"}.set_max_requests(1).set_busy("busy"));
    auto server = Server::create(pool, config, [&](Conn &) {
                      return std::make_unique<Worker>(seen, work);
                  }).value();
    Client first(server), second(server);
    first.send("x");
    REQUIRE(seen.opened.wait());
    second.send("x");
    CHECK(second.receive(4) == "busy");
    CHECK_FALSE(server.drain(0ns).value().drained);
    work->answered();
    const auto stats = server.stats().value();
    CHECK(stats.requests == 1);
    CHECK(stats.busy == 1);
    CHECK(stats.in_work == 0);
}

TEST_CASE("who has finished is answered, and half-open connections stay where they are allowed") {
    struct Later : ConnHandler {
        Later(Seen &s, std::optional<Admission> &w, ConnRef &c) : seen(s), work(w), conn(c) {}
        std::size_t data(Conn &asked, std::string_view bytes) override {
            if (auto admission = asked.admit()) {
                work.emplace(std::move(*admission));
            }
            conn = asked.ref();
            return bytes.size();
        }
        void finished(Conn &) override { seen.opened.set(); }
        void close(Conn &, Reason reason) override { seen.add(reason); }

        Seen &seen;
        std::optional<Admission> &work;
        ConnRef &conn;
    };
    for (const bool allowed : {false, true}) {
        Seen seen;
        std::optional<Admission> work;
        ConnRef conn;
        auto pool = Pool::create({2}).value();
        ServerConfig config;
        config.add_listener(Listen{"127.0.0.1:0"}.set_allow_half_open(allowed));
        auto server = Server::create(pool, config, [&](Conn &) {
                          return std::make_unique<Later>(seen, work, conn);
                      }).value();
        Client client(server);
        client.send("ask");
        client.finish();
        REQUIRE(seen.opened.wait());
        CHECK(server.stats().value().open == 1);
        conn.write("answer").value();
        work->answered();
        CHECK(client.receive(6) == "answer");
        if (allowed) {
            std::this_thread::sleep_for(20ms);
            conn.write("more").value();
            CHECK(client.receive(4) == "more");
            conn.close().value();
        }
        CHECK(client.receive() == "");
        REQUIRE(seen.closed.wait());
        CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::Peer});
    }
}

TEST_CASE("outgoing connections have settings of their own, and listeners theirs") {
    Seen seen;
    struct Silent : ConnHandler {
        explicit Silent(Seen &s) : seen(s) {}
        std::size_t data(Conn &, std::string_view bytes) override { return bytes.size(); }
        void close(Conn &, Reason reason) override { seen.add(reason); }

        Seen &seen;
    };
    auto pool = Pool::create({2}).value();
    ServerConfig config;
    config.add_listener(Listen{"127.0.0.1:0"});
    config.add_listener(Listen{"127.0.0.1:0"}.set_max_connections(1));
    config.set_outgoing(Listen{""}.set_max_connections(2).set_idle_timeout(20ms));
    auto server = Server::create_for<Echo>(pool, config).value();
    // The one that says nothing has the defaults.
    std::vector<std::unique_ptr<Client>> clients;
    for (int n = 0; n < 3; ++n) {
        clients.push_back(std::make_unique<Client>(server));
        clients.back()->send("x");
        CHECK(clients.back()->receive(1) == "x");
    }
    server.connect(server.address(0).value(), std::make_unique<Silent>(seen)).value();
    REQUIRE(seen.closed.wait());
    CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::TimedOut});
    for (auto &client : clients) {
        client->send("y");
        CHECK(client->receive(1) == "y");
    }
    CHECK(server.stats().value().closed_timed_out == 1);
    config.outgoing->set_reuse_port(true);
    const auto refused = Server::create_for<Echo>(pool, config).error();
    CHECK(refused == Code::Invalid);
    CHECK(std::string(refused.message()).find("reuse_port is true") == 0);
}

TEST_CASE("a path of a Unix socket that is too long is refused with its length and the limit") {
    const Pool pool = make_pool();
    auto other = Server::create_for<Echo>(pool, LOCAL).value();
    const std::string path = "unix:/" + std::string(107, 'x');
    const auto expected = "address is " + path + " (108 bytes), but must be a path of 1 to 107 bytes";
    const auto refused = Server::create_for<Echo>(pool, ServerConfig().add_listener(Listen{path}));
    REQUIRE(refused.error() == Code::Invalid);
    CHECK(refused.error().message() == expected);
    const auto connected = other.connect(path, std::make_unique<Echo>());
    REQUIRE(connected.error() == Code::Invalid);
    CHECK(connected.error().message() == expected);
}

TEST_CASE("a setting out of its range is named") {
    auto pool = Pool::create({1}).value();
    ServerConfig config;
    config.add_listener(Listen{"127.0.0.1:0"}.set_keep_alive(999ms));
    const auto refused = Server::create_for<Echo>(pool, config).error();
    CHECK(refused == Code::Invalid);
    CHECK(std::string(refused.message()) == "keep_alive is 999ms, but must be 1 s to 32767 s");
    // 0 is "off".
    config.listeners[0].set_keep_alive(0ns);
    CHECK(Server::create_for<Echo>(pool, config).has_value());
}

TEST_CASE("outgoing connections have a handler of their own") {
    struct Caller : ConnHandler {
        explicit Caller(Seen &s) : seen(s) {}
        Accept open(Conn &conn) override {
            CHECK(conn.is_outgoing());
            conn.write("ping").value();
            return Accept::Yes;
        }
        std::size_t data(Conn &conn, std::string_view bytes) override {
            if (bytes.size() < 4) {
                return 0;
            }
            seen.add(std::string(bytes));
            conn.close();
            return bytes.size();
        }
        void close(Conn &, Reason reason) override { seen.add(reason); }

        Seen &seen;
    };
    Seen seen;
    auto pool = Pool::create({2}).value();
    auto server = Server::create_for<Echo>(pool, LOCAL).value();
    const auto conn = server.connect(server.address().value(), std::make_unique<Caller>(seen));
    CHECK(conn.value().id() != 0);
    REQUIRE(seen.closed.wait());
    CHECK(seen.words == std::vector<std::string>{"ping"});
    CHECK(seen.reasons == std::vector<Reason::Kind>{Reason::Local});

    std::unique_ptr<ConnHandler> kept = std::make_unique<Caller>(seen);
    const auto refused = server.connect("no address", std::move(kept));
    CHECK(refused.error() == Code::Invalid);
    CHECK(kept != nullptr);
    std::unique_ptr<ConnHandler> nobody;
    CHECK(server.connect("127.0.0.1:1", std::move(nobody)).error() == Code::Invalid);
    server.drain(PATIENCE).value();
}

TEST_CASE("what a hook throws ends its connection only") {
    struct Thrower : ConnHandler {
        explicit Thrower(Seen &s) : seen(s) {}
        std::size_t data(Conn &conn, std::string_view bytes) override {
            if (bytes == "data") {
                throw std::runtime_error("data");
            }
            if (bytes == "written") {
                conn.write_tracked("x", 1).value();
            }
            return bytes.size();
        }
        void written(Conn &, std::uint64_t) override { throw std::runtime_error("written"); }
        void finished(Conn &) override { throw std::runtime_error("finished"); }
        void close(Conn &, Reason reason) override { seen.add(reason); }

        Seen &seen;
    };
    Seen seen;
    auto before = paceline::on_unhandled([&](std::exception_ptr) { seen.thrown.set(); });
    auto pool = Pool::create({2}).value();
    std::atomic<bool> fails{false};
    auto server = Server::create(pool, LOCAL, [&](Conn &) -> std::unique_ptr<ConnHandler> {
                      if (fails) {
                          throw std::runtime_error("factory");
                      }
                      return std::make_unique<Thrower>(seen);
                  }).value();
    for (const char *word : {"data", "written"}) {
        Client client(server);
        client.send(word);
        (void)client.receive();
    }
    { Client client(server); }
    REQUIRE(seen.closed.wait(3));
    fails = true;
    CHECK(Client(server).receive() == "");
    REQUIRE(seen.thrown.wait(4));
    server.drain(PATIENCE).value();
    CHECK(server.stats().value().closed_panicked == 4);
    CHECK(seen.reasons == std::vector<Reason::Kind>(3, Reason::Panicked));
    paceline::on_unhandled(std::move(before));
}

TEST_CASE("a server that cannot be names the reason") {
    auto pool = Pool::create({2}).value();
    const auto message = [&](const Listen &listen) {
        ServerConfig config;
        config.add_listener(listen);
        return std::string(Server::create_for<Echo>(pool, config).error().message());
    };
    CHECK(message(Listen{"256.0.0.1:1"}).find("256.0.0.1:1") != std::string::npos);
    CHECK(message(Listen{"127.0.0.1:0"}.set_max_connections(0)).find("max_connections") !=
          std::string::npos);
    CHECK(message(Listen{"127.0.0.1:0"}.set_output_marks(2, 1, 3)).find("output_marks") !=
          std::string::npos);
    auto server = Server::create_for<Echo>(pool, LOCAL).value();
    CHECK(message(Listen{server.address().value()}).find(server.address().value()) != std::string::npos);
    { auto ended = std::move(server); }
    CHECK(server.stats().error() == Code::Invalid);
}
