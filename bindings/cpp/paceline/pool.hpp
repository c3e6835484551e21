// paceline/pool.hpp: pools of threads: tasks, descriptors, timers, rings, signals.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_POOL_HPP
#define PACELINE_POOL_HPP

#include "log.hpp"
#include "task.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// What a descriptor is watched for.
class Interest {
public:
    constexpr explicit Interest(std::uint32_t bits) noexcept : bits_(bits) {}

    static constexpr Interest readable() noexcept { return Interest(PACE_INTEREST_READABLE); }
    static constexpr Interest writable() noexcept { return Interest(PACE_INTEREST_WRITABLE); }
    static constexpr Interest priority() noexcept { return Interest(PACE_INTEREST_PRIORITY); }

    friend constexpr Interest operator|(Interest one, Interest other) noexcept {
        return Interest(one.bits_ | other.bits_);
    }
    /// The conditions as a number: PACE_INTEREST_ bits, or-ed.
    constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    std::uint32_t bits_;
};

/// Inside a handler: "I am about to block". Leadership is handed to a thread that is awake, so that
/// others do not wait for this one. Once per handler; elsewhere it does nothing.
inline Result<void> promote_new_leader() {
    const pace_status_t status = pace_promote_new_leader();
    return status == PACE_OK ? Result<void>() : Result<void>(Error::last(status));
}

/// While it lives, the calling thread has the signal mask and the CPUs of the thread that built its pool, so that programs
/// (posix_spawn, std::system, popen) and threads (std::thread) that it starts inherit those. A thread of a pool blocks the
/// signals that are for the program and may be pinned to one CPU: a program that is started without this ignores SIGTERM and
/// Ctrl-C, and threads share one CPU. Signals that a Signals watches are let through. On a thread that is no pool's it
/// does nothing. It is of one thread. A child of fork() has all that by itself.
class [[nodiscard]] Unconfined {
public:
    Unconfined() noexcept { pace_unconfine(); }
    ~Unconfined() { pace_confine(); }
    Unconfined(const Unconfined &) = delete;
    Unconfined &operator=(const Unconfined &) = delete;
};

// ---- handles and timers --------------------------------------------------------------------------

namespace detail {
template <class F>
struct HandlerBox;
} // namespace detail

/// How a descriptor is registered. In C++20: `{.interest = Interest::writable(), .paused = true}`.
struct HandleOptions {
    /// Default: reading and writing; with `level` only reading, since a descriptor is writable nearly always.
    std::optional<Interest> interest{};
    /// Call for as long as the descriptor is ready, not when it becomes so; for libraries that do
    /// not read until EAGAIN.
    bool level{};
    /// The handler may block: hand leadership to a thread that is awake before each call.
    bool may_block{};
    /// Begin paused, as HandleRef::pause() does. Default: no.
    bool paused{};

    HandleOptions &set_interest(Interest value) { return interest = value, *this; }
    HandleOptions &set_level(bool value = true) { return level = value, *this; }
    HandleOptions &set_may_block(bool value = true) { return may_block = value, *this; }
    HandleOptions &set_paused(bool value = true) { return paused = value, *this; }

    /// As a struct of paceline.h.
    pace_handle_options_t native() const noexcept {
        pace_handle_options_t options{};
        (void)pace_handle_options_init(&options, sizeof options);
        if (interest || level) {
            options.interest = interest.value_or(Interest::readable()).bits();
        }
        options.level = level;
        options.may_block = may_block;
        options.paused = paused;
        return options;
    }
};

/// A handle's number, to steer it with: for its own handler, and for what that handler starts. It owns nothing. An empty
/// one, and one whose pool has ended: Code::Stale.
class HandleRef {
public:
    HandleRef() noexcept = default;

    /// No more calls before resume(). What arrives meanwhile is kept, and delivered then. The handler of an
    /// edge-triggered descriptor is still told of an error or a hang-up, once in each pause. Of pause() and
    /// resume(), by all threads, the last call counts.
    Result<void> pause() const { return call(pace_handle_pause); }
    /// Ends a pause, also one that the handler, which runs now, asks for by Flow::Pause when it returns.
    Result<void> resume() const { return call(pace_handle_resume); }

    /// When it succeeds the handler does not run, never will, and is deleted. Inside a handler, of
    /// one that runs at this moment (its own, for example): Code::Closing, and the same is true when
    /// that returns. Code::Stale: it was closed before.
    Result<void> deregister() const { return call(pace_handle_deregister); }

    Result<bool> is_open() const {
        const detail::SharedCore core = core_.lock();
        if (!core) {
            return detail::gone("handle");
        }
        bool open = false;
        const pace_status_t status = pace_handle_is_open(core->pool, id_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }

    pace_handle_t native() const noexcept { return id_; }

private:
    friend class Handle;
    template <class F>
    friend struct detail::HandlerBox;

    HandleRef(detail::WeakCore core, pace_handle_t id) noexcept : core_(std::move(core)), id_(id) {}

    Result<void> call(pace_status_t (*f)(const pace_pool_t *, pace_handle_t)) const {
        const detail::SharedCore core = core_.lock();
        return core ? detail::outcome(f(core->pool, id_)) : detail::gone("handle");
    }

    detail::WeakCore core_;
    pace_handle_t id_{};
};

/// A registered descriptor or periodic timer. When it goes it is deregistered: the destructor returns when the handler
/// does not run and has been deleted. Inside a handler, and on a thread of the pool, it does not wait.
class [[nodiscard]] Handle {
public:
    Handle() noexcept = default;
    Handle(Handle &&other) noexcept
        : core_(std::move(other.core_)), ref_(std::exchange(other.ref_, HandleRef())) {}
    Handle &operator=(Handle other) noexcept {
        std::swap(core_, other.core_);
        std::swap(ref_, other.ref_);
        return *this;
    }
    ~Handle() {
        if (core_) {
            const detail::Waits waits;
            (void)pace_handle_deregister(core_->pool, ref_.native());
        }
    }

