// paceline/bridge.hpp: bridges: keys of a hub, between processes, over a NATS broker.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_BRIDGE_HPP
#define PACELINE_BRIDGE_HPP

#include "hub.hpp"

#include <paceline/bridge.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// How a NATS broker is reached: its addresses, how the bridge proves who it is, TLS, and how it comes back after the
/// connection was lost. Of user, token, token_file, nkey_file and credentials_file one at the most is set. Secrets are
/// neither told by errors nor by statistics and logs.
struct NatsSettings {
    /// Addresses, separated by commas: "nats://host:port" or "tls://host:port", each maybe with user:password@ or token@
    /// before the host. Of several servers, one cluster, any one is used.
    std::string servers{};
    /// What the broker's own tools call the connection. Empty (default): "paceline".
    std::string name{};
    /// Logs in by this name and `password` or `password_file`. Empty (default): as the address says, or not at all.
    std::string user{}, password{};
    /// The password of `user` is the text of this file, which is read at each connection, unless it is empty.
    std::string password_file{};
    /// Logs in by a token, unless it is empty.
    std::string token{};
    /// Logs in by the token that is the text of this file, which is read at each connection, unless it is empty.
    std::string token_file{};
    /// Logs in by the nkey whose seed is the text of this file, which is read at each connection, unless it is empty.
    std::string nkey_file{};
    /// Logs in by the JWT and nkey in this file of the broker's tools (.creds), which is read at each connection, unless it
    /// is empty.
    std::string credentials_file{};
    /// Trusts the certificates in this PEM file. Empty (default): those that the system trusts.
    std::string root_certificates{};
    /// Shows the broker this certificate, PEM files of its chain and its key. Empty (default): none.
    std::string client_certificate{}, client_key{};
    /// Refuses a connection without TLS. Default: TLS where the address is tls:// or the broker asks for it.
    bool require_tls = false;
    /// How long an attempt to connect may take: 10 ms to 1 day.
    Duration connect_timeout = std::chrono::seconds(5);
    /// How often the broker is asked for a sign of life, 10 ms to 1 day: a connection without one for twice as long is given
    /// up.
    Duration ping_interval = std::chrono::seconds(10);
    /// How long it waits before the first attempt to connect again; twice as long each time, up to reconnect_cap, half of it
    /// by chance, so that not all who lost a broker come back at once.
    Duration reconnect_first = std::chrono::milliseconds(50);
    /// How long it waits at most before an attempt to connect again.
    Duration reconnect_cap = std::chrono::seconds(10);

    NatsSettings() = default;
    template <class T, class = detail::if_text<T>>
    NatsSettings(const T &addresses)
        : servers(std::string_view(addresses)) {} // NOLINT: an address is one

    NatsSettings &set_name(std::string_view value) { return name = value, *this; }
    NatsSettings &set_user(std::string_view value, std::string_view secret) {
        return user = value, password = secret, *this;
    }
    NatsSettings &set_password_file(std::string_view value, std::string_view path) {
        return user = value, password_file = path, *this;
    }
    NatsSettings &set_token(std::string_view value) { return token = value, *this; }
    NatsSettings &set_token_file(std::string_view path) { return token_file = path, *this; }
    NatsSettings &set_nkey_file(std::string_view path) { return nkey_file = path, *this; }
    NatsSettings &set_credentials_file(std::string_view path) { return credentials_file = path, *this; }
    NatsSettings &set_root_certificates(std::string_view path) {
        return root_certificates = path, *this;
    }
    NatsSettings &set_client_certificate(std::string_view certificate, std::string_view key) {
        return client_certificate = certificate, client_key = key, *this;
    }
    NatsSettings &set_require_tls(bool value = true) { return require_tls = value, *this; }
    NatsSettings &set_connect_timeout(Duration value) { return connect_timeout = value, *this; }
    NatsSettings &set_ping_interval(Duration value) { return ping_interval = value, *this; }
    NatsSettings &set_reconnect_first(Duration value) { return reconnect_first = value, *this; }
    NatsSettings &set_reconnect_cap(Duration value) { return reconnect_cap = value, *this; }

