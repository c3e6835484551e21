// paceline/hub.hpp: the event hub: keyed publish/subscribe, requests, dead letters.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_HUB_HPP
#define PACELINE_HUB_HPP

#include "history.hpp"
#include "pool.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// The books of a hub. Fields as in pace_hub_audit_t.
struct HubAudit : pace_hub_audit_t {
    HubAudit() noexcept : pace_hub_audit_t{} { struct_size = sizeof(pace_hub_audit_t); }
};

/// A message that a subscription could not deal with. Fields as in pace_dead_letter_t, without what is
/// lent; see Hub::dead_letters().
struct DeadLetter {
    std::string key{}, payload{}, failure{}, pattern{};
    std::vector<std::pair<std::string, std::string>> headers{};
    std::uint64_t number{}, sequence{}, subscription{}, time_ns{}, died_ns{};
    /// Why the message is a dead letter: a PACE_DEAD_ number.
    std::uint32_t reason{};
    std::uint32_t attempts{};
};

/// The settings of a hub, for Hub::create().
struct HubConfig {
    /// The largest payload, 1 byte to 1 GiB.
    std::uint64_t max_payload = std::uint64_t{16} << 20;
    /// How many dead letters are kept, 1 to 10,000,000.
    std::uint64_t dead_letters = 10000;
    /// The histories that the hub keeps, up to 31. Default none.
    std::vector<HistoryConfig> histories{};
    /// The label `hub` of its figures.
    std::string name{"main"};
    /// How many errors are kept for Hub::errors(), 1 to 1,000,000.
    std::uint64_t errors = 1024;
    /// How often losses of the same kind are told under $SYS., 1 ms to 1 hour.
    Duration notice_interval = std::chrono::seconds(1);
    /// Of so many keys, up to 1,000,000, it is counted how often each was published.
    std::uint64_t count_keys = 0;
    /// How often its statistics are published under $SYS.hub.statistics, and written to the log of the pool: 10 ms to
    /// 1 day. Default: never.
    std::optional<Duration> stats_interval{};

    /// As the section `hub` of settings says; its histories are HistoryConfig::load()'s.
    static Result<HubConfig> load(const Settings &settings) {
        using Raw = pace_hub_options_t;
        return detail::loaded<HubConfig, Raw>(
            settings, pace_hub_options_init, pace_hub_options_load, [](const Raw &raw) {
                HubConfig config;
                const auto change = [](std::uint64_t &field, std::uint64_t said) {
                    field = said == 0 ? field : said;
                };
                config.max_payload = raw.max_payload;
                change(config.dead_letters, raw.dead_letters);
                change(config.errors, raw.errors);
                change(config.count_keys, raw.count_keys);
                if (raw.notice_interval_ns != 0) {
                    config.notice_interval = detail::time_of(raw.notice_interval_ns);
                }
                if (raw.stats_interval_ns != 0) {
                    config.stats_interval = detail::time_of(raw.stats_interval_ns);
                }
                return config;
            });
    }

    HubConfig &set_name(std::string_view value) { return name = value, *this; }
    HubConfig &set_errors(std::uint64_t value) { return errors = value, *this; }
    HubConfig &set_notice_interval(Duration value) { return notice_interval = value, *this; }
    HubConfig &set_stats_interval(Duration value) { return stats_interval = value, *this; }
    HubConfig &set_count_keys(std::uint64_t value) { return count_keys = value, *this; }
    HubConfig &set_max_payload(std::uint64_t value) { return max_payload = value, *this; }
    HubConfig &set_dead_letters(std::uint64_t value) { return dead_letters = value, *this; }
    HubConfig &add_history(HistoryConfig value) { return histories.push_back(std::move(value)), *this; }
};

/// Which dead letters: those that all conditions hold for; what is zero or empty is not asked about.
struct DeadFilter {
    std::string pattern{};
    /// Why the message is a dead letter: a PACE_DEAD_ number.
    std::uint32_t reason{};
    std::uint64_t subscription{}, first{}, last{}, since_ns{};
    /// At most so many, the oldest.
    std::uint64_t limit{};

    pace_dead_filter_t native() const noexcept {
        pace_dead_filter_t raw{};
        raw.struct_size = sizeof raw;
        raw.reason = reason;
        raw.pattern = detail::c_text_if_any(pattern);
        raw.subscription = subscription;
        raw.first = first;
        raw.last = last;
        raw.since_ns = since_ns;
        raw.limit = limit;
        return raw;
    }
};

/// How many dead letters there were. Fields as in pace_dead_letter_stats_t.
struct DeadLetterStats : pace_dead_letter_stats_t {
    DeadLetterStats() noexcept : pace_dead_letter_stats_t{} {
        struct_size = sizeof(pace_dead_letter_stats_t);
    }
};