    /// As HandleRef's methods. One that was moved from, deregistered or detached: Code::Stale.
    Result<void> pause() const { return core_ ? ref_.pause() : detail::gone("handle"); }
    Result<void> resume() const { return core_ ? ref_.resume() : detail::gone("handle"); }
    Result<bool> is_open() const { return core_ ? ref_.is_open() : detail::gone("handle"); }

    /// As HandleRef::deregister(); this is empty afterwards.
    Result<void> deregister() {
        if (!core_) {
            return detail::gone("handle");
        }
        const detail::SharedCore core = std::move(core_);
        return ref_.deregister();
    }

    /// It lasts until its handler answers Flow::Done or the pool ends. This is empty afterwards.
    HandleRef detach() noexcept {
        core_.reset();
        return ref_;
    }

    HandleRef ref() const noexcept { return ref_; }
    pace_handle_t native() const noexcept { return ref_.native(); }

private:
    friend class Pool;
    friend class CompletionQueue;

    Handle(detail::SharedCore core, pace_handle_t id) noexcept
        : core_(std::move(core)), ref_(core_, id) {}

    detail::SharedCore core_;
    HandleRef ref_;
};

namespace detail {

/// What a Timer shares with its callable.
class TimerRun {
public:
    /// Waits until the callable has returned and was deleted, or will not be called. Not inside it.
    Result<void> wait(const Core &core, Duration time) const {
        const auto began = std::chrono::steady_clock::now();
        std::unique_lock<std::mutex> lock(mutex_);
        if (!ended_ && runner_ == std::this_thread::get_id()) {
            return Error(Code::WouldDeadlock, "a timer cannot wait for itself");
        }
        if (!ended_) {
            // On a thread of the pool others go on meanwhile.
            (void)pace_promote_new_leader();
        }
        std::int32_t fd = -1;
        const bool has_threads = ended_ || pace_pool_pollable(core.pool, &fd) != PACE_OK;
        while (!ended_) {
            const auto waited = std::chrono::steady_clock::now() - began;
            if (waited >= time) {
                return Error(Code::TimedOut);
            }
            if (!has_threads) {
                // This thread may be the only one that drives the pool.
                lock.unlock();
                (void)pace_pool_join(core.pool, 0, nullptr);
                lock.lock();
            }
            const nanoseconds most = has_threads ? nanoseconds(std::chrono::hours(1))
                                                 : nanoseconds(std::chrono::milliseconds(1));
            (void)changed_.wait_for(lock, std::min<nanoseconds>(time - waited, most),
                                    [this] { return ended_; });
        }
        return {};
    }

protected:
    ~TimerRun() = default;

    void begin() {
        takes_over();
        const std::lock_guard<std::mutex> lock(mutex_);
        runner_ = std::this_thread::get_id();
    }
    void end() {
        const std::lock_guard<std::mutex> lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::thread::id runner_{};
    bool ended_ = false;
};

/// A timer's callable, which ends before what its Timer keeps.
template <class F>
class TimedCall final : public TimerRun {
public:
    template <class G>
    explicit TimedCall(G &&g) : f(std::forward<G>(g)) {}

    static void run(void *data, std::int32_t *result) noexcept {
        auto &call = *static_cast<TimedCall *>(data);
        call.begin();
        *result = guard([&] { return std::move(*call.f)(); }) ? PACE_OK : PACE_EFAILED;
    }
    static void drop(void *data) noexcept {
        const auto call = std::move(static_cast<TimedCall *>(data)->self);
        call->f.drop();
        call->end();
    }

    Kept<F> f;
    /// The share of C, which it gives up by drop().
    std::shared_ptr<TimedCall> self{};
};

} // namespace detail

/// A one-shot timer. When it is destroyed the timer still runs; cancel_and_wait() ends it.
class Timer {
public:
    Timer() noexcept = default;
    Timer(Timer &&) noexcept = default;
    Timer &operator=(Timer &&) noexcept = default;

    /// Whether it was cancelled by this call; one that runs or has run is not.
    Result<bool> cancel() const {
        return ask([](pace_pool_t *pool, pace_timer_t id, bool *done) {
            return pace_timer_cancel(pool, id, done);
        });
    }

    /// Cancels it, or waits for the run in progress: when it returns without an error the callable does not run, will not,
    /// and was deleted. True: it never ran. Code::WouldDeadlock inside the callable.
    Result<bool> cancel_and_wait() const {
        const auto cancelled = cancel();
        const auto ended = cancelled ? wait() : Result<void>(cancelled.error());
        return ended ? cancelled : Result<bool>(ended.error());
    }

    /// Waits for up to `time` until it has run, or was cancelled, and the callable was deleted: Code::TimedOut.
    /// Code::WouldDeadlock inside the callable. In a pool without threads the caller takes part meanwhile, as in
    /// Pool::join().
    Result<void> wait(Duration time = FOREVER) const {
        return run_ ? run_->wait(*core_, time) : detail::gone("timer");
    }

    /// Puts it off until `delay` from now, not earlier than it was due (then nothing changes). False
    /// if it has begun or has run; one that begins at this very moment may still run once.
    Result<bool> postpone(Duration delay) const {
        return ask([delay](pace_pool_t *pool, pace_timer_t id, bool *done) {
            return pace_timer_postpone(pool, id, detail::nanos(delay), done);
        });
    }

