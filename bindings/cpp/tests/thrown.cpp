// Whatever is thrown, wherever the user's code is called: it stays there, and the object serves the next call.
//
// The places are all of the header that take code of the user; tests/cpp.rs compares their names with what a scan
// of the header finds.

#include "broker.hpp"
#include "client.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <stdexcept>
#include <sys/resource.h>

// Its names are its own: all tests are one translation unit.
namespace of_what_is_thrown {

using paceline::Conn;
using paceline::ConnHandler;
using paceline::Hub;
using paceline::Listen;
using paceline::Message;
using paceline::Request;
using paceline::Response;
using paceline::Result;
using paceline::ServerConfig;

namespace {

// What is thrown.

struct Speechless : std::exception {
    const char *what() const noexcept override { return nullptr; }
};
struct NoUtf8 : std::exception {
    const char *what() const noexcept override { return "na\xefve"; }
};
/// It is built where it is thrown, and never copied.
struct NotToBeCopied : std::exception {
    NotToBeCopied() = default;
    NotToBeCopied(const NotToBeCopied &) : std::exception() { throw 1; }
};
struct MoveOnly {
    std::unique_ptr<int> is = std::make_unique<int>(1);
};
struct Left : virtual std::exception {};
struct Right : virtual std::exception {};
struct Diamond : Left, Right {};
struct One : std::exception {};
struct Other : std::exception {};
/// No std::exception, since it is two.
struct Ambiguous : One, Other {};
struct ThrowsAtItsEnd {
    ThrowsAtItsEnd() = default;
    ThrowsAtItsEnd(const ThrowsAtItsEnd &) = default;
    ~ThrowsAtItsEnd() noexcept(false) { throw 2; }
};

struct Throwing {
    const char *name;
    void (*raise)();
};

const Throwing THROWN[] = {
    {"std::runtime_error", [] { throw std::runtime_error("on purpose"); }},
    {"what() is NULL", [] { throw Speechless(); }},
    {"what() is not UTF-8", [] { throw NoUtf8(); }},
    {"a copy constructor that throws", [] { throw NotToBeCopied(); }},
    {"int", [] { throw 1; }},
    {"std::string", [] { throw std::string("words"); }},
    {"const char *", [] { throw "words"; }},
    {"nullptr", [] { throw nullptr; }},
    {"what can only be moved", [] { throw MoveOnly(); }},
    {"virtual bases", [] { throw Diamond(); }},
    {"two std::exceptions", [] { throw Ambiguous(); }},
    {"std::exception_ptr", [] { throw std::make_exception_ptr(1); }},
    {"nested",
     [] {
         try {
             throw std::runtime_error("within");
         } catch (...) {
             std::throw_with_nested(std::logic_error("without"));
         }
     }},
    {"paceline::Exception", [] { (void)Result<int>(paceline::Error(Code::Full, "words")).value(); }},
};

/// The last one's memory is lost: what has thrown cannot be freed. A std::exception_ptr to it ends the program
/// when it goes, as the standard says, so that it is not for places that keep one.
const Throwing AT_ITS_END{"a destructor that throws", [] { throw ThrowsAtItsEnd(); }};
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool may_lose_memory = false;
#else
constexpr bool may_lose_memory = true;
#endif

/// Code of the user: it throws, or is told that it was called.
class Trouble {
public:
    explicit Trouble(const Throwing &what) : what_(what) {}

    void operator()() const {
        if (armed) {
            thrown.set();
            what_.raise();
        }
        good.set();
    }

    mutable Signal thrown, good;
    std::atomic<bool> armed{true};

private:
    const Throwing &what_;
};

/// One that stays: a call may be on its way out still when the test has seen what it waits for.
Trouble &trouble_with(const Throwing &what) {
    static auto *all = new std::list<Trouble>;
    return all->emplace_back(what);
}

/// Whether a place throws, and serves the next call.
template <class Does>
bool serves(Trouble &trouble, Does does) {
    does();
    if (!trouble.thrown.wait()) {
        return false;
    }
    trouble.armed = false;
    does();
    return trouble.good.wait();
}

/// A factory of handlers that crash; it is trouble itself but for the first time.
auto made_anew(Trouble &trouble) {
    return [&trouble, is_first = true]() mutable {
        if (!std::exchange(is_first, false)) {
            trouble();
        }
        return [](const Message &) { throw 1; };
    };
}

const Pool &the_pool() {
    static const Pool *pool = new Pool(make_pool(2));
    return *pool;
}

// Servers: one hook of each is trouble.

ServerConfig local(paceline::FilterFactory filter = {}) {
    Listen listen{"127.0.0.1:0"};
    listen.set_output_marks(1, 2, 64 << 20).set_filter(std::move(filter));
    return ServerConfig().add_listener(std::move(listen));
}

struct Hooked : ConnHandler {
    Hooked(const Trouble *t, std::string h) : trouble(t), hook(std::move(h)) {}
    void at(const char *name) const {
        if (hook == name) {
            (*trouble)();
        }
    }