/// What became of letters that were to be delivered again. Fields as in pace_redelivered_t.
struct Redelivered : pace_redelivered_t {
    Redelivered() noexcept : pace_redelivered_t{} { struct_size = sizeof(pace_redelivered_t); }
};

/// Something that went wrong in a hub.
struct HubError {
    /// The key of its notice without "$SYS."; where; and what there is to say.
    std::string event{}, origin{}, message{};
    /// Its number: 1 for the hub's first.
    std::uint64_t number{};
    std::chrono::system_clock::time_point time{};
    Severity severity{};
};

/// Which errors; what is empty or zero is not asked about.
struct ErrorFilter {
    /// Errors of this severity, and of worse ones. Default: all.
    Severity severity = Severity::Info;
    /// What events and origins begin with.
    std::string event{}, origin{};
    /// Errors recorded at this time or later: nanoseconds since 1970.
    std::uint64_t since_ns{};
    /// With greater numbers than this.
    std::uint64_t after{};
    /// At most so many, the latest.
    std::uint64_t limit{};

    pace_error_filter_t native() const noexcept {
        pace_error_filter_t raw{};
        raw.struct_size = sizeof raw;
        raw.severity = static_cast<std::uint32_t>(severity);
        raw.event = detail::c_text_if_any(event);
        raw.origin = detail::c_text_if_any(origin);
        raw.since_ns = since_ns;
        raw.after = after;
        raw.limit = limit;
        return raw;
    }
};

/// The counts of a publisher. Fields as in pace_publisher_stats_t.
struct PublisherStats : pace_publisher_stats_t {
    PublisherStats() noexcept : pace_publisher_stats_t{} {
        struct_size = sizeof(pace_publisher_stats_t);
    }
};

namespace detail {

inline void collect_letter(void *data, const pace_dead_letter_t *raw) noexcept {
    Rows<DeadLetter>::add(data, [&] {
        DeadLetter letter;
        OwnedMessage message = Message(raw->message).to_owned();
        letter.key = std::move(message.key);
        letter.payload = std::move(message.payload);
        letter.failure = Message::view(raw->failure);
        letter.pattern = Message::view(raw->pattern);
        letter.headers = std::move(message.headers);
        letter.number = raw->number;
        letter.sequence = message.sequence;
        letter.subscription = raw->subscription;
        letter.time_ns = message.time_ns;
        letter.died_ns = raw->died_ns;
        letter.reason = raw->reason;
        letter.attempts = raw->attempts;
        return letter;
    });
}

inline void collect_error(void *data, const pace_hub_error_t *raw) noexcept {
    Rows<HubError>::add(data, [&] {
        HubError error;
        error.event = Message::view(raw->event);
        error.origin = Message::view(raw->origin);
        error.message = Message::view(raw->message);
        error.number = raw->number;
        error.time +=
            std::chrono::duration_cast<std::chrono::system_clock::duration>(time_of(raw->time_ns));
        error.severity = static_cast<Severity>(raw->severity);
        return error;
    });
}

/// The reply to a request. Whoever gets it owns it.
inline Result<OwnedMessage> reply_of(pace_status_t status, const pace_message_t &raw) {
    return status == PACE_OK ? Result<OwnedMessage>(Message(raw).to_owned())
                             : Result<OwnedMessage>(Error(static_cast<Code>(status)));
}

/// Tells a function of the end of a request.
template <class D>
void tell_reply(void *data, pace_status_t status, const pace_message_t *reply) noexcept {
    (void)guard([&] {
        return (*static_cast<D *>(data))(
            reply_of(status, status == PACE_OK ? *reply : pace_message_t{}));
    });
}

} // namespace detail

/// Names a request whose function is still to be called; see Key::request_async() and Hub::give_up().
struct Asked {
    pace_asked_t raw{};
};

