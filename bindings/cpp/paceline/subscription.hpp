// paceline/subscription.hpp: subscriptions of the hub, their supervision, and mailboxes.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_SUBSCRIPTION_HPP
#define PACELINE_SUBSCRIPTION_HPP

#include "message.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// How many restarts are too many: more than `restarts` (0 to 100,000) in a span of `within`; and for how long the
/// handler is suspended then. A handler is restarted when it has thrown something that is no std::exception; a
/// std::exception, and an error that it returns, is a failure of its message alone, and suspends nothing.
struct Intensity {
    std::uint32_t restarts{3};
    Duration within{std::chrono::seconds(5)};
    /// How long the first suspension lasts, 1 ms to 100 years; each lasts twice as long as the one before, up to
    /// `longest_suspension`. `forever`: until resume().
    Duration suspension{std::chrono::seconds(1)};
    /// How long a suspension lasts at most, 1 ms to 100 years.
    Duration longest_suspension{std::chrono::seconds(60)};

    /// Restarts without a limit: the handler is never suspended.
    static Intensity unlimited() noexcept { return Intensity{PACE_UNLIMITED32, nanoseconds(1)}; }
    /// A suspension lasts until resume().
    Intensity &set_suspend_for_good() noexcept { return suspension = FOREVER, *this; }
    /// How long the first suspension lasts, and the longest one.
    Intensity &set_suspension(Duration first, Duration longest) noexcept {
        return suspension = first, longest_suspension = longest, *this;
    }
};

/// Counts the restarts of several subscriptions and replays, and suspends all of them when there are too many.
class [[nodiscard]] Supervisor {
public:
    static Result<Supervisor> create(RestartStrategy strategy, Intensity intensity = {}) {
        pace_supervisor_t *raw = nullptr;
        const pace_status_t status = pace_supervisor_new(
            static_cast<std::uint32_t>(strategy), intensity.restarts, detail::nanos(intensity.within),
            detail::limit_nanos(intensity.suspension), detail::limit_nanos(intensity.longest_suspension),
            &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Supervisor(raw);
    }

    /// Whether its subscriptions are suspended.
    bool is_suspended() const noexcept {
        bool suspended = false;
        return pace_supervisor_is_suspended(raw_.get(), &suspended) == PACE_OK && suspended;
    }

    /// For calls to paceline.h. Stays the Supervisor's.
    const pace_supervisor_t *native() const noexcept { return raw_.get(); }

private:
    explicit Supervisor(pace_supervisor_t *raw) : raw_(raw, pace_supervisor_free) {}

    std::shared_ptr<pace_supervisor_t> raw_;
};

/// Which member of a group gets a message.
class Balance {
public:
    static Balance round_robin() { return Balance(PACE_BALANCE_ROUND_ROBIN); }
    static Balance least_loaded() { return Balance(PACE_BALANCE_LEAST_LOADED); }
    static Balance random(std::uint64_t seed = 0) { return Balance(PACE_BALANCE_RANDOM, {}, seed); }
    /// All messages of a key go to one member, in order, also while members come and go.
    static Balance by_key() { return Balance(PACE_BALANCE_BY_KEY); }
    /// As by_key(), by the value of the first header of this name.
    static Balance by_header(std::string_view name) {
        return Balance(PACE_BALANCE_BY_HEADER, std::string(name));
    }

private:
    friend struct SubscriptionConfig;
    explicit Balance(std::uint32_t kind, std::string header = {}, std::uint64_t seed = 0)
        : kind_(kind), header_(std::move(header)), seed_(seed) {}

    std::uint32_t kind_;
    std::string header_;
    std::uint64_t seed_;
};

/// Which messages come into a mailbox. Copies are the same filter.
///
///     auto urgent = MessageFilter::header("kind", "alarm").value() ||
///                   MessageFilter::bytes(0, "!").value();
class MessageFilter {
public:
    // What is moved is copied, so that there is always one.
    MessageFilter(const MessageFilter &) = default;
    MessageFilter &operator=(const MessageFilter &) = default;