    Result<bool> is_pending() const {
        return ask([](pace_pool_t *pool, pace_timer_t id, bool *done) {
            return pace_timer_is_pending(pool, id, done);
        });
    }

    pace_timer_t native() const noexcept { return id_; }

private:
    friend class Pool;
    friend class CompletionQueue;

    Timer(detail::SharedCore core, pace_timer_t id,
          std::shared_ptr<const detail::TimerRun> run = nullptr) noexcept
        : core_(std::move(core)), id_(id), run_(std::move(run)) {}

    template <class Question>
    Result<bool> ask(Question question) const {
        if (!core_) {
            return detail::gone("timer");
        }
        bool answer = false;
        const pace_status_t status = question(core_->pool, id_, &answer);
        return status == PACE_OK ? Result<bool>(answer) : Result<bool>(Error::last(status));
    }

    detail::SharedCore core_;
    pace_timer_t id_{};
    /// None if a completion queue brings it.
    std::shared_ptr<const detail::TimerRun> run_;
};

// ---- statistics ----------------------------------------------------------------------------------

/// One thread's counters, since the pool began. Fields as in pace_thread_stats_t.
struct ThreadStats {
    Role role{};
    /// The CPU that it is pinned to.
    std::optional<std::uint32_t> cpu{};
    bool pin_failed{};
    std::uint64_t terms{}, handovers{}, rescues{}, events{}, handled{}, tasks{}, panics{}, stolen{},
        parked{}, ticks{};
    /// The kernel's number of the thread. Of a host thread's place: of the thread that has it, or had it last.
    std::optional<std::uint32_t> native_id{};
};

/// The counters of one handle set, since the pool was made.
struct SetStats {
    /// The thread that leads, if one does.
    std::optional<std::uint32_t> leader{};
    std::uint64_t harvests{}, surplus{};
};

/// What a pool is doing and has done. Each number is exact; together they are no snapshot.
struct Stats {
    std::vector<ThreadStats> threads{};
    std::vector<SetStats> sets{};
    std::uint32_t parked{};
    /// The follower that looks out for stuck work, if one does.
    std::optional<std::uint32_t> watch{};
    std::uint64_t handles{}, wakes{};
    /// Tasks that wait, by Lane.
    std::array<std::uint64_t, 4> queued{};
};

/// The books of all tasks. At rest, `balances` is exact.
struct Audit {
    bool balances{};
    std::uint64_t submitted{}, accepted{}, rejected{}, completed{}, failed{}, cancelled{}, in_flight{};
};

/// What a shutdown of the pool has ended, cut off or left.
struct Report {
    /// Everything that had been accepted has ended: nothing was cut off, cancelled or left, and no handler still runs.
    /// If it is false, the counts say what was.
    bool drained{};
    /// It was called inside a handler, so it was only a request.
    bool requested{};
    /// Tasks that were accepted and will not run, and one-shot timers that were not due. (These do not count
    /// against `drained`.) This and what follows is what has come about since the first shutdown of the pool began.
    std::uint64_t cancelled{};
    /// Threads whose handlers have not returned: in Stats::threads, those that are not Role::Away.
    std::uint32_t stuck{};
    /// Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
    /// be handled.
    std::uint64_t left{};
    /// Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
    /// host has taken from a completion queue and not completed.
    std::uint64_t worker_tasks{};
    /// Of servers: connections that were cut off, as they were not through.
    std::uint64_t connections{};
};

/// Something that takes, or took, longer than Config::slow.
struct SlowReport {
    std::uint32_t thread{};
    nanoseconds elapsed{};
    /// Whether the handler or task still runs now.
    bool running{};
};

// ---- the pool ------------------------------------------------------------------------------------

namespace detail {
struct Hooks;
}

/// Settings of a pool. What is not set is the library's choice; ranges and defaults are those of
/// pace_pool_config_t. In C++20: `Pool::create({.threads = 2, .name = "io"})`; in C++17:
/// `Pool::create(Config().set_threads(2).set_name("io"))`.
struct Config {
    /// 0: only host threads drive it, by join(), or by CompletionQueue::wait().
    std::optional<std::uint32_t> threads{};
    /// How many host threads may take part at once.
    std::optional<std::uint32_t> max_joined{};
    std::optional<std::uint32_t> leaders{};
    Source source{Source::Epoll};
    Promotion promotion{Promotion::Deferred};
    std::optional<Duration> watch_period{};
    std::optional<Duration> spin{};
    /// How long a thread works on ready work before it looks at everything that waits. Default 1 ms.
    std::optional<Duration> max_turn{};
    std::optional<std::uint32_t> lane_capacity{};
    std::optional<std::uint32_t> strand_capacity{};
    std::optional<std::uint32_t> max_handles{};
    /// "none", "compact", "spread", or a list such as "0,2,4-7". Empty: the library's choice.
    std::string pin{};
    /// Whether a failure to pin is create()'s error.
    bool pin_strict{};
    /// Threads are called name-0, name-1 … Empty: "paceline".
    std::string name{};
    /// The stack of each thread in bytes, 65536 to 2^32. Default 2 MiB.
    std::optional<std::uint64_t> stack_size{};
    /// Threads that run nothing but tasks of a lane, by Lane.
    std::array<std::uint32_t, 4> reserve{};
    /// After how long a wait in a lane every fourth pick is of that lane; `forever`: never.
    std::optional<Duration> ageing{};
    /// Called on each thread first and last of all, with its index.
    Function<void(std::uint32_t)> on_start{}, on_stop{};
    /// Called for what takes longer than `slow`.
    Function<void(const SlowReport &)> on_slow{};
    Duration slow{};
    /// Where it is told what happens in the pool, and in all that stands on it. None: to the installed one.
    Log log{};