    paceline::Accept open(Conn &conn) override {
        at("open");
        if (hook == "timeout") {
            conn.set_deadline(1ns);
        } else if (hook == "notified") {
            conn.ref().notify().value();
        } else if (hook == "written") {
            conn.write_tracked("x", 1).value();
        } else if (hook == "writable") {
            conn.write(std::string(32 << 20, 'x')).value();
        } else if (hook == "finish") {
            conn.close();
        }
        return paceline::Accept::Yes;
    }
    std::size_t data(Conn &conn, std::string_view bytes) override {
        at("data");
        conn.write(bytes).value();
        return bytes.size();
    }
    void finished(Conn &conn) override {
        at("finished");
        conn.close();
    }
    void writable(Conn &conn) override {
        at("writable");
        conn.close();
    }
    void written(Conn &conn, std::uint64_t) override {
        at("written");
        conn.close();
    }
    paceline::TimeoutAction timeout(Conn &, paceline::Timeout) override {
        at("timeout");
        return paceline::TimeoutAction::Close;
    }
    void notified(Conn &conn) override {
        at("notified");
        conn.close();
    }
    void draining(Conn &) override { at("draining"); }
    void error(Conn &, std::int32_t) override { at("error"); }
    void close(Conn &, paceline::Reason) override { at("close"); }