    /// Messages that have a header of this name with this value.
    static Result<MessageFilter> header(const detail::Text &name, const detail::Text &value) {
        pace_message_filter_t *raw = nullptr;
        return made(pace_message_filter_header(name.c_str(), value.c_str(), &raw), raw);
    }
    /// Messages whose payload has these bytes, so many bytes after its beginning.
    static Result<MessageFilter> bytes(std::size_t offset, std::string_view bytes) {
        pace_message_filter_t *raw = nullptr;
        return made(pace_message_filter_bytes(offset, bytes.data(), bytes.size(), &raw), raw);
    }
    /// Messages that are published at `from` or later and before `to`.
    static Result<MessageFilter> published(detail::SystemTime from, detail::SystemTime to) {
        pace_message_filter_t *raw = nullptr;
        return made(pace_message_filter_time(from.nanos_since_1970, to.nanos_since_1970, &raw), raw);
    }
    /// So many messages in each `per`, evenly spread, and `burst` at once after a time with fewer. It uses
    /// one up whenever it is asked, so it belongs behind others.
    static Result<MessageFilter> at_most(std::uint32_t messages, Duration per = std::chrono::seconds(1),
                                         std::uint32_t burst = 1) {
        pace_message_filter_t *raw = nullptr;
        return made(pace_message_filter_rate(messages, detail::nanos(per), burst, &raw), raw);
    }
    /// Messages of which a bool(const Message &) says so. Publishers call it, several at once. A message at
    /// which it throws does not pass, and counts in filter_failures.
    template <class F>
    static Result<MessageFilter> test(F &&says);

    friend MessageFilter operator&&(const MessageFilter &a, const MessageFilter &b) {
        pace_message_filter_t *raw = nullptr;
        (void)pace_message_filter_and(a.native(), b.native(), &raw);
        return MessageFilter(raw);
    }
    friend MessageFilter operator||(const MessageFilter &a, const MessageFilter &b) {
        pace_message_filter_t *raw = nullptr;
        (void)pace_message_filter_or(a.native(), b.native(), &raw);
        return MessageFilter(raw);
    }
    MessageFilter operator!() const {
        pace_message_filter_t *raw = nullptr;
        (void)pace_message_filter_not(native(), &raw);
        return MessageFilter(raw);
    }

    /// For calls to paceline.h. Stays the MessageFilter's.
    const pace_message_filter_t *native() const noexcept { return raw_.get(); }

private:
    explicit MessageFilter(pace_message_filter_t *raw) : raw_(raw, pace_message_filter_free) {}

    /// `raw` is looked at when the status is known, in whatever order arguments are evaluated.
    static Result<MessageFilter> made(pace_status_t status, pace_message_filter_t *const &raw) {
        return status == PACE_OK ? Result<MessageFilter>(MessageFilter(raw))
                                 : Result<MessageFilter>(Error::last(status));
    }

    std::shared_ptr<pace_message_filter_t> raw_;
};

/// The settings of a subscription: execution, mailbox, failures, filter, group.
struct SubscriptionConfig {
    Execution execution = Execution::Serial;
    /// For Execution::Concurrent: 1 to 1024.
    std::uint32_t threads = 1;
    /// How many messages may wait, 1 to 2^24.
    std::uint64_t capacity = 1024;
    /// What happens to a message for a full mailbox. By default nothing is lost unseen: publishers wait for room in the
    /// mailbox of a handler, and where they may not wait, publishing fails with Code::Full; a mailbox of the host
    /// refuses.
    Overflow overflow = Overflow::Default;
    /// For Overflow::Block: how long a publisher waits at most.
    Duration block{FOREVER};
    /// For mailboxes: the subscription ends when no thread has taken a message for so long, at least 1 ms.
    std::optional<Duration> lease{};
    /// Delivers messages by their priority.
    bool by_priority = false;
    /// How a message that the handler fails at is tried again, and what then becomes of it.
    std::optional<Retry> retry{};
    OnExhausted on_exhausted = OnExhausted::DeadLetter;
    /// More restarts suspend it for a while. Without one: 3 in 5 seconds.
    std::optional<Intensity> intensity{};
    /// Restarts it together with others, in place of an intensity of its own.
    std::optional<Supervisor> supervisor{};
    /// Which messages come into the mailbox.
    std::optional<MessageFilter> filter{};
    /// Shares the messages with all of the same group and pattern: each goes to one of them.
    std::string group{};
    Balance balance = Balance::round_robin();
    /// Measures how long messages take from publishing to the handler, or to the thread that takes them: the latencies of
    /// SubscriptionStats. Each thread that serves it takes 43 KB for that.
    bool measured = false;
    /// For mailboxes of a host that runs a handler of its own: what was taken counts as running until
    /// Mailbox::acknowledge().
    bool acknowledged = false;
    /// Refuses the subscription if its pattern has one of the same name, whatever language it was made in.
    std::string unique{};