    Config &set_threads(std::uint32_t value) { return threads = value, *this; }
    Config &set_max_joined(std::uint32_t value) { return max_joined = value, *this; }
    Config &set_leaders(std::uint32_t value) { return leaders = value, *this; }
    Config &set_source(Source value) { return source = value, *this; }
    Config &set_promotion(Promotion value) { return promotion = value, *this; }
    Config &set_watch_period(Duration value) { return watch_period = value, *this; }
    Config &set_spin(Duration value) { return spin = value, *this; }
    Config &set_max_turn(Duration value) { return max_turn = value, *this; }
    Config &set_lane_capacity(std::uint32_t value) { return lane_capacity = value, *this; }
    Config &set_strand_capacity(std::uint32_t value) { return strand_capacity = value, *this; }
    Config &set_max_handles(std::uint32_t value) { return max_handles = value, *this; }
    Config &set_pin(std::string_view value) { return pin = value, *this; }
    Config &set_pin_strict(bool value = true) { return pin_strict = value, *this; }
    Config &set_name(std::string_view value) { return name = value, *this; }
    Config &set_stack_size(std::uint64_t value) { return stack_size = value, *this; }
    Config &set_reserve(Lane lane, std::uint32_t value) {
        return reserve[static_cast<std::size_t>(lane)] = value, *this;
    }
    Config &set_ageing(Duration value) { return ageing = value, *this; }
    Config &set_on_start(Function<void(std::uint32_t)> hook) {
        return on_start = std::move(hook), *this;
    }
    Config &set_on_stop(Function<void(std::uint32_t)> hook) { return on_stop = std::move(hook), *this; }
    Config &set_on_slow(Duration limit, Function<void(const SlowReport &)> hook) {
        return slow = limit, on_slow = std::move(hook), *this;
    }
    Config &set_log(Log value) { return log = std::move(value), *this; }
};

namespace detail {

struct Hooks {
    Function<void(std::uint32_t)> on_start, on_stop;
    Function<void(const SlowReport &)> on_slow;

    static void start(void *data, std::uint32_t thread) noexcept {
        guard([&] { static_cast<Hooks *>(data)->on_start(thread); });
    }
    static void stop(void *data, std::uint32_t thread) noexcept {
        guard([&] { static_cast<Hooks *>(data)->on_stop(thread); });
    }
    static void slow(void *data, std::uint32_t thread, std::uint64_t elapsed, bool running) noexcept {
        const SlowReport report{thread, time_of(elapsed), running};
        guard([&] { static_cast<Hooks *>(data)->on_slow(report); });
    }
};

/// A configuration as C has it. The texts stay `config`'s.
inline pace_pool_config_t to_native(const Config &config) noexcept {
    pace_pool_config_t raw{};
    (void)pace_pool_config_init(&raw, sizeof raw);
    const auto set = [](auto &field, const auto &value) {
        if (value) {
            field = *value;
        }
    };
    const auto set_time = [](std::uint64_t &field, const std::optional<Duration> &value) {
        if (value) {
            field = nanos(*value);
        }
    };
    set(raw.threads, config.threads);
    set(raw.max_joined, config.max_joined);
    set(raw.leaders, config.leaders);
    raw.source = static_cast<std::uint32_t>(config.source);
    raw.promotion = static_cast<std::uint32_t>(config.promotion);
    set_time(raw.watch_period_ns, config.watch_period);
    set_time(raw.spin_ns, config.spin);
    set_time(raw.max_turn_ns, config.max_turn);
    set(raw.lane_capacity, config.lane_capacity);
    set(raw.strand_capacity, config.strand_capacity);
    set(raw.max_handles, config.max_handles);
    raw.pin = c_text_if_any(config.pin);
    raw.pin_strict = config.pin_strict;
    raw.name = c_text_if_any(config.name);
    set(raw.stack_size, config.stack_size);
    std::copy(config.reserve.begin(), config.reserve.end(), raw.reserve);
    raw.ageing_ns = config.ageing ? limit_nanos(*config.ageing) : raw.ageing_ns;
    raw.on_start = config.on_start ? Hooks::start : nullptr;
    raw.on_stop = config.on_stop ? Hooks::stop : nullptr;
    raw.on_slow = config.on_slow ? Hooks::slow : nullptr;
    raw.slow_ns = nanos(config.slow);
    raw.log = config.log.native();
    return raw;
}

/// A handler, and the pool that its HandleRef needs.
template <class F>
struct HandlerBox {
    F f;
    /// It is the pool's, and must not keep it.
    WeakCore pool;

    static std::int32_t ready(void *data, pace_handle_t self, std::int32_t fd,
                              std::uint32_t bits) noexcept {
        auto &box = *static_cast<HandlerBox *>(data);
        return guard_flow([&]() -> Flow {
            if constexpr (std::is_invocable_v<F &, HandleRef, int, Ready>) {
                return box.f(HandleRef(box.pool, self), fd, Ready(bits));
            } else {
                return box.f(fd, Ready(bits));
            }
        });
    }