/// A key of a hub that was looked up once: publishing with it is faster than with its text.
class [[nodiscard]] Key {
public:
    Key(Key &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Key &operator=(Key other) noexcept { return std::swap(raw_, other.raw_), *this; }
    ~Key() { pace_key_free(raw_); }

    /// Lives as long as the key.
    std::string_view text() const noexcept {
        pace_text_t text{};
        (void)pace_key_text(raw_, &text);
        return Message::view(text);
    }

    /// Publishes these bytes, which are copied once, however many subscribe. It waits while a mailbox that lets
    /// publishers wait is full, but not on a thread of any pool or in a handler, where it fails instead. Code::Full: a
    /// mailbox has refused it, which the error's text names, and all others have got it; `told`, which may be null,
    /// gets the receipt in any case.
    Result<Receipt> publish(std::string_view payload, Receipt *told = nullptr) const {
        Receipt receipt;
        detail::hands_over();
        return answer(pace_key_publish(raw_, payload.data(), payload.size(), 0, &receipt), receipt,
                      told);
    }
    /// The same, with headers, a priority, or without waiting.
    Result<Receipt> publish(std::string_view payload, const Publication &with,
                            Receipt *told = nullptr) const {
        const detail::RawPublication terms(with);
        Receipt receipt;
        return answer(pace_key_publish_with(raw_, &terms.raw, payload.data(), payload.size(),
                                            terms.flags, &receipt),
                      receipt, told);
    }
    /// Waits for up to `time` until nobody who gets messages with the key would have a publisher wait. Code::TimedOut;
    /// Code::Full: with what it has `waited` before it has waited for as long as a full mailbox has publishers wait.
    Result<void> await_room(Duration time, Duration waited = Duration()) const {
        return detail::outcome(pace_key_await_room(raw_, detail::nanos(time), detail::nanos(waited)));
    }
    /// Publishes a request, and waits for up to `time` for the reply of whoever is first, which is the caller's.
    /// Code::NoResponders: nobody subscribes; Code::Full: nobody has taken
    /// it; Code::TimedOut; Code::WouldDeadlock on a thread of the pool, if no other is left.
    Result<OwnedMessage> request(std::string_view payload, Duration time,
                                 const Publication &with = {}) const {
        const detail::RawPublication terms(with);
        pace_message_t reply{};
        const detail::Waits waits;
        const pace_status_t status = pace_key_request(raw_, &terms.raw, payload.data(), payload.size(),
                                                      detail::nanos(time), &reply);
        return status == PACE_OK ? detail::reply_of(status, reply)
                                 : Result<OwnedMessage>(Error::last(status));
    }
    /// As request(), and waits for nothing: a thread of the pool calls `on_reply`, void(Result<OwnedMessage>), once,
    /// with the reply, or Code::TimedOut. It may be called before this returns.
    /// `time` counts from now; paceline::forever: without an end. Not called if this is refused; nor if the request
    /// is given up, or its hub ends before a reply came: then it is deleted alone. What it throws is told as
    /// what a posted task throws. A std::promise in it makes a future.
    template <class F>
    Result<Asked> request_async(std::string_view payload, Duration time, F &&on_reply,
                                const Publication &with = {}) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, Result<OwnedMessage>>,
                      "what is called with a reply is void(Result<OwnedMessage>)");
        if (auto refused = detail::refused_if_empty(on_reply, "on_reply")) {
            return *std::move(refused);
        }
        const detail::RawPublication terms(with);
        auto box = detail::boxed(std::forward<F>(on_reply));
        Asked asked;
        const pace_status_t status =
            pace_key_request_async(raw_, &terms.raw, payload.data(), payload.size(), detail::nanos(time),
                                   detail::tell_reply<D>, box.get(), detail::drop_box<D>, &asked.raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(on_reply, *box);
            return error;
        }
        (void)box.release();
        return asked;
    }
    /// Publishes several messages in order. The receipt is the sum of theirs, as is that of Code::Full, which `told`
    /// gets. Any other error: none was.
    Result<Receipt> publish_batch(span<const std::string_view> payloads, Receipt *told = nullptr) const {
        const auto pieces = detail::pieces_of(payloads);
        detail::hands_over();
        Receipt receipt;
        return answer(pace_key_publish_batch(raw_, pieces.data(), pieces.size(), 0, &receipt), receipt,
                      told);
    }

    /// For calls to paceline.h. Stays the Key's.
    pace_key_t *native() const noexcept { return raw_; }

private:
    friend class Hub;
    friend class Publisher;
    explicit Key(pace_key_t *raw) noexcept : raw_(raw) {}

    static Result<Receipt> answer(pace_status_t status, const Receipt &receipt, Receipt *told) {
        if (told != nullptr) {
            *told = receipt;
        }
        if (status == PACE_EFULL) {
            // Unlike other refusals it says which mailbox is full.
            return Error(Code::Full, pace_last_error());
        }
        return status == PACE_OK ? Result<Receipt>(receipt) : Result<Receipt>(Error::last(status));
    }

    pace_key_t *raw_;
};

/// One of the messages that are published together; see Hub::publish_all(). It refers to the key.
struct PublishItem {
    const Key &key;
    std::string_view payload{};
    Publication with{};
};

/// The settings of a publisher of a hub, with its limits.
struct PublisherConfig {
    /// How many messages it may publish in which time.
    std::optional<Rate> quota{};
    /// Patterns of the keys that it may publish with. None: all keys.
    std::vector<std::string> allow{};
    /// Does not wait for room in mailboxes that let publishers wait: they refuse.
    bool no_wait = false;

    PublisherConfig &set_quota(Rate value) { return quota = value, *this; }
    PublisherConfig &add_allowed(std::string_view pattern) { return allow.emplace_back(pattern), *this; }
    PublisherConfig &set_no_wait(bool value = true) { return no_wait = value, *this; }
};