    SubscriptionConfig &set_acknowledged(bool value) { return acknowledged = value, *this; }
    SubscriptionConfig &set_unique(std::string_view value) { return unique = value, *this; }
    SubscriptionConfig &set_measured(bool value) { return measured = value, *this; }
    SubscriptionConfig &set_on_failure(OnExhausted value, std::optional<Retry> before = {}) {
        return on_exhausted = value, retry = before, *this;
    }
    SubscriptionConfig &set_intensity(Intensity value) { return intensity = value, *this; }
    SubscriptionConfig &set_supervisor(Supervisor value) { return supervisor = std::move(value), *this; }
    SubscriptionConfig &set_filter(MessageFilter value) { return filter = std::move(value), *this; }
    SubscriptionConfig &set_group(std::string_view name, Balance how = Balance::round_robin()) {
        return group = name, balance = std::move(how), *this;
    }
    SubscriptionConfig &set_execution(Execution value, std::uint32_t on_threads = 1) {
        return execution = value, threads = on_threads, *this;
    }
    SubscriptionConfig &set_capacity(std::uint64_t value) { return capacity = value, *this; }
    SubscriptionConfig &set_overflow(Overflow value, Duration wait = FOREVER) {
        return overflow = value, block = wait, *this;
    }
    SubscriptionConfig &set_lease(Duration value) { return lease = value, *this; }
    SubscriptionConfig &set_by_priority(bool value) { return by_priority = value, *this; }

    pace_subscription_options_t native() const noexcept {
        pace_subscription_options_t raw{};
        (void)pace_subscription_options_init(&raw, sizeof raw);
        raw.execution = static_cast<std::uint32_t>(execution);
        raw.threads = threads;
        raw.overflow = static_cast<std::uint32_t>(overflow);
        raw.capacity = capacity;
        raw.block_ns = detail::nanos(block);
        raw.lease_ns = lease ? detail::limit_nanos(*lease) : 0;
        raw.by_priority = by_priority;
        if (retry) {
            raw.retry = retry->native();
        }
        raw.on_exhausted = static_cast<std::uint32_t>(on_exhausted);
        if (intensity) {
            raw.restarts = intensity->restarts;
            raw.within_ns = detail::limit_nanos(intensity->within);
            raw.suspension_ns = detail::limit_nanos(intensity->suspension);
            raw.longest_suspension_ns = detail::limit_nanos(intensity->longest_suspension);
        }
        raw.supervisor = supervisor ? supervisor->native() : nullptr;
        raw.filter = filter ? filter->native() : nullptr;
        raw.group = detail::c_text_if_any(group);
        raw.balance = balance.kind_;
        raw.balance_header = detail::c_text(balance.header_);
        raw.balance_seed = balance.seed_;
        raw.measured = measured;
        raw.acknowledged = acknowledged;
        raw.unique = detail::c_text_if_any(unique);
        return raw;
    }
};

/// The counts of a subscription. Fields as in pace_subscription_stats_t.
struct SubscriptionStats : pace_subscription_stats_t {
    SubscriptionStats() noexcept : pace_subscription_stats_t{} {
        struct_size = sizeof(pace_subscription_stats_t);
    }
};

template <class F>
Result<MessageFilter> MessageFilter::test(F &&says) {
    using D = std::decay_t<F>;
    static_assert(std::is_invocable_r_v<bool, D &, const Message &>, "a test is bool(const Message &)");
    if (auto refused = detail::refused_if_empty(says, "says")) {
        return *std::move(refused);
    }
    auto box = detail::boxed(std::forward<F>(says));
    const auto ask = [](void *data, const pace_message_t *raw) noexcept -> std::int32_t {
        std::int32_t passes = -1;
        (void)detail::guard([&] { passes = (*static_cast<D *>(data))(Message(*raw)) ? 1 : 0; });
        return passes;
    };
    pace_message_filter_t *raw = nullptr;
    const pace_status_t status = pace_message_filter_test(ask, box.get(), detail::drop_box<D>, &raw);
    if (status == PACE_OK) {
        (void)box.release();
    }
    return made(status, raw);
}

/// A subscription. When it goes it unsubscribes as Unsubscribe::Sync: what waits is discarded, and the destructor returns
/// when the handler does not run and has been deleted. Inside a handler, and on a thread of the pool, it does not wait:
/// no call begins, and the handler is deleted after the last. drain() handles what waits; unsubscribe() does not wait
/// for the handler unless it is told to; detach() keeps it.
class [[nodiscard]] Subscription {
public:
    Subscription(Subscription &&other) noexcept
        : core_(std::move(other.core_)), id_(std::exchange(other.id_, pace_subscription_t{})) {}
    Subscription &operator=(Subscription other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        return *this;
    }
    ~Subscription() {
        if (id_.id != 0) {
            const detail::Waits waits;
            (void)pace_hub_unsubscribe(core_->hub, id_, PACE_UNSUBSCRIBE_SYNC, nullptr);
        }
    }

