// Texts with a NUL, which C would cut, are refused with the parameter's name; all that is a text is taken. tests/cpp.rs
// compares the functions and settings with those that are named here.

#include "client.hpp"

#include <csignal>
#include <cstdio>
#include <string_view>

// Its names are its own: all tests are one translation unit.
namespace of_texts {

using paceline::Hub;
using paceline::Message;
using paceline::Result;

namespace {

const std::string CUT("a\0b", 3);
const std::string_view VIEW(CUT);

template <class T>
void refuses(const char *place, const Result<T> &result, const std::string &parameter) {
    INFO(std::string(place));
    REQUIRE_FALSE(result.has_value());
    // Not asked where the library was built without a feature.
    if (result.error() == Code::Unsupported) {
        return;
    }
    const std::string told = result.error().message();
    INFO(told);
    CHECK(result.error() == Code::Invalid);
    CHECK(told.find(parameter) != std::string::npos);
    CHECK(told.find("UTF-8") != std::string::npos);
}

const auto IGNORES = [](const Message &) {};

struct Codec {
    Result<std::string> encode(const int &) const { return std::string(); }
    Result<int> decode(std::string_view) const { return 1; }
};

struct Quiet : paceline::ConnHandler {
    std::size_t data(paceline::Conn &, std::string_view bytes) override { return bytes.size(); }
};

struct Deaf : paceline::UdpHandler {
    void data(paceline::UdpRef, paceline::span<const paceline::Datagram>) override {}
};

/// A text class of the user's.
struct Word {
    operator std::string_view() const { return "a.word"; }
};

} // namespace

TEST_CASE("a text with a NUL is refused by name: the hub") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool, paceline::HubConfig().add_history({})).value();
    const auto now = paceline::ReplayFrom::now();
    refuses("Hub::key", hub.key(CUT), "key");
    refuses("Hub::publish", hub.publish(VIEW, "x"), "key");
    refuses("Hub::subscribe", hub.subscribe(CUT, IGNORES), "pattern");
    refuses("Hub::subscribe", hub.subscribe(CUT, IGNORES, [](std::string_view, std::uint64_t) {}),
            "pattern");
    refuses("Hub::subscribe_factory", hub.subscribe_factory(CUT, [] { return IGNORES; }), "pattern");
    refuses("Hub::publisher", hub.publisher(CUT), "name");
    refuses("PublisherConfig::allow", hub.publisher("p", paceline::PublisherConfig().add_allowed(CUT)),
            "allow");
    refuses("Hub::export_lines", hub.export_lines(CUT), "path");
    refuses("Hub::replay", hub.replay(CUT, now, IGNORES), "pattern");
    refuses("Hub::replay", hub.replay(CUT, now, IGNORES, paceline::ReplayConfig()), "pattern");
    refuses("Hub::replay_factory", hub.replay_factory(VIEW, now, [] { return IGNORES; }), "pattern");
    refuses("Hub::replay_mailbox", hub.replay_mailbox(VIEW, now), "pattern");
    refuses("Hub::mailbox", hub.mailbox(CUT), "pattern");
    refuses("Hub::subscriber_count", hub.subscriber_count(CUT), "key");
    const auto topic = hub.topic<int>(CUT, Codec());
    refuses("Hub::topic", topic.publish(1), "key");
    refuses("Topic::publish_to", topic.publish_to(VIEW, 1), "key");
    refuses("MessageFilter::header", paceline::MessageFilter::header(CUT, "x"), "name");
    refuses("MessageFilter::header", paceline::MessageFilter::header("x", CUT), "value");
    refuses("read_lines", paceline::read_lines(CUT), "path");
    refuses("Archive::open", paceline::Archive::open(CUT), "path");
    refuses("Archive::import_lines",
            paceline::Archive::import_lines(paceline::HistoryConfig().set_archive("/nowhere"), CUT),
            "lines");
    const std::string path = "paceline-texts-" + std::to_string(getpid()) + ".db";
    if (Hub::create(pool,
                    paceline::HubConfig().add_history(paceline::HistoryConfig().set_archive(path)))) {
        refuses("Archive::export_lines", paceline::Archive::open(path).value().export_lines(CUT),
                "path");
    }
    for (const char *ending : {"", "-wal", "-shm"}) {
        (void)std::remove((path + ending).c_str());
    }
    refuses(
        "HistoryConfig::pattern",
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig().set_pattern(CUT))),
        "pattern");
    refuses(
        "HistoryConfig::archive",
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig().set_archive(CUT))),
        "archive");
    refuses(
        "HistoryConfig::lines",
        Hub::create(pool, paceline::HubConfig().add_history(paceline::HistoryConfig().set_lines(CUT))),
        "lines");
    refuses("HubConfig::name", Hub::create(pool, paceline::HubConfig().set_name(CUT)), "name");
    paceline::Query query;
    query.pattern = CUT;
    refuses("Query::pattern", hub.query(query), "pattern");
    paceline::DeadFilter dead;
    dead.pattern = CUT;
    refuses("DeadFilter::pattern", hub.dead_letters(dead), "pattern");
    paceline::ErrorFilter errors;
    errors.event = CUT;
    refuses("ErrorFilter::event", hub.errors(errors), "event");
    errors.event.clear();
    errors.origin = CUT;
    refuses("ErrorFilter::origin", hub.errors(errors), "origin");
    const auto with = [&](const paceline::SubscriptionConfig &config) {
        return hub.subscribe("a", IGNORES, config);
    };
    refuses("SubscriptionConfig::unique", with(paceline::SubscriptionConfig().set_unique(CUT)),
            "unique");
    refuses("SubscriptionConfig::group", with(paceline::SubscriptionConfig().set_group(CUT)), "group");
    refuses("Balance::header_",
            with(paceline::SubscriptionConfig().set_group("g", paceline::Balance::by_header(CUT))),
            "balance_header");
    refuses("Threshold::metric_",
            hub.watch(1s, {paceline::Threshold::above(CUT, 0)}, [](const paceline::Crossing &) {}),
            "metric");
    for (const auto &[name, value] : {std::pair(CUT, std::string("x")), {"x", CUT}}) {
        refuses("Threshold::label",
                hub.watch(1s, {paceline::Threshold::above("x", 0).label(name, value)},
                          [](const paceline::Crossing &) {}),
                "label");
    }
    const auto bridge = [&](const paceline::BridgeConfig &config) {
        return paceline::Bridge::open(hub, config);
    };
    const auto nats = [&](auto change) {
        paceline::NatsSettings settings("nats://127.0.0.1:1");
        change(settings);
        return bridge(paceline::BridgeConfig(settings));
    };
    refuses("NatsSettings::servers", nats([](auto &s) { s.servers = CUT; }), "servers");
    refuses("NatsSettings::name", nats([](auto &s) { s.set_name(CUT); }), "connection_name");
    refuses("NatsSettings::user", nats([](auto &s) { s.set_user(CUT, "x"); }), "user");
    refuses("NatsSettings::password_file", nats([](auto &s) { s.set_password_file("x", CUT); }),
            "password_file");
    refuses("NatsSettings::token_file", nats([](auto &s) { s.set_token_file(CUT); }), "token_file");
    refuses("NatsSettings::nkey_file", nats([](auto &s) { s.set_nkey_file(CUT); }), "nkey_file");
    refuses("NatsSettings::credentials_file", nats([](auto &s) { s.set_credentials_file(CUT); }),
            "credentials_file");
    refuses("NatsSettings::root_certificates", nats([](auto &s) { s.set_root_certificates(CUT); }),
            "root_certificates");
    refuses("NatsSettings::client_certificate",
            nats([](auto &s) { s.set_client_certificate(CUT, "x"); }), "client_certificate");
    refuses("NatsSettings::client_key", nats([](auto &s) { s.set_client_certificate("x", CUT); }),
            "client_key");
    // Secrets are not shown.
    const auto is_refused = [](const char *place, const Result<paceline::Bridge> &opened) {
        INFO(std::string(place));
        CHECK((opened.error() == Code::Invalid || opened.error() == Code::Unsupported));
    };
    is_refused("NatsSettings::password", nats([](auto &s) { s.set_user("x", CUT); }));
    is_refused("NatsSettings::token", nats([](auto &s) { s.set_token(CUT); }));
    const paceline::BridgeConfig there("nats://127.0.0.1:1");
    const auto carries = [&](paceline::Export rule) {
        return bridge(paceline::BridgeConfig(there).add_export(std::move(rule)));
    };
    refuses("Export::pattern", carries(CUT), "pattern");
    refuses("Export::prefix", carries(paceline::Export("a").set_prefix(CUT)), "prefix");
    refuses("Export::stream", carries(paceline::Export("a").set_at_least_once(CUT)), "stream");
    refuses("Export::spool", carries(paceline::Export("a").set_at_least_once("S").set_spool(CUT)),
            "spool");
    const auto brings = [&](paceline::Import rule) {
        return bridge(paceline::BridgeConfig(there).add_import(std::move(rule)));
    };
    refuses("Import::pattern", brings(VIEW), "pattern");
    refuses("Import::prefix", brings(paceline::Import("a").set_prefix(CUT)), "prefix");
    refuses("Import::group", brings(paceline::Import("a").set_group(CUT)), "group");
    refuses("Import::stream", brings(paceline::Import("a").set_at_least_once(CUT, "x")), "stream");
    refuses("Import::durable", brings(paceline::Import("a").set_at_least_once("S", CUT)), "durable");
    refuses("BridgeConfig::permitted", bridge(paceline::BridgeConfig(there).add_permitted(CUT)),
            "pattern");
    refuses("BridgeConfig::name", bridge(paceline::BridgeConfig(there).set_name(CUT)), "name");
    if (const auto open = bridge(
            paceline::BridgeConfig(there).add_export(paceline::Export("a").set_at_least_once("A")))) {
        refuses("Bridge::publish", open->publish(CUT, "x"), "key");
    }
    const auto hook = paceline::Webhook::create("http://127.0.0.1:1");
    refuses("Webhook::create", paceline::Webhook::create(CUT), "url");
    refuses("WebhookConfig::proxy",
            paceline::Webhook::create("http://127.0.0.1:1", paceline::WebhookConfig().set_proxy(CUT)),
            "proxy");
    if (hook) {
        refuses("Webhook::forward", hook->forward(hub, CUT), "pattern");
    }
}