    const Trouble *const trouble;
    const std::string hook;
};

struct HookedFilter : paceline::Filter {
    HookedFilter(const Trouble *t, std::string h) : trouble(t), hook(std::move(h)) {}
    void at(const char *name) const {
        if (hook == name) {
            (*trouble)();
        }
    }
    paceline::FilterRead received(std::string_view bytes, paceline::FilterSink plain,
                                  paceline::FilterSink) override {
        at("received");
        plain.append(bytes);
        return paceline::FilterRead::Open;
    }
    bool written(std::string_view bytes, paceline::FilterSink wire) override {
        at("written");
        wire.append(bytes);
        return true;
    }
    void finish(paceline::FilterSink) override { at("finish"); }
    bool cut_off() override {
        at("cut_off");
        return true;
    }
    const Trouble *const trouble;
    const std::string hook;
};

/// A connection that does what brings the hook.
template <class Server>
void visit(const Server &server, const std::string &hook) {
    Client client(server);
    if (hook == "error") {
        client.send("x");
        (void)client.receive(1);
        client.reset();
        return;
    }
    // Others come by themselves, and end the connection.
    const std::string by_the_client[] = {"data",   "finished", "close", "received",
                                         "filter", "cut_off",  "echo"};
    if (std::count(std::begin(by_the_client), std::end(by_the_client), hook) > 0) {
        client.send("x");
        client.finish();
    } else if (hook == "open" || hook == "factory") {
        client.finish();
    }
    (void)client.receive();
}

bool hook_of_a_server(Trouble &trouble, const std::string &hook) {
    auto server = paceline::Server::create(the_pool(), local(), [&](Conn &) {
                      if (hook == "factory") {
                          trouble();
                      }
                      return std::make_unique<Hooked>(&trouble, hook);
                  }).value();
    const bool served = serves(trouble, [&] { visit(server, hook); });
    return served && server.drain(PATIENCE).value().drained && server.stats().value().balances;
}

bool hook_of_a_filter(Trouble &trouble, const std::string &hook) {
    const auto make = [&trouble, hook](const paceline::AcceptedConn &) {
        if (hook == "filter") {
            trouble();
        }
        return std::make_unique<HookedFilter>(&trouble, hook);
    };
    auto server = paceline::Server::create_for<Hooked>(the_pool(), local(make), nullptr,
                                                       hook == "finish" ? hook : std::string())
                      .value();
    const bool served = serves(trouble, [&] { visit(server, hook == "written" ? "echo" : hook); });
    return served && server.drain(PATIENCE).value().drained && server.stats().value().balances;
}

/// A drain is the end of a server: each has its own.
bool draining(Trouble &trouble) {
    return serves(trouble, [&] {
        // The client does not close its end while this thread drains.
        auto config = local();
        config.listeners[0].set_linger(1ms);
        auto server =
            paceline::Server::create_for<Hooked>(the_pool(), config, &trouble, std::string("draining"))
                .value();
        Client client(server);
        client.send("x");
        CHECK(client.receive(1) == "x");
        CHECK(server.drain(PATIENCE).value().drained);
    });
}

// HTTP: what a route does is trouble.

using Routes = std::function<void(paceline::Http &, Trouble &)>;

bool code_of_requests(Trouble &trouble, Routes routes, bool resets = false) {
    auto http = paceline::Http::create(the_pool()).value();
    routes(http, trouble);
    http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
    std::vector<std::string> answers;
    const bool served = serves(trouble, [&] {
        Client client(http);
        client.send("POST / HTTP/1.1\r\nHost: h\r\nConnection: close, upgrade\r\nUpgrade: words\r\n"
                    "Content-Length: 1\r\n\r\nx");
        answers.push_back(client.receive());
    });
    http.drain(PATIENCE).value();
    // A failure is told to the peer: by a 500, or by an answer that is not whole.
    const bool is_told = resets ? answers[0].find("\r\n0\r\n\r\n") == std::string::npos
                                : answers[0].find("HTTP/1.1 500 ") == 0;
    const auto stats = http.stats().value();
    return served && is_told && stats.panics == 1 && stats.balances;
}

struct HookedBody : paceline::RequestBody {
    HookedBody(const Trouble *t, std::string h, Response r)
        : trouble(t), hook(std::move(h)), response(std::move(r)) {}
    std::size_t data(std::string_view bytes) override {
        if (hook == "data") {
            (*trouble)();
        }
        return bytes.size();
    }
    void end(bool) override {
        if (hook == "end" && (response || !trouble->armed)) {
            (*trouble)();
        }
        if (response) {
            (void)response->send("whole");
        }
    }
    const Trouble *const trouble;
    const std::string hook;
    std::optional<Response> response;
};

bool hook_of_a_body(Trouble &trouble, const std::string &hook) {
    return code_of_requests(trouble, [hook](paceline::Http &http, Trouble &troubled) {
        http.route_streaming("POST", "/",
                             [&troubled, hook](const Request &, Response response) {
                                 if (hook == "begin") {
                                     troubled();
                                 }
                                 return std::make_unique<HookedBody>(&troubled, hook,
                                                                     std::move(response));
                             })
            .value();
    });
}

struct HookedUdp : paceline::UdpHandler {
    HookedUdp(const Trouble *t, std::string h) : trouble(t), hook(std::move(h)) {}
    void at(const char *name) const {
        if (hook == name) {
            (*trouble)();
        }
    }
    void data(paceline::UdpRef, paceline::span<const paceline::Datagram>) override { at("data"); }
    void error(paceline::UdpRef, std::int32_t) override { at("error"); }
    void close(paceline::UdpRef, paceline::Reason) override { at("close"); }
    const Trouble *const trouble;
    const std::string hook;
};

paceline::Udp datagrams(const Trouble &trouble, const std::string &hook, const std::string &to = {}) {
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0";
    config.connect = to;
    return paceline::Udp::create(the_pool(), config, std::make_unique<HookedUdp>(&trouble, hook))
        .value();
}

bool hook_of_datagrams(Trouble &trouble, const std::string &hook) {
    if (hook == "close") {
        return serves(trouble, [&] { datagrams(trouble, hook).close().value(); });
    }
    // A port where nobody is.
    auto nobody = datagrams(trouble, "");
    auto here = datagrams(trouble, hook, hook == "error" ? nobody.address().value() : std::string());
    nobody.close().value();
    nobody.wait().value();
    return serves(trouble, [&] {
        if (hook == "error") {
            (void)here.send("x");
        } else {
            here.send_to("x", paceline::Ip::read(here.address().value()).value()).value();
        }
    });
}

// Worker pools

struct HookedMiddleware : paceline::Middleware {
    HookedMiddleware(const Trouble *t, std::string h) : trouble(t), hook(std::move(h)) {}
    void at(const char *name) const {
        if (hook == name) {
            (*trouble)();
        }
    }
    bool before(paceline::Attempt &) override {
        at("before");
        return true;
    }
    void after(const paceline::Attempt &) override { at("after"); }
    void on_error(const paceline::Attempt &, const char *) override { at("on_error"); }
    const Trouble *const trouble;
    const std::string hook;
};

bool of_workers(std::function<bool(paceline::WorkerPool &, paceline::TaskType &)> does,
                std::shared_ptr<paceline::Middleware> middleware = nullptr) {
    const Pool pool = make_pool(2);
    paceline::WorkersConfig config;
    if (middleware) {
        config.middleware.push_back(std::move(middleware));
    }
    auto workers = paceline::WorkerPool::create(pool, config).value();
    auto kind = workers.task_type("trouble").value();
    const bool served = does(workers, kind);
    return workers.shutdown({1h, 1h, 1h}).value().drained && workers.audit().value().balances && served;
}

bool hook_of_middleware(Trouble &trouble, const std::string &hook) {
    return of_workers(
        [&](paceline::WorkerPool &, paceline::TaskType &kind) {
            return serves(trouble, [&] {
                kind.submit([&] {
                        if (hook == "on_error") {
                            throw std::runtime_error("on purpose");
                        }
                    })
                    .value()
                    .wait()
                    .value();
            });
        },
        std::make_shared<HookedMiddleware>(&trouble, hook));
}

// Hubs

struct Codec {
    const Trouble *trouble;
    bool decodes;
    Result<std::string> encode(const int &value) const {
        if (!decodes) {
            (*trouble)();
        }
        return std::to_string(value);
    }
    Result<int> decode(std::string_view) const {
        if (decodes) {
            (*trouble)();
        }
        return 1;
    }
};

Hub a_hub(const Pool &pool) {
    paceline::HubConfig config;
    config.histories.emplace_back();
    return Hub::create(pool, config).value();
}

bool of_a_hub(std::function<bool(const Hub &)> does) {
    const Hub hub = a_hub(the_pool());
    return does(hub);
}

template <class F>
bool throws(F f) {
    try {
        f();
    } catch (...) {
        return true;
    }
    return false;
}

/// Places of the header: what they do with the trouble, and serve afterwards.
using Place = std::function<bool(Trouble &)>;

const std::map<std::string, Place> &places() {
    static const auto *all = new std::map<std::string, Place>{
        // Tasks
        {"Posting::post", [](Trouble &t) {
             return serves(t, [&] { the_pool().post([&t] { t(); }).value(); }) &&
                    (t.armed = true, true) &&
                    serves(t, [&] { the_pool().post([&t, big = std::string("box")] { t(); }).value(); });
         }},
        {"Posting::try_post",
         [](Trouble &t) { return serves(t, [&] { the_pool().try_post([&t] { t(); }).value(); }); }},
        {"Posting::post_batch", [](Trouble &t) {
             return serves(t, [&] {
                 std::vector<std::function<void()>> batch(2, [&t] { t(); });
                 CHECK(the_pool().post_batch(batch).value() == 2);
             });
         }},
        {"Strand::post", [](Trouble &t) {
             const auto strand = the_pool().strand().value();
             return serves(t, [&] { strand.post([&t] { t(); }).value(); });
         }},
        {"Strand::post_batch", [](Trouble &t) {
             const auto strand = the_pool().strand().value();
             return serves(t, [&] {
                 std::vector<std::function<void()>> work{[&t] { t(); }};
                 strand.post_batch(work).value();
             });
         }},
        {"Strand::try_post", [](Trouble &t) {
             const auto strand = the_pool().strand().value();
             return serves(t, [&] { strand.try_post([&t] { t(); }).value(); });
         }},
        // Descriptors and time: what throws closes its handle, and the pool takes the next.
        {"Pool::register_fd", [](Trouble &t) {
             return serves(t, [&] {
                 Pipe pipe;
                 pipe.write("x");
                 const auto handle = the_pool().register_fd(pipe.reader(), [&t](int, Ready) {
                                                   t();
                                                   return Flow::Done;
                                               }).value();
                 while (handle.is_open().value()) {
                     std::this_thread::yield();
                 }
             });
         }},
        {"Pool::every", [](Trouble &t) {
             return serves(t, [&] {
                 const auto handle = the_pool().every(1us, [&t] {
                                                   t();
                                                   return Flow::Done;
                                               }).value();
                 while (handle.is_open().value()) {
                     std::this_thread::yield();
                 }
             });
         }},
        {"Pool::after",
         [](Trouble &t) { return serves(t, [&] { the_pool().after(0ns, [&t] { t(); }).value(); }); }},
        {"Config::on_start", [](Trouble &t) {
             return serves(t, [&] {
                 auto config = paceline::Config().set_threads(1).set_pin("none");
                 config.on_start = [&t](std::uint32_t) { t(); };
                 const Pool pool = Pool::create(config).value();
                 CHECK(pool.submit([] { return 1; }).value().wait().value() == 1);
             });
         }},
        {"Config::set_on_start", [](Trouble &t) {
             return serves(t, [&] {
                 const Pool pool = Pool::create(paceline::Config().set_threads(1).set_pin("none").set_on_start(
                                                    [&t](std::uint32_t) { t(); }))
                                       .value();
                 CHECK(pool.submit([] { return 1; }).value().wait().value() == 1);
             });
         }},
        {"Config::set_on_stop", [](Trouble &t) {
             return serves(t, [&] {
                 const Pool pool = Pool::create(paceline::Config().set_threads(1).set_pin("none").set_on_stop(
                                                    [&t](std::uint32_t) { t(); }))
                                       .value();
             });
         }},
        {"Config::set_on_slow", [](Trouble &t) {
             const Pool pool =
                 Pool::create(paceline::Config().set_threads(2).set_pin("none").set_on_slow(
                                  1ms, [&t](const paceline::SlowReport &) { t(); }))
                     .value();
             return serves(t, [&] {
                 pool.submit([] { std::this_thread::sleep_for(3ms); }).value().wait().value();
             });
         }},
        {"Ring::serial", [](Trouble &t) {
             const auto ring = paceline::Ring<int>::serial(the_pool(), 4, [&t](paceline::Events<int>) {
                                   t();
                               }).value();
             return serves(t, [&] { ring.publish(1).value(); });
         }},
        {"Ring::concurrent", [](Trouble &t) {
             const auto ring = paceline::Ring<int>::concurrent(the_pool(), 4, [&t](paceline::Events<int>) {
                                   t();
                               }).value();
             return serves(t, [&] { ring.publish(1).value(); });
         }},
        {"LogConfig::on_record", [](Trouble &t) {
             paceline::LogConfig config;
             config.levels = "debug";
             config.on_record = [&t](const paceline::LogRecord &) { t(); };
             const auto log = paceline::Log::create(config).value();
             const bool served = serves(t, [&] {
                 const Pool pool = Pool::create(paceline::Config().set_threads(1).set_log(log)).value();
             });
             return served && log.flush(PATIENCE).has_value();
         }},
        {"Signals::create", [](Trouble &t) {
             const std::int32_t numbers[] = {SIGUSR2};
             const auto signals = paceline::Signals::create(the_pool(), numbers, [&t](int) { t(); }).value();
             return serves(t, [&] {
                 CHECK(kill(getpid(), SIGUSR2) == 0);
                 CHECK(signals.wait().value() == SIGUSR2);
             });
         }},
        // Servers
        {"Server::create", [](Trouble &t) { return hook_of_a_server(t, "factory"); }},
        {"ConnHandler::open", [](Trouble &t) { return hook_of_a_server(t, "open"); }},
        {"ConnHandler::data", [](Trouble &t) { return hook_of_a_server(t, "data"); }},
        {"ConnHandler::finished", [](Trouble &t) { return hook_of_a_server(t, "finished"); }},
        {"ConnHandler::writable", [](Trouble &t) { return hook_of_a_server(t, "writable"); }},
        {"ConnHandler::written", [](Trouble &t) { return hook_of_a_server(t, "written"); }},
        {"ConnHandler::timeout", [](Trouble &t) { return hook_of_a_server(t, "timeout"); }},
        {"ConnHandler::notified", [](Trouble &t) { return hook_of_a_server(t, "notified"); }},
        {"ConnHandler::error", [](Trouble &t) { return hook_of_a_server(t, "error"); }},
        {"ConnHandler::close", [](Trouble &t) { return hook_of_a_server(t, "close"); }},
        {"ConnHandler::draining", draining},
        {"Server::connect", [](Trouble &t) {
             auto server = paceline::Server::create_for<Hooked>(the_pool(), local(), nullptr, std::string()).value();
             const std::string address = server.address().value();
             return serves(t, [&] { server.connect(address, std::make_unique<Hooked>(&t, "open")).value(); });
         }},
        {"ServerConfig::set_on_exhausted", [](Trouble &t) {
             auto server =
                 paceline::Server::create(the_pool(), local().set_on_exhausted([&t](const char *) { t(); }),
                                          [](Conn &) { return std::make_unique<Hooked>(nullptr, ""); })
                     .value();
             // Twice, since it is told once for each time that accepting pauses.
             return serves(t, [&] {
                 const int before = t.thrown.count() + t.good.count();
                 rlimit limit{};
                 CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
                 rlimit none = limit;
                 std::optional<Client> client;
                 client.emplace(server, [&] {
                     none.rlim_cur = 3;
                     CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
                 });
                 while (t.thrown.count() + t.good.count() == before) {
                     std::this_thread::yield();
                 }
                 CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
                 client->send("x");
                 CHECK(client->receive(1) == "x");
             });
         }},
        {"Listen::set_filter", [](Trouble &t) { return hook_of_a_filter(t, "filter"); }},
        {"Filter::received", [](Trouble &t) { return hook_of_a_filter(t, "received"); }},
        {"Filter::written", [](Trouble &t) { return hook_of_a_filter(t, "written"); }},
        {"Filter::finish", [](Trouble &t) { return hook_of_a_filter(t, "finish"); }},
        {"Filter::cut_off", [](Trouble &t) { return hook_of_a_filter(t, "cut_off"); }},
        {"UdpHandler::data", [](Trouble &t) { return hook_of_datagrams(t, "data"); }},
        {"UdpHandler::error", [](Trouble &t) { return hook_of_datagrams(t, "error"); }},
        {"UdpHandler::close", [](Trouble &t) { return hook_of_datagrams(t, "close"); }},
        // HTTP
        {"Http::route", [](Trouble &t) {
             return code_of_requests(t, [](paceline::Http &http, Trouble &troubled) {
                 http.route("POST", "/", [&](const Request &, Response response) {
                         troubled();
                         response.send("").value();
                     }).value();
             });
         }},
        {"Http::around", [](Trouble &t) {
             return code_of_requests(t, [](paceline::Http &http, Trouble &troubled) {
                 http.around([&](const Request &, Response, paceline::Next) { troubled(); })
                     .value();
             });
         }},
        {"Http::fallback", [](Trouble &t) {
             return code_of_requests(t, [](paceline::Http &http, Trouble &troubled) {
                 http.fallback([&](const Request &, Response) { troubled(); }).value();
             });
         }},
        {"Http::on_end", [](Trouble &t) {
             return code_of_requests(t, [](paceline::Http &http, Trouble &troubled) {
                 http.on_end([&](const paceline::RequestEnd &) { troubled(); }).value();
             }, true);
         }},
        {"Http::route_streaming", [](Trouble &t) { return hook_of_a_body(t, "begin"); }},
        {"RequestBody::data", [](Trouble &t) { return hook_of_a_body(t, "data"); }},
        {"RequestBody::end", [](Trouble &t) { return hook_of_a_body(t, "end"); }},
        {"Body::pump", [](Trouble &t) {
             return code_of_requests(
                 t,
                 [](paceline::Http &http, Trouble &troubled) {
                     http.route("POST", "/", [&](const Request &, Response response) {
                             response.stream().value().pump([&](paceline::Body &body) {
                                 (void)body.write("part");
                                 troubled();
                                 return Flow::Done;
                             }).value();
                         }).value();
                 },
                 true);
         }},
        {"Body::on_writable", [](Trouble &t) {
             return code_of_requests(
                 t,
                 [](paceline::Http &http, Trouble &troubled) {
                     http.route("POST", "/", [&](const Request &, Response response) {
                             auto body = std::make_shared<paceline::Body>(response.stream().value());
                             body->on_writable([&troubled, body] {
                                     troubled();
                                     (void)body->finish();
                                 }).value();
                         }).value();
                 },
                 true);
         }},
        {"Response::upgrade", [](Trouble &t) {
             return serves(t, [&] {
                 auto http = paceline::Http::create(the_pool()).value();
                 http.route("GET", "/", [&](const Request &, Response response) {
                         response.upgrade("words", std::make_unique<Hooked>(&t, "open")).value();
                     }).value();
                 http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
                 Client client(http);
                 client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: words\r\n\r\n");
                 client.finish();
                 (void)client.receive();
                 CHECK(http.drain(PATIENCE).value().drained);
             });
         }},
        // Worker pools
        {"TaskType::submit", [](Trouble &t) {
             return of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
                 std::vector<paceline::TaskStatus> ends;
                 const bool served = serves(t, [&] {
                     const auto report = kind.submit([&t] { t(); }).value().wait().value();
                     CHECK(report.completed() == report.message.empty());
                     ends.push_back(report.status);
                 });
                 return served && ends[0] == paceline::TaskStatus::Failed && ends[1] == paceline::TaskStatus::Completed;
             });
         }},
        {"TaskType::post", [](Trouble &t) {
             return of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
                 return serves(t, [&] { kind.post([&t] { t(); }).value(); });
             });
         }},
        {"TaskType::every", [](Trouble &t) {
             return of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
                 const auto periodic = kind.every(1ms, [&t] { t(); }).value();
                 return serves(t, [] {});
             });
         }},
        {"WorkTask::on_end", [](Trouble &t) {
             return of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
                 return serves(t, [&] {
                     auto task = kind.submit([] {}).value();
                     task.on_end([&t](paceline::TaskStatus) { t(); }).value();
                     task.wait().value();
                 });
             });
         }},
        {"Middleware::before", [](Trouble &t) { return hook_of_middleware(t, "before"); }},
        {"Middleware::after", [](Trouble &t) { return hook_of_middleware(t, "after"); }},
        {"Middleware::on_error", [](Trouble &t) { return hook_of_middleware(t, "on_error"); }},
        {"WorkerPool::on_shutdown", [](Trouble &t) {
             return serves(t, [&] {
                 CHECK(of_workers([&](paceline::WorkerPool &workers, paceline::TaskType &) {
                     return workers.on_shutdown("trouble", [&t] { t(); }).has_value();
                 }));
             });
         }},
        // Hubs
        {"MessageFilter::test", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto filter = paceline::MessageFilter::test([&t](const Message &) {
                                         t();
                                         return true;
                                     }).value();
                 const auto box =
                     hub.mailbox("a", paceline::SubscriptionConfig().set_filter(filter)).value();
                 const bool served = serves(t, [&] { (void)hub.publish("a", "x").value(); });
                 return served && box.stats().value().waiting == 1;
             });
         }},
        {"Hub::subscribe", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto handler = hub.subscribe("a", [&t](const Message &) { t(); }).value();
                 bool served = serves(t, [&] { (void)hub.publish("a", "x").value(); });
                 const auto letters = hub.dead_letters().value();
                 served = served && letters.size() == 1 && !letters[0].failure.empty();
                 // What is told of restarts is trouble, too.
                 Trouble &told = t;
                 const auto calls = std::make_shared<std::atomic<int>>(0);
                 told.armed = true;
                 const auto other = hub.subscribe("b",
                                                  [calls](const Message &) {
                                                      if ((*calls)++ % 2 == 0) {
                                                          throw 1;
                                                      }
                                                  },
                                                  [&told](std::string_view, std::uint64_t) { told(); })
                                        .value();
                 return served && serves(told, [&] {
                            (void)hub.publish("b", "x").value();
                            (void)hub.publish("b", "x").value();
                        });
             });
         }},
        {"Hub::subscribe_factory", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto handler = hub.subscribe_factory("a", made_anew(t)).value();
                 return serves(t, [&] {
                     (void)hub.publish("a", "x").value();
                     (void)hub.publish("a", "x").value();
                 });
             });
         }},
        {"Hub::replay_factory", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto from = paceline::ReplayFrom::now();
                 const auto handler = hub.replay_factory("a", from, made_anew(t)).value();
                 return serves(t, [&] {
                     (void)hub.publish("a", "x").value();
                     (void)hub.publish("a", "x").value();
                 });
             });
         }},
        {"Hub::replay", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto from = paceline::ReplayFrom::now();
                 const auto plain = hub.replay("a", from, [&t](const Message &) { t(); }).value();
                 bool served = serves(t, [&] { (void)hub.publish("a", "x").value(); });
                 t.armed = true;
                 const auto supervised =
                     hub.replay("b", from, [&t](const Message &) { t(); }, paceline::ReplayConfig()).value();
                 return served && serves(t, [&] { (void)hub.publish("b", "x").value(); });
             });
         }},
        {"Hub::watch", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto box = hub.mailbox("a").value();
                 const auto watch = hub.watch(1ms,
                                              {paceline::Threshold::above("paceline_hub_waiting", 0)},
                                              [&t](const paceline::Crossing &) { t(); })
                                        .value();
                 Inbox inbox(the_pool(), box);
                 bool is_full = false;
                 return serves(t, [&] {
                     is_full = !is_full;
                     is_full ? (void)hub.publish("a", "x").value() : (void)inbox.take(1h).value();
                 });
             });
         }},
        {"Key::request_async", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto answers = hub.subscribe("a", [&hub](const Message &message) {
                                             (void)hub.reply(message, "x").value();
                                         }).value();
                 const auto key = hub.key("a").value();
                 return serves(t, [&] { key.request_async("", 1h, [&t](Result<paceline::OwnedMessage>) { t(); }).value(); });
             });
         }},
        {"PendingStore::then", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto config = paceline::BridgeConfig("nats://127.0.0.1:1")
                                         .add_export(paceline::Export("a").set_at_least_once("A"));
                 const auto bridge = paceline::Bridge::open(hub, config);
                 if (!bridge) {
                     return bridge.error() == Code::Unsupported;
                 }
                 // It is told at once when the bridge has ended.
                 const auto call = [&t](const Result<void> &) { t(); };
                 const auto publish = [&] { return bridge->publish("a", "x").value(); };
                 const std::array<paceline::PendingStore, 2> pending{publish(), publish()};
                 bridge->close(0s).value();
                 std::size_t next = 0;
                 return serves(t, [&] { pending[next++].then(call).value(); });
             });
         }},
        {"DurableQueue::task", [](Trouble &t) {
             const Broker broker;
             const auto workers = paceline::WorkerPool::create(the_pool()).value();
             const auto queue = paceline::DurableQueue::create(workers, "q", broker.nats());
             if (!queue || !broker.runs()) {
                 return !broker.runs() || queue.error() == Code::Unsupported;
             }
             const auto call = [&t](const paceline::DurableJob &) { t(); };
             queue->task("t", call, paceline::Retry::none()).value();
             queue->open().value();
             std::vector<paceline::DurableReport> ends;
             const bool served = serves(t, [&] {
                 ends.push_back(queue->submit("t").value().wait(1h).value());
             });
             return served && !ends[0].completed() && !ends[0].failure.empty() && ends[1].completed();
         }},
        {"Topic::subscribe", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto topic = hub.topic<int>("a", Codec{&t, false});
                 t.armed = false;
                 Trouble &handler = t;
                 const auto values = topic.subscribe([&handler](const int &) { handler(); }).value();
                 t.armed = true;
                 return serves(t, [&] { (void)hub.publish("a", "1").value(); });
             });
         }},
        {"Hub::topic", [](Trouble &t) {
             return of_a_hub([&](const Hub &hub) {
                 const auto topic = hub.topic<int>("a", Codec{&t, true});
                 const auto values = topic.subscribe([](const int &) {}).value();
                 return serves(t, [&] { (void)hub.publish("a", "1").value(); });
             });
         }},
    };
    return *all;
}