    /// Ends it. True: no handler runs or will run, and it has been deleted. False: one runs, is not waited for, and is
    /// deleted when it has returned. This is empty afterwards.
    Result<bool> unsubscribe(Unsubscribe how = Unsubscribe::Async) {
        if (id_.id == 0) {
            return detail::gone("Subscription");
        }
        bool ended = false;
        const detail::Waits waits;
        const pace_status_t status = pace_hub_unsubscribe(core_->hub, std::exchange(id_, {}),
                                                          static_cast<std::uint32_t>(how), &ended);
        return status == PACE_OK ? Result<bool>(ended) : Result<bool>(Error::last(status));
    }
    /// Ends it as with Unsubscribe::Drain, and waits for up to `within` until all that waits has been handled.
    /// What is left then is discarded: how many messages. Code::WouldDeadlock inside a handler or on a thread
    /// of the pool: it goes on then.
    Result<std::uint64_t> drain(Duration within) {
        if (id_.id == 0) {
            return detail::gone("Subscription");
        }
        std::uint64_t discarded = 0;
        const detail::Waits waits;
        const pace_status_t status =
            pace_subscription_drain(core_->hub, id_, detail::nanos(within), &discarded);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        id_ = {};
        return discarded;
    }
    /// Its counts, as they are now.
    Result<SubscriptionStats> stats() const {
        if (id_.id == 0) {
            return detail::gone("Subscription");
        }
        SubscriptionStats stats;
        const pace_status_t status = pace_subscription_stats(core_->hub, id_, &stats);
        return status == PACE_OK ? Result<SubscriptionStats>(stats)
                                 : Result<SubscriptionStats>(Error::last(status));
    }
    /// Ends its suspension now, and that of all others of its supervisor. False: none was suspended.
    Result<bool> resume() const {
        if (id_.id == 0) {
            return detail::gone("Subscription");
        }
        bool resumed = false;
        const pace_status_t status = pace_hub_resume(core_->hub, id_, &resumed);
        return status == PACE_OK ? Result<bool>(resumed) : Result<bool>(Error::last(status));
    }
    /// Lets it last as long as its hub.
    void detach() noexcept { id_ = {}; }

private:
    friend class Hub;
    friend class Webhook;
    Subscription(std::shared_ptr<const detail::HubCore> core, pace_subscription_t id) noexcept
        : core_(std::move(core)), id_(id) {}

    std::shared_ptr<const detail::HubCore> core_;
    pace_subscription_t id_;
};

class CompletionQueue;

namespace detail {

/// What mailboxes of subscriptions and of replays have in common.
class HostMailbox {
public:
    HostMailbox(HostMailbox &&other) noexcept
        : core_(std::move(other.core_)), raw_(std::exchange(other.raw_, nullptr)) {}
    HostMailbox &operator=(HostMailbox &&other) noexcept {
        HostMailbox taken(std::move(other));
        std::swap(core_, taken.core_);
        std::swap(raw_, taken.raw_);
        return *this;
    }