    static std::int32_t tick(void *data, pace_handle_t self) noexcept {
        auto &box = *static_cast<HandlerBox *>(data);
        return guard_flow([&]() -> Flow {
            if constexpr (std::is_invocable_v<F &, HandleRef>) {
                return box.f(HandleRef(box.pool, self));
            } else {
                return box.f();
            }
        });
    }
};

template <class F>
inline constexpr bool is_ready_handler = std::is_invocable_r_v<Flow, F &, int, Ready> ||
                                         std::is_invocable_r_v<Flow, F &, HandleRef, int, Ready>;
template <class F>
inline constexpr bool is_tick_handler =
    std::is_invocable_r_v<Flow, F &> || std::is_invocable_r_v<Flow, F &, HandleRef>;

} // namespace detail

/// A fixed set of threads that take turns at the front, and what they serve.
///
/// When it goes it drains, for up to 30 s, as shutdown() does: what was accepted ends. For an end without a drain
/// call stop_now() before. Inside one of its own handlers that is only a request.
class [[nodiscard]] Pool {
public:
    /// Starts the threads. Code::Invalid names the setting, its value and what is allowed; Code::Os:
    /// the system refuses a thread or a descriptor, or, with pin_strict, to pin.
    static Result<Pool> create(Config config = {}) {
        pace_pool_config_t raw = detail::to_native(config);
        std::unique_ptr<detail::Hooks> hooks;
        if (config.on_start || config.on_stop || config.on_slow) {
            hooks.reset(new detail::Hooks{std::move(config.on_start), std::move(config.on_stop),
                                          std::move(config.on_slow)});
            raw.hook_data = hooks.get();
            raw.hook_drop = detail::drop_box<detail::Hooks>;
        }
        pace_pool_t *pool = nullptr;
        const pace_status_t status = pace_pool_new(&raw, &pool);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        (void)hooks.release();
        return Pool(detail::shared_of<const detail::Core>(pool));
    }

