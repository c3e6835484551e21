// HTTP: routes, requests, and answers at once, later and in pieces.

#include "client.hpp"

#include <array>

using paceline::Body;
using paceline::Conn;
using paceline::ConnHandler;
using paceline::Http;
using paceline::HttpConfig;
using paceline::Listen;
using paceline::Request;
using paceline::RequestBody;
using paceline::Response;
using paceline::WriteStatus;

namespace {

/// One request, to the end of the connection: the status, and what follows the head.
std::string ask(const Http &http, const std::string &request) {
    Client client(http);
    client.send(request);
    const std::string answer = client.receive();
    const auto head = answer.find("\r\n\r\n");
    REQUIRE(head != std::string::npos);
    return answer.substr(9, 3) + ' ' + answer.substr(head + 4);
}

std::string get(const Http &http, const std::string &target) {
    return ask(http, "GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
}

HttpConfig local() {
    HttpConfig config;
    config.add_listener(Listen{"127.0.0.1:0"});
    return config;
}

} // namespace

TEST_CASE("requests find their routes, and are seen whole") {
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    http.route("GET", "/hello/{name}",
               [](const Request &request, Response response) {
                   CHECK(request.method() == "GET");
                   CHECK(request.version() == 1);
                   CHECK(request.target() == "/hello/you?loud=1");
                   CHECK(request.path() == "/hello/you");
                   CHECK(request.query().value() == "loud=1");
                   CHECK(request.header("x-mood").value() == "good");
                   CHECK_FALSE(request.header("x-other"));
                   CHECK(request.headers().size() == 3);
                   CHECK(request.headers()[1].name == "X-Mood");
                   CHECK(request.params().size() == 1);
                   CHECK_FALSE(request.upgrade());
                   CHECK(request.body().empty());
                   CHECK(request.peer().value().find("127.0.0.1:") == 0);
                   response.text("hello " + std::string(request.param("name").value())).value();
               })
        .value();
    http.route("POST", "/echo",
               [](const Request &request, Response response) {
                   response.status(201).header("X-A", "b").send(request.body()).value();
               })
        .value();
    http.route("GET", "/header/{name}/{value}",
               [](const Request &request, Response response) {
                   const std::string name(request.param("name").value());
                   std::string value(request.param("value").value());
                   for (char &byte : value) {
                       byte = byte == '0' ? '\0' : byte;
                   }
                   // No path can say this one.
                   const char *not_utf8 = name == "latin" ? "\xfc" : name.c_str();
                   const auto told = response.header(not_utf8, value).send("sent");
                   CHECK(static_cast<bool>(told) == (name == "X-A" && value == "a b"));
               })
        .value();
    http.start(local()).value();
    const std::string head = " HTTP/1.1\r\nHost: h\r\nX-Mood: good\r\nConnection: close\r\n";
    CHECK(get(http, "/header/X-A/a%20b") == "200 sent");
    for (const char *wrong : {"X-A/a0b", "X-A/a%0D%0AX:%20b", "X-A/a%0Ab", "X-A/0", "Set-Cookie:admin/1",
                              "X%20A/a", "X%0A/a", "%C3%BC/a", "latin/a"}) {
        CHECK(get(http, std::string("/header/") + wrong).substr(0, 3) == "500");
    }
    CHECK(get(http, "/hello/%zz").substr(0, 3) == "400");
    CHECK(ask(http, "GET /hello/you?loud=1" + head + "\r\n") == "200 hello you");
    CHECK(ask(http, "POST /echo" + head + "Content-Length: 4\r\n\r\nbody") == "201 body");
    CHECK(get(http, "/nowhere").substr(0, 3) == "404");
    CHECK(get(http, "/echo").substr(0, 3) == "405");
    http.drain(PATIENCE).value();
    const auto stats = http.stats().value();
    CHECK(stats.begun == 15);
    CHECK(stats.answered() == 3);
    CHECK(stats.refused() == 12);
    CHECK(stats.aborted() == 0);
    CHECK(stats.balances);
}

TEST_CASE("a response is completed by any thread, later") {
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    std::mutex mutex;
    std::vector<Response> kept;
    Signal came;
    http.route("GET", "/later",
               [&](const Request &, Response response) {
                   const std::lock_guard<std::mutex> lock(mutex);
                   kept.push_back(std::move(response));
                   came.set();
               })
        .value();
    http.start(local()).value();
    std::string answer;
    std::thread client([&] { answer = get(http, "/later"); });
    REQUIRE(came.wait());
    kept[0].status(202).send("at last").value();
    client.join();
    CHECK(answer == "202 at last");
    CHECK(kept[0].send("again").error() == Code::Stale);
}

TEST_CASE("the end of a pool waits for answers, and says what it has cut off") {
    for (const bool answers : {true, false}) {
        auto pool = Pool::create({2}).value();
        auto http = Http::create(pool).value();
        std::mutex mutex;
        std::vector<Response> kept;
        Signal came;
        http.route("GET", "/later",
                   [&](const Request &, Response response) {
                       const std::lock_guard<std::mutex> lock(mutex);
                       kept.push_back(std::move(response));
                       came.set();
                   })
            .value();
        http.start(local()).value();
        Client client(http);
        client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        REQUIRE(came.wait());
        paceline::Report report;
        std::thread ends([&] { report = pool.shutdown(answers ? PATIENCE : 20ms).value(); });
        if (answers) {
            // It drains: its connections close when they are through.
            while (pool.post([] {})) {
                std::this_thread::sleep_for(1ms);
            }
            kept[0].send("at last").value();
        }
        const std::string answer = client.receive();
        ends.join();
        CHECK(report.drained == answers);
        CHECK(report.connections == (answers ? 0 : 1));
        CHECK((answer.find("at last") != std::string::npos) == answers);
        CHECK(http.stats().value().balances);
    }
}

TEST_CASE("handlers that throw or answer nothing, and headers that are not allowed, give a 500") {
    std::atomic<int> thrown{0};
    auto before = paceline::on_unhandled([&](std::exception_ptr) { ++thrown; });
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    http.route("GET", "/throws",
               [](const Request &, Response) { throw std::runtime_error("on purpose"); })
        .value();
    http.route("GET", "/drops", [](const Request &, Response) {}).value();
    http.route("GET", "/spoils",
               [](const Request &, Response response) {
                   response.header("Content-Length", "5");
                   CHECK(response.send("x").error() == Code::Invalid);
               })
        .value();
    http.start(local()).value();
    CHECK(get(http, "/throws").substr(0, 3) == "500");
    CHECK(get(http, "/drops").substr(0, 3) == "500");
    CHECK(get(http, "/spoils").substr(0, 3) == "500");
    CHECK(thrown == 1);
    paceline::on_unhandled(std::move(before));
}

TEST_CASE("what throws closes its connection and is counted, wherever it is") {
    struct Throws : RequestBody {
        explicit Throws(Response given) : response(std::move(given)) {}
        std::size_t data(std::string_view) override { throw std::runtime_error("data"); }
        void end(bool) override {}
        Response response;
    };
    struct ThrowsAtTheEnd : RequestBody {
        explicit ThrowsAtTheEnd(Response given) : response(std::move(given)) {}
        std::size_t data(std::string_view bytes) override { return bytes.size(); }
        void end(bool) override { throw std::runtime_error("end"); }
        Response response;
    };
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    std::mutex mutex;
    std::vector<Response> kept;
    Signal came;
    http.route("GET", "/unanswered",
               [](const Request &, Response) { throw std::runtime_error("on purpose"); })
        .value();
    http.route("GET", "/answered",
               [](const Request &, Response response) {
                   response.text("well").value();
                   throw std::runtime_error("on purpose");
               })
        .value();
    http.route("GET", "/midway",
               [](const Request &, Response response) {
                   const auto body = response.stream();
                   throw std::runtime_error("on purpose");
               })
        .value();
    http.route("GET", "/pump",
               [](const Request &, Response response) {
                   response.stream().value().pump([](Body &) -> Flow { throw 1; }).value();
               })
        .value();
    http.route_streaming("PUT", "/data",
                         [](const Request &, Response response) {
                             return std::make_unique<Throws>(std::move(response));
                         })
        .value();
    http.route_streaming("PUT", "/end",
                         [](const Request &, Response response) {
                             return std::make_unique<ThrowsAtTheEnd>(std::move(response));
                         })
        .value();
    http.route("GET", "/keep",
               [&](const Request &, Response response) {
                   const std::lock_guard<std::mutex> lock(mutex);
                   kept.push_back(std::move(response));
                   came.set();
               })
        .value();
    http.start(local()).value();
    struct {
        const char *line, *status;
    } const cases[] = {{"GET /unanswered", "500"}, {"GET /answered", "200"}, {"GET /midway", ""},
                       {"GET /pump", ""},          {"PUT /data", "500"},     {"PUT /end", "500"}};
    std::uint64_t failed = 0;
    const auto counted = [&] { return http.stats().value().panics == ++failed; };
    for (const auto &each : cases) {
        Client client(http);
        client.send(std::string(each.line) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
        const std::string got = client.receive();
        INFO(each.line);
        if (*each.status != 0) {
            CHECK(got.rfind(std::string("HTTP/1.1 ") + each.status, 0) == 0);
        }
        CHECK(counted());
    }
    int asked = 0;
    const auto keep = [&](Client &client) {
        client.send("GET /keep HTTP/1.1\r\nHost: h\r\n\r\n");
        REQUIRE(came.wait(++asked));
        const std::lock_guard<std::mutex> lock(mutex);
        Response response = std::move(kept.back());
        kept.clear();
        return response;
    };
    {
        Client client(http);
        keep(client).fail();
        CHECK(client.receive().rfind("HTTP/1.1 500 ", 0) == 0);
        CHECK(counted());
    }
    {
        Client client(http);
        keep(client).stream().value().fail();
        client.receive();
        CHECK(counted());
    }
    {
        Client client(http);
        auto response = keep(client);
        try {
            const Response here = std::move(response);
            throw std::runtime_error("elsewhere");
        } catch (const std::runtime_error &) {
        }
        CHECK(client.receive().rfind("HTTP/1.1 500 ", 0) == 0);
        CHECK(counted());
    }
    http.drain(PATIENCE).value();
    const auto stats = http.stats().value();
    CHECK(stats.panics == 9);
    CHECK(stats.refused_panicked == 4);
    CHECK(stats.balances);
}

TEST_CASE("a body whose taker resumes at once comes whole") {
    // Another thread takes what `data` has handed over, and has reading resumed for each part.
    struct Taker {
        explicit Taker(paceline::ConnRef taken) : conn(std::move(taken)), thread([this] { run(); }) {}
        ~Taker() {
            {
                const std::lock_guard<std::mutex> lock(mutex);
                over = true;
            }
            changed.notify_one();
            thread.join();
        }
        void run() {
            std::unique_lock<std::mutex> lock(mutex);
            while (true) {
                changed.wait(lock, [this] { return over || !part.empty(); });
                if (part.empty()) {
                    return;
                }
                seen += part;
                part.clear();
                lock.unlock();
                (void)conn.resume();
                lock.lock();
            }
        }
        paceline::ConnRef conn;
        std::mutex mutex;
        std::condition_variable changed;
        std::string part, seen;
        bool over = false;
        std::thread thread;
    };
    struct Parts : RequestBody {
        Parts(Response r, paceline::ConnRef conn) : response(std::move(r)), taker(std::move(conn)) {}
        std::size_t data(std::string_view bytes) override {
            most = std::max(most, bytes.size());
            const std::lock_guard<std::mutex> lock(taker.mutex);
            if (!taker.part.empty()) {
                return 0;
            }
            taker.part = bytes.substr(0, 4096);
            taker.changed.notify_one();
            return taker.part.size();
        }
        void end(bool is_whole) override {
            if (is_whole && most <= 65536) {
                const std::lock_guard<std::mutex> lock(taker.mutex);
                response.send(taker.seen + taker.part).value();
            }
        }
        Response response;
        Taker taker;
        std::size_t most = 0;
    };
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    http.route_streaming("PUT", "/",
                         [&http](const Request &request, Response response) {
                             return std::make_unique<Parts>(std::move(response),
                                                            http.conn(request.conn()));
                         })
        .value();
    http.start(local()).value();
    std::string body(3 << 20, ' ');
    for (std::size_t i = 0; i < body.size(); i++) {
        body[i] = static_cast<char>('a' + i % 23);
    }
    const auto head = "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " +
                      std::to_string(body.size()) + "\r\n\r\n";
    CHECK(ask(http, head + body) == "200 " + body);
}

TEST_CASE("bodies are streamed both ways") {
    struct Count : RequestBody {
        explicit Count(Response r) : response(std::move(r)) {}
        std::size_t data(std::string_view bytes) override {
            size += bytes.size();
            return bytes.size();
        }
        void end(bool is_whole) override {
            if (is_whole) {
                response.send(std::to_string(size)).value();
            }
        }

        Response response;
        std::size_t size = 0;
    };
    static constexpr std::size_t LARGE = 3 << 20;
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    http.route_streaming("POST", "/count",
                         [](const Request &, Response response) {
                             return std::make_unique<Count>(std::move(response));
                         })
        .value();
    http.route_streaming("POST", "/early",
                         [](const Request &, Response response) {
                             response.status(403).send("no").value();
                             return std::unique_ptr<RequestBody>();
                         })
        .value();
    http.route("GET", "/endless",
               [](const Request &, Response response) {
                   response.stream()
                       .value()
                       .pump([](Body &) {
                           CHECK(false);
                           return Flow::Again;
                       })
                       .value();
               })
        .value();
    struct Back : RequestBody {
        explicit Back(Body body) : to(std::move(body)) {}
        std::size_t data(std::string_view bytes) override {
            to.write(bytes).value();
            return bytes.size();
        }
        void end(bool is_whole) override {
            CHECK(is_whole);
            to.finish().value();
        }
        Body to;
    };
    http.route_streaming("POST", "/begin",
                         [](const Request &, Response response) {
                             return std::make_unique<Back>(response.stream().value());
                         })
        .value();
    http.route("GET", "/chunks",
               [](const Request &, Response response) {
                   auto body = response.stream().value();
                   body.write("one ").value();
                   body.write("two").value();
                   body.finish().value();
                   CHECK(body.finish().error() == Code::Stale);
               })
        .value();
    http.route("GET", "/pump",
               [](const Request &, Response response) {
                   auto body = response.stream(LARGE).value();
                   body.pump([left = LARGE](Body &to) mutable {
                           const std::string part(std::min<std::size_t>(left, 50'000), 'x');
                           to.write(part).value();
                           left -= part.size();
                           return left > 0 ? Flow::Again : Flow::Done;
                       })
                       .value();
               })
        .value();
    http.start(local()).value();
    const std::string head = " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ";
    const std::string large(LARGE, 'y');
    CHECK(ask(http, "POST /count" + head + std::to_string(LARGE) + "\r\n\r\n" + large) ==
          "200 " + std::to_string(LARGE));
    CHECK(ask(http, "POST /early" + head + "4\r\n\r\nbody") == "403 no");
    // What is not sent is not produced.
    Client asks(http);
    asks.send("HEAD /endless HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    CHECK(asks.receive().substr(9, 3) == "200");
    // What is wanted is asked for, before an answer that begins at once.
    Client waits(http);
    waits.send("POST /begin HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
               "Connection: close\r\n\r\n");
    const std::string told = "HTTP/1.1 100 Continue\r\n\r\n";
    CHECK(waits.receive(told.size()) == told);
    waits.send("body");
    const std::string back = waits.receive();
    CHECK(back.substr(0, 12) == "HTTP/1.1 200");
    CHECK(back.find("\r\n\r\n4\r\nbody\r\n0\r\n\r\n") != std::string::npos);
    CHECK(get(http, "/chunks") == "200 4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n");
    CHECK(get(http, "/pump").size() == LARGE + 4);
}

TEST_CASE("a connection is upgraded to another protocol") {
    struct Shout : ConnHandler {
        std::size_t data(Conn &conn, std::string_view bytes) override {
            conn.ref().notify().value();
            conn.write(std::string(bytes) + "!").value();
            return bytes.size();
        }
        void notified(Conn &conn) override { conn.close(); }
    };
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    http.route("GET", "/shout",
               [](const Request &request, Response response) {
                   if (!request.upgrade()) {
                       std::unique_ptr<ConnHandler> kept = std::make_unique<Shout>();
                       CHECK(response.upgrade("shout", std::move(kept)).error() == Code::Invalid);
                       CHECK(kept != nullptr);
                       return;
                   }
                   CHECK(*request.upgrade() == "shout");
                   response.upgrade("shout", std::make_unique<Shout>()).value();
               })
        .value();
    http.start(local()).value();
    CHECK(get(http, "/shout").substr(0, 3) == "426");
    Client client(http);
    client.send("GET /shout HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n");
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
        const std::string more = client.receive(1);
        REQUIRE(!more.empty());
        head += more;
    }
    CHECK(head.substr(0, 12) == "HTTP/1.1 101");
    client.send("hey");
    CHECK(client.receive() == "hey!");
}

TEST_CASE("an HTTP server that cannot be names the reason, and may be tried again") {
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    CHECK(http.stats().error() == Code::Invalid);
    http.route("GET", "/a", [](const Request &, Response response) { response.send("a").value(); })
        .value();
    const auto message = [&](const HttpConfig &config) {
        return std::string(http.start(config).error().message());
    };
    CHECK(message(local().set_max_headers(0)).find("max_headers") != std::string::npos);
    CHECK(message(local().set_head_timeout(0ns)).find("head_timeout") != std::string::npos);
    HttpConfig narrow, busy;
    narrow.add_listener(Listen{"127.0.0.1:0"}.set_max_unconsumed(1000));
    CHECK(message(narrow).find("max_unconsumed is 1000, but must be 147456, ") == 0);
    busy.add_listener(Listen{"127.0.0.1:0"}.set_busy("busy"));
    CHECK(message(busy).find("busy is 4 bytes, but must be empty: ") == 0);
    HttpConfig nowhere;
    nowhere.add_listener(Listen{"256.0.0.1:1"});
    CHECK(message(nowhere).find("256.0.0.1:1") != std::string::npos);
    CHECK(message(HttpConfig()).find("listen is empty, but must be an address or more") == 0);
    http.start(local()).value();
    CHECK(http.start(local()).error() == Code::Invalid);
    CHECK(get(http, "/a") == "200 a");
    for (const auto &[method, pattern, told] : std::vector<std::array<std::string, 3>>{
             {"GET", "/items/:id", "a path whose parameters are written {id}, not :id"},
             {"GET", "/a/{x}/{x}", "{x} is there twice"},
             {"get", "/", "method is \"get\", but must be \"GET\""}}) {
        auto wrong = Http::create(pool).value();
        const auto set = wrong.route(method.c_str(), pattern.c_str(), [](const Request &, Response) {});
        CHECK(std::string(set.error().message()).find(told) != std::string::npos);
    }
    auto twice = Http::create(pool).value();
    twice.route("GET", "/{a}", [](const Request &, Response) {}).value();
    CHECK(twice.route("GET", "/{a}", [](const Request &, Response) {}).error() == Code::Invalid);
    twice.start(local()).value();
}

TEST_CASE("middleware, a fallback and ends are around every handler") {
    std::atomic<int> logged{0};
    auto pool = Pool::create({2}).value();
    auto http = Http::create(pool).value();
    auto before = paceline::on_unhandled([](std::exception_ptr) {});
    std::mutex mutex;
    std::vector<std::string> seen;
    const auto note = [&](std::string text) {
        const std::lock_guard<std::mutex> lock(mutex);
        seen.push_back(std::move(text));
    };
    http.route("GET", "/hello/{name}",
               [](const Request &, Response response) { response.json("{\"hello\":1}").value(); })
        .value();
    http.route("GET", "/throws",
               [](const Request &, Response) { throw std::runtime_error("on purpose"); })
        .value();
    http.route("GET", "/pairs",
               [](const Request &request, Response response) {
                   std::string text;
                   for (const auto &[name, value] : request.query_pairs()) {
                       text += name + ">" + value + ";";
                   }
                   response.send_as("text/x-pairs", text).value();
               })
        .value();
    // What is moved only is taken, too.
    http.around([&, own = std::make_unique<int>(7)](const Request &request, Response response,
                                                    paceline::Next next) {
            CHECK(*own == 7);
            const auto status = next.run(request, std::move(response.header("X-Around", "1")));
            note(std::string(request.pattern().value_or("-")) + " " +
                 std::to_string(status.value_or(0)));
        })
        .value();
    http.around([](const Request &request, Response response, paceline::Next next) {
            if (request.query() == "stop") {
                CHECK(response.status(403).error());
                CHECK(response.error().error() == Code::Stale);
                return;
            }
            next.run(request, std::move(response));
        })
        .value();
    http.fallback([](const Request &request, Response response) {
            if (request.path() == "/page") {
                response.status(200).send("a page").value();
            } else {
                response.error().value();
            }
        })
        .value();
    http.on_end([&](const paceline::RequestEnd &end) {
            CHECK(end.duration.count() >= 0);
            CHECK(!end.peer.empty());
            note(std::string(end.method) + " " + std::string(end.target) + " " +
                 std::to_string(end.status.value_or(0)));
        })
        .value();
    paceline::LogConfig lines;
    lines.on_record = [&](const paceline::LogRecord &record) {
        if (record.event == "request.ended") {
            CHECK(record.component == paceline::LogComponent::Http);
            CHECK(record.message.find("HTTP/1.1\" ") != std::string_view::npos);
            ++logged;
        }
    };
    http.access_log(paceline::AccessFormat::Combined).value();
    CHECK(http.start(local()).error().code() == Code::Invalid); // its pool has no log
    const auto log = paceline::Log::create(lines).value();
    http.access_log(paceline::AccessFormat::Combined, log).value();
    http.start(local()).value();
    using Seen = std::vector<std::string>;
    const auto check = [&](const char *target, const char *answer, const Seen &expected) {
        CHECK(get(http, target) == answer);
        for (int tries = 0; tries < 30000; ++tries) {
            {
                const std::lock_guard<std::mutex> lock(mutex);
                if (seen.size() == expected.size()) {
                    break;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const std::lock_guard<std::mutex> lock(mutex);
        CHECK(seen == expected);
        seen.clear();
    };
    check("/hello/you", "200 {\"hello\":1}", {"/hello/{name} 200", "GET /hello/you 200"});
    check("/nowhere", "404 404 Not Found\n", {"- 404", "GET /nowhere 404"});
    check("/page", "200 a page", {"- 200", "GET /page 200"});
    check("/throws", "500 500 Internal Server Error\n", {"/throws 500", "GET /throws 500"});
    check("/pairs?a=1&b=x+%26&c", "200 a>1;b>x &;c>;", {"/pairs 200", "GET /pairs?a=1&b=x+%26&c 200"});
    check("/pairs?stop", "403 403 Forbidden\n", {"/pairs 403", "GET /pairs?stop 403"});
    CHECK(http.stats().value().panics == 1);
    CHECK(http.drain(std::chrono::seconds(60)).value().drained);
    log.flush(std::chrono::seconds(60)).value();
    CHECK(logged == 6);
    paceline::on_unhandled(std::move(before));
}

TEST_CASE("JSON in and out") {
    using paceline::JsonKind;
    const std::string_view body =
        R"({"item": "caf\u00e9 \"x\"", "lines": [{"price": 2.5}], "none": null})";
    CHECK(paceline::json_kind(body).value() == JsonKind::Object);
    CHECK(paceline::json_kind(body, "/lines").value() == JsonKind::Array);
    CHECK(paceline::json_kind(body, "/none").value() == JsonKind::Null);
    CHECK(paceline::json_kind(body, "/nothing").value() == JsonKind::None);
    CHECK(paceline::json_text(body, "/item").value() == "caf\xc3\xa9 \"x\"");
    CHECK(paceline::json_number(body, std::string("/lines/0/price")).value() == 2.5);
    CHECK(std::string_view(paceline::json_text(body, "/none").error().message()) ==
          "/none is null, but must be a text");
    CHECK(paceline::json_number(body, "/item").error() == Code::Invalid);
    CHECK(paceline::json_kind("{").error() == Code::Invalid);
    CHECK(paceline::json_text("\"\"").value().empty());
    const std::string_view text("\0 \"\\ \xc3\xa9", 7);
    CHECK(paceline::json_text(paceline::json_quote(text).value()).value() == text);
    CHECK(paceline::json_quote("\xff").error() == Code::Invalid);
    CHECK(paceline::json_quote("").value() == "\"\"");
}