/// Places that pass on what is thrown to the caller, as a function that it calls, or that keep it for whoever
/// waits; and those that are other names of a place above.
const char *const ELSEWHERE[] = {
    "on_unhandled",        // below
    "Posting::submit",     // below
    "Posting::try_submit", // below
    "Strand::submit",      // below
    "Strand::try_submit",  // below
    "Scope::post",         // kept for wait(), as with submit(): in lifetimes.cpp
    "Pool::post",          // Posting's, as the next four
    "Pool::try_post",
    "Pool::submit",
    "Pool::try_submit",
    "Pool::post_batch",
    "Config::on_slow", // the setters'
    "Config::on_stop",
    "ServerConfig::on_exhausted",
    "Listen::filter",
    "Udp::create",               // the hooks of a UdpHandler
    "TaskType::post_batch",      // below
    "TaskType::submit_batch",    // below
    "WorkersConfig::middleware", // the hooks of a Middleware
    "WorkerPool::create",        // below
    "Service::start",            // in hub.cpp, where the library has services
};

} // namespace

TEST_CASE("whatever is thrown, and wherever, the next call is served") {
    auto before = paceline::on_unhandled({});
    for (const auto &each : places()) {
        const auto &place = each.second;
        INFO(each.first);
        for (const Throwing &throwing : THROWN) {
            INFO(std::string(throwing.name));
            CHECK(place(trouble_with(throwing)));
        }
        if (may_lose_memory) {
            CHECK(place(trouble_with(AT_ITS_END)));
        }
    }
    CHECK(std::size(ELSEWHERE) > 0);
    (void)paceline::on_unhandled(std::move(before));
}