    /// As the section `pool` of settings says. Code::Invalid tells all that is wrong in them.
    static Result<Pool> from_settings(const Settings &settings) {
        pace_pool_config_t config{};
        (void)pace_pool_config_init(&config, sizeof config);
        pace_pool_t *pool = nullptr;
        pace_status_t status = detail::load(settings, config, pace_pool_config_load);
        if (status == PACE_OK) {
            status = pace_pool_new(&config, &pool);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Pool(detail::shared_of<const detail::Core>(pool));
    }

    Pool(Pool &&) noexcept = default;
    Pool &operator=(Pool other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    ~Pool() {
        // Children may keep the Core, so its end is not the pool's. The core stays in place until
        // the handlers have returned: they may know this object.
        if (core_) {
            const detail::Waits waits;
            (void)pace_pool_shutdown(core_->pool, std::uint64_t{30'000'000'000}, nullptr);
        }
    }

    // Tasks, on the lane NORMAL: see LaneRef.

    template <class F>
    Result<void> post(F &&f) const {
        return normal().post(std::forward<F>(f));
    }
    template <class F>
    Result<void> try_post(F &&f) const {
        return normal().try_post(std::forward<F>(f));
    }
    template <class F>
    Result<TaskOf<F>> submit(F &&f) const {
        return normal().submit(std::forward<F>(f));
    }
    template <class F>
    Result<TaskOf<F>> try_submit(F &&f) const {
        return normal().try_submit(std::forward<F>(f));
    }
    template <class C>
    Result<std::size_t> post_batch(C &&work) const {
        return normal().post_batch(work);
    }

    /// The same five methods, for tasks of another priority.
    LaneRef lane(Lane lane) const noexcept { return LaneRef(core_, lane); }

    /// A new strand, with the same methods.
    Result<Strand> strand() const {
        pace_strand_t id{};
        const pace_status_t status = pace_strand_new(native(), &id);
        return made(status, [&] { return Strand(core_, id); });
    }

    // Descriptors and time

    /// Calls `handler(fd, ready)` or `handler(self, fd, ready)`, where self is a HandleRef, when the
    /// descriptor becomes ready; on one thread at a time, so it may have state. It reads or writes
    /// until EAGAIN and answers with a Flow. What it throws closes the handle.
    ///
    /// The descriptor must be non-blocking, stays the caller's, and is to be closed only when the
    /// handler has been deleted: let the handler own it, and that is so by itself.
    ///
    /// Code::Full: all Config::max_handles are in use. Code::Os: epoll refuses the descriptor.
    template <class F>
    Result<Handle> register_fd(int fd, F &&handler) const {
        return register_fd(fd, HandleOptions(), std::forward<F>(handler));
    }
    template <class F>
    Result<Handle> register_fd(int fd, const HandleOptions &options, F &&handler) const {
        using D = std::decay_t<F>;
        static_assert(detail::is_ready_handler<D>,
                      "a handler is Flow(int, Ready) or Flow(HandleRef, int, Ready)");
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        const pace_handle_options_t raw = options.native();
        return add_handler(std::forward<F>(handler),
                           [&](auto *box, pace_drop_fn drop, pace_handle_t *id) {
                               return pace_pool_register(native(), fd, &raw, box->ready, box, drop, id);
                           });
    }

    /// Calls `handler()` or `handler(self)` once in `period`, on one thread at a time, until it
    /// answers Flow::Done or the Handle goes. A period that was missed is not made up for. Code::Invalid for
    /// a period that is not from 1 µs to 100 years.
    template <class F>
    Result<Handle> every(Duration period, F &&handler) const {
        using D = std::decay_t<F>;
        static_assert(detail::is_tick_handler<D>, "a periodic handler is Flow() or Flow(HandleRef)");
        if (auto refused = detail::refused_if_negative(period)) {
            return *std::move(refused);
        }
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        return add_handler(
            std::forward<F>(handler), [&](auto *box, pace_drop_fn drop, pace_handle_t *id) {
                return pace_pool_every(native(), detail::nanos(period), box->tick, box, drop, id);
            });
    }

    /// Calls `f()` once, `delay` from now or later, never earlier. The Timer need not be kept.
    /// Code::Invalid for a delay of more than 100 years.
    template <class F>
    Result<Timer> after(Duration delay, F &&f) const {
        static_assert(detail::is_task<F>, "a timer is called without arguments");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        using Call = detail::TimedCall<std::decay_t<F>>;
        auto call = detail::shared_of<Call>(std::forward<F>(f));
        call->self = call;
        detail::hands_over();
        pace_timer_t id{};
        const pace_status_t status =
            pace_pool_after(native(), detail::nanos(delay), Call::run, call.get(), Call::drop, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(f, *call->f);
            Call::drop(call.get());
            return error;
        }
        return Timer(core_, id, std::move(call));
    }

    // The host's threads

    /// Takes part for a time: handlers run on the calling thread. How many calls it has made.
    /// Code::Full: Config::max_joined threads take part already.
    Result<std::uint64_t> join(Duration time) const {
        std::uint64_t ran = 0;
        const pace_status_t status = pace_pool_join(native(), detail::nanos(time), &ran);
        return made(status, [&] { return ran; });
    }

    /// A descriptor, readable while there may be something to join for, for a pool of no threads inside a
    /// host that has a loop of its own. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_pool_pollable(native(), &fd);
        return made(status, [&] { return static_cast<int>(fd); });
    }

    /// Names what a host thread handles outside the pool, of what CompletionQueue::wait() has brought it: the page,
    /// statistics and health show the name until the thread waits again. The thread is the kernel's number (gettid), 0 for
    /// the calling one. Up to 200 bytes of the name are shown; an empty one is no name. Names are kept as long as the
    /// process, and there is room for some 4,000. Code::Stale if the thread is no host of this pool, or handles nothing.
    Result<void> name_host(std::uint32_t thread, const detail::Text &name) const {
        return detail::outcome(pace_pool_name_host(native(), thread, name.c_str()));
    }

    /// Its figures and those of all that stands on it (servers, HTTP by route, datagram sockets, worker pools, hubs,
    /// completion queues), those of the process and the system, and those of the file systems of add_disk(), as text:
    /// PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS. To serve them, see MetricsFormat. Include
    /// paceline/ops.hpp. WorkerPool::metrics() has these and its own.
    Result<std::string> metrics(std::uint32_t format) const;
    /// From now on metrics() tells the free space and the size of the file system that the path is on, and so do those of
    /// worker pools on this pool. Code::Os if there is no such path. Include paceline/ops.hpp.
    Result<void> add_disk(const detail::Text &path) const;
    /// Records for this time, up to one hour, what each thread does: terms of leadership, waits, handlers and tasks by name with how long they
    /// took, parking, and who woke, relieved or rescued whom. The answer is JSON of the Trace Event format, which
    /// https://ui.perfetto.dev and chrome://tracing open. The calling thread sleeps meanwhile; on a thread of the pool,
    /// another one leads. A thread keeps its last `records` records, 64 to 2^24, of 32 bytes each; 0: 65,536. Code::Invalid
    /// if the pool is recorded already. Include paceline/ops.hpp.
    Result<std::string> trace(Duration time, std::uint32_t records = 0) const;

    // Books and end

    Result<Stats> stats() const {
        pace_pool_stats_t raw{};
        raw.struct_size = sizeof raw;
        const pace_status_t status = pace_pool_stats(native(), &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        Stats stats;
        stats.parked = raw.parked;
        stats.watch = unless_none(raw.watch);
        stats.handles = raw.handles;
        stats.wakes = raw.wakes;
        std::copy(std::begin(raw.queued), std::end(raw.queued), stats.queued.begin());
        for (std::uint32_t n = 0; n < raw.threads; ++n) {
            stats.threads.push_back(thread_stats(n));
        }
        for (std::uint32_t n = 0; n < raw.sets; ++n) {
            stats.sets.push_back(set_stats(n));
        }
        return stats;
    }

    Result<Audit> audit() const {
        pace_audit_t raw{};
        raw.struct_size = sizeof raw;
        const pace_status_t status = pace_pool_audit(native(), &raw);
        return made(status, [&] {
            return Audit{raw.balances,  raw.submitted, raw.accepted,  raw.rejected,
                         raw.completed, raw.failed,    raw.cancelled, raw.in_flight};
        });
    }

    /// Lets only the first `threads` of the ordinary threads work; the others park, and cost nothing.
    Result<void> set_active(std::uint32_t threads) const {
        return detail::outcome(pace_pool_set_active(native(), threads));
    }

    /// Refuses new work, waits for up to `drain` until everything that was accepted has ended (requests of servers,
    /// retries of worker pools and messages of hubs, too), cancels the rest, cuts off connections that are not through,
    /// and stops the threads. Inside a handler it is a request. The destructor of the last Pool does the same, for up
    /// to 30 s.
    Result<Report> shutdown(Duration drain) const {
        return end([&](pace_report_t *report) {
            return pace_pool_shutdown(native(), detail::nanos(drain), report);
        });
    }

    /// As shutdown(), without a drain: what has not begun is cancelled.
    Result<Report> stop_now() const {
        return end([&](pace_report_t *report) { return pace_pool_stop_now(native(), report); });
    }

    /// For calls to paceline.h. Stays the Pool's. NULL, which every function refuses, if it was moved
    /// from.
    pace_pool_t *native() const noexcept { return core_ ? core_->pool : nullptr; }

private:
    template <class F>
    Result<Report> end(F &&f) const {
        pace_report_t raw{};
        const detail::Waits waits;
        raw.struct_size = sizeof raw;
        return made(f(&raw), [&] {
            return Report{raw.drained, raw.requested,    raw.cancelled,  raw.stuck,
                          raw.left,    raw.worker_tasks, raw.connections};
        });
    }

    template <class T>
    friend class Ring;
    friend class Server;
    friend class Http;
    friend class Udp;
    friend class CompletionQueue;
    friend class WorkerPool;
    friend class Signals;
    friend class Hub;

    explicit Pool(detail::SharedCore core) noexcept : core_(std::move(core)) {}

    /// The lane of Pool's own methods, without counting one more owner for each call.
    detail::Posting<const detail::SharedCore &> normal() const noexcept { return {core_, Lane::Normal}; }

    template <class Make>
    static auto made(pace_status_t status, Make make) -> Result<decltype(make())> {
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return make();
    }

    template <class F, class Add>
    Result<Handle> add_handler(F &&handler, Add add) const {
        using Box = detail::HandlerBox<std::decay_t<F>>;
        detail::Boxed<Box> box(new Box{std::forward<F>(handler), core_});
        detail::hands_over();
        pace_handle_t id{};
        const pace_status_t status = add(box.get(), detail::drop_box<Box>, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, box->f);
            return error;
        }
        (void)box.release();
        return Handle(core_, id);
    }

    static std::optional<std::uint32_t> unless_none(std::uint32_t index) noexcept {
        return index == PACE_NONE ? std::nullopt : std::optional<std::uint32_t>(index);
    }

    ThreadStats thread_stats(std::uint32_t thread) const noexcept {
        pace_thread_stats_t raw{};
        raw.struct_size = sizeof raw;
        (void)pace_pool_thread_stats(native(), thread, &raw);
        return {static_cast<Role>(raw.role),
                unless_none(raw.cpu),
                raw.pin_failed,
                raw.terms,
                raw.handovers,
                raw.rescues,
                raw.events,
                raw.handled,
                raw.tasks,
                raw.panics,
                raw.stolen,
                raw.parked,
                raw.ticks,
                raw.native_id == 0 ? std::nullopt : std::optional<std::uint32_t>(raw.native_id)};
    }

    SetStats set_stats(std::uint32_t set) const noexcept {
        pace_set_stats_t raw{};
        raw.struct_size = sizeof raw;
        (void)pace_pool_set_stats(native(), set, &raw);
        return {unless_none(raw.leader), raw.harvests, raw.surplus};
    }

    detail::SharedCore core_;
};

/// The events of one call of a ring's handler, in order. They lie a stride apart, and are good until
/// the handler returns.
template <class T>
class Events {
public:
    class iterator {
    public:
        using iterator_category = std::random_access_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T *;
        using reference = const T &;

        iterator() noexcept = default;

        const T &operator*() const noexcept { return *std::launder(reinterpret_cast<const T *>(at_)); }
        const T *operator->() const noexcept { return &**this; }
        const T &operator[](std::ptrdiff_t n) const noexcept { return *(*this + n); }
        iterator &operator+=(std::ptrdiff_t n) noexcept { return at_ += n * stride_, *this; }
        iterator &operator-=(std::ptrdiff_t n) noexcept { return *this += -n; }
        iterator &operator++() noexcept { return *this += 1; }
        iterator &operator--() noexcept { return *this -= 1; }
        iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
        iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }
        friend iterator operator+(iterator it, std::ptrdiff_t n) noexcept { return it += n; }
        friend iterator operator+(std::ptrdiff_t n, iterator it) noexcept { return it += n; }
        friend iterator operator-(iterator it, std::ptrdiff_t n) noexcept { return it -= n; }
        friend std::ptrdiff_t operator-(iterator a, iterator b) noexcept {
            return (a.at_ - b.at_) / a.stride_;
        }
        friend bool operator==(iterator a, iterator b) noexcept { return a.at_ == b.at_; }
        friend bool operator!=(iterator a, iterator b) noexcept { return a.at_ != b.at_; }
        friend bool operator<(iterator a, iterator b) noexcept { return a.at_ < b.at_; }
        friend bool operator>(iterator a, iterator b) noexcept { return b < a; }
        friend bool operator<=(iterator a, iterator b) noexcept { return !(b < a); }
        friend bool operator>=(iterator a, iterator b) noexcept { return !(a < b); }

    private:
        friend class Events;
        iterator(const unsigned char *at, std::ptrdiff_t stride) noexcept : at_(at), stride_(stride) {}

        const unsigned char *at_ = nullptr;
        std::ptrdiff_t stride_ = sizeof(T);
    };
    using const_iterator = iterator;
    using value_type = T;

    Events(const void *first, std::size_t stride, std::size_t count) noexcept
        : first_(static_cast<const unsigned char *>(first)), stride_(stride), count_(count) {}

    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    iterator begin() const noexcept { return {first_, static_cast<std::ptrdiff_t>(stride_)}; }
    iterator end() const noexcept { return begin() + static_cast<std::ptrdiff_t>(count_); }
    const T &operator[](std::size_t index) const noexcept {
        return begin()[static_cast<std::ptrdiff_t>(index)];
    }

private:
    const unsigned char *first_;
    std::size_t stride_;
    std::size_t count_;
};

/// Fixed-size events from any number of threads, handled in batches. When it goes it is closed, and the destructor
/// returns when what was published has been handled and the handler has been deleted. Inside a handler, and on a thread
/// of the pool, it does not wait: what was published is handled later.
template <class T>
class [[nodiscard]] Ring {
    static_assert(detail::is_plain<T>,
                  "events are trivially copyable, of at most 128 KiB and the alignment of uint64_t");

public:
    /// `handler(Events<T>)` runs on one thread at a time, and sees the events in the order of their
    /// publication. The capacity, 1 to 2^31, is rounded up to a power of two.
    template <class F>
    static Result<Ring> serial(const Pool &pool, std::size_t capacity, F &&handler) {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, Events<T>>, "a handler is void(Events<T>)");
        return make<D>(pool, capacity, std::forward<F>(handler), pace_ring_serial);
    }

    /// `handler(Events<T>)` runs on as many threads as are free, in no order; so it is called as a
    /// const object.
    template <class F>
    static Result<Ring> concurrent(const Pool &pool, std::size_t capacity, F &&handler) {
        using D = std::decay_t<F>;
        static_assert(
            std::is_invocable_v<const D &, Events<T>>,
            "the handler of a concurrent ring is void(Events<T>) const: several threads call it");
        return make<const D>(pool, capacity, std::forward<F>(handler), pace_ring_concurrent);
    }

    Ring(Ring &&other) noexcept
        : core_(std::move(other.core_)), ring_(std::exchange(other.ring_, nullptr)) {}
    Ring &operator=(Ring other) noexcept {
        std::swap(core_, other.core_);
        std::swap(ring_, other.ring_);
        return *this;
    }
    ~Ring() {
        const detail::Waits waits;
        pace_ring_free(ring_);
    }

    /// Publishes one event. From outside the pool it waits while the ring is full; inside a handler
    /// that is Code::Full. Code::ShutDown: the ring is closed, or the pool is.
    Result<void> publish(const T &event) const {
        detail::hands_over();
        return detail::outcome(pace_ring_publish(ring_, std::addressof(event)));
    }
    /// As publish(), but Code::Full at once.
    Result<void> try_publish(const T &event) const {
        detail::hands_over();
        return detail::outcome(pace_ring_try_publish(ring_, std::addressof(event)));
    }
    /// Publishes several in order, waiting as publish() does. The number published, which is less
    /// than all if the rest is refused; an error only if none was.
    Result<std::size_t> publish_batch(span<const T> events) const {
        std::size_t published = 0;
        detail::hands_over();
        const pace_status_t status =
            pace_ring_publish_batch(ring_, events.data(), events.size(), &published);
        if (status != PACE_OK && published == 0) {
            return Error::last(status);
        }
        return published;
    }

    struct Counts {
        std::uint64_t published{}, handled{};
    };
    /// How many events were published and handled so far.
    Result<Counts> counts() const {
        Counts counts;
        const pace_status_t status = pace_ring_counts(ring_, &counts.published, &counts.handled);
        return status == PACE_OK ? Result<Counts>(counts) : Result<Counts>(Error::last(status));
    }

    /// Refuses more. What was published is still handled.
    Result<void> close() const { return detail::outcome(pace_ring_close(ring_)); }

    /// For calls to paceline.h. Stays the Ring's.
    pace_ring_t *native() const noexcept { return ring_; }

private:
    Ring(detail::SharedCore core, pace_ring_t *ring) noexcept : core_(std::move(core)), ring_(ring) {}

    template <class Called, class F, class Make>
    static Result<Ring> make(const Pool &pool, std::size_t capacity, F &&handler, Make make) {
        using D = std::decay_t<F>;
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(handler));
        pace_ring_t *ring = nullptr;
        const pace_status_t status = make(pool.native(), sizeof(T), capacity, handle<Called>, box.get(),
                                          detail::drop_box<D>, &ring);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return Ring(pool.core_, ring);
    }