    /// Of a mailbox that is `acknowledged`: says what became of the messages that were taken first, in the order in which
    /// they were taken: dealt with, failed for good, and thrown away. A message whose completion fails is a dead letter,
    /// and needs none. Code::Invalid for more than were taken and are not acknowledged.
    Result<void> acknowledge(std::uint64_t delivered, std::uint64_t failed = 0,
                             std::uint64_t discarded = 0) const {
        return outcome(pace_mailbox_acknowledge(raw_, delivered, failed, discarded));
    }
    /// Of a mailbox that is `acknowledged`: the host's handler has crashed. That counts as a restart by the intensity or the
    /// supervisor of the mailbox, and is told under $SYS.subscription.restarted and by Hub::errors(). True: the host
    /// restarts the handler and goes on. False: that was once too often, so it and all others of its supervisor are
    /// suspended as their handlers would be.
    Result<bool> crashed(std::string_view failure) const {
        std::uint64_t lasts = 0;
        const pace_status_t status = pace_mailbox_crashed(raw_, shown_text(failure).c_str(), &lasts);
        return status == PACE_OK ? Result<bool>(lasts == 0) : Result<bool>(Error::last(status));
    }
    /// To be asked before the host's handler gets a message. True: it is to be restarted first, because another of its
    /// supervisor has crashed and all are restarted, or because a suspension has ended; that counts as a restart.
    Result<bool> catch_up() const {
        bool restarts = false;
        const pace_status_t status = pace_mailbox_catch_up(raw_, &restarts, nullptr);
        return status == PACE_OK ? Result<bool>(restarts) : Result<bool>(Error::last(status));
    }
    /// Suspends it as a supervisor would, for so long, or until resume(): what waits for a subscription, and what comes,
    /// becomes dead letters; what comes to a replay stays in the history, and nothing is brought. False: it was suspended
    /// before, or has ended.
    Result<bool> suspend(Duration lasts = FOREVER) const {
        bool suspended = false;
        const pace_status_t status = pace_mailbox_suspend(raw_, nanos(lasts), &suspended);
        return status == PACE_OK ? Result<bool>(suspended) : Result<bool>(Error::last(status));
    }
    /// Ends a suspension. False: there was none.
    Result<bool> resume() const {
        bool resumed = false;
        const pace_status_t status = pace_mailbox_resume(raw_, &resumed);
        return status == PACE_OK ? Result<bool>(resumed) : Result<bool>(Error::last(status));
    }
    /// Ends it: a completion queue is told so by EntryKind::Ended. With Unsubscribe::Drain what waits for a subscription
    /// still comes. True: nothing is left.
    Result<bool> unsubscribe(Unsubscribe how = Unsubscribe::Async) const {
        bool ended = false;
        const pace_status_t status =
            pace_mailbox_unsubscribe(raw_, static_cast<std::uint32_t>(how), &ended);
        return status == PACE_OK ? Result<bool>(ended) : Result<bool>(Error::last(status));
    }

protected:
    friend CompletionQueue;
    HostMailbox(std::shared_ptr<const HubCore> core, pace_mailbox_t *raw) noexcept
        : core_(std::move(core)), raw_(raw) {}
    ~HostMailbox() { pace_mailbox_free(raw_); }

    std::shared_ptr<const HubCore> core_;
    pace_mailbox_t *raw_;
};

} // namespace detail

/// A subscription whose messages wait for the host's own threads, which take them by CompletionQueue::attach().
class [[nodiscard]] Mailbox : public detail::HostMailbox {
public:
    /// Its counts; what a completion queue has brought counts as delivered, or if it is `acknowledged` as running.
    Result<SubscriptionStats> stats() const {
        SubscriptionStats stats;
        const pace_status_t status = pace_mailbox_stats(raw_, &stats);
        return status == PACE_OK ? Result<SubscriptionStats>(stats)
                                 : Result<SubscriptionStats>(Error::last(status));
    }

private:
    friend class Hub;
    using HostMailbox::HostMailbox;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_SUBSCRIPTION_HPP