    /// For calls to paceline.h. It points into the settings.
    pace_bridge_options_t native() const noexcept {
        pace_bridge_options_t raw{};
        (void)pace_bridge_options_init(&raw, sizeof raw);
        raw.servers = detail::c_text(servers);
        raw.connection_name = detail::c_text_if_any(name);
        raw.user = detail::c_text_if_any(user);
        raw.password = detail::c_text_if_any(password);
        raw.password_file = detail::c_text_if_any(password_file);
        raw.token = detail::c_text_if_any(token);
        raw.token_file = detail::c_text_if_any(token_file);
        raw.nkey_file = detail::c_text_if_any(nkey_file);
        raw.credentials_file = detail::c_text_if_any(credentials_file);
        raw.root_certificates = detail::c_text_if_any(root_certificates);
        raw.client_certificate = detail::c_text_if_any(client_certificate);
        raw.client_key = detail::c_text_if_any(client_key);
        raw.require_tls = require_tls;
        raw.connect_timeout_ns = detail::nanos(connect_timeout);
        raw.ping_interval_ns = detail::nanos(ping_interval);
        raw.reconnect_first_ns = detail::nanos(reconnect_first);
        raw.reconnect_cap_ns = detail::nanos(reconnect_cap);
        return raw;
    }
};

/// Keys that go from the hub to the broker: a pattern, at most once unless it has a stream.
struct Export {
    std::string pattern{};
    /// What is put before the key, to make the broker's subject of it: whole tokens with a dot behind each, "eu.shop.".
    std::string prefix{};
    /// At least once: the stream of the broker's JetStream that stores each message, made if there is none of this name. A
    /// message is sent again until the broker says that it is stored. Requests are not stored. Empty (default): at most once.
    std::string stream{};
    /// How many messages wait for the broker, 1 to 2^24.
    std::uint64_t buffer = 65536;
    /// At least once: how many messages may be under way to the broker at the same time, 1 to 65536. With 1 each is stored
    /// before the next is sent.
    std::uint64_t in_flight = 256;
    /// What becomes of a message for a full buffer; local subscribers get it in any case. Default: the oldest one is dropped,
    /// and counted; at least once the publisher waits for room for up to 10 seconds, where it may wait, and publishing fails
    /// then with Code::Full.
    Overflow overflow = Overflow::Default;
    /// For Overflow::Block: how long a publisher waits at most.
    Duration block{FOREVER};
    /// At least once: messages wait for the broker in the archive of the hub's history instead of memory, and are sent though
    /// the process ends or dies meanwhile. The hub needs a history with an archive of all keys of the pattern. This file,
    /// made if it is not there, is where the bridge keeps how far the broker has stored them; it belongs to that archive,
    /// and to one bridge at a time. `buffer` and `overflow` mean nothing then; requests are not carried. Empty (default):
    /// they wait in memory.
    std::string spool{};

    Export() = default;
    template <class T, class = detail::if_text<T>>
    Export(const T &keys) : pattern(std::string_view(keys)) {} // NOLINT: a pattern is one

    Export &set_prefix(std::string_view value) { return prefix = value, *this; }
    Export &set_at_least_once(std::string_view name) { return stream = name, *this; }
    Export &set_buffer(std::uint64_t value) { return buffer = value, *this; }
    Export &set_in_flight(std::uint64_t value) { return in_flight = value, *this; }
    Export &set_spool(std::string_view path) { return spool = path, *this; }
    Export &set_overflow(Overflow value, Duration wait = FOREVER) {
        return overflow = value, block = wait, *this;
    }

    /// For calls to paceline.h. It points into the Export.
    pace_bridge_export_options_t native() const noexcept {
        pace_bridge_export_options_t raw{};
        (void)pace_bridge_export_options_init(&raw, sizeof raw);
        raw.overflow = static_cast<std::uint32_t>(overflow);
        raw.prefix = detail::c_text_if_any(prefix);
        raw.stream = detail::c_text_if_any(stream);
        raw.buffer = buffer;
        raw.block_ns = detail::nanos(block);
        raw.in_flight = in_flight;
        raw.spool = detail::c_text_if_any(spool);
        return raw;
    }
};

