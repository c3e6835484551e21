// Bridges: two hubs of one process, over a broker.

#include "broker.hpp"

#include <fstream>
#include <stdexcept>

// Its names are its own: all tests are one translation unit.
namespace of_bridges {

using paceline::Bridge;
using paceline::BridgeConfig;
using paceline::Export;
using paceline::Hub;
using paceline::Import;
using paceline::Message;
using paceline::NatsSettings;
using paceline::PendingStore;
using paceline::Result;

namespace {

Bridge connected(const Hub &hub, const BridgeConfig &config) {
    auto bridge = Bridge::open(hub, config).value();
    bridge.wait_connected(PATIENCE).value();
    return bridge;
}

bool has_bridges(const Hub &hub) {
    const auto made = Bridge::open(hub, BridgeConfig("nats://127.0.0.1:1").add_export("a"));
    return made || made.error() != Code::Unsupported;
}

template <class F>
void until(F &&holds) {
    while (!holds()) {
        std::this_thread::sleep_for(200us);
    }
}

} // namespace

TEST_CASE("a bridge logs in by a secret that is in a file") {
    const Broker by_user("joe", "0pen.Sesame"), by_token(nullptr, "0pen.Sesame");
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    if (!by_user.runs() || !has_bridges(hub)) {
        return;
    }
    const std::string file = "/tmp/paceline-cpp-secret-" + std::to_string(getpid());
    std::ofstream(file) << "0pen.Sesame\n";
    for (const auto &login :
         {by_user.nats().set_password_file("joe", file), by_token.nats().set_token_file(file)}) {
        connected(hub, BridgeConfig(login).add_export("a")).close(PATIENCE).value();
    }
    std::remove(file.c_str());
}

TEST_CASE("settings of a bridge that are wrong are told, without secrets") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    if (!has_bridges(hub)) {
        return;
    }
    const auto refused = [&](const BridgeConfig &config) {
        const auto made = Bridge::open(hub, config);
        REQUIRE_FALSE(made.has_value());
        REQUIRE(made.error() == Code::Invalid);
        return std::string(made.error().message());
    };
    const auto says = [](const std::string &text, const char *part) {
        return text.find(part) != std::string::npos;
    };
    const BridgeConfig good("nats://127.0.0.1:1");
    CHECK(says(refused(good), "an export or an import"));
    CHECK(says(refused(BridgeConfig(NatsSettings()).add_export("a")), "address"));
    const auto secret = refused(BridgeConfig("nats://joe:secret@:x:y").add_export("a"));
    CHECK(says(secret, "nats://host:port"));
    CHECK_FALSE(says(secret, "secret"));
    auto login = NatsSettings("nats://a").set_token("t").set_user("u", "p");
    CHECK(says(refused(BridgeConfig(login).add_export("a")), "one of user, token"));
    CHECK(says(refused(BridgeConfig(good).add_export("a..b")), "a..b"));
    CHECK(says(refused(BridgeConfig(good).add_export(Export("a").set_prefix("x"))), "prefix"));
    CHECK(says(refused(BridgeConfig(good).add_import(Import("a").set_buffer(0))), "buffer"));
    CHECK(
        says(refused(BridgeConfig(good).add_import(Import("a").set_at_least_once("S", ""))), "durable"));
    CHECK(says(refused(BridgeConfig(good).add_import("a.>").add_permitted("b.>")), "a.>"));
    CHECK(says(refused(BridgeConfig(NatsSettings("nats://a").set_ping_interval(1ms)).add_export("a")),
               "ping_interval"));
    const auto bridge = Bridge::open(hub, BridgeConfig(good).add_export("a")).value();
    CHECK(bridge.wait_connected(1ms).error() == Code::TimedOut);
    CHECK(bridge.publish("a", "x").error() == Code::Invalid);
    const auto stats = bridge.stats().value();
    CHECK_FALSE(stats.connected);
    CHECK(stats.exports[0].pattern == "a");
    CHECK(stats.exports[0].stream.empty());
    CHECK(stats.imports.empty());
}

TEST_CASE("a bridge is what files say") {
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    if (!has_bridges(hub)) {
        return;
    }
    const std::string path = "/tmp/paceline-cpp-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path)
        << "bridge: {servers: 'nats://127.0.0.1:1', exports: [{pattern: a, stream: A}, b]}";
    const auto stats = Bridge::from_settings(hub, paceline::Settings({path})).value().stats().value();
    CHECK(stats.exports.size() == 2);
    CHECK(stats.exports[0].stream == "A");
    std::ofstream(path) << "bridge: {exports: [a]}";
    const auto nowhere = Bridge::from_settings(hub, paceline::Settings({path}));
    CHECK(nowhere.error() == Code::Invalid);
    (void)std::remove(path.c_str());
}