TEST_CASE("a hook for what is unhandled may throw itself") {
    for (const Throwing &throwing : THROWN) {
        INFO(std::string(throwing.name));
        Trouble &trouble = trouble_with(throwing);
        auto before = paceline::on_unhandled([&](std::exception_ptr) { trouble(); });
        CHECK(serves(trouble, [] { the_pool().post([] { throw 1; }).value(); }));
        (void)paceline::on_unhandled(std::move(before));
    }
}

TEST_CASE("whoever waits gets what was thrown") {
    const auto strand = the_pool().strand().value();
    const auto task_of = [&](int how, const Throwing &throwing) {
        const auto f = [raise = throwing.raise] { raise(); };
        switch (how) {
        case 0: return the_pool().submit(f).value();
        case 1: return the_pool().try_submit(f).value();
        case 2: return strand.submit(f).value();
        default: return strand.try_submit(f).value();
        }
    };
    for (const Throwing &throwing : THROWN) {
        INFO(std::string(throwing.name));
        for (int how = 0; how < 4; ++how) {
            const auto failed = task_of(how, throwing).wait();
            REQUIRE_FALSE(failed.has_value());
            CHECK(failed.error().thrown() != nullptr);
            CHECK(throws([&] { failed.value(); }));
        }
        CHECK(the_pool().submit([] { return 1; }).value().wait().value() == 1);
        CHECK(of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
            std::vector<std::function<void()>> batch(2, throwing.raise);
            return kind.post_batch(paceline::span<std::function<void()>>(batch)).value() == 2;
        }));
        CHECK(of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
            std::vector<std::function<void()>> batch(2, throwing.raise);
            auto tasks = kind.submit_batch(batch).value();
            return tasks.size() == 2 && !tasks[0].wait().value().completed() &&
                   !tasks[1].wait().value().completed();
        }));
        // In the caller's own thread.
        CHECK(throws([&] {
            (void)paceline::WorkerPool::create(the_pool(),
                                               [&](pace_workers_config_t &) { throwing.raise(); });
        }));
    }
}