/// Keys that come from the broker to the hub, as if a local publisher published them: a pattern, at most once and to each
/// process that imports it, unless it has a stream.
struct Import {
    std::string pattern{};
    /// What is taken off the front of the broker's subject to make the hub's key of it: that which the exporter puts there.
    /// The pattern is that of the keys.
    std::string prefix{};
    /// At most once: one of all processes with this group gets each message. Empty (default): each process gets all.
    std::string group{};
    /// At least once: the stream of the broker's JetStream that messages are taken from, made if there is none of this name,
    /// and the name under which the broker knows how far they have come, which all processes share that take turns at the
    /// same messages. A message is acknowledged when all the hub's subscriptions that got it have dealt with it. If a handler
    /// fails at it, or no subscription matches, it comes again. Empty (default): at most once.
    std::string stream{}, durable{};
    /// How many messages from the broker wait for the hub, 1 to 2^24; what comes while so many wait is lost, and counted.
    std::uint64_t buffer = 65536;
    /// How long a request from elsewhere waits for the reply of this hub.
    Duration request_timeout = std::chrono::seconds(30);
    /// At least once: where it begins if the broker does not know `durable` yet.
    StartAt start = StartAt::First;
    /// For StartAt::Sequence: the number of the message in the stream.
    std::uint64_t start_sequence = 0;
    /// For StartAt::Time: when the first message was stored, or later.
    std::chrono::system_clock::time_point start_time{};
    /// At least once: how often, and after which delays, the broker is to send a message again that a handler has failed at;
    /// past the last attempt it becomes a dead letter of the hub, and one that the broker keeps in the stream `paceline_dead`,
    /// and comes no more; so does one that has ended its process in its last attempt. Without one: 9 times, after half a
    /// second and then twice as long each time, up to 30 seconds.
    std::optional<Retry> retry{};
    /// At least once: how many messages may be in the hub and not acknowledged, 1 to 65536.
    std::uint64_t in_flight = 256;
    /// At least once: after how long the broker sends a message again of which it has not heard, 100 ms to 1 day. While a
    /// handler works the bridge tells the broker so three times as often.
    Duration ack_wait = std::chrono::seconds(30);
    /// At least once: for how long it tells that at most. Then the broker sends the message again, though a handler may be at
    /// it still.
    Duration handle_timeout = std::chrono::hours(1);

    Import() = default;
    template <class T, class = detail::if_text<T>>
    Import(const T &keys) : pattern(std::string_view(keys)) {} // NOLINT: a pattern is one

    Import &set_prefix(std::string_view value) { return prefix = value, *this; }
    Import &set_group(std::string_view value) { return group = value, *this; }
    Import &set_at_least_once(std::string_view from, std::string_view name) {
        return stream = from, durable = name, *this;
    }
    Import &set_buffer(std::uint64_t value) { return buffer = value, *this; }
    Import &set_request_timeout(Duration value) { return request_timeout = value, *this; }
    Import &set_start(StartAt value) { return start = value, *this; }
    Import &set_start_sequence(std::uint64_t number) {
        return start = StartAt::Sequence, start_sequence = number, *this;
    }
    Import &set_start_time(std::chrono::system_clock::time_point time) {
        return start = StartAt::Time, start_time = time, *this;
    }
    Import &set_retry(Retry value) { return retry = std::move(value), *this; }
    Import &set_in_flight(std::uint64_t value) { return in_flight = value, *this; }
    Import &set_ack_wait(Duration value) { return ack_wait = value, *this; }
    Import &set_handle_timeout(Duration value) { return handle_timeout = value, *this; }