TEST_CASE("a bridge carries messages, requests and what is stored") {
    const Broker broker;
    const Pool pool = make_pool();
    const Hub here = Hub::create(pool).value(), there = Hub::create(pool).value();
    if (!broker.runs() || !has_bridges(here)) {
        return;
    }
    const auto out = connected(here, broker.config().add_export("ask.>").add_export(
                                         Export("audit.>").set_at_least_once("AUDIT")));

    // At most once, and a request.
    std::atomic<int> heard{0};
    const auto replies = there
                             .subscribe("ask.*",
                                        [&](const Message &message) {
                                            ++heard;
                                            (void)there.reply(message, message.text());
                                        })
                             .value();
    const auto in = connected(there, broker.config().add_import("ask.>"));
    until([&] { return here.publish("ask.none", "x").has_value() && heard > 0; });
    const auto reply = here.key("ask.echo").value().request("42", PATIENCE).value();
    CHECK(reply.text() == "42");

    // Who publishes learns that it is stored, and what was thrown by its function goes to the hook.
    out.publish("audit.a", "first", paceline::Publication().add_header("trace", "7"))
        .value()
        .wait(PATIENCE)
        .value();
    Signal told;
    auto pending = out.publish("audit.a", "second").value();
    pending
        .then([&, only = std::make_unique<int>(1)](const Result<void> &end) {
            CHECK(end.has_value());
            told.set();
            throw std::runtime_error("on purpose");
        })
        .value();
    CHECK(told.wait());
    CHECK(pending.then([](const Result<void> &) {}).error() == Code::Busy);
    CHECK(pending.wait(0s).error() == Code::Busy);
    std::string why;
    const auto large = out.publish("audit.a", std::string(2 << 20, 'x')).value();
    CHECK(large.wait(PATIENCE).error() == Code::Invalid);
    large.then([&](const Result<void> &end) { why = end.error().message(); }).value();
    CHECK(why.find("the message is") != std::string::npos);
    const auto sent = out.stats().value();
    CHECK(sent.exports[1].stored == 2);
    CHECK(sent.exports[1].refused == 1);
    CHECK(sent.exports[1].stream == "AUDIT");
    CHECK_FALSE(sent.server.empty());

    // A handler that fails gets it again; another durable name begins where it likes.
    std::vector<std::string> got;
    const auto handler = there
                             .subscribe("audit.>",
                                        [&](const Message &message) -> Result<void> {
                                            got.emplace_back(message.text());
                                            return got.size() == 1
                                                       ? Result<void>(paceline::Error(Code::Failed))
                                                       : Result<void>();
                                        })
                             .value();
    const auto reader =
        connected(there, broker.config().add_import(Import("audit.>")
                                                        .set_at_least_once("AUDIT", "reader")
                                                        .set_start_sequence(2)
                                                        .set_retry(paceline::Retry::fixed(3, 10ms))));
    until([&] { return reader.stats().value().imports[0].acknowledged == 1; });
    CHECK(got == std::vector<std::string>{"second", "second"});
    CHECK(reader.stats().value().imports[0].again == 1);
    out.flush(PATIENCE).value();
    CHECK(out.close(PATIENCE).value() == 0);
    CHECK(out.publish("audit.a", "late").error() == Code::ShutDown);
}

TEST_CASE("what waits for a broker that is gone is told of when the bridge goes") {
    Broker broker;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    if (!broker.runs() || !has_bridges(hub)) {
        return;
    }
    std::atomic<int> alive{0};
    Code code{};
    std::optional<PendingStore> pending;
    {
        const auto bridge =
            connected(hub, broker.config().add_export(Export("a").set_at_least_once("A")));
        broker.kill();
        until([&] { return !bridge.stats().value().connected; });
        CHECK_FALSE(bridge.stats().value().reason.empty());
        pending = bridge.publish("a", "x").value();
        CHECK(pending->wait(1ms).error() == Code::TimedOut);
        bridge.publish("a", "y")
            .value()
            .then([&, counted = Counted(alive)](const Result<void> &end) { code = end.error().code(); })
            .value();
        CHECK(bridge.close(10ms).value() == 2);
    }
    CHECK(code == Code::ShutDown);
    CHECK(alive == 0);
    CHECK(pending->wait(0s).error() == Code::ShutDown);
}

TEST_CASE("what waits in an archive is sent by the next bridge") {
    Broker broker;
    const Pool pool = make_pool();
    if (!broker.runs() || !has_bridges(Hub::create(pool).value())) {
        return;
    }
    const std::string archive = "bridge-archive-" + std::to_string(::getpid());
    const std::string spool = archive + ".spool";
    const auto config = paceline::HubConfig().add_history(
        paceline::HistoryConfig().set_pattern("a").set_archive(archive));
    const auto rule = Export("a").set_at_least_once("SPOOLED").set_spool(spool);
    {
        const Hub hub = Hub::create(pool, config).value();
        const auto away = BridgeConfig("nats://127.0.0.1:1").add_export(rule);
        const auto bridge = paceline::Bridge::open(hub, away).value();
        CHECK(hub.publish("a", "x").has_value());
        CHECK(bridge.stats().value().exports[0].waiting == 1);
        CHECK(bridge.close(0ms).value() == 0);
        CHECK(hub.flush().has_value());
    }
    {
        const Hub hub = Hub::create(pool, config).value();
        const auto bridge = connected(hub, broker.config().add_export(rule));
        CHECK(hub.publish("a", "y").has_value());
        CHECK(bridge.flush(10s).has_value());
        CHECK(bridge.stats().value().exports[0].stored == 2);
    }
    for (const char *end : {"", ".spool", "-wal", "-shm"}) {
        std::remove((archive + end).c_str());
    }
}

} // namespace of_bridges