/// A publisher with a name. Its limits guard against mistakes: whoever has the hub can publish without one.
class [[nodiscard]] Publisher {
public:
    /// As Key::publish(). Code::Invalid also for a key that is not allowed, Code::Full beyond the quota.
    Result<Receipt> publish(const Key &key, std::string_view payload, const Publication &with = {},
                            Receipt *told = nullptr) const {
        const detail::RawPublication terms(with);
        Receipt receipt;
        return Key::answer(pace_publisher_publish(raw_.get(), key.native(), &terms.raw, payload.data(),
                                                  payload.size(), terms.flags, &receipt),
                           receipt, told);
    }
    /// As Key::publish_batch(). Those before the first that is beyond the quota are published.
    Result<Receipt> publish_batch(const Key &key, span<const std::string_view> payloads,
                                  Receipt *told = nullptr) const {
        const auto pieces = detail::pieces_of(payloads);
        detail::hands_over();
        Receipt receipt;
        return Key::answer(pace_publisher_publish_batch(raw_.get(), key.native(), pieces.data(),
                                                        pieces.size(), 0, &receipt),
                           receipt, told);
    }
    /// The counters of the publisher, until now.
    Result<PublisherStats> stats() const {
        PublisherStats stats;
        const pace_status_t status = pace_publisher_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<PublisherStats>(stats)
                                 : Result<PublisherStats>(Error::last(status));
    }

private:
    friend class Hub;
    explicit Publisher(pace_publisher_t *raw) : raw_(raw, pace_publisher_free) {}

    std::shared_ptr<pace_publisher_t> raw_;
};

template <class T, class C>
class Topic;

struct HubStats;
class Threshold;
class Watch;
class WorkerPool;

/// Keyed publish/subscribe on a pool. Copies are the same hub; with the last of them and of its
/// subscriptions it is gone. Then subscriptions that were detached end, and that waits for their handlers as
/// ~Subscription() does.
///
///     auto hub = Hub::create(pool).value();
///     auto orders = hub.subscribe("orders.*.created", [](const Message &message) {
///         ship(message.text());
///     }).value();
///     hub.publish("orders.eu.created", "42").value();
///     orders.drain(std::chrono::seconds(5)).value();
///
/// A Subscription that goes without that ends at once: what waits is discarded, and a handler that runs is waited for,
/// so it may refer to what was there before the Subscription was.
class Hub {
public:
    /// `max_payload`: the largest payload, 1 byte to 1 GiB.
    static Result<Hub> create(const Pool &pool, std::uint64_t max_payload = std::uint64_t{16} << 20) {
        return create(pool, HubConfig().set_max_payload(max_payload));
    }
    static Result<Hub> create(const Pool &pool, const HubConfig &config) {
        pace_hub_options_t options{};
        (void)pace_hub_options_init(&options, sizeof options);
        options.max_payload = config.max_payload;
        options.dead_letters = config.dead_letters;
        std::vector<pace_history_options_t> histories;
        for (const HistoryConfig &history : config.histories) {
            histories.push_back(history.native());
        }
        options.histories = histories.data();
        options.history_count = histories.size();
        options.name = detail::c_text(config.name);
        options.errors = config.errors;
        options.notice_interval_ns = detail::limit_nanos(config.notice_interval);
        options.stats_interval_ns =
            config.stats_interval ? detail::limit_nanos(*config.stats_interval) : 0;
        options.count_keys = config.count_keys;
        pace_hub_t *hub = nullptr;
        const pace_status_t status = pace_hub_new(pool.native(), &options, &hub);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Hub(detail::shared_of<const detail::HubCore>(pool.core_, hub));
    }

    /// Looks a key up. Code::Invalid says what is wrong with it.
    Result<Key> key(const detail::Text &text) const {
        pace_key_t *key = nullptr;
        const pace_status_t status = pace_hub_key(native(), text.c_str(), &key);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Key(key);
    }

    /// As Key::publish(), with the text of the key, which is looked up.
    Result<Receipt> publish(const detail::Text &key, std::string_view payload,
                            Receipt *told = nullptr) const {
        Receipt receipt;
        detail::hands_over();
        const pace_status_t status =
            pace_hub_publish(native(), key.c_str(), payload.data(), payload.size(), 0, &receipt);
        return Key::answer(status, receipt, told);
    }

    /// Publishes up to 1024 messages, of one key or several: every mailbox takes its own of them, or nobody gets
    /// any. They are in order for each subscription. The receipt is the sum of theirs. Code::Full: a mailbox would
    /// refuse; Code::Invalid: as Key::publish(), and for a key that a group subscribes to, and one of another
    /// hub. See pace_hub_publish_all() for what counts as taking.
    Result<Receipt> publish_all(span<const PublishItem> messages) const {
        std::vector<std::unique_ptr<const detail::RawPublication>> terms;
        std::vector<pace_publish_item_t> raw;
        for (const PublishItem &message : messages) {
            terms.push_back(std::make_unique<const detail::RawPublication>(message.with));
            raw.push_back({message.key.native(), &terms.back()->raw, message.payload.data(),
                           message.payload.size()});
        }
        Receipt receipt;
        const pace_status_t status = pace_hub_publish_all(native(), raw.data(), raw.size(), 0, &receipt);
        return Key::answer(status, receipt, nullptr);
    }