TEST_CASE("a text with a NUL is refused by name: pools and servers") {
    const Pool pool = make_pool();
    refuses("Config::pin", Pool::create(paceline::Config().set_pin(CUT)), "pin");
    refuses("Config::name", Pool::create(paceline::Config().set_name(VIEW)), "name");
    refuses("Settings::files", Pool::from_settings(paceline::Settings({CUT})), "");
    refuses("Pool::name_host", pool.name_host(0, CUT), "name");
    refuses("Pool::add_disk", pool.add_disk(CUT), "path");
    paceline::LogConfig log;
    log.levels = CUT;
    refuses("LogConfig::levels", paceline::Log::create(log), "levels");
    log.levels.clear();
    log.file = CUT;
    refuses("LogConfig::file", paceline::Log::create(log), "file");
    refuses("Log::set_levels", paceline::Log::create({}).value().set_levels(CUT), "levels");

    using paceline::Listen;
    const auto serve = [&](Listen listen) {
        return paceline::Server::create(pool, paceline::ServerConfig().add_listener(std::move(listen)),
                                        [](paceline::Conn &) { return std::make_unique<Quiet>(); });
    };
    refuses("Listen::address", serve(Listen().set_address(CUT)), "address");
    auto server = serve(Listen().set_address("127.0.0.1:0")).value();
    refuses("Server::connect", server.connect(CUT, std::make_unique<Quiet>()), "address");
    paceline::UdpConfig udp;
    udp.bind = CUT;
    refuses("UdpConfig::bind", paceline::Udp::create(pool, udp, std::make_unique<Deaf>()), "bind");
    udp.bind = "127.0.0.1:0";
    udp.connect = CUT;
    refuses("UdpConfig::connect", paceline::Udp::create(pool, udp, std::make_unique<Deaf>()), "connect");
    udp.connect.clear();
    const auto socket = paceline::Udp::create(pool, udp, std::make_unique<Deaf>()).value();
    refuses("UdpRef::join_multicast", socket.join_multicast(CUT), "group");
    refuses("UdpRef::leave_multicast", socket.leave_multicast(CUT), "group");
    refuses("Ip::read", paceline::Ip::read(CUT), "text");

    refuses("OpsConfig::address", paceline::Ops::serve(pool, CUT), "address");
    paceline::OpsConfig shows;
    CHECK(paceline::Ops::serve(pool, shows.set_token(CUT)).error() == Code::Invalid); // OpsConfig::token
    refuses("OpsConfig::shown",
            paceline::Ops::serve(pool, paceline::OpsConfig().set_shown(paceline::Settings({CUT}))), "");
    auto http = paceline::Http::create(pool).value();
    const auto ops = paceline::Ops::serve(pool, paceline::OpsConfig()).value();
    refuses("Ops::mount", ops.mount(http, CUT), "prefix");
    using paceline::Request, paceline::Response;
    const auto serves = [](const Request &, Response) {};
    refuses("Http::route", http.route(CUT, "/", serves), "method");
    refuses("Http::route", http.route("GET", CUT, serves), "pattern");
    const auto takes = [](const Request &, Response) {
        return std::unique_ptr<paceline::RequestBody>();
    };
    refuses("Http::route_streaming", http.route_streaming(CUT, "/", takes), "method");
    refuses("Http::route_streaming", http.route_streaming("GET", CUT, takes), "pattern");
    Signal answered;
    http.route("GET", "/{name}",
               [&](const Request &request, Response response) {
                   const char *places[] = {"Request::header", "Request::param"};
                   INFO((std::string(places[0]) + places[1]));
                   CHECK_FALSE(request.header(CUT));
                   CHECK_FALSE(request.param(VIEW));
                   CHECK(request.param(std::string_view("name")) == "x");
                   CHECK(response.header(CUT, "x").send("").error() == Code::Invalid);
                   answered.set();
               })
        .value();
    http.route("GET", "/value",
               [&](const Request &, Response response) {
                   INFO(std::string("Response::header"));
                   CHECK(response.header("x", CUT).send("").error() == Code::Invalid);
                   answered.set();
               })
        .value();
    http.route("GET", "/type",
               [&](const Request &, Response response) {
                   INFO(std::string("Response::send_as"));
                   CHECK(response.send_as(CUT, "").error() == Code::Invalid);
                   answered.set();
               })
        .value();
    http.route("GET", "/upgrade",
               [&](const Request &, Response response) {
                   const auto upgraded = response.upgrade(CUT, std::make_unique<Quiet>());
                   INFO(std::string("Response::upgrade"));
                   CHECK(upgraded.error() == Code::Invalid);
                   answered.set();
               })
        .value();
    refuses("Http::serve", http.serve(CUT), "address");
    http.serve("127.0.0.1:0").value();
    int asked = 0;
    for (const char *path : {"x", "value", "type", "upgrade"}) {
        Client client(http);
        client.send("GET /" + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
        CHECK(answered.wait(++asked));
    }
    CHECK(paceline::MetricsFormat::negotiate(CUT).format == PACE_METRICS_PROMETHEUS);
    CHECK(std::string("MetricsFormat::negotiate").size() > 0);

    const auto queue = paceline::CompletionQueue::create(pool).value();
    const auto attached = queue.server(paceline::ServerConfig(), 1).value();
    refuses("CompletionQueue::connect", queue.connect(attached, CUT), "address");
    auto routed = paceline::Http::create(pool).value();
    refuses("CompletionQueue::route", queue.route(routed, CUT, "/", 1), "method");
    refuses("CompletionQueue::route_in_parts", queue.route_in_parts(routed, "GET", CUT, 1), "pattern");
    refuses("CompletionQueue::upgrade", queue.upgrade(paceline::Token(1), CUT, attached), "protocol");
    const auto service = paceline::Service::start(pool);
    if (service) {
        refuses("Service::status", service->status(CUT), "text");
    }
}

TEST_CASE("a text with a NUL is refused by name: worker pools and durable tasks") {
    const Pool pool = make_pool();
    paceline::WorkersConfig config;
    config.name = CUT;
    config.metrics = true;
    refuses("WorkersConfig::name", paceline::WorkerPool::create(pool, config), "name");
    config.name = "texts";
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    refuses("WorkerPool::task_type", workers.task_type(CUT), "name");
    refuses("WorkerPool::on_shutdown", workers.on_shutdown(CUT, [] {}), "name");
    const auto kind = paceline::Metric::Kind::Counter;
    refuses("WorkerPool::metric", workers.metric(kind, CUT, "x"), "name");
    refuses("WorkerPool::metric", workers.metric(kind, "x", CUT), "help");
    refuses("label", workers.metric(kind, "x", "x", {{CUT, "x"}}), "label");
    refuses("label", workers.metric(kind, "x", "x", {{"x", CUT}}), "label");
    refuses("DurableQueue::create", paceline::DurableQueue::create(workers, CUT, "nats://127.0.0.1:1"),
            "name");
    const auto durable = paceline::DurableQueue::create(workers, "texts", "nats://127.0.0.1:1");
    if (!durable) {
        return;
    }
    refuses("DurableQueue::task", durable->task(CUT, [](const paceline::DurableJob &) {}), "name");
    refuses("DurableQueue::task_pulled", durable->task_pulled(CUT), "name");
    refuses("DurableQueue::schedule", durable->schedule(CUT, "* * * * *", "x"), "label");
    refuses("DurableQueue::schedule", durable->schedule("x", CUT, "x"), "when");
    refuses("DurableQueue::schedule", durable->schedule("x", "* * * * *", CUT), "task");
    durable->open().value();
    refuses("DurableQueue::submit", durable->submit(CUT), "name");
    refuses("Submission::unique", durable->submit("x", "", paceline::Submission().set_unique(CUT)),
            "unique");
    refuses("DurableQueue::find", durable->find(CUT).wait(1ms), "id");
    refuses("DurableTask::id_", durable->find(VIEW).cancel(), "id");
}

TEST_CASE("texts are what converts to a view, and NULL is refused") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    const std::string text = "a.word";
    const std::string_view longer = "a.word.more";
    Signal came;
    const auto all = hub.subscribe(longer.substr(0, 6), [&](const Message &) { came.set(); }).value();
    (void)hub.publish(Word(), "x").value();
    (void)hub.publish(text, "x").value();
    (void)hub.publish(longer.substr(0, 6), "x").value();
    (void)hub.publish("a.word", "x").value();
    CHECK(came.wait(4));
    const char *none = nullptr;
    CHECK(std::string(hub.publish(none, "x").error().message()).find("key") != std::string::npos);
    CHECK(paceline::Export(longer).pattern == longer);
    CHECK(paceline::Config().set_name(longer.substr(0, 1)).name == "a");
}

TEST_CASE("spans take braces") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    const auto key = hub.key("a").value();
    CHECK(key.publish_batch({"a", "b", std::string("c")}).value().matched == 0);
    const auto signals = paceline::Signals::create(pool, {SIGUSR1, SIGUSR2}, [](int) {});
    CHECK(signals.has_value());
    const auto sum = [](paceline::span<const int> numbers) {
        int all = 0;
        for (const int number : numbers) {
            all += number;
        }
        return all;
    };
    CHECK(sum({1, 2, 3}) == 6);
    CHECK(sum({}) == 0);
    std::vector<int> several{4, 5};
    CHECK(sum(several) == 9);
    CHECK(sum({several.data(), 1}) == 4);
}

} // namespace of_texts