    /// For calls to paceline.h. It points into the Import.
    pace_bridge_import_options_t native() const noexcept {
        pace_bridge_import_options_t raw{};
        (void)pace_bridge_import_options_init(&raw, sizeof raw);
        raw.start = static_cast<std::uint32_t>(start);
        raw.prefix = detail::c_text_if_any(prefix);
        raw.group = detail::c_text_if_any(group);
        raw.stream = detail::c_text_if_any(stream);
        raw.durable = detail::c_text_if_any(durable);
        raw.buffer = buffer;
        raw.request_timeout_ns = detail::nanos(request_timeout);
        raw.start_sequence = start_sequence;
        raw.start_time_ns = detail::nanos(start_time.time_since_epoch());
        if (retry) {
            raw.retry = retry->native();
        }
        raw.in_flight = in_flight;
        raw.ack_wait_ns = detail::nanos(ack_wait);
        raw.handle_timeout_ns = detail::nanos(handle_timeout);
        return raw;
    }
};

/// The settings of a bridge, for Bridge::open(): the broker, and which keys it carries how.
struct BridgeConfig {
    NatsSettings nats{};
    /// What health, figures, notices and the live page call it. Empty (default): "nats".
    std::string name{};
    std::vector<Export> exports{};
    std::vector<Import> imports{};
    /// Refuses rules whose keys are not all matched by one of these patterns: for rules that come from elsewhere than the
    /// program. None (default): all keys are permitted, but for the hub's own and inboxes, which never cross.
    std::vector<std::string> permitted{};
    /// How long, and how many, ids of messages are kept: a message from the broker whose id is among them is dropped. The
    /// broker's streams that the bridge makes drop what comes twice within the same time.
    Duration window = std::chrono::minutes(2);
    std::uint64_t window_count = 100000;

    BridgeConfig() = default;
    explicit BridgeConfig(NatsSettings settings) : nats(std::move(settings)) {}

    BridgeConfig &set_name(std::string_view value) { return name = value, *this; }
    /// A key that several exports match goes out by each.
    BridgeConfig &add_export(Export rule) { return exports.push_back(std::move(rule)), *this; }
    BridgeConfig &add_import(Import rule) { return imports.push_back(std::move(rule)), *this; }
    BridgeConfig &add_permitted(std::string_view pattern) {
        return permitted.emplace_back(pattern), *this;
    }
    BridgeConfig &set_window(Duration lasts, std::uint64_t most) {
        return window = lasts, window_count = most, *this;
    }
};

/// What became of the messages of one export. Fields as in pace_bridge_export_stats_t.
struct ExportStats : pace_bridge_export_stats_t {
    ExportStats() noexcept : pace_bridge_export_stats_t{} {
        struct_size = sizeof(pace_bridge_export_stats_t);
    }
    /// The stream is empty with at most once.
    std::string pattern{}, stream{};
};

/// What became of the messages of one import. Fields as in pace_bridge_import_stats_t.
struct ImportStats : pace_bridge_import_stats_t {
    ImportStats() noexcept : pace_bridge_import_stats_t{} {
        struct_size = sizeof(pace_bridge_import_stats_t);
    }
    /// The stream is empty with at most once.
    std::string pattern{}, stream{};
};

/// How a bridge is, and what it has carried. Fields as in pace_bridge_stats_t, and these.
struct BridgeStats : pace_bridge_stats_t {
    BridgeStats() noexcept : pace_bridge_stats_t{} { struct_size = sizeof(pace_bridge_stats_t); }
    /// Why it is not connected, or what the broker has refused last; empty if all is well.
    std::string reason{};
    /// The name of the server that it is connected to, or was last.
    std::string server{};
    /// In the order in which the rules were given.
    std::vector<ExportStats> exports{};
    std::vector<ImportStats> imports{};
};

namespace detail {

/// Tells a function that a message is stored, or never will be.
template <class D>
void tell_stored(void *data, pace_status_t status) noexcept {
    (void)guard([&] { return (*static_cast<D *>(data))(outcome(status)); });
}

} // namespace detail