    /// Gives a request up. True: its function will never be called, and is deleted. False: it is being called,
    /// or was.
    Result<bool> give_up(Asked asked) const {
        bool given_up = false;
        const pace_status_t status = pace_hub_give_up(native(), asked.raw, &given_up);
        return status == PACE_OK ? Result<bool>(given_up) : Result<bool>(Error::last(status));
    }

    /// Subscribes to a key or a pattern: `*` stands for one token, a final `>` for one or more, and neither
    /// stands beside other characters of its token. The handler is called with a const Message &, and returns nothing, a Result or an Error. An error that it returns, and a
    /// std::exception that it throws, is a failure of its message, which is tried again, or becomes a dead letter, as the config says.
    /// Anything else that it throws is a crash: the handler is restarted, and suspended for a while if that happens
    /// too often; see Intensity.
    /// It may run before this returns, and is deleted when the subscription has ended. Handlers of
    /// Execution::Inline and Execution::Concurrent are called by several threads at once.
    template <class F>
    Result<Subscription> subscribe(const detail::Text &pattern, F &&handler,
                                   const SubscriptionConfig &config = {}) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is called with a const Message &");
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        const pace_subscription_options_t options = config.native();
        auto box = detail::boxed(std::forward<F>(handler));
        pace_subscription_t id{};
        const pace_status_t status =
            pace_hub_subscribe(native(), pattern.c_str(), &options, detail::handle_message<D>, box.get(),
                               detail::drop_box<D>, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return Subscription(core_, id);
    }