TEST_CASE("callables whose destructor throws are told, and go") {
    std::atomic<int> told{0};
    auto before = paceline::on_unhandled([&](std::exception_ptr) { ++told; });
    struct Ends {
        explicit Ends(bool t) : throws(t) {}
        Ends(Ends &&other) noexcept : throws(std::exchange(other.throws, false)) {}
        ~Ends() noexcept(false) {
            if (throws) {
                throw 1;
            }
        }
        bool throws;
        std::string large = "not a word";
    };
    const auto until_told = [&](int count) {
        while (told < count) {
            std::this_thread::yield();
        }
        return told == count;
    };
    the_pool().post([ends = Ends(true)] {}).value();
    CHECK(until_told(1));
    the_pool().submit([ends = Ends(true)] {}).value().wait().value();
    CHECK(until_told(2));
    the_pool().after(0ns, [ends = Ends(true)] {}).value();
    CHECK(until_told(3));
    the_pool().every(1us, [ends = Ends(true)] { return Flow::Done; }).value().detach();
    CHECK(until_told(4));
    {
        const auto ring =
            paceline::Ring<int>::serial(the_pool(), 2, [ends = Ends(true)](paceline::Events<int>) {});
        CHECK(ring.has_value());
    }
    CHECK(until_told(5));
    CHECK(of_workers([&](paceline::WorkerPool &, paceline::TaskType &kind) {
        return kind.submit([ends = Ends(true)] {}).value().wait().value().completed();
    }));
    CHECK(until_told(6));
    {
        const Hub hub = a_hub(the_pool());
        const auto handler = hub.subscribe("a", [ends = Ends(true)](const Message &) {}).value();
    }
    CHECK(until_told(7));
    // One that is refused, and not given back since its move may throw, goes with the call.
    struct Stays : Ends {
        explicit Stays(bool t) : Ends(t) {}
        Stays(Stays &&other) noexcept(false) : Ends(std::move(other)) {}
    };
    CHECK_FALSE(the_pool().after(std::chrono::hours::max(), [ends = Stays(true)] {}).has_value());
    CHECK(until_told(8));
    CHECK_FALSE(the_pool().every(0ns, [ends = Stays(true)] { return Flow::Done; }).has_value());
    CHECK(until_told(9));
    CHECK_FALSE(paceline::Ring<int>::serial(the_pool(), 0, [ends = Stays(true)](paceline::Events<int>) {
                }).has_value());
    CHECK(until_told(10));
    {
        const Hub hub = a_hub(the_pool());
        CHECK_FALSE(hub.subscribe("a b", [ends = Stays(true)](const Message &) {}).has_value());
    }
    CHECK(until_told(11));
    CHECK(the_pool().submit([] { return 1; }).value().wait().value() == 1);
    (void)paceline::on_unhandled(std::move(before));
}

} // namespace of_what_is_thrown