    template <class Called>
    static void handle(void *data, const void *events, std::size_t stride, std::size_t count) noexcept {
        detail::guard([&] { return (*static_cast<Called *>(data))(Events<T>(events, stride, count)); });
    }

    detail::SharedCore core_;
    pace_ring_t *ring_;
};

// ---- signals of the process ----------------------------------------------------------------------

/// Watches for signals while it lives. When it goes the signals stay blocked, so that one that comes late
/// does not end the process; the destructor returns when its callable does not run and has been deleted. On a thread of
/// the pool it does not wait. Make it in the main thread before others are started.
class [[nodiscard]] Signals {
public:
    /// Calls `f(int)` on the pool with each of these signals that is sent to the process.
    /// They are blocked in this thread. Code::Invalid names the thread, if another one lets one of them through: make
    /// this in the main thread before others are started.
    template <class F>
    static Result<Signals> create(const Pool &pool, span<const std::int32_t> numbers, F &&f) {
        using D = std::decay_t<F>;
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(f));
        pace_signals_t *raw = nullptr;
        const pace_status_t status = pace_signals_new(
            pool.native(), numbers.data(), numbers.size(),
            [](void *data, std::int32_t signal) noexcept {
                (void)detail::guard([&] { return (*static_cast<D *>(data))(static_cast<int>(signal)); });
            },
            box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        (void)box.release();
        return Signals(raw, pool.core_);
    }
    /// SIGTERM and SIGINT begin to shut the pool down: it refuses work from outside, and runs what it has
    /// accepted for up to `drain`. Whoever wants to know how it went waits, and calls Pool::shutdown() too.
    static Result<Signals> shut_down(const Pool &pool, Duration drain) {
        pace_signals_t *raw = nullptr;
        const pace_status_t status = pace_signals_shut_down(pool.native(), detail::nanos(drain), &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Signals(raw, pool.core_);
    }

    Signals(Signals &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    Signals &operator=(Signals other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Signals() {
        const detail::Waits waits;
        pace_signals_free(raw_);
    }

    /// Waits for a signal whose callable has run and that nobody has waited for. Code::ShutDown: the pool
    /// has ended; Code::WouldDeadlock on a thread of the pool.
    Result<int> wait() const {
        std::int32_t signal = 0;
        const detail::Waits waits;
        const pace_status_t status = pace_signals_wait(raw_, &signal);
        return status == PACE_OK ? Result<int>(signal) : Result<int>(Error::last(status));
    }

private:
    friend class CompletionQueue;

    Signals(pace_signals_t *raw, detail::SharedCore core) noexcept : raw_(raw), core_(std::move(core)) {}

    pace_signals_t *raw_;
    detail::SharedCore core_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_POOL_HPP