    /// As above, with a function that is told of restarts, void(std::string_view failure, std::uint64_t
    /// count), on the thread that runs the handler, before its next message: after the handler has thrown what is
    /// no std::exception, when another of its supervisor has, and after a suspension. A failure without text is
    /// another's.
    template <class F, class R,
              class = std::enable_if_t<
                  std::is_invocable_v<std::decay_t<R> &, std::string_view, std::uint64_t>>>
    Result<Subscription> subscribe(const detail::Text &pattern, F &&handler, R &&on_restart,
                                   const SubscriptionConfig &config = {}) const {
        using S = detail::Supervised<std::decay_t<F>, std::decay_t<R>>;
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        if (auto refused = detail::refused_if_empty(on_restart, "on_restart")) {
            return *std::move(refused);
        }
        pace_subscription_options_t options = config.native();
        options.on_restart = detail::restarted<std::decay_t<F>, std::decay_t<R>>;
        auto box = detail::boxed(S{std::forward<F>(handler), std::forward<R>(on_restart)});
        pace_subscription_t id{};
        const pace_status_t status =
            pace_hub_subscribe(native(), pattern.c_str(), &options, detail::handle_message<S>, box.get(),
                               detail::drop_box<S>, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, box->handler);
            detail::give_back<R>(on_restart, box->on_restart);
            return error;
        }
        (void)box.release();
        return Subscription(core_, id);
    }

    /// As subscribe(), with handlers that a factory makes: `factory` is called without arguments and returns a handler, once
    /// before this returns, and anew for the first message after each restart. So no handler is called again when it has
    /// crashed. If it throws, Code::Failed tells why at first, and later the message that waits has failed as if its handler
    /// had crashed; the next one has the factory called again. For Execution::Serial and Execution::Strand.
    template <class F>
    Result<Subscription> subscribe_factory(const detail::Text &pattern, F &&factory,
                                           const SubscriptionConfig &config = {}) const {
        using D = std::decay_t<F>;
        using Handler = std::decay_t<std::invoke_result_t<D &>>;
        static_assert(std::is_invocable_v<Handler &, const Message &>,
                      "a factory returns a handler, which is called with a const Message &");
        if (auto refused = detail::refused_if_empty(factory, "factory")) {
            return *std::move(refused);
        }
        pace_subscription_options_t options = config.native();
        options.factory = detail::make_handler<D>;
        options.drop_handler = detail::drop_box<Handler>;
        auto box = detail::boxed(std::forward<F>(factory));
        pace_subscription_t id{};
        const pace_status_t status =
            pace_hub_subscribe(native(), pattern.c_str(), &options, detail::handle_message<Handler>,
                               box.get(), detail::drop_box<D>, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(factory, *box);
            return error;
        }
        (void)box.release();
        return Subscription(core_, id);
    }

    /// A publisher of this name, which is for people to read.
    Result<Publisher> publisher(const detail::Text &name, const PublisherConfig &config = {}) const {
        pace_publisher_options_t options{};
        (void)pace_publisher_options_init(&options, sizeof options);
        const std::vector<const char *> patterns = detail::c_texts(config.allow);
        options.allow = patterns.data();
        options.allow_count = patterns.size();
        options.no_wait = config.no_wait;
        if (config.quota) {
            options.quota = config.quota->starts;
            options.quota_per_ns = detail::nanos(config.quota->per);
            options.quota_burst = config.quota->burst;
        }
        pace_publisher_t *raw = nullptr;
        const pace_status_t status = pace_publisher_new(native(), name.c_str(), &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Publisher(raw);
    }

    /// Copies of what the history has kept that the query asks for, in order. Code::Invalid if no history
    /// keeps all that its pattern matches.
    Result<std::vector<Record>> query(const Query &query = {}) const {
        detail::Rows<Record> rows;
        const pace_query_t raw = query.native();
        return rows.taken(pace_hub_query(native(), &raw, detail::collect_record, &rows, nullptr));
    }
    /// Writes what a history has kept that the query asks for to a new file of lines of JSON, which is there when all of
    /// it is; its `newest` is not looked at. Says how many messages there were. Archive::import_lines() makes an archive
    /// of the file, which another hub can go on with.
    Result<std::uint64_t> export_lines(const detail::Text &path, const Query &query = {}) const {
        std::uint64_t count = 0;
        const pace_query_t raw = query.native();
        const pace_status_t status = pace_hub_export(native(), &raw, path.c_str(), &count);
        return status == PACE_OK ? Result<std::uint64_t>(count)
                                 : Result<std::uint64_t>(Error::last(status));
    }
    /// Replays what a history has kept of the keys that the pattern matches, and goes on with what is
    /// published: each message once, in the order of their sequences. The handler is as of subscribe(); a
    /// message that it fails at is counted, and the next one comes.
    template <class F>
    Result<Replay> replay(const detail::Text &pattern, ReplayFrom from, F &&handler) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is called with a const Message &");
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(handler));
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay(native(), pattern.c_str(), from.from_, from.at_, detail::handle_message<D>,
                            box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return Replay(core_, raw);
    }
    /// As above, with a handler that is supervised as that of a serial subscription is. What comes to one that
    /// is suspended stays in the history, and is delivered after Replay::resume().
    template <class F>
    Result<Replay> replay(const detail::Text &pattern, ReplayFrom from, F &&handler,
                          const ReplayConfig &config) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is called with a const Message &");
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        auto box = detail::boxed(std::forward<F>(handler));
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay_supervised(native(), pattern.c_str(), &options, detail::handle_message<D>,
                                       box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return Replay(core_, raw);
    }
    /// As above, with a function that is told of restarts, as of subscribe().
    template <class F, class R,
              class = std::enable_if_t<
                  std::is_invocable_v<std::decay_t<R> &, std::string_view, std::uint64_t>>>
    Result<Replay> replay(const detail::Text &pattern, ReplayFrom from, F &&handler, R &&on_restart,
                          const ReplayConfig &config = {}) const {
        using S = detail::Supervised<std::decay_t<F>, std::decay_t<R>>;
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        if (auto refused = detail::refused_if_empty(on_restart, "on_restart")) {
            return *std::move(refused);
        }
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        options.on_restart = detail::restarted<std::decay_t<F>, std::decay_t<R>>;
        auto box = detail::boxed(S{std::forward<F>(handler), std::forward<R>(on_restart)});
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay_supervised(native(), pattern.c_str(), &options, detail::handle_message<S>,
                                       box.get(), detail::drop_box<S>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, box->handler);
            detail::give_back<R>(on_restart, box->on_restart);
            return error;
        }
        (void)box.release();
        return Replay(core_, raw);
    }
    /// As replay(), with handlers that a factory makes, as of subscribe_factory().
    template <class F>
    Result<Replay> replay_factory(const detail::Text &pattern, ReplayFrom from, F &&factory,
                                  const ReplayConfig &config = {}) const {
        using D = std::decay_t<F>;
        using Handler = std::decay_t<std::invoke_result_t<D &>>;
        static_assert(std::is_invocable_v<Handler &, const Message &>,
                      "a factory returns a handler, which is called with a const Message &");
        if (auto refused = detail::refused_if_empty(factory, "factory")) {
            return *std::move(refused);
        }
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        options.factory = detail::make_handler<D>;
        options.drop_handler = detail::drop_box<Handler>;
        auto box = detail::boxed(std::forward<F>(factory));
        pace_replay_t *raw = nullptr;
        const pace_status_t status = pace_hub_replay_supervised(native(), pattern.c_str(), &options,
                                                                detail::handle_message<Handler>,
                                                                box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(factory, *box);
            return error;
        }
        (void)box.release();
        return Replay(core_, raw);
    }
    /// As replay(), to a mailbox that a completion queue takes from.
    Result<ReplayMailbox> replay_mailbox(const detail::Text &pattern, ReplayFrom from,
                                         const ReplayConfig &config = {}) const {
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        pace_mailbox_t *raw = nullptr;
        const pace_status_t status = pace_hub_replay_mailbox(native(), pattern.c_str(), &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return ReplayMailbox(core_, raw);
    }
    /// Writes everything that was published before to all archives, in this thread. Success: every message that the hub's
    /// histories have taken before the call is on disk. Code::GivenUp: messages were given up since the hub was made, and
    /// all others are on disk. `given_up`, which may be null, gets the number of these in any case.
    Result<void> flush(std::uint64_t *given_up = nullptr) const {
        return detail::outcome(pace_hub_flush(native(), given_up));
    }
    /// Writes everything that was published to all archives, and closes the files of all histories: another hub can open them.
    /// What they would record is refused from now on. Code::Os: what could not be written stays, and all goes on as before.
    Result<void> close_histories() const { return detail::outcome(pace_hub_close_histories(native())); }
    /// What each history has done.
    Result<std::vector<HistoryStats>> history_stats() const {
        detail::Rows<HistoryStats> rows;
        return rows.taken(pace_hub_history_stats(native(), detail::collect_history, &rows));
    }

    /// The topic of a key, or of all keys that a pattern matches: its messages are values of one type. The
    /// codec has `Result<std::string> encode(const T &) const` and `Result<T> decode(std::string_view) const`,
    /// which several threads may call.
    template <class T, class C>
    Topic<T, C> topic(std::string_view pattern, C codec) const {
        return Topic<T, C>(*this, std::string(pattern), std::move(codec));
    }

    /// Replies to a request; the first reply counts. Code::Invalid: it is no request.
    Result<Receipt> reply(const Message &request, std::string_view payload) const {
        Receipt receipt;
        detail::hands_over();
        return Key::answer(pace_hub_reply(native(), &request, payload.data(), payload.size(), &receipt),
                           receipt, nullptr);
    }
    /// As above, of a request that was kept: see Message::to_owned().
    Result<Receipt> reply(const OwnedMessage &request, std::string_view payload) const {
        std::vector<pace_field_t> headers;
        for (const auto &[name, value] : request.headers) {
            headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
        }
        pace_message_t raw{};
        raw.headers = headers.data();
        raw.header_count = headers.size();
        return reply(Message(raw), payload);
    }

    /// Copies of the dead letters that the filter names, the oldest first.
    Result<std::vector<DeadLetter>> dead_letters(const DeadFilter &filter = {}) const {
        detail::Rows<DeadLetter> rows;
        const pace_dead_filter_t raw = filter.native();
        return rows.taken(pace_hub_dead_letters(native(), &raw, detail::collect_letter, &rows, nullptr));
    }
    /// As dead_letters(), and takes them out.
    Result<std::vector<DeadLetter>> remove_dead_letters(const DeadFilter &filter = {}) const {
        detail::Rows<DeadLetter> rows;
        const pace_dead_filter_t raw = filter.native();
        return rows.taken(
            pace_hub_remove_dead_letters(native(), &raw, detail::collect_letter, &rows, nullptr));
    }
    /// Delivers dead letters once more, each to the subscription that it was for, behind what waits there.
    Result<Redelivered> redeliver(const DeadFilter &filter = {}) const {
        Redelivered redelivered;
        const pace_dead_filter_t raw = filter.native();
        const pace_status_t status = pace_hub_redeliver(native(), &raw, &redelivered);
        return status == PACE_OK ? Result<Redelivered>(redelivered)
                                 : Result<Redelivered>(Error::last(status));
    }
    /// How many dead letters there were.
    Result<DeadLetterStats> dead_letter_stats() const {
        DeadLetterStats stats;
        const pace_status_t status = pace_hub_dead_letter_stats(native(), &stats);
        return status == PACE_OK ? Result<DeadLetterStats>(stats)
                                 : Result<DeadLetterStats>(Error::last(status));
    }

    /// Subscribes with a mailbox that the caller empties.
    Result<Mailbox> mailbox(const detail::Text &pattern, const SubscriptionConfig &config = {}) const {
        const pace_subscription_options_t options = config.native();
        pace_mailbox_t *mailbox = nullptr;
        const pace_status_t status = pace_hub_mailbox(native(), pattern.c_str(), &options, &mailbox);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Mailbox(core_, mailbox);
    }

    /// How many subscriptions a key has, those of patterns included.
    Result<std::size_t> subscriber_count(const detail::Text &key) const {
        std::size_t count = 0;
        const pace_status_t status = pace_hub_subscriber_count(native(), key.c_str(), &count);
        return status == PACE_OK ? Result<std::size_t>(count) : Result<std::size_t>(Error::last(status));
    }
    /// All patterns that somebody subscribes to, with the number of subscriptions, sorted.
    Result<std::vector<std::pair<std::string, std::size_t>>> patterns() const {
        using Rows = detail::Rows<std::pair<std::string, std::size_t>>;
        Rows rows;
        return rows.taken(pace_hub_patterns(
            native(),
            [](void *data, pace_text_t pattern, std::size_t count) noexcept {
                Rows::add(data, [&] { return std::pair(std::string(Message::view(pattern)), count); });
            },
            &rows));
    }
    /// What went wrong of late, the oldest first. Whoever subscribes to "$SYS.>" gets all that the hub tells
    /// of itself as messages, whose headers "event" and "severity" a filter can choose by.
    Result<std::vector<HubError>> errors(const ErrorFilter &filter = {}) const {
        detail::Rows<HubError> rows;
        const pace_error_filter_t raw = filter.native();
        return rows.taken(pace_hub_errors(native(), &raw, detail::collect_error, &rows, nullptr));
    }
    /// What it has and has told, beside its books.
    /// It is defined in paceline/ops.hpp.
    Result<HubStats> stats() const;
    /// Its figures as text: PACE_METRICS_HUB (all of them as JSON), PACE_METRICS_JSON,
    /// PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS. To serve them, see MetricsFormat.
    /// It is defined in paceline/ops.hpp.
    Result<std::string> metrics(std::uint32_t format) const;
    /// Tells its figures with those of a worker pool that was made with `metrics`.
    /// It is defined in paceline/ops.hpp.
    Result<void> share_metrics(const WorkerPool &workers) const;
    /// Watches figures of the hub (or of `workers`, if it was made with `metrics`): looks at them so often,
    /// 1 ms to 1 day, and tells of each threshold that is crossed, and when its figure is back, under
    /// "$SYS.threshold." and by calling void(const Crossing &), on a thread of the pool. What that throws goes
    /// nowhere.
    /// It is defined in paceline/ops.hpp.
    template <class F>
    Result<Watch> watch(Duration every, const std::vector<Threshold> &thresholds, F &&on_crossing,
                        const WorkerPool *workers = nullptr) const;

    /// Adds up all books: exact while nothing is published and no handler runs.
    Result<HubAudit> audit() const {
        HubAudit audit;
        const pace_status_t status = pace_hub_audit(native(), &audit);
        return status == PACE_OK ? Result<HubAudit>(audit) : Result<HubAudit>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Hub's.
    pace_hub_t *native() const noexcept { return core_ ? core_->hub : nullptr; }

private:
    friend class Webhook;
    explicit Hub(std::shared_ptr<const detail::HubCore> core) noexcept : core_(std::move(core)) {}

    std::shared_ptr<const detail::HubCore> core_;
};

/// A key, or a pattern, whose messages are values of one type; see Hub::topic(). Copies are the same topic.
template <class T, class C>
class Topic {
public:
    /// Publishes a value with the topic's key. Code::Invalid if it has wildcards; what encode() says.
    Result<Receipt> publish(const T &value) const { return publish_to(pattern_, value); }
    /// Publishes a value with a key, which is not compared with the pattern of the topic.
    Result<Receipt> publish_to(const detail::Text &key, const T &value) const {
        const Result<std::string> bytes = codec_->encode(value);
        if (!bytes) {
            return bytes.error();
        }
        return hub_.publish(key, *bytes);
    }
    /// Subscribes as Hub::subscribe() does, with a handler of values, of (const T &) or (const T &, const Message &). What cannot be decoded is a failure of the subscription, and the handler
    /// is not called.
    template <class F>
    Result<Subscription> subscribe(F &&handler, const SubscriptionConfig &config = {}) const {
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        auto take = [codec = codec_, handler = std::forward<F>(handler)](
                        const Message &message) mutable -> Result<void> {
            const Result<T> value = codec->decode(message.text());
            if (!value) {
                return value.error();
            }
            const auto call = [&] {
                if constexpr (std::is_invocable_v<F &, const T &, const Message &>) {
                    return handler(*value, message);
                } else {
                    return handler(*value);
                }
            };
            using R = decltype(call());
            if constexpr (std::is_void_v<R>) {
                call();
            } else {
                static_assert(detail::is_outcome<std::decay_t<R>>,
                              "a handler of values returns nothing, a Result or an Error");
                const std::decay_t<R> outcome = call();
                if (const Error *error = detail::error_in(outcome)) {
                    return *error;
                }
            }
            return {};
        };
        return hub_.subscribe(pattern_, std::move(take), config);
    }

private:
    friend class Hub;
    Topic(Hub hub, std::string pattern, C codec)
        : hub_(std::move(hub)), pattern_(std::move(pattern)),
          codec_(detail::shared_of<const C>(std::move(codec))) {}

    Hub hub_;
    std::string pattern_;
    std::shared_ptr<const C> codec_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_HUB_HPP