/// A message that was published, and that the broker is to store: wait for it, or have a function called. When this goes
/// nothing changes but that nobody learns of it.
class [[nodiscard]] PendingStore {
public:
    /// Waits until the broker has stored the message. Code::TimedOut: it is not stored yet, and will be; Code::Invalid: the
    /// stream does not take it; Code::ShutDown: the bridge has ended before; Code::Busy: a function is called for it. Not in
    /// handlers and tasks: a thread of the pool would stand still for as long.
    Result<void> wait(Duration time) const {
        return detail::outcome(pace_pending_store_wait(raw_.get(), detail::nanos(time)));
    }
    /// Has `stored`, void(Result<void>), called once when the message is stored, or never will be, with what wait() answers:
    /// on the thread of the bridge, which carries nothing meanwhile, or at once, in this thread, if that is known. It is
    /// called also when this is gone, and before the Bridge is. Code::Busy: another thread waits, or a function is called for
    /// it already.
    template <class F>
    Result<void> then(F &&stored) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, Result<void>>,
                      "what is called when a message is stored is void(Result<void>)");
        if (auto refused = detail::refused_if_empty(stored, "stored")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(stored));
        const pace_status_t status =
            pace_pending_store_then(raw_.get(), detail::tell_stored<D>, box.get(), detail::drop_box<D>);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(stored, *box);
            return error;
        }
        (void)box.release();
        return {};
    }

private:
    friend class Bridge;
    struct Free {
        void operator()(pace_pending_store_t *raw) const noexcept { pace_pending_store_free(raw); }
    };
    explicit PendingStore(pace_pending_store_t *raw) noexcept : raw_(raw) {}

    std::unique_ptr<pace_pending_store_t, Free> raw_;
};

/// Carries keys between the hubs of several processes and hosts, over a NATS broker that people run already. What a hub
/// publishes under an exported key goes to every other process that imports it; local subscribers get it as ever.
///
///     auto bridge = paceline::Bridge::open(hub, paceline::BridgeConfig("nats://127.0.0.1:4222")
///         .add_export("orders.>") // at most once
///         .add_export(paceline::Export("audit.>").set_at_least_once("AUDIT"))
///         .add_import("prices.*")).value();
///     bridge.publish("audit.login", "joe").value().wait(std::chrono::seconds(5)).value();
///
/// The destructor ends it, which takes up to 2 seconds if messages wait, also in a handler; close() sets another limit.
class [[nodiscard]] Bridge {
public:
    /// Subscribes in the hub, and begins to connect, on a thread of its own. It does not wait for the broker, which may come
    /// later. Code::Unsupported: the library was built without the feature `nats`; Code::Invalid names the address, pattern
    /// or setting; Code::Os: the thread cannot be created; Code::ShutDown.
    static Result<Bridge> open(const Hub &hub, const BridgeConfig &config) {
        pace_bridge_options_t options = config.nats.native();
        options.name = detail::c_text_if_any(config.name);
        options.window_ns = detail::nanos(config.window);
        options.window_count = config.window_count;
        pace_bridge_t *raw = nullptr;
        pace_status_t status = pace_bridge_new(hub.native(), &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        Bridge bridge(raw);
        for (const Export &rule : config.exports) {
            const auto rule_options = rule.native();
            status = status == PACE_OK
                         ? pace_bridge_export(raw, detail::c_text(rule.pattern), &rule_options)
                         : status;
        }
        for (const Import &rule : config.imports) {
            const auto rule_options = rule.native();
            status = status == PACE_OK
                         ? pace_bridge_import(raw, detail::c_text(rule.pattern), &rule_options)
                         : status;
        }
        for (const std::string &pattern : config.permitted) {
            status = status == PACE_OK ? pace_bridge_permit(raw, detail::c_text(pattern)) : status;
        }
        status = status == PACE_OK ? pace_bridge_open(raw) : status;
        return status == PACE_OK ? Result<Bridge>(std::move(bridge))
                                 : Result<Bridge>(Error::last(status));
    }

    /// As the section `bridge` of settings says, with its rules. Code::Invalid tells all that is wrong in them, and that
    /// `bridge.servers` is not set; otherwise as open().
    static Result<Bridge> from_settings(const Hub &hub, const Settings &settings) {
        const std::vector<const char *> files = detail::c_texts(settings.files);
        pace_bridge_t *raw = nullptr;
        pace_status_t status =
            pace_bridge_load(hub.native(), files.data(), files.size(), settings.environment, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        Bridge bridge(raw);
        status = pace_bridge_open(raw);
        return status == PACE_OK ? Result<Bridge>(std::move(bridge))
                                 : Result<Bridge>(Error::last(status));
    }

    /// Waits until it is connected. Nothing needs that: what is published before waits. Code::TimedOut; Code::ShutDown if it
    /// has ended.
    Result<void> wait_connected(Duration time) const {
        return detail::outcome(pace_bridge_wait_connected(raw_.get(), detail::nanos(time)));
    }
    /// Publishes a message in the hub, and says when the broker has stored it. Local subscribers do not wait for that. The key
    /// needs an export at least once that drops nothing: Code::Invalid otherwise. Else as Hub::publish().
    Result<PendingStore> publish(const detail::Text &key, std::string_view payload,
                                 const Publication &with = {}) const {
        const detail::RawPublication terms(with);
        pace_pending_store_t *pending = nullptr;
        const pace_status_t status = pace_bridge_publish(
            raw_.get(), key.c_str(), &terms.raw, payload.data(), payload.size(), terms.flags, &pending);
        if (status == PACE_EFULL) {
            // Unlike other refusals it says which mailbox is full.
            return Error(Code::Full, pace_last_error());
        }
        return status == PACE_OK ? Result<PendingStore>(PendingStore(pending))
                                 : Result<PendingStore>(Error::last(status));
    }
    /// Waits until all that was published before is handed to the connection, and, at least once, stored by the broker.
    /// Code::TimedOut; Code::ShutDown if it has ended.
    Result<void> flush(Duration time) const {
        return detail::outcome(pace_bridge_flush(raw_.get(), detail::nanos(time)));
    }
    /// How it is, and what it has carried. Exact while nothing is under way.
    Result<BridgeStats> stats() const {
        BridgeStats stats;
        pace_status_t status = pace_bridge_stats(raw_.get(), &stats);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        const auto text = [this](auto ask) {
            return detail::figures_of([&](char *to, std::size_t size, std::size_t *needed) {
                return ask(raw_.get(), to, size, needed);
            });
        };
        auto reason = text(pace_bridge_reason);
        auto server = text(pace_bridge_server);
        stats.reason = reason ? std::move(*reason) : std::string();
        stats.server = server ? std::move(*server) : std::string();
        const pace_bridge_stats_t &counts = stats;
        fill(stats.exports, counts.exports, pace_bridge_export_stats);
        fill(stats.imports, counts.imports, pace_bridge_import_stats);
        return stats;
    }
    /// Ends it: it takes nothing more from the broker, sends what waits, waits until the hub has dealt with what it has taken,
    /// and acknowledges that; for up to `time`. What is not acknowledged then comes again, to any process of the same durable
    /// name; what waits to be sent is lost, and the answer says how many that are: 0 as a rule.
    Result<std::uint64_t> close(Duration time) const {
        std::uint64_t left = 0;
        const pace_status_t status = pace_bridge_close(raw_.get(), detail::nanos(time), &left);
        return status == PACE_OK ? Result<std::uint64_t>(left)
                                 : Result<std::uint64_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Bridge's.
    pace_bridge_t *native() const noexcept { return raw_.get(); }

private:
    struct Free {
        void operator()(pace_bridge_t *raw) const noexcept { pace_bridge_free(raw); }
    };
    explicit Bridge(pace_bridge_t *raw) noexcept : raw_(raw) {}

    template <class Stats, class Raw>
    void fill(std::vector<Stats> &list, std::uint64_t count,
              pace_status_t (*ask)(const pace_bridge_t *, std::size_t, Raw *)) const {
        for (std::size_t index = 0; index < count; ++index) {
            Stats one;
            Raw &raw = one;
            if (ask(raw_.get(), index, &raw) == PACE_OK) {
                one.pattern = Message::view(raw.pattern);
                one.stream = Message::view(raw.stream);
                list.push_back(std::move(one));
            }
        }
    }

    std::unique_ptr<pace_bridge_t, Free> raw_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_BRIDGE_HPP
