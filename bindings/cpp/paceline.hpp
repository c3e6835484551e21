// paceline for C++17 and newer: header only, over paceline.h.
//
//     auto pool = paceline::Pool::create().value();
//     auto answer = pool.submit([] { return 6 * 7; }).value();
//     std::cout << answer.wait().value();
//
// Who owns what
//
//     Pool ──shared──► Core ──owns──► pace_pool_t        Task, Handle, Timer, Strand and Ring share the
//       │                ▲                               Core, so none of them can outlive its pool: once
//       └─ shuts down    └── Task, Handle, Timer …       the Pool is gone they answer Code::ShutDown.
//
//     a callable ──► at most a pointer's size, trivially copyable: carried as user_data
//                ──► at most 32 trivially copyable bytes: copied into the task's slot (post only)
//                ──► anything else: a Box of its own, which the C `drop` hook deletes
//
// What ends by itself detaches when its object goes: a Task, a Timer, what was posted. What lasts ends with its object
// (Handle, Ring, Subscription, Server, …): the destructor returns when no callable of it runs, and it has been deleted, so
// that a lambda may refer to what was declared before the object. Inside a handler or a task, on a thread of the pool, it
// does not wait: the callable goes when it has returned. docs/GUIDE.md has a table of all types.
//
// Callables may be such that can only be moved, everywhere. All types are move-only, all methods that are
// const may be called from any thread at once.
//
// Errors are values: Result<T>, with one throwing accessor, value(). Apart from it, only the memory
// for a callable's Box can throw (std::bad_alloc), before anything has happened. A callable that is
// refused is given back: an rvalue that was handed in is as it was before.
//
// Exceptions never cross into the library. Every trampoline is noexcept and catches: what submit's
// callable throws is rethrown by value(), what any other throws goes to on_unhandled(), and so does what
// the destructor of a callable throws. The destructors of results, and of what lies in a Function or
// a std::exception_ptr, must not throw: the standard library ends the program. Under -fno-exceptions
// value() aborts on an error.
//
// Durations are std::chrono, of any type: see Duration. `forever` means no limit; what must have one refuses it, and
// names the range. A negative one is no time at all: a wait returns at once, and a limit is over as soon as it
// begins, where zero would be none or the default.

#ifndef PACELINE_HPP
#define PACELINE_HPP

#include "paceline.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_expected)
#include <expected>
#endif

#if defined(__cpp_exceptions)
#define PACELINE_DETAIL_TRY try
#define PACELINE_DETAIL_CATCH catch (...)
#else
#define PACELINE_DETAIL_TRY if constexpr (true)
#define PACELINE_DETAIL_CATCH else
#endif

namespace paceline {

// Result differs with the standard and with exceptions, so objects compiled in different modes must
// not take each other's inline functions for their own.
#if defined(__cpp_lib_expected) && defined(__cpp_exceptions)
inline namespace v0_expected {
#elif defined(__cpp_exceptions)
inline namespace v0 {
#elif defined(__cpp_lib_expected)
inline namespace v0_expected_noexcept {
#else
inline namespace v0_noexcept {
#endif

using std::chrono::nanoseconds;

/// As a time-out: without a limit.
inline constexpr nanoseconds forever = nanoseconds::max();

/// A time as an argument or a setting: any std::chrono::duration, of integers or of floating-point numbers.
/// A part of a nanosecond counts as a whole one. What 64 bits of nanoseconds cannot hold, which is 292 years
/// or more, is `forever`. One that is not a number is as a negative one.
struct Duration : nanoseconds {
    constexpr Duration() noexcept : nanoseconds(0) {}
    constexpr Duration(nanoseconds time) noexcept : nanoseconds(time) {}
    template <class Rep, class Period>
    constexpr Duration(const std::chrono::duration<Rep, Period> &time) : nanoseconds(saturated(time)) {}

private:
    template <class Rep, class Period>
    static constexpr nanoseconds saturated(const std::chrono::duration<Rep, Period> &time) {
        constexpr rep most = nanoseconds::max().count(), least = nanoseconds::min().count();
        if constexpr (std::is_integral_v<Rep> && Period::num <= most / std::nano::den) {
            constexpr rep whole_seconds = Period::num * std::nano::den;
            if constexpr (whole_seconds % Period::den == 0) {
                // Exact, in whatever of the two types is wider.
                using Wide = std::common_type_t<Rep, rep>;
                constexpr rep factor = whole_seconds / Period::den;
                const auto count = static_cast<Wide>(time.count());
                if (count > static_cast<Wide>(most / factor)) {
                    return nanoseconds::max();
                }
                if constexpr (static_cast<Wide>(-1) < Wide{}) {
                    if (count < static_cast<Wide>(least / factor)) {
                        return nanoseconds::min();
                    }
                }
                return nanoseconds(static_cast<rep>(count) * factor);
            }
        }
        const long double exact = static_cast<long double>(time.count()) * 1e9L *
                                  static_cast<long double>(Period::num) /
                                  static_cast<long double>(Period::den);
        if (exact >= static_cast<long double>(most)) {
            return nanoseconds::max();
        }
        if (!(exact > static_cast<long double>(least))) {
            return nanoseconds::min();
        }
        const auto whole = static_cast<rep>(exact);
        const auto found = static_cast<long double>(whole);
        return nanoseconds(whole + (found < exact ? 1 : 0) - (found > exact ? 1 : 0));
    }
};

// ---- errors ------------------------------------------------------------------------------------

/// What went wrong. The numbers are those of paceline.h, and so is what they mean.
enum class Code : std::int32_t {
    Ok = PACE_OK,
    Invalid = PACE_EINVAL,
    Full = PACE_EFULL,
    Empty = PACE_EEMPTY,
    TimedOut = PACE_ETIMEDOUT,
    ShutDown = PACE_ESHUTDOWN,
    Forked = PACE_EFORKED,
    Stale = PACE_ESTALE,
    Closing = PACE_ECLOSING,
    WouldDeadlock = PACE_EDEADLOCK,
    Cancelled = PACE_ECANCELLED,
    Failed = PACE_EFAILED,
    Panicked = PACE_EPANIC,
    Os = PACE_EOS,
    Version = PACE_EVERSION,
    Busy = PACE_EBUSY,
    NoResponders = PACE_ENORESPONDERS,
    Unsupported = PACE_EUNSUPPORTED,
    GivenUp = PACE_EGIVENUP,
};

/// The constant's name in paceline.h, such as "PACE_EFULL". Static.
inline const char *name(Code code) noexcept {
    return pace_status_name(static_cast<pace_status_t>(code));
}

/// A failed call, or a task that has thrown.
class Error {
public:
    /// A failure with a text of one's own.
    explicit Error(Code code, std::string text = {}) : code_(code), text_(std::move(text)) {}

    /// What a task has thrown.
    explicit Error(std::exception_ptr thrown) : code_(Code::Failed), thrown_(std::move(thrown)) {}

    Code code() const noexcept { return code_; }

    /// errno, if the code is Os; else 0.
    std::int32_t os_error() const noexcept { return os_error_; }

    /// What the task has thrown, if that is what failed.
    const std::exception_ptr &thrown() const noexcept { return thrown_; }

    /// A sentence: it names the argument, its value and what is allowed, where that is known. Lives
    /// as long as this Error.
    const char *message() const noexcept {
        return text_.empty() ? pace_strerror(static_cast<pace_status_t>(code_)) : text_.c_str();
    }

    friend bool operator==(const Error &error, Code code) noexcept { return error.code_ == code; }
    friend bool operator!=(const Error &error, Code code) noexcept { return error.code_ != code; }

    /// This thread's call has just returned `status`, which is not PACE_OK. The everyday refusals
    /// carry no text: they are answers, and cost no memory.
    static Error last(pace_status_t status) {
        Error error(static_cast<Code>(status));
        switch (error.code_) {
        case Code::Full:
        case Code::Empty:
        case Code::TimedOut: break;
        default: error.text_ = pace_last_error(); error.os_error_ = pace_last_os_error();
        }
        return error;
    }

private:
    Code code_;
    std::int32_t os_error_ = 0;
    std::string text_;
    std::exception_ptr thrown_;
};

/// What Result::value() throws.
class Exception : public std::runtime_error {
public:
    explicit Exception(Error error) : std::runtime_error(error.message()), error_(std::move(error)) {}

    const Error &error() const noexcept { return error_; }
    Code code() const noexcept { return error_.code(); }

private:
    Error error_;
};

namespace detail {

[[noreturn]] inline void raise(const Error &error) {
#if defined(__cpp_exceptions)
    if (error.thrown()) {
        std::rethrow_exception(error.thrown());
    }
    throw Exception(error);
#else
    (void)error;
    std::abort();
#endif
}

#if defined(__cpp_lib_expected)

template <class T>
using Expected = std::expected<T, Error>;
using Unexpect = std::unexpect_t;
inline constexpr Unexpect unexpect = std::unexpect;

#else

struct Unexpect {};
inline constexpr Unexpect unexpect{};

// The part of std::expected that there is in C++17.
template <class T>
class Expected {
public:
    template <class... Args>
    explicit Expected(std::in_place_t, Args &&...args)
        : either_(std::in_place_index<0>, std::forward<Args>(args)...) {}
    explicit Expected(Unexpect, Error error) : either_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return either_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T &operator*() &noexcept { return *std::get_if<0>(&either_); }
    const T &operator*() const &noexcept { return *std::get_if<0>(&either_); }
    T &&operator*() &&noexcept { return std::move(*std::get_if<0>(&either_)); }
    T *operator->() noexcept { return std::get_if<0>(&either_); }
    const T *operator->() const noexcept { return std::get_if<0>(&either_); }

    Error &error() &noexcept { return *std::get_if<1>(&either_); }
    const Error &error() const &noexcept { return *std::get_if<1>(&either_); }
    Error &&error() &&noexcept { return std::move(*std::get_if<1>(&either_)); }

    template <class U>
    T value_or(U &&other) const & {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U &&other) && {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
    }

private:
    std::variant<T, Error> either_;
};

template <>
class Expected<void> {
public:
    explicit Expected(std::in_place_t) noexcept {}
    explicit Expected(Unexpect, Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void operator*() const noexcept {}

    Error &error() &noexcept { return *error_; }
    const Error &error() const &noexcept { return *error_; }
    Error &&error() &&noexcept { return std::move(*error_); }

private:
    std::optional<Error> error_;
};

#endif

} // namespace detail

/// A value or an Error. Where the standard library has std::expected this is one, and elsewhere it
/// has the same has_value, *, ->, error and value_or. Only value() throws, and it throws the same
/// everywhere: what a task has thrown, if that is the error, else an Exception.
template <class T>
class [[nodiscard]] Result : public detail::Expected<T> {
    using Base = detail::Expected<T>;

public:
    Result(T value) : Base(std::in_place, std::move(value)) {}
    Result(Error error) : Base(detail::unexpect, std::move(error)) {}

    T &value() & { return require(), **this; }
    const T &value() const & { return require(), **this; }
    /// By value, so that `for (auto &event : pool.pull(events, time).value())` holds on to it.
    T value() && { return require(), std::move(**this); }

private:
    void require() const {
        if (!this->has_value()) {
            detail::raise(this->error());
        }
    }
};

template <>
class [[nodiscard]] Result<void> : public detail::Expected<void> {
    using Base = detail::Expected<void>;

public:
    Result() noexcept : Base(std::in_place) {}
    Result(Error error) : Base(detail::unexpect, std::move(error)) {}

    void value() const {
        if (!has_value()) {
            detail::raise(error());
        }
    }
};

template <class Signature>
class Function;

/// A callable of any type that takes A... and answers with R: what settings and long-lived hooks are kept in. It is as
/// a std::function, and takes callables that can only be moved too. A copy has a copy of the callable if that can be
/// copied; otherwise both call the same one. Calling an empty one is an error of the program's.
template <class R, class... A>
class Function<R(A...)> {
    template <class D>
    using if_callable =
        std::enable_if_t<!std::is_same_v<D, Function> && std::is_invocable_r_v<R, D &, A...>>;

public:
    /// Empty.
    Function() noexcept = default;
    Function(std::nullptr_t) noexcept {}
    /// Empty too, if it is made of a pointer that is null, or of a std::function that is empty.
    template <class F, class = if_callable<std::decay_t<F>>>
    Function(F &&f) {
        using D = std::decay_t<F>;
        // A function itself is never null, and compilers warn of whoever asks.
        constexpr bool is_function = std::is_function_v<std::remove_reference_t<F>>;
        if constexpr (!is_function && (std::is_pointer_v<D> || std::is_member_pointer_v<D> ||
                                       std::is_same_v<D, std::function<R(A...)>>)) {
            if (f == nullptr) {
                return;
            }
        }
        kept_ = std::make_shared<Kept<D>>(std::forward<F>(f));
    }
    Function(const Function &other) : kept_(other.kept_ ? other.kept_->copy(other.kept_) : nullptr) {}
    Function(Function &&) noexcept = default;
    Function &operator=(const Function &other) { return *this = Function(other); }
    Function &operator=(Function &&) noexcept = default;

    explicit operator bool() const noexcept { return kept_ != nullptr; }

    R operator()(A... arguments) const { return kept_->call(std::forward<A>(arguments)...); }

private:
    struct Callable {
        virtual ~Callable() = default;
        virtual R call(A... arguments) = 0;
        virtual std::shared_ptr<Callable> copy(const std::shared_ptr<Callable> &self) const = 0;
    };

    template <class D>
    struct Kept final : Callable {
        template <class F>
        explicit Kept(F &&f) : f_(std::forward<F>(f)) {}

        R call(A... arguments) override {
            if constexpr (std::is_void_v<R>) {
                (void)std::invoke(f_, std::forward<A>(arguments)...);
            } else {
                return std::invoke(f_, std::forward<A>(arguments)...);
            }
        }
        std::shared_ptr<Callable> copy(const std::shared_ptr<Callable> &self) const override {
            if constexpr (std::is_copy_constructible_v<D>) {
                return std::make_shared<Kept>(f_);
            } else {
                return self;
            }
        }

    private:
        D f_;
    };

    std::shared_ptr<Callable> kept_;
};

/// What a handler or task has thrown, if nobody waits for it.
using Unhandled = Function<void(std::exception_ptr)>;

namespace detail {

struct UnhandledHook {
    std::mutex mutex;
    std::shared_ptr<const Unhandled> hook;

    // Never destroyed: a pool's threads may still run while static objects are being destroyed.
    static UnhandledHook &get() {
        static UnhandledHook *hook = new UnhandledHook;
        return *hook;
    }
};

} // namespace detail

/// Sets what is called with each exception that no Task carries to somebody: thrown by what was
/// posted, by handlers, timers, rings and the pool's hooks. It is one for the process, is called on
/// the thread that caught it; what it throws itself goes nowhere. In any case the task or handler counts as failed,
/// and the handle is closed. An empty one is the default: the pool's log is told what() was thrown, or the standard
/// error stream if the pool has none (quiet()).
/// Returns the hook that was set before.
///
/// Threads: any. In handlers: yes.
inline Unhandled on_unhandled(Unhandled hook) {
    auto next = hook ? std::make_shared<const Unhandled>(std::move(hook)) : nullptr;
    auto &slot = detail::UnhandledHook::get();
    {
        std::lock_guard<std::mutex> lock(slot.mutex);
        slot.hook.swap(next);
    }
    return next ? *next : Unhandled();
}

/// Whether the library keeps silent about faults that no log and no hook is told of. Default: it does not.
///
/// Without this, a fault of a pool that has no log (Config::log, Log::install()) is one line on the standard error
/// stream: an exception out of a handler, a suspended subscription, a log's file that cannot be written and the like.
/// Of each kind of fault at most one line is written in 10 seconds, with the number of those that were not. With a
/// log, a fault is a record of it and no line; with a hook for the fault (on_unhandled(), say), neither. It holds for
/// the process.
///
/// Threads: any. In handlers: yes, it never waits.
inline void quiet(bool silent = true) noexcept { pace_quiet(silent); }

// ---- words of the library ----------------------------------------------------------------------

/// Priority of a task. The most urgent lane that has a task is picked first. So that none starves, the lower lanes
/// have turns: after 8 picks of Critical up to 5 are of High, after 13 picks of these two up to 3 are of Normal, and
/// after 15 picks of all others one is of Low. So where all lanes have tasks, of 64 picks 32 are of Critical, 18 of
/// High, 10 of Normal and 4 of Low. A pick of a thread takes up to 64 tasks of its lane if these take some 20
/// microseconds together.
enum class Lane : std::uint32_t {
    Critical = PACE_LANE_CRITICAL,
    High = PACE_LANE_HIGH,
    Normal = PACE_LANE_NORMAL,
    Low = PACE_LANE_LOW,
};

/// A handler's answer: what next?
enum class Flow : std::int32_t {
    /// It has seen EAGAIN: call again at the next event.
    Wait = PACE_FLOW_WAIT,
    /// There is more: call again, behind others.
    Again = PACE_FLOW_AGAIN,
    /// Not before resume().
    Pause = PACE_FLOW_PAUSE,
    /// Never again: deregister, and delete the handler.
    Done = PACE_FLOW_DONE,
};

/// What a pool waits at.
enum class Source : std::uint32_t { Epoll = PACE_SOURCE_EPOLL, Ring = PACE_SOURCE_RING };

/// When a leader hands leadership on.
enum class Promotion : std::uint32_t {
    Deferred = PACE_PROMOTION_DEFERRED,
    Eager = PACE_PROMOTION_EAGER,
};

/// What a thread is doing.
enum class Role : std::uint32_t {
    Away = PACE_ROLE_AWAY,
    Follower = PACE_ROLE_FOLLOWER,
    Watch = PACE_ROLE_WATCH,
    Leader = PACE_ROLE_LEADER,
    Processing = PACE_ROLE_PROCESSING,
    Task = PACE_ROLE_TASK,
    /// Set aside by Pool::set_active(), or by a worker pool's scaling.
    Parked = PACE_ROLE_PARKED,
};

/// What a descriptor is ready for.
class Ready {
public:
    constexpr explicit Ready(std::uint32_t bits = 0) noexcept : bits_(bits) {}

    constexpr bool readable() const noexcept { return has(PACE_READY_READABLE); }
    constexpr bool writable() const noexcept { return has(PACE_READY_WRITABLE); }
    constexpr bool priority() const noexcept { return has(PACE_READY_PRIORITY); }
    constexpr bool error() const noexcept { return has(PACE_READY_ERROR); }
    constexpr bool hang_up() const noexcept { return has(PACE_READY_HANG_UP); }
    /// The peer will send no more.
    constexpr bool read_closed() const noexcept { return has(PACE_READY_READ_CLOSED); }
    /// PACE_READY_*, ored.
    constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    constexpr bool has(std::uint32_t bit) const noexcept { return (bits_ & bit) != 0; }

    std::uint32_t bits_;
};

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
    /// PACE_INTEREST_*, ored.
    constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    std::uint32_t bits_;
};

/// The library that was loaded, as major << 16 | minor << 8 | patch. PACE_VERSION_* in paceline.h
/// tell which one the program was compiled for.
inline std::uint32_t version() noexcept { return pace_version(); }

/// Inside a handler: "I am about to block". Leadership is handed to a thread that is awake, so that
/// others do not wait for this one. Once per handler; elsewhere it does nothing.
inline Result<void> promote_new_leader() {
    const pace_status_t status = pace_promote_new_leader();
    return status == PACE_OK ? Result<void>() : Result<void>(Error::last(status));
}

// ---- span --------------------------------------------------------------------------------------

/// Values that lie side by side, belonging to somebody else. Whatever has data() and size() converts
/// to it, std::span included, and it converts to std::span.
template <class T>
class span {
    template <class C>
    using if_contiguous = std::enable_if_t<
        std::is_convertible_v<std::remove_pointer_t<decltype(std::data(std::declval<C &>()))> (*)[],
                              T (*)[]> &&
        std::is_convertible_v<decltype(std::size(std::declval<C &>())), std::size_t>>;

public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using reference = T &;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class C, class = if_contiguous<C>>
    constexpr span(C &&values) : data_(std::data(values)), size_(std::size(values)) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
    constexpr span first(std::size_t count) const noexcept { return {data_, count}; }
    constexpr span subspan(std::size_t begin) const noexcept { return {data_ + begin, size_ - begin}; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// ---- what callables are carried in ---------------------------------------------------------------

class Pool;

namespace detail {

struct Submitter;

/// A time as C has it.
inline std::uint64_t nanos(Duration time) noexcept {
    if (time == forever) {
        return PACE_FOREVER;
    }
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

/// The same for what is none or the default in C where it finds 0: a limit that is negative is over at once.
inline std::uint64_t limit_nanos(Duration time) noexcept { return time.count() < 0 ? 1 : nanos(time); }

/// A time that C has measured.
inline nanoseconds time_of(std::uint64_t measured) noexcept {
    const auto most = static_cast<std::uint64_t>(forever.count());
    return measured >= most ? forever : nanoseconds(static_cast<std::int64_t>(measured));
}

/// A point in time as C has it, since 1970: any time_point of the system's clock. Those before 1970 are 1970.
struct SystemTime {
    std::uint64_t nanos_since_1970 = 0;

    SystemTime() noexcept = default;
    template <class D>
    SystemTime(const std::chrono::time_point<std::chrono::system_clock, D> &time)
        : nanos_since_1970(nanos(time.time_since_epoch())) {}
};

inline Result<void> outcome(pace_status_t status) {
    return status == PACE_OK ? Result<void>() : Result<void>(Error::last(status));
}

/// What is answered about an object that was moved from, closed or taken.
inline Error gone(const char *what) {
    return Error(Code::Stale, std::string("this ") + what + " has ended, was moved from, or was taken");
}

/// Called inside a catch block: calls `tell` with a text about what was thrown, its what() if it has one. Whether it
/// is a std::exception.
template <class Tell>
bool tell_what(Tell tell) {
#if defined(__cpp_exceptions)
    try {
        throw;
    } catch (const std::exception &thrown) {
        const char *what = thrown.what();
        (void)tell(what != nullptr ? what : "an exception whose what() is NULL");
        return true;
    } catch (...) {
        (void)tell("what was thrown is no std::exception");
    }
#else
    (void)tell;
#endif
    return false;
}

/// Called inside a catch block. What the hook throws is the caller's. `fails`: the callback answers that it has
/// failed, which the library tells of. Without a hook the library is told what was thrown.
inline void report_unhandled(bool fails) {
    auto &slot = UnhandledHook::get();
    std::shared_ptr<const Unhandled> hook;
    {
        std::lock_guard<std::mutex> lock(slot.mutex);
        hook = slot.hook;
    }
    if (!hook) {
        (void)tell_what([fails](const char *what) { pace_unhandled(what, fails); });
        return;
    }
    pace_unhandled(nullptr, fails);
    (*hook)(std::current_exception());
}

/// Calls `f`, the user's code; whether it has returned. Inside the catch block of what it has thrown calls
/// `told`. What throws after that, as the destructor of an exception or the hook of on_unhandled() may, goes
/// nowhere. Whatever C calls back goes through here: nothing passes.
template <class F, class Told>
bool contained(F &&f, Told &&told) noexcept {
    bool returned = false;
    PACELINE_DETAIL_TRY {
        PACELINE_DETAIL_TRY {
            std::forward<F>(f)();
            returned = true;
        }
        PACELINE_DETAIL_CATCH { std::forward<Told>(told)(); }
    }
    PACELINE_DETAIL_CATCH {}
    return returned;
}

/// Calls `f`; whether it has returned. What it throws goes to the hook of on_unhandled().
template <class F>
bool guard(F &&f) noexcept {
    return contained(std::forward<F>(f), [] { report_unhandled(false); });
}

/// As guard(), for a callback that answers that it has failed if this does not return.
template <class F>
bool guard_or_fail(F &&f) noexcept {
    return contained(std::forward<F>(f), [] { report_unhandled(true); });
}

/// Rows that C hands over one by one, during a call.
template <class Row>
struct Rows {
    std::vector<Row> list{};
    /// For want of memory, for example. There are no more rows then.
    std::exception_ptr thrown{};

    /// Adds what `make` makes to the Rows at `data`.
    template <class Make>
    static void add(void *data, Make make) noexcept {
        auto &rows = *static_cast<Rows *>(data);
        if (rows.thrown == nullptr) {
            (void)contained([&] { rows.list.push_back(make()); },
                            [&] { rows.thrown = std::current_exception(); });
        }
    }

    /// All of them, or what went wrong: never some.
    Result<std::vector<Row>> taken(pace_status_t status) {
        if (status != PACE_OK) {
            return Error::last(status);
        }
        if (thrown != nullptr) {
            return Error(std::move(thrown));
        }
        return std::move(list);
    }
};

/// The answer that the library takes for a failed handler: none of Flow's.
inline constexpr std::int32_t FAILED_FLOW = -1;

template <class F>
std::int32_t guard_flow(F &&f) noexcept {
    Flow flow{};
    return guard_or_fail([&] { flow = f(); }) ? static_cast<std::int32_t>(flow) : FAILED_FLOW;
}

/// Callables that post_bytes copies into the task's slot.
template <class F>
inline constexpr bool fits_slot = std::is_trivially_copyable_v<F> && sizeof(F) <= PACE_INLINE_BYTES &&
                                  alignof(F) <= alignof(std::uint64_t);

/// Callables that are carried in the bits of user_data.
template <class F>
inline constexpr bool fits_word = std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(void *) &&
                                  alignof(F) <= alignof(void *);

template <class F>
void *to_word(const F &f) noexcept {
    void *word = nullptr;
    if constexpr (!std::is_empty_v<F>) {
        std::memcpy(&word, std::addressof(f), sizeof f);
    }
    return word;
}

/// A trivially copyable object lies in these bytes: memcpy has put it there.
template <class F>
F &in_bytes(void *bytes) noexcept {
    return *std::launder(static_cast<F *>(bytes));
}

template <class F>
void run_slot(void *bytes, std::size_t, std::int32_t *result) noexcept {
    *result = guard([&] { std::move(in_bytes<F>(bytes))(); }) ? PACE_OK : PACE_EFAILED;
}

template <class F>
void run_word(void *word, std::int32_t *result) noexcept {
    *result = guard([&] { std::move(in_bytes<F>(&word))(); }) ? PACE_OK : PACE_EFAILED;
}

template <class F>
void run_box(void *box, std::int32_t *result) noexcept {
    auto &f = *static_cast<F *>(box);
    *result = guard([&] { std::move(f)(); }) ? PACE_OK : PACE_EFAILED;
}

template <class Box>
void drop_box(void *box) noexcept {
    (void)guard([&] { delete static_cast<Box *>(box); });
}

struct DropBox {
    template <class F>
    void operator()(F *box) const noexcept {
        drop_box<F>(box);
    }
};

/// A callable that C may take. If it does not, it goes as with C: what its destructor throws is told.
template <class F>
using Boxed = std::unique_ptr<F, DropBox>;

template <class F>
Boxed<std::decay_t<F>> boxed(F &&f) {
    return Boxed<std::decay_t<F>>(new std::decay_t<F>(std::forward<F>(f)));
}

/// What was moved out of the caller's rvalue goes back, so that it is as it was. Lambdas that
/// capture cannot be assigned to, so the emptied one is replaced in its place.
template <class F>
void give_back(std::remove_reference_t<F> &caller, std::decay_t<F> &kept) noexcept {
    using D = std::decay_t<F>;
    if constexpr (std::is_same_v<F, D> && !std::is_trivially_copyable_v<D>) {
        if constexpr (std::is_nothrow_move_assignable_v<D>) {
            caller = std::move(kept);
        } else if constexpr (std::is_nothrow_move_constructible_v<D>) {
            caller.~D();
            ::new (static_cast<void *>(std::addressof(caller))) D(std::move(kept));
        }
    }
}

template <class F>
inline constexpr bool is_task = std::is_invocable_v<std::decay_t<F>>;

/// A callable without a result as C's triple. What C has not taken goes back to the caller.
template <class F>
class Packed {
    using D = std::decay_t<F>;

public:
    explicit Packed(F &&f) : caller_(f) {
        if constexpr (fits_word<D>) {
            work_ = {run_word<D>, to_word<D>(f), nullptr};
        } else {
            box_ = boxed(std::forward<F>(f));
            work_ = {run_box<D>, box_.get(), drop_box<D>};
        }
    }
    Packed(Packed &&) noexcept = default;
    ~Packed() {
        if (box_) {
            give_back<F>(caller_, *box_);
        }
    }

    const pace_work_t &work() const noexcept { return work_; }

    /// C has taken it, if that went well.
    pace_status_t settle(pace_status_t status) noexcept {
        if (status == PACE_OK) {
            (void)box_.release();
        }
        return status;
    }

private:
    std::remove_reference_t<F> &caller_;
    Boxed<D> box_;
    pace_work_t work_{};
};

/// A pool's C object. Shared, so that nothing outlives what it belongs to.
struct Core {
    explicit Core(pace_pool_t *raw) noexcept : pool(raw) {}
    Core(const Core &) = delete;
    Core &operator=(const Core &) = delete;
    ~Core() { pace_pool_free(pool); }

    pace_pool_t *const pool;
};

using SharedCore = std::shared_ptr<const Core>;

/// Where the value of a submitted callable is left: shared by the callable and its Task. Whoever lets
/// go last deletes it.
class Place {
public:
    std::exception_ptr thrown;

    void release() noexcept {
        // Release: what this owner has done to the value happens before it is deleted. Acquire: pairs
        // with the other owner's Release.
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

protected:
    virtual ~Place() = default;

private:
    std::atomic<int> owners_{2};
};

template <class T>
struct PlaceOf : Place {
    std::optional<T> value;

    template <class F>
    void fill(F &&f) {
        value.emplace(std::forward<F>(f)());
    }
    Result<T> take() { return Result<T>(std::move(*value)); }
};

template <>
struct PlaceOf<void> : Place {
    /// Whether the callable has returned.
    bool value = false;

    template <class F>
    void fill(F &&f) {
        std::forward<F>(f)();
        value = true;
    }
    Result<void> take() { return {}; }
};

#if defined(__cpp_exceptions)

inline std::exception_ptr thrown_by(Error error) {
    return error.thrown() ? error.thrown() : std::make_exception_ptr(Exception(std::move(error)));
}

/// Gives a promise what is in the place, which is its value, or the error.
template <class T>
void keep_promise(std::promise<T> &promise, PlaceOf<T> *place, const Error *error) noexcept {
    // What throws is a value that is moved, or the memory for an exception.
    (void)contained(
        [&] {
            if (error != nullptr) {
                promise.set_exception(thrown_by(*error));
            } else if constexpr (std::is_void_v<T>) {
                promise.set_value();
            } else {
                promise.set_value(std::move(*place->value));
            }
        },
        [&] { promise.set_exception(std::current_exception()); });
}

/// Where a Task leaves the promise of its future, for the callable's end to find.
template <class T>
class Promised {
public:
    /// The callable has ended, or never will begin. What is in the place is the future's, if there is one.
    void end(PlaceOf<T> &place) noexcept {
        // Acquire: the promise is seen. Release: what is in the place is.
        if (auto *promise = promise_.exchange(ended(), std::memory_order_acq_rel)) {
            settle(place, promise);
        }
    }
    void give(PlaceOf<T> &place, std::promise<T> *promise) noexcept {
        std::promise<T> *none = nullptr;
        // As above.
        if (!promise_.compare_exchange_strong(none, promise, std::memory_order_acq_rel)) {
            settle(place, promise);
        }
    }

private:
    /// No promise: its address says that it is too late to leave one.
    std::promise<T> *ended() noexcept { return reinterpret_cast<std::promise<T> *>(this); }

    static void settle(PlaceOf<T> &place, std::promise<T> *promise) noexcept {
        const std::unique_ptr<std::promise<T>> owned(promise);
        if (place.thrown || !place.value) {
            const Error error = place.thrown ? Error(std::move(place.thrown)) : Error(Code::Cancelled);
            return keep_promise<T>(*owned, nullptr, &error);
        }
        keep_promise<T>(*owned, &place, nullptr);
    }

    std::atomic<std::promise<T> *> promise_{nullptr};
};

#else

template <class T>
struct Promised {
    void end(PlaceOf<T> &) noexcept {}
};

#endif

/// A callable that goes before what it lies in does: by drop(), once. No std::optional, which ends the program if
/// a destructor throws.
template <class F>
class Kept {
public:
    template <class G>
    explicit Kept(G &&g) : f_(std::forward<G>(g)) {}
    Kept(const Kept &) = delete;
    Kept &operator=(const Kept &) = delete;
    ~Kept() noexcept {}

    F &operator*() noexcept { return f_; }
    void drop() noexcept {
        (void)guard([&] { f_.~F(); });
    }

private:
    union {
        F f_;
    };
};

/// What a Task shares with its callable.
template <class T>
struct TaskPlace : PlaceOf<T> {
    Promised<T> promised;
};

/// A submitted callable and the place for its value. The callable goes when C drops it; the place may
/// stay.
template <class F, class T>
struct Submitted final : TaskPlace<T> {
    Kept<F> f;

    template <class G>
    explicit Submitted(G &&g) : f(std::forward<G>(g)) {}

    static void run(void *data, std::int32_t *result) noexcept {
        auto *self = static_cast<Submitted *>(data);
        const bool returned = contained([&] { self->fill(std::move(*self->f)); },
                                        [&] { self->thrown = std::current_exception(); });
        *result = returned ? PACE_OK : PACE_EFAILED;
    }

    static void drop(void *data) noexcept {
        auto *self = static_cast<Submitted *>(data);
        self->f.drop();
        self->promised.end(*self);
        self->release();
    }
};

} // namespace detail

// ---- tasks ---------------------------------------------------------------------------------------

/// A task that was submitted, to wait for. When it goes the task runs all the same.
template <class T>
class [[nodiscard]] Task {
public:
    Task() noexcept = default;
    Task(Task &&other) noexcept
        : core_(std::move(other.core_)), id_(other.id_), place_(std::exchange(other.place_, nullptr)) {}
    Task &operator=(Task &&other) noexcept {
        Task(std::move(other)).swap(*this);
        return *this;
    }
    ~Task() { detach(); }

    /// Whether there is something to wait for: it was neither taken nor moved from.
    bool valid() const noexcept { return place_ != nullptr; }

    /// Waits for the task and takes its value. In a handler, other threads are let lead meanwhile.
    ///
    /// What the task has thrown is the error's thrown(), and value() throws it again. Code::Cancelled:
    /// it never ran. Code::WouldDeadlock: no other thread is left that could run it; Code::Busy:
    /// another thread waits for it. Only these two leave something to wait for.
    Result<T> wait() { return wait_timeout(forever); }

    /// As wait(), but Code::TimedOut, after which one may wait again, when the time is over.
    Result<T> wait_timeout(Duration time) {
        if (!valid()) {
            return detail::gone("task");
        }
        std::int32_t reported = PACE_EFAILED;
        const pace_status_t status = pace_task_wait(core_->pool, id_, detail::nanos(time), &reported);
        if (is_still_there(status)) {
            return Error::last(status);
        }
        Ended ended(*this);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        if (ended.place->thrown) {
            return Error(std::move(ended.place->thrown));
        }
        return ended.place->take();
    }

    /// Whether waiting would return at once.
    Result<bool> is_done() const { return ask(pace_task_is_done); }

    /// Whether it was cancelled by this call: then it will never run, and waiting says
    /// Code::Cancelled. One that runs or has run is not stopped.
    Result<bool> cancel() const { return ask(pace_task_cancel); }

    /// Lets it run without anybody waiting for it.
    void detach() noexcept {
        if (valid()) {
            (void)pace_task_detach(core_->pool, id_);
            let_go();
        }
    }

#if defined(__cpp_exceptions)
    /// A std::future of its value: `std::move(task).to_future()`. No thread waits for it: the thread that has run the
    /// task makes it ready. get() throws what the task has thrown; an Exception of Code::Cancelled if it never ran,
    /// and of Code::Stale if this is empty. Unlike wait(), the future's waits do not let another thread lead: do not
    /// wait for it inside a handler. This is empty afterwards.
    std::future<T> to_future() && {
        auto promise = std::make_unique<std::promise<T>>();
        std::future<T> future = promise->get_future();
        if (!valid()) {
            promise->set_exception(detail::thrown_by(detail::gone("task")));
            return future;
        }
        place_->promised.give(*place_, promise.release());
        detach();
        return future;
    }
#endif

    /// For calls to paceline.h, with the pool's native().
    pace_task_t native() const noexcept { return id_; }

private:
    friend struct detail::Submitter;

    /// The task has ended: its place goes at the end of the block, and the Task is empty.
    struct Ended {
        explicit Ended(Task &task) noexcept : place(task.place_), task_(task) {}
        ~Ended() { task_.let_go(); }

        detail::TaskPlace<T> *const place;

    private:
        Task &task_;
    };

    Task(detail::SharedCore core, pace_task_t id, detail::TaskPlace<T> *place) noexcept
        : core_(std::move(core)), id_(id), place_(place) {}

    static bool is_still_there(pace_status_t status) noexcept {
        return status == PACE_ETIMEDOUT || status == PACE_EDEADLOCK || status == PACE_EBUSY ||
               status == PACE_EFORKED;
    }

    void let_go() noexcept {
        std::exchange(place_, nullptr)->release();
        core_.reset();
    }

    void swap(Task &other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        std::swap(place_, other.place_);
    }

    Result<bool> ask(pace_status_t (*question)(pace_pool_t *, pace_task_t, bool *)) const {
        if (!valid()) {
            return detail::gone("task");
        }
        bool answer = false;
        const pace_status_t status = question(core_->pool, id_, &answer);
        return status == PACE_OK ? Result<bool>(answer) : Result<bool>(Error::last(status));
    }

    detail::SharedCore core_;
    pace_task_t id_{};
    detail::TaskPlace<T> *place_ = nullptr;
};

/// What a callable's Task carries.
template <class F>
using TaskOf = Task<std::decay_t<std::invoke_result_t<std::decay_t<F>>>>;

namespace detail {

/// Turns callables into tasks, whatever takes them.
struct Submitter {
    template <class F, class Put>
    static Result<TaskOf<F>> submit(const detail::SharedCore &core, F &&f, Put put) {
        using D = std::decay_t<F>;
        using R = std::invoke_result_t<D>;
        static_assert(!std::is_reference_v<R>, "return a value or a pointer: the Task keeps it");
        using Box = detail::Submitted<D, R>;
        auto *box = new Box(std::forward<F>(f));
        pace_task_t id{};
        const pace_status_t status = put(Box::run, static_cast<void *>(box), Box::drop, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(f, *box->f);
            Box::drop(box);
            box->release();
            return error;
        }
        return TaskOf<F>(core, id, box);
    }
};

/// One lane of a pool: see LaneRef. `Holder` is a SharedCore or a reference to somebody's.
///
/// From outside the pool's threads post and submit wait while the lane is full; inside a handler
/// they do not, but return Code::Full. try_post and try_submit never wait. All may return
/// Code::ShutDown or Code::Forked. A callable that is refused is given back.
template <class Holder>
class Posting {
public:
    /// Runs `f()` on some thread. Up to 32 trivially copyable bytes cost no memory.
    template <class F>
    Result<void> post(F &&f) const {
        static_assert(is_task<F>, "a task is called without arguments");
        using D = std::decay_t<F>;
        if constexpr (fits_slot<D> && !fits_word<D>) {
            const D copy(std::forward<F>(f));
            return outcome(
                pace_pool_post_bytes(raw(), lane_, run_slot<D>, std::addressof(copy), sizeof copy));
        } else {
            return put(std::forward<F>(f), pace_pool_post);
        }
    }

    /// As post(), but Code::Full at once.
    template <class F>
    Result<void> try_post(F &&f) const {
        static_assert(is_task<F>, "a task is called without arguments");
        return put(std::forward<F>(f), pace_pool_try_post);
    }

    /// Runs `f()`, and keeps what it returns or throws for the Task.
    template <class F>
    Result<TaskOf<F>> submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_pool_submit);
    }

    /// As submit(), but Code::Full at once.
    template <class F>
    Result<TaskOf<F>> try_submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_pool_try_submit);
    }

    /// Posts callables of one type, in order, at the price of few. They are moved from, apart from
    /// those that are refused. The number accepted, which is less than all if the rest is refused; an
    /// error only if none was.
    template <class F>
    Result<std::size_t> post_batch(span<F> work) const {
        static_assert(is_task<F>, "a task is called without arguments");
        std::size_t done = 0;
        while (done < work.size()) {
            const std::size_t size = std::min(work.size() - done, CHUNK);
            std::size_t accepted = 0;
            const pace_status_t status = post_chunk(work.subspan(done).first(size), accepted);
            done += accepted;
            if (status != PACE_OK && done == 0) {
                return Error::last(status);
            }
            if (status != PACE_OK) {
                break;
            }
        }
        return done;
    }
    /// As above, for a std::vector or std::array of callables.
    template <class C>
    auto post_batch(C &work) const -> decltype(post_batch(span(std::data(work), std::size(work)))) {
        return post_batch(span(std::data(work), std::size(work)));
    }

private:
    friend class paceline::Pool;

    /// Callables that are handed over by one call.
    static constexpr std::size_t CHUNK = 64;

    Posting(Holder core, Lane lane) noexcept
        : core_(static_cast<Holder &&>(core)), lane_(static_cast<std::uint32_t>(lane)) {}

    pace_pool_t *raw() const noexcept { return core_ ? core_->pool : nullptr; }

    template <class F, class Call>
    Result<void> put(F &&f, Call call) const {
        Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        return outcome(packed.settle(call(raw(), lane_, work.run, work.user_data, work.drop)));
    }

    template <class F, class Call>
    Result<TaskOf<F>> submit_by(F &&f, Call call) const {
        return Submitter::submit(core_, std::forward<F>(f),
                                 [&](pace_task_fn run, void *data, pace_drop_fn drop, pace_task_t *id) {
                                     return call(raw(), lane_, run, data, drop, id);
                                 });
    }

    template <class F>
    pace_status_t post_chunk(span<F> work, std::size_t &accepted) const {
        std::array<pace_work_t, CHUNK> works;
        std::vector<Packed<F>> packed;
        packed.reserve(work.size());
        for (F &f : work) {
            packed.emplace_back(std::move(f));
            works[packed.size() - 1] = packed.back().work();
        }
        const pace_status_t status =
            pace_pool_post_batch(raw(), lane_, works.data(), packed.size(), &accepted);
        for (std::size_t n = 0; n < accepted; ++n) {
            packed[n].settle(PACE_OK);
        }
        return status;
    }

    Holder core_;
    std::uint32_t lane_;
};

} // namespace detail

/// One lane of a pool, to post to: post, try_post, submit, try_submit, post_batch. Pool's own methods
/// of these names are those of Lane::Normal.
using LaneRef = detail::Posting<detail::SharedCore>;

/// Runs tasks one at a time, in order, without a lock. When it goes it is closed: what was accepted
/// runs.
class [[nodiscard]] Strand {
public:
    Strand(Strand &&other) noexcept : core_(std::move(other.core_)), id_(other.id_) {}
    Strand &operator=(Strand &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        return *this;
    }
    ~Strand() {
        if (core_) {
            (void)pace_strand_close(core_->pool, id_);
        }
    }

    /// As LaneRef's methods of these names; Code::Full is about the strand, which has a room of its
    /// own (Config::strand_capacity).
    template <class F>
    Result<void> post(F &&f) const {
        return put(std::forward<F>(f), pace_strand_post);
    }
    template <class F>
    Result<void> try_post(F &&f) const {
        return put(std::forward<F>(f), pace_strand_try_post);
    }
    template <class F>
    Result<TaskOf<F>> submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_strand_submit);
    }
    template <class F>
    Result<TaskOf<F>> try_submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_strand_try_submit);
    }

    /// Takes no more. What was accepted runs.
    Result<void> close() {
        if (!core_) {
            return detail::gone("strand");
        }
        const detail::SharedCore core = std::move(core_);
        return detail::outcome(pace_strand_close(core->pool, id_));
    }

    /// For calls to paceline.h, with the pool's native().
    pace_strand_t native() const noexcept { return id_; }

private:
    friend class Pool;

    Strand(detail::SharedCore core, pace_strand_t id) noexcept : core_(std::move(core)), id_(id) {}

    template <class F, class Call>
    Result<void> put(F &&f, Call call) const {
        static_assert(detail::is_task<F>, "a task is called without arguments");
        if (!core_) {
            return detail::gone("strand");
        }
        detail::Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        return detail::outcome(
            packed.settle(call(core_->pool, id_, work.run, work.user_data, work.drop)));
    }

    template <class F, class Call>
    Result<TaskOf<F>> submit_by(F &&f, Call call) const {
        if (!core_) {
            return detail::gone("strand");
        }
        return detail::Submitter::submit(
            core_, std::forward<F>(f),
            [&](pace_task_fn run, void *data, pace_drop_fn drop, pace_task_t *id) {
                return call(core_->pool, id_, run, data, drop, id);
            });
    }

    detail::SharedCore core_;
    pace_strand_t id_{};
};

// ---- handles and timers --------------------------------------------------------------------------

/// How a descriptor is registered. In C++20: `{.interest = Interest::writable(), .paused = true}`.
struct HandleOptions {
    /// Default: what paceline.h says, reading and writing.
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
        if (interest) {
            options.interest = interest->bits();
        }
        options.level = level;
        options.may_block = may_block;
        options.paused = paused;
        return options;
    }
};

/// A handle's number, to steer it with: for its own handler, and for what that handler starts. It
/// owns nothing, and is to be used while the pool lives.
class HandleRef {
public:
    HandleRef() noexcept = default;
    HandleRef(pace_pool_t *pool, pace_handle_t id) noexcept : pool_(pool), id_(id) {}

    /// No more calls before resume(). What arrives meanwhile is kept, and delivered then. The handler of an
    /// edge-triggered descriptor is still told of an error or a hang-up, once in each pause.
    Result<void> pause() const { return detail::outcome(pace_handle_pause(pool_, id_)); }
    Result<void> resume() const { return detail::outcome(pace_handle_resume(pool_, id_)); }

    /// When it succeeds the handler does not run, never will, and is deleted. Inside a handler, of
    /// one that runs at this moment (its own, for example): Code::Closing, and the same is true when
    /// that returns. Code::Stale: it was closed before.
    Result<void> deregister() const { return detail::outcome(pace_handle_deregister(pool_, id_)); }

    Result<bool> is_open() const {
        bool open = false;
        const pace_status_t status = pace_handle_is_open(pool_, id_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }

    pace_handle_t native() const noexcept { return id_; }

private:
    pace_pool_t *pool_ = nullptr;
    pace_handle_t id_{};
};

/// A registered descriptor or periodic timer. When it goes it is deregistered: the destructor returns when the handler
/// does not run and has been deleted. Inside a handler, and on a thread of the pool, it does not wait.
class [[nodiscard]] Handle {
public:
    Handle() noexcept = default;
    Handle(Handle &&other) noexcept
        : core_(std::move(other.core_)), ref_(std::exchange(other.ref_, HandleRef())) {}
    Handle &operator=(Handle &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(ref_, other.ref_);
        return *this;
    }
    ~Handle() {
        if (core_) {
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

    Handle(detail::SharedCore core, pace_handle_t id) noexcept
        : core_(std::move(core)), ref_(core_->pool, id) {}

    detail::SharedCore core_;
    HandleRef ref_;
};

/// A one-shot timer. When it goes the timer still runs.
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

    Timer(detail::SharedCore core, pace_timer_t id) noexcept : core_(std::move(core)), id_(id) {}

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
};

/// One handle set's counters.
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

/// How a shutdown went.
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
    /// host has pulled and not completed.
    std::uint64_t worker_tasks{};
    /// Of servers: connections that were cut off, as they were not through.
    std::uint64_t connections{};
};

/// Something that takes, or took, longer than Config::slow.
struct SlowReport {
    std::uint32_t thread{};
    nanoseconds elapsed{};
    /// Whether it still runs.
    bool running{};
};

// ---- pulled events -------------------------------------------------------------------------------

/// What pull() brings: an event as data. It is a pace_event_t.
struct Event : pace_event_t {
    Event() noexcept : pace_event_t{} {}

    bool is_ready() const noexcept { return kind == PACE_EVENT_READY; }
    bool is_tick() const noexcept { return kind == PACE_EVENT_TICK; }
    bool is_timer() const noexcept { return kind == PACE_EVENT_TIMER; }
    bool is_task() const noexcept { return kind == PACE_EVENT_TASK; }
    Ready readiness() const noexcept { return Ready(ready); }
};
static_assert(sizeof(Event) == sizeof(pace_event_t), "a batch of one is a batch of the other");

// ---- the log -------------------------------------------------------------------------------------

/// How much something matters; Off: nothing is told.
enum class LogLevel : std::uint32_t {
    Off = PACE_LOG_OFF,
    Error = PACE_LOG_ERROR,
    Warn = PACE_LOG_WARN,
    Info = PACE_LOG_INFO,
    Debug = PACE_LOG_DEBUG,
    Trace = PACE_LOG_TRACE
};
/// Who tells something.
enum class LogComponent : std::uint32_t {
    Pool = PACE_LOG_POOL,
    Net = PACE_LOG_NET,
    Http = PACE_LOG_HTTP,
    Task = PACE_LOG_TASK,
    Hub = PACE_LOG_HUB,
    History = PACE_LOG_HISTORY,
    Webhook = PACE_LOG_WEBHOOK,
    Service = PACE_LOG_SERVICE,
    Log = PACE_LOG_LOG
};
/// "warn"; "net".
inline const char *name_of(LogLevel level) noexcept {
    return pace_log_level_name(static_cast<std::uint32_t>(level));
}
inline const char *name_of(LogComponent component) noexcept {
    return pace_log_component_name(static_cast<std::uint32_t>(component));
}

/// Something that a component tells.
struct LogRecord {
    using Value = std::variant<std::uint64_t, std::int64_t, double, std::string>;

    std::chrono::system_clock::time_point time{};
    LogLevel level{};
    LogComponent component{};
    /// What happened: a name that stays, as "accept.paused".
    std::string event{};
    /// The name of the pool that it happened in.
    std::string pool{};
    /// For people: a sentence without the fields.
    std::string message{};
    /// In order. Times end in _ns.
    std::vector<std::pair<std::string, Value>> fields{};

    /// The value of a field; none if there is no such field, or it is of another type.
    template <class T>
    std::optional<T> field(std::string_view name) const {
        for (const auto &one : fields) {
            if (one.first == name && std::holds_alternative<T>(one.second)) {
                return std::get<T>(one.second);
            }
        }
        return std::nullopt;
    }
};

/// Settings of a Log. What is not set is as `settings` has it, a file of settings (JSON or YAML, by its name),
/// over which variables PACELINE_LOG_… win if `environment`; and then as paceline.h has it.
struct LogConfig {
    std::string settings{};
    bool environment = false;
    /// "info,net=debug,hub=off". Empty: "info".
    std::string levels{};
    /// The file that lines of JSON are appended to. Several logs may write one. A character device, a pipe and what a
    /// link in /proc leads to, as /dev/stdout, are written and never rotated; a directory, a block device and a socket
    /// are refused.
    std::string file{};
    std::optional<std::uint64_t> max_size{};
    std::optional<std::uint32_t> files{};
    std::optional<std::uint32_t> capacity{};
    /// How many records may wait for pull().
    std::uint32_t pull_capacity{};
    /// Called on the log's own thread. What it causes itself is not logged.
    Function<void(const LogRecord &)> on_record{};
};

/// What happens in pools and in all that stands on them, to a callable, to a file that is rotated, or to whoever
/// pulls it. Copies are the same log, and so are those of pools. When the last goes, what waits is told; if there is a
/// callable the destructor returns when it has been deleted, unless on a thread of a pool or of the log. See Config::log.
class Log {
public:
    /// None.
    Log() noexcept = default;

    /// Code::Invalid names the setting, its value and what is allowed; Code::Os: there is no thread to be had.
    static Result<Log> create(LogConfig config) {
        pace_log_config_t raw{};
        (void)pace_log_config_init(&raw, sizeof raw);
        if (!config.settings.empty() || config.environment) {
            const char *path = config.settings.empty() ? nullptr : config.settings.c_str();
            const pace_status_t status = pace_log_config_load(&raw, path, config.environment);
            if (status != PACE_OK) {
                return Error::last(status);
            }
        }
        raw.levels = config.levels.empty() ? raw.levels : config.levels.c_str();
        raw.file = config.file.empty() ? raw.file : config.file.c_str();
        raw.max_size = config.max_size.value_or(raw.max_size);
        raw.files = config.files.value_or(raw.files);
        raw.capacity = config.capacity.value_or(raw.capacity);
        raw.pull_capacity = config.pull_capacity;
        using Function = Function<void(const LogRecord &)>;
        std::unique_ptr<Function> box;
        if (config.on_record) {
            box = std::make_unique<Function>(std::move(config.on_record));
            raw.on_record = told;
            raw.user_data = box.get();
            raw.drop = detail::drop_box<Function>;
        }
        pace_log_t *log = nullptr;
        const pace_status_t status = pace_log_new(&raw, &log);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        (void)box.release();
        Log made;
        made.raw_.reset(log, pace_log_free);
        return made;
    }

    /// Makes it the log of all pools that are made from now on without one of their own. Code::Full: there is
    /// one already.
    Result<void> install() const { return detail::outcome(pace_log_install(native())); }
    /// Which records are made from now on: a text as LogConfig::levels. Code::Invalid: it is none.
    Result<void> set_levels(const std::string &levels) const {
        return detail::outcome(pace_log_set_levels(native(), levels.c_str()));
    }
    /// Up to which level a component tells.
    Result<LogLevel> level(LogComponent component) const {
        std::uint32_t level = PACE_LOG_OFF;
        const pace_status_t status =
            pace_log_level(native(), static_cast<std::uint32_t>(component), &level);
        return status == PACE_OK ? Result<LogLevel>(static_cast<LogLevel>(level))
                                 : Result<LogLevel>(Error::last(status));
    }
    /// Up to `most` records that wait, waiting for the first for up to `time`. One thread at a time.
    /// Code::TimedOut; Code::Empty, for no time; Code::ShutDown: it was closed, and all is pulled.
    Result<std::vector<LogRecord>> pull(std::size_t most, Duration time) const {
        std::vector<pace_log_record_t> raw(most);
        std::size_t count = 0;
        const pace_status_t status =
            pace_log_pull(native(), raw.data(), raw.size(), detail::nanos(time), &count);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        std::vector<LogRecord> records;
        records.reserve(count);
        for (std::size_t index = 0; index < count; ++index) {
            records.push_back(record_of(raw[index]));
        }
        return records;
    }
    /// Waits until everything that happened before was told and written. Code::TimedOut; Code::WouldDeadlock
    /// in its own callable.
    Result<void> flush(Duration time) const {
        return detail::outcome(pace_log_flush(native(), detail::nanos(time)));
    }
    /// Turns all levels off, and waits until everything is told and written, and the callable is deleted. As
    /// flush().
    Result<void> close(Duration time) const {
        return detail::outcome(pace_log_close(native(), detail::nanos(time)));
    }
    /// What it has done so far. Fields as in paceline.h.
    Result<pace_log_stats_t> stats() const {
        pace_log_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_log_stats(native(), &stats);
        return status == PACE_OK ? Result<pace_log_stats_t>(stats)
                                 : Result<pace_log_stats_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Log's.
    pace_log_t *native() const noexcept { return raw_.get(); }

private:
    static void told(void *data, const pace_log_record_t *raw) noexcept {
        (void)detail::guard(
            [&] { (*static_cast<Function<void(const LogRecord &)> *>(data))(record_of(*raw)); });
    }

    static LogRecord record_of(const pace_log_record_t &raw) {
        LogRecord record;
        record.time += std::chrono::duration_cast<std::chrono::system_clock::duration>(
            detail::time_of(raw.time_ns));
        record.level = static_cast<LogLevel>(raw.level);
        record.component = static_cast<LogComponent>(raw.component);
        record.event = raw.event;
        record.pool = raw.pool;
        record.message = raw.message;
        for (std::size_t index = 0; index < raw.field_count; ++index) {
            const pace_log_field_t &field = raw.fields[index];
            LogRecord::Value value = field.u64;
            if (field.kind == PACE_LOG_I64) {
                value = field.i64;
            } else if (field.kind == PACE_LOG_F64) {
                value = field.f64;
            } else if (field.kind == PACE_LOG_TEXT) {
                value = std::string(field.text);
            }
            record.fields.emplace_back(field.name, std::move(value));
        }
        return record;
    }

    std::shared_ptr<pace_log_t> raw_;
};

// ---- the pool ------------------------------------------------------------------------------------

namespace detail {
struct Hooks;
}

/// Settings of a pool. What is not set is the library's choice; ranges and defaults are those of
/// pace_pool_config_t. In C++20: `Pool::create({.threads = 2, .name = "io"})`; in C++17:
/// `Pool::create(Config().set_threads(2).set_name("io"))`.
struct Config {
    /// 0: only host threads drive it, by join() or pull().
    std::optional<std::uint32_t> threads{};
    /// How many host threads may take part at once.
    std::optional<std::uint32_t> max_joined{};
    std::optional<std::uint32_t> leaders{};
    Source source{Source::Epoll};
    Promotion promotion{Promotion::Deferred};
    std::optional<Duration> watch_period{};
    std::optional<Duration> spin{};
    std::optional<std::uint32_t> lane_capacity{};
    std::optional<std::uint32_t> strand_capacity{};
    std::optional<std::uint32_t> max_handles{};
    /// "none", "compact", "spread", or a list such as "0,2,4-7". Empty: the library's choice.
    std::string pin{};
    /// Whether a failure to pin is create()'s error.
    bool pin_strict{};
    /// Threads are called name-0, name-1 … Empty: "paceline".
    std::string name{};
    /// Bytes per thread.
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
    Config &set_lane_capacity(std::uint32_t value) { return lane_capacity = value, *this; }
    Config &set_strand_capacity(std::uint32_t value) { return strand_capacity = value, *this; }
    Config &set_max_handles(std::uint32_t value) { return max_handles = value, *this; }
    Config &set_pin(std::string value) { return pin = std::move(value), *this; }
    Config &set_pin_strict(bool value = true) { return pin_strict = value, *this; }
    Config &set_name(std::string value) { return name = std::move(value), *this; }
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
    set(raw.lane_capacity, config.lane_capacity);
    set(raw.strand_capacity, config.strand_capacity);
    set(raw.max_handles, config.max_handles);
    raw.pin = config.pin.empty() ? nullptr : config.pin.c_str();
    raw.pin_strict = config.pin_strict;
    raw.name = config.name.empty() ? nullptr : config.name.c_str();
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
    pace_pool_t *pool;

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
        return Pool(std::make_shared<const detail::Core>(pool));
    }

    /// From a file of settings (JSON or YAML, by its name; empty: none), over which variables
    /// PACELINE_… win if `environment`. Code::Invalid tells all that is wrong in them.
    static Result<Pool> from_settings(const std::string &path, bool environment) {
        pace_pool_config_t config{};
        (void)pace_pool_config_init(&config, sizeof config);
        pace_pool_t *pool = nullptr;
        pace_status_t status =
            pace_pool_config_load(&config, path.empty() ? nullptr : path.c_str(), environment);
        if (status == PACE_OK) {
            status = pace_pool_new(&config, &pool);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Pool(std::make_shared<const detail::Core>(pool));
    }

    Pool(Pool &&) noexcept = default;
    Pool &operator=(Pool &&other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    ~Pool() {
        // Children may keep the Core, so its end is not the pool's. The core stays in place until
        // the handlers have returned: they may know this object.
        if (core_) {
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
        detail::Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        pace_timer_t id{};
        const pace_status_t status = packed.settle(
            pace_pool_after(native(), detail::nanos(delay), work.run, work.user_data, work.drop, &id));
        return made(status, [&] { return Timer(core_, id); });
    }

    // The host's threads

    /// Takes part for a time: handlers run on the calling thread. How many calls it has made.
    /// Code::Full: Config::max_joined threads take part already.
    Result<std::uint64_t> join(Duration time) const {
        std::uint64_t ran = 0;
        const pace_status_t status = pace_pool_join(native(), detail::nanos(time), &ran);
        return made(status, [&] { return ran; });
    }

    /// A descriptor, readable while there may be something to join or pull for, for a pool of no
    /// threads inside a host that has a loop of its own. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_pool_pollable(native(), &fd);
        return made(status, [&] { return static_cast<int>(fd); });
    }

    /// Takes part and returns events as data, which belong to this thread until its next pull() or
    /// pull_done(). The part of `events` that was filled; Code::TimedOut, or Code::ShutDown when
    /// nothing is left.
    Result<span<Event>> pull(span<Event> events, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_pool_pull(native(), events.data(), events.size(), detail::nanos(time), &count);
        return made(status, [&] { return events.first(count); });
    }

    /// Completes this thread's batch without pulling on.
    Result<void> pull_done() const { return detail::outcome(pace_pull_done(native())); }

    /// Completes one event earlier, from any thread, with another answer than Flow::Wait.
    Result<void> pull_complete(pace_handle_t handle, Flow flow) const {
        return detail::outcome(pace_pull_complete(native(), handle, static_cast<std::int32_t>(flow)));
    }

    /// What register_fd, every, after, post and post_batch are for handlers: `token` comes back with
    /// each event.
    Result<Handle> pull_register(int fd, std::uint64_t token, const HandleOptions &options = {}) const {
        const pace_handle_options_t raw = options.native();
        pace_handle_t id{};
        const pace_status_t status = pace_pull_register(native(), fd, &raw, token, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    Result<Handle> pull_every(Duration period, std::uint64_t token) const {
        pace_handle_t id{};
        const pace_status_t status = pace_pull_every(native(), detail::nanos(period), token, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    Result<Timer> pull_after(Duration delay, std::uint64_t token) const {
        pace_timer_t id{};
        const pace_status_t status = pace_pull_after(native(), detail::nanos(delay), token, &id);
        return made(status, [&] { return Timer(core_, id); });
    }
    Result<void> pull_post(std::uint64_t token) const {
        return detail::outcome(pace_pull_post(native(), token));
    }
    /// The number accepted; an error only if none was.
    Result<std::size_t> pull_post_batch(span<const std::uint64_t> tokens) const {
        std::size_t accepted = 0;
        const pace_status_t status =
            pace_pull_post_batch(native(), tokens.data(), tokens.size(), &accepted);
        return made(accepted > 0 ? PACE_OK : status, [&] { return accepted; });
    }

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
    friend class PulledUdp;
    friend class PulledServer;
    friend class PulledRequests;
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
        detail::Boxed<Box> box(new Box{std::forward<F>(handler), native()});
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
                raw.ticks};
    }

    SetStats set_stats(std::uint32_t set) const noexcept {
        pace_set_stats_t raw{};
        raw.struct_size = sizeof raw;
        (void)pace_pool_set_stats(native(), set, &raw);
        return {unless_none(raw.leader), raw.harvests, raw.surplus};
    }

    detail::SharedCore core_;
};

// ---- rings and queues ----------------------------------------------------------------------------

namespace detail {

/// What rings and queues copy as bytes.
template <class T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && sizeof(T) <= 256 &&
                                 alignof(T) <= alignof(std::uint64_t);

} // namespace detail

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
                  "events are trivially copyable, of at most 256 bytes and the alignment of uint64_t");

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
    Ring &operator=(Ring &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(ring_, other.ring_);
        return *this;
    }
    ~Ring() { pace_ring_free(ring_); }

    /// Publishes one event. From outside the pool it waits while the ring is full; inside a handler
    /// that is Code::Full. Code::ShutDown: the ring is closed, or the pool is.
    Result<void> publish(const T &event) const {
        return detail::outcome(pace_ring_publish(ring_, std::addressof(event)));
    }
    /// As publish(), but Code::Full at once.
    Result<void> try_publish(const T &event) const {
        return detail::outcome(pace_ring_try_publish(ring_, std::addressof(event)));
    }
    /// Publishes several in order, waiting as publish() does. The number published, which is less
    /// than all if the rest is refused; an error only if none was.
    Result<std::size_t> publish_batch(span<const T> events) const {
        std::size_t published = 0;
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
        detail::guard([&] { (*static_cast<Called *>(data))(Events<T>(events, stride, count)); });
    }

    detail::SharedCore core_;
    pace_ring_t *ring_;
};

/// A bounded queue of plain values for any number of threads on both ends. It needs no pool.
template <class T>
class [[nodiscard]] Queue {
    static_assert(detail::is_plain<T>,
                  "items are trivially copyable, of at most 256 bytes and the alignment of uint64_t");

public:
    /// The capacity is rounded up to a power of two.
    static Result<Queue> create(std::size_t capacity) {
        pace_queue_t *queue = nullptr;
        const pace_status_t status = pace_queue_new(sizeof(T), capacity, &queue);
        return status == PACE_OK ? Result<Queue>(Queue(queue)) : Result<Queue>(Error::last(status));
    }

    Queue(Queue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Queue &operator=(Queue &&other) noexcept {
        std::swap(queue_, other.queue_);
        return *this;
    }
    ~Queue() { pace_queue_free(queue_); }

    /// Code::Full at once if there is no room; Code::ShutDown if it is closed.
    Result<void> push(const T &item) const { return push_timeout(item, nanoseconds::zero()); }
    /// As push(), but waits for room; then Code::TimedOut.
    Result<void> push_timeout(const T &item, Duration time) const {
        return detail::outcome(pace_queue_push(queue_, std::addressof(item), detail::nanos(time)));
    }
    /// Pushes what fits, in order: the number pushed. Code::Full if none was.
    Result<std::size_t> push_batch(span<const T> items) const {
        std::size_t pushed = 0;
        const pace_status_t status = pace_queue_push_batch(queue_, items.data(), items.size(), &pushed);
        if (status != PACE_OK && pushed == 0) {
            return Error::last(status);
        }
        return pushed;
    }

    /// Code::Empty at once if there is none; Code::ShutDown if it is closed and empty.
    Result<T> pop() const { return pop_timeout(nanoseconds::zero()); }
    /// As pop(), but waits; then Code::TimedOut.
    Result<T> pop_timeout(Duration time) const {
        alignas(T) unsigned char bytes[sizeof(T)];
        const pace_status_t status = pace_queue_pop(queue_, bytes, detail::nanos(time));
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Result<T>(*std::launder(reinterpret_cast<T *>(bytes)));
    }
    /// Fills the first part of `items` with what there is, waiting for the first only: that part.
    Result<span<T>> pop_batch(span<T> items, Duration time = nanoseconds::zero()) const {
        std::size_t popped = 0;
        const pace_status_t status =
            pace_queue_pop_batch(queue_, items.data(), items.size(), detail::nanos(time), &popped);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return items.first(popped);
    }

    /// A descriptor, readable while there may be something to pop, and once it is closed. A pop that
    /// finds nothing makes it unreadable. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_queue_pollable(queue_, &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }

    /// Takes no more. What is in it can still be popped.
    Result<void> close() const { return detail::outcome(pace_queue_close(queue_)); }

    Result<bool> is_closed() const { return ask<bool>(pace_queue_is_closed); }
    /// How many are in it: when others push and pop, how many were.
    Result<std::size_t> size() const { return ask<std::size_t>(pace_queue_len); }
    Result<std::size_t> capacity() const { return ask<std::size_t>(pace_queue_capacity); }

    /// For calls to paceline.h. Stays the Queue's.
    pace_queue_t *native() const noexcept { return queue_; }

private:
    explicit Queue(pace_queue_t *queue) noexcept : queue_(queue) {}

    template <class A, class Question>
    Result<A> ask(Question question) const {
        A answer{};
        const pace_status_t status = question(queue_, &answer);
        return status == PACE_OK ? Result<A>(answer) : Result<A>(Error::last(status));
    }

    pace_queue_t *queue_;
};

// ---- servers -------------------------------------------------------------------------------------

/// What became of bytes that were written.
enum class WriteStatus : std::uint32_t {
    /// All of them are with the kernel.
    Sent = PACE_WRITE_STATUS_SENT,
    /// Some wait in the queue. Inside a hook they always do: they are tried when it returns.
    Queued = PACE_WRITE_STATUS_QUEUED,
    /// The same, and the queue is above its high mark: write no more until `writable`.
    AboveHighMark = PACE_WRITE_STATUS_ABOVE_HIGH_MARK,
    /// None of them: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205 or
    /// 304). There is nothing more to produce.
    Unwanted = PACE_WRITE_STATUS_UNWANTED,
};

/// Whether a connection is wanted.
enum class Accept : std::int32_t {
    Yes = PACE_ACCEPT_YES,
    /// It is sent what the hook has written, and closed.
    Refuse = PACE_ACCEPT_REFUSE,
};

/// Which time is over.
enum class Timeout : std::uint32_t {
    Connect = PACE_TIMEOUT_CONNECT,
    Idle = PACE_TIMEOUT_IDLE,
    Read = PACE_TIMEOUT_READ,
    Stall = PACE_TIMEOUT_STALL,
    Deadline = PACE_TIMEOUT_DEADLINE,
};

/// What to do when a time is over.
enum class TimeoutAction : std::int32_t {
    Close = PACE_TIMEOUT_ACTION_CLOSE,
    /// Go on; the time begins anew, but a deadline is unset. Also after close(), to send a last word.
    Keep = PACE_TIMEOUT_ACTION_KEEP,
};

/// Why a connection has ended.
class Reason {
public:
    enum Kind : std::uint32_t {
        Peer = PACE_REASON_PEER,
        Local = PACE_REASON_LOCAL,
        Aborted = PACE_REASON_ABORTED,
        Refused = PACE_REASON_REFUSED,
        TimedOut = PACE_REASON_TIMED_OUT,
        Failed = PACE_REASON_FAILED,
        Unconsumed = PACE_REASON_UNCONSUMED,
        Panicked = PACE_REASON_PANICKED,
        Drained = PACE_REASON_DRAINED,
        CutOff = PACE_REASON_CUT_OFF,
        PoolEnded = PACE_REASON_POOL_ENDED,
    };

    constexpr Reason(std::uint32_t kind, std::int32_t detail) noexcept
        : kind_(static_cast<Kind>(kind)), detail_(detail) {}

    constexpr Kind kind() const noexcept { return kind_; }
    /// Which time is over, if the kind is TimedOut.
    constexpr Timeout timeout() const noexcept { return static_cast<Timeout>(detail_); }
    /// errno, if the kind is Failed; else 0.
    constexpr std::int32_t os_error() const noexcept { return kind_ == Failed ? detail_ : 0; }

    friend constexpr bool operator==(Reason reason, Kind kind) noexcept { return reason.kind_ == kind; }
    friend constexpr bool operator!=(Reason reason, Kind kind) noexcept { return reason.kind_ != kind; }

private:
    Kind kind_;
    std::int32_t detail_;
};

namespace detail {

/// A server's C object, and its pool's, which it must not outlive. It may be another's: an HTTP
/// server's, which is kept as long.
struct ServerCore {
    ServerCore(SharedCore core, pace_server_t *raw, std::shared_ptr<const void> other = nullptr)
        : pool(std::move(core)), server(raw), owner(std::move(other)) {}
    ServerCore(const ServerCore &) = delete;
    ServerCore &operator=(const ServerCore &) = delete;
    ~ServerCore() {
        if (owner == nullptr) {
            pace_server_free(server);
        }
    }

    const SharedCore pool;
    pace_server_t *const server;
    const std::shared_ptr<const void> owner;
};

using SharedServer = std::shared_ptr<const ServerCore>;

inline Result<WriteStatus> wrote(pace_status_t status, std::uint32_t what) {
    return status == PACE_OK ? Result<WriteStatus>(static_cast<WriteStatus>(what))
                             : Result<WriteStatus>(Error::last(status));
}

/// Asks C for a text.
template <class Ask>
Result<std::string> text_of(Ask ask) {
    char text[PACE_ADDRESS_SIZE];
    const pace_status_t status = ask(text, sizeof text);
    return status == PACE_OK ? Result<std::string>(std::string(text))
                             : Result<std::string>(Error::last(status));
}

/// Pieces as C has them.
template <class Bytes>
std::string_view view_of(const Bytes &bytes) noexcept {
    static_assert(sizeof(*std::data(bytes)) == 1, "only bytes are written");
    return {reinterpret_cast<const char *>(std::data(bytes)), std::size(bytes)};
}

template <class Bytes>
std::string_view view_of(const std::shared_ptr<Bytes> &bytes) noexcept {
    return bytes ? view_of(*bytes) : std::string_view();
}

template <class Bytes, class Write>
Result<WriteStatus> write_owned(Bytes &&bytes, Write write) {
    static_assert(!std::is_lvalue_reference_v<Bytes>, "a buffer is given away: std::move() it");
    auto box = std::make_unique<Bytes>(std::move(bytes));
    const std::string_view view = view_of(*box);
    std::uint32_t what = 0;
    const pace_status_t status = write(view.data(), view.size(), box.get(), drop_box<Bytes>, &what);
    if (status == PACE_OK) {
        (void)box.release();
    } else {
        give_back<Bytes>(bytes, *box);
    }
    return wrote(status, what);
}

inline std::vector<pace_piece_t> pieces_of(span<const std::string_view> pieces) {
    std::vector<pace_piece_t> raw;
    raw.reserve(pieces.size());
    for (const std::string_view piece : pieces) {
        raw.push_back({piece.data(), piece.size()});
    }
    return raw;
}

} // namespace detail

/// A connection by its name, for any thread and for later: it may have ended, and then says
/// Code::Stale. Copies are the same connection. It keeps the server's memory, but neither the
/// connection nor the server running.
class ConnRef {
public:
    ConnRef() noexcept = default;

    /// Writes, in order, without waiting: what the kernel takes is sent at once, the rest is queued.
    /// Code::Stale: the connection has ended, is to be closed, or its peer is gone. Code::Full: the
    /// queue would exceed its maximum, and none of it was taken. An answer whose request was not admitted
    /// (Conn::admit) comes too late if meanwhile the connection's idle time is over, its peer has finished, or the
    /// server drains.
    Result<WriteStatus> write(std::string_view bytes) const {
        std::uint32_t what = 0;
        const auto status = pace_server_conn_write(server(), id_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    /// Writes all pieces as one.
    Result<WriteStatus> write_vectored(span<const std::string_view> pieces) const {
        const auto raw = detail::pieces_of(pieces);
        std::uint32_t what = 0;
        const auto status =
            pace_server_conn_write_vectored(server(), id_, raw.data(), raw.size(), &what);
        return detail::wrote(status, what);
    }
    /// Writes without copying, for large buffers: what has data() and size() of bytes, as a std::string
    /// or a std::vector, or a std::shared_ptr to one. It goes when it was sent or never will be, on
    /// whatever thread that is. One that is refused stays the caller's.
    template <class Bytes>
    Result<WriteStatus> write_owned(Bytes &&bytes) const {
        return detail::write_owned(std::forward<Bytes>(bytes), [this](auto... lent) {
            return pace_server_conn_write_owned(server(), id_, lent...);
        });
    }
    /// Writes, and has `written` called with the token when the kernel has all of it.
    Result<WriteStatus> write_tracked(std::string_view bytes, std::uint64_t token) const {
        std::uint32_t what = 0;
        const auto status =
            pace_server_conn_write_tracked(server(), id_, bytes.data(), bytes.size(), token, &what);
        return detail::wrote(status, what);
    }

    /// As Conn's methods of these names.
    Result<void> shutdown_write() const { return call(pace_server_conn_shutdown_write); }
    Result<void> close() const { return call(pace_server_conn_close); }
    Result<void> abort() const { return call(pace_server_conn_abort); }
    Result<void> pause() const { return call(pace_server_conn_pause); }
    Result<void> resume() const { return call(pace_server_conn_resume); }
    /// Has `notified` called, soon. Several calls may become one.
    Result<void> notify() const { return call(pace_server_conn_notify); }

    Result<bool> is_open() const {
        bool open = false;
        const pace_status_t status = pace_server_conn_is_open(server(), id_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }
    /// Bytes that wait to be sent.
    Result<std::size_t> queued() const {
        std::size_t queued = 0;
        const pace_status_t status = pace_server_conn_queued(server(), id_, &queued);
        return status == PACE_OK ? Result<std::size_t>(queued)
                                 : Result<std::size_t>(Error::last(status));
    }
    /// The other end.
    Result<std::string> peer() const {
        return detail::text_of([this](char *text, std::size_t size) {
            return pace_server_conn_peer(server(), id_, text, size);
        });
    }
    /// This end.
    Result<std::string> local() const {
        return detail::text_of([this](char *text, std::size_t size) {
            return pace_server_conn_local(server(), id_, text, size);
        });
    }

    /// As a number, for tables. 0: an empty ConnRef.
    std::uint64_t id() const noexcept { return id_.id; }

    friend bool operator==(const ConnRef &one, const ConnRef &other) noexcept {
        return one.id_.id == other.id_.id && one.server_ == other.server_;
    }
    friend bool operator!=(const ConnRef &one, const ConnRef &other) noexcept { return !(one == other); }

private:
    friend class Conn;
    friend class Server;
    friend class Http;
    friend class PulledServer;

    ConnRef(detail::SharedServer server, pace_conn_id_t id) noexcept
        : server_(std::move(server)), id_(id) {}

    pace_server_t *server() const noexcept { return server_ ? server_->server : nullptr; }

    Result<void> call(pace_status_t (*f)(pace_server_t *, pace_conn_id_t)) const {
        return server_ ? detail::outcome(f(server(), id_)) : detail::gone("connection");
    }

    detail::SharedServer server_;
    pace_conn_id_t id_{};
};

/// Where a filter puts bytes: good for that call only.
class Sink {
public:
    explicit Sink(pace_sink_t *raw) noexcept : raw_(raw) {}

    /// Puts bytes behind those that are there.
    void append(std::string_view bytes) const {
        (void)pace_sink_append(raw_, bytes.data(), bytes.size());
    }

private:
    pace_sink_t *raw_;
};

/// Whether plain bytes may still come.
enum class FilterRead : std::int32_t {
    /// They may.
    Open = PACE_FILTER_READ_OPEN,
    /// The peer has said that it sends no more; `finished` of the handler follows.
    Ended = PACE_FILTER_READ_ENDED,
    /// The bytes are not good: the connection ends.
    Failed = -1,
};

/// Turns the bytes of a connection, both ways, as TLS does: handlers, those of HTTP too, and whoever
/// writes see plain bytes. Its methods never run on two threads at once. They run under a lock of the
/// connection: they must neither block nor use the connection. One that throws ends it.
class Filter {
public:
    Filter() = default;
    Filter(const Filter &) = delete;
    Filter &operator=(const Filter &) = delete;
    virtual ~Filter() = default;

    /// These bytes have come: what the handler is to see goes to `plain`, and what the peer is to be
    /// answered to `wire`. It takes all of them, and keeps what it cannot turn yet.
    virtual FilterRead received(std::string_view bytes, Sink plain, Sink wire) = 0;
    /// These bytes were written: what is to leave goes to `wire`; what cannot be turned yet it keeps, and
    /// gives out in `received`. False: the connection fails.
    virtual bool written(std::string_view bytes, Sink wire) = 0;
    /// Nothing more will be written: its last words. Called once at most.
    virtual void finish(Sink) {}
    /// The socket has ended without FilterRead::Ended. False: peers do not end like that.
    virtual bool cut_off() { return true; }
};

/// A connection that was just accepted, for whoever makes its filter: good for that call only.
class Accepted {
public:
    explicit Accepted(pace_conn_t *raw) noexcept : raw_(raw) {}

    /// The other end, and this one.
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_peer(raw_, text, size); });
    }
    Result<std::string> local() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_local(raw_, text, size); });
    }

private:
    pace_conn_t *raw_;
};

/// Makes the filter of a connection. nullptr ends it.
using FilterFactory = Function<std::unique_ptr<Filter>(const Accepted &)>;

namespace detail {

struct FilterBox {
    static constexpr std::int32_t failed = -1;

    static Filter &of(void *filter) noexcept { return *static_cast<Filter *>(filter); }

    static std::int32_t make(void *data, pace_conn_t *raw, void **filter) noexcept {
        const auto &factory = *static_cast<const FilterFactory *>(data);
        guard([&] { *filter = factory(Accepted(raw)).release(); });
        return *filter == nullptr ? failed : 0;
    }
    static std::int32_t received(void *filter, const void *bytes, std::size_t size, pace_sink_t *plain,
                                 pace_sink_t *wire) noexcept {
        FilterRead inflow = FilterRead::Failed;
        guard([&] {
            inflow =
                of(filter).received({static_cast<const char *>(bytes), size}, Sink(plain), Sink(wire));
        });
        return static_cast<std::int32_t>(inflow);
    }
    static std::int32_t written(void *filter, const void *bytes, std::size_t size,
                                pace_sink_t *wire) noexcept {
        bool good = false;
        guard([&] { good = of(filter).written({static_cast<const char *>(bytes), size}, Sink(wire)); });
        return good ? 0 : failed;
    }
    static void finish(void *filter, pace_sink_t *wire) noexcept {
        guard([&] { of(filter).finish(Sink(wire)); });
    }
    static std::int32_t cut_off(void *filter) noexcept {
        bool good = false;
        guard([&] { good = of(filter).cut_off(); });
        return good ? 0 : failed;
    }
    static void free(void *filter) noexcept { delete static_cast<Filter *>(filter); }

    /// The factory is C's when the server has started.
    static pace_filter_hooks_t hooks(FilterFactory *factory) noexcept {
        pace_filter_hooks_t hooks{};
        (void)pace_filter_hooks_init(&hooks, sizeof hooks);
        hooks.make = make;
        hooks.received = received;
        hooks.written = written;
        hooks.finish = finish;
        hooks.cut_off = cut_off;
        hooks.free = free;
        hooks.user_data = factory;
        hooks.drop = drop_box<FilterFactory>;
        return hooks;
    }
};

} // namespace detail

/// A request in work. When it goes unanswered the request counts as aborted.
class [[nodiscard]] Admission {
public:
    Admission(Admission &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Admission &operator=(Admission &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Admission() { pace_admission_free(raw_); }

    /// The request was answered, by what has been written before.
    void answered() noexcept {
        if (raw_ != nullptr) {
            (void)pace_admission_answered(std::exchange(raw_, nullptr));
        }
    }

private:
    friend class Conn;
    friend class PulledServer;

    explicit Admission(pace_admission_t *raw) noexcept : raw_(raw) {}

    pace_admission_t *raw_;
};

namespace detail {
struct ServerState;
struct ConnBox;
} // namespace detail

/// A connection inside one of its hooks: good for that call only. What is written by it is gathered,
/// and sent when the hook returns, at 64 KiB, or by flush().
class Conn {
public:
    Conn(const Conn &) = delete;
    Conn &operator=(const Conn &) = delete;

    /// As ConnRef::write().
    Result<WriteStatus> write(std::string_view bytes) {
        std::uint32_t what = 0;
        const auto status = pace_conn_write(raw_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    Result<WriteStatus> write_vectored(span<const std::string_view> pieces) {
        const auto raw = detail::pieces_of(pieces);
        std::uint32_t what = 0;
        const auto status = pace_conn_write_vectored(raw_, raw.data(), raw.size(), &what);
        return detail::wrote(status, what);
    }
    template <class Bytes>
    Result<WriteStatus> write_owned(Bytes &&bytes) {
        return detail::write_owned(std::forward<Bytes>(bytes), [this](auto... lent) {
            return pace_conn_write_owned(raw_, lent...);
        });
    }
    Result<WriteStatus> write_tracked(std::string_view bytes, std::uint64_t token) {
        std::uint32_t what = 0;
        const auto status = pace_conn_write_tracked(raw_, bytes.data(), bytes.size(), token, &what);
        return detail::wrote(status, what);
    }
    /// Sends what was gathered now.
    void flush() { (void)pace_conn_flush(raw_); }

    /// After what is queued, tells the peer that no more is sent. Reading goes on.
    void shutdown_write() { (void)pace_conn_shutdown_write(raw_); }
    /// Closes after what is queued has been sent. Nothing more is read.
    void close() { (void)pace_conn_close(raw_); }
    /// Closes at once. What is queued is lost.
    void abort() { (void)pace_conn_abort(raw_); }
    /// Reads no more before resume(). What the peer has sent is not lost meanwhile, and that it has ended
    /// is seen behind that, or by a write that fails.
    void pause() { (void)pace_conn_pause(raw_); }
    void resume() { (void)pace_conn_resume(raw_); }
    /// Has `timeout` called with Timeout::Deadline after `time`, in place of what was set before;
    /// `forever`: not at all.
    void set_deadline(Duration time) { (void)pace_conn_set_deadline(raw_, detail::nanos(time)); }

    /// Begins a request that is answered later, by any thread. It counts as in work until its Admission is answered
    /// or gone: meanwhile its connection is not idle, and neither a drain nor a peer that has finished closes it.
    /// Code::Full: there are as many as may be, and the busy message was written instead.
    Result<Admission> admit() {
        pace_admission_t *admission = nullptr;
        const pace_status_t status = pace_conn_admit(raw_, &admission);
        return status == PACE_OK ? Result<Admission>(Admission(admission))
                                 : Result<Admission>(Error::last(status));
    }

    /// For other threads, and for later.
    ConnRef ref() const;

    /// The other end.
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_peer(raw_, text, size); });
    }
    /// This end. Code::Stale in `close`.
    Result<std::string> local() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_local(raw_, text, size); });
    }
    /// Made by Server::connect().
    bool is_outgoing() const noexcept { return ask(pace_conn_is_outgoing); }
    bool is_draining() const noexcept { return ask(pace_conn_is_draining); }
    /// Bytes that wait to be sent.
    std::size_t queued() const noexcept {
        std::size_t queued = 0;
        (void)pace_conn_queued(raw_, &queued);
        return queued;
    }

    /// For calls to paceline.h.
    pace_conn_t *native() const noexcept { return raw_; }

private:
    friend struct detail::ConnBox;

    Conn(pace_conn_t *raw, const detail::ServerState &state) noexcept : raw_(raw), state_(state) {}

    bool ask(pace_status_t (*question)(pace_conn_t *, bool *)) const noexcept {
        bool answer = false;
        (void)question(raw_, &answer);
        return answer;
    }

    pace_conn_t *raw_;
    const detail::ServerState &state_;
};

/// What a connection does. Hooks of one connection never run on two threads at once; connections run
/// in parallel. They run on the pool's threads and should not block (or call promote_new_leader()
/// before). One that throws ends its connection, with Reason::Panicked. It is deleted after `close`.
///
/// How to answer later: a hook that cannot answer at once admits the request (Conn::admit), keeps the Admission and a
/// ConnRef (Conn::ref), and returns. Any thread then writes the answer by the ConnRef, and calls
/// Admission::answered(). While a request is in work its connection is not idle, it is not closed when its peer
/// finishes, and a drain waits for it. Without the Admission the connection may be closed before the answer comes:
/// when its idle_timeout is over, its peer has finished, or the server drains; the write then gives Code::Stale. To take
/// a ConnRef alone admits nothing: it may be kept to push to the connection at any time, and nobody could tell when
/// such a request had ended.
class ConnHandler {
public:
    ConnHandler() = default;
    ConnHandler(const ConnHandler &) = delete;
    ConnHandler &operator=(const ConnHandler &) = delete;
    virtual ~ConnHandler() = default;

    /// The connection is there.
    virtual Accept open(Conn &) { return Accept::Yes; }
    /// Bytes have arrived: how many of them were consumed, from the front. The rest is shown again,
    /// followed by more.
    virtual std::size_t data(Conn &conn, std::string_view bytes) = 0;
    /// The peer sends no more; it may still read. Afterwards the connection is closed by itself, when its admitted
    /// requests have ended and everything is sent, unless Listen::allow_half_open is set.
    virtual void finished(Conn &) {}
    /// The output was above its high mark, and has fallen to the low mark.
    virtual void writable(Conn &) {}
    /// Tracked bytes are with the kernel.
    virtual void written(Conn &, std::uint64_t) {}
    virtual TimeoutAction timeout(Conn &, Timeout) { return TimeoutAction::Close; }
    /// ConnRef::notify() was called, once or more.
    virtual void notified(Conn &) {}
    /// The server drains: this connection is closed when nothing is left to do for it.
    virtual void draining(Conn &) {}
    /// The socket failed; `close` follows.
    virtual void error(Conn &, std::int32_t) {}
    /// The end, exactly once.
    virtual void close(Conn &, Reason) {}
};

/// Makes the handler of a connection that has come.
using ConnFactory = Function<std::unique_ptr<ConnHandler>(Conn &)>;

namespace detail {

/// What all connections of a server share. The library deletes it after the last of them.
struct ServerState {
    ServerState() = default;
    ServerState(ConnFactory f, Function<void(const char *)> hook)
        : factory(std::move(f)), on_exhausted(std::move(hook)) {}

    SharedServer core() const {
        // Hooks may run before pace_server_new() has returned: create() holds the lock until the
        // server is known.
        std::lock_guard<std::mutex> lock(mutex);
        return known.lock();
    }

    const ConnFactory factory{};
    const Function<void(const char *)> on_exhausted{};
    mutable std::mutex mutex;
    std::weak_ptr<const ServerCore> known;

    static void exhausted(void *data, const char *message) noexcept {
        guard([&] { static_cast<ServerState *>(data)->on_exhausted(message); });
    }
};

/// One connection's handler: what its hooks get as user_data.
struct ConnBox {
    std::unique_ptr<ConnHandler> own;
    const ServerState &state;

    static ConnBox &of(void *data) noexcept { return *static_cast<ConnBox *>(data); }

    /// The first hook of a connection that has come, with the server's state.
    static std::int32_t open_new(void *data, pace_conn_t *raw) noexcept {
        const auto &state = *static_cast<ServerState *>(data);
        // Should this fail, `close` finds nothing to delete.
        (void)pace_conn_set_user_data(raw, nullptr);
        std::int32_t verdict = -1;
        guard_or_fail([&] {
            Conn conn(raw, state);
            auto handler = state.factory(conn);
            if (handler == nullptr) {
                verdict = PACE_ACCEPT_REFUSE;
                return;
            }
            auto *box = new ConnBox{std::move(handler), state};
            (void)pace_conn_set_user_data(raw, box);
            verdict = static_cast<std::int32_t>(box->own->open(conn));
        });
        return verdict;
    }

    /// The same of one that was made.
    static std::int32_t open(void *data, pace_conn_t *raw) noexcept {
        std::int32_t verdict = -1;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            verdict = static_cast<std::int32_t>(handler.open(conn));
        });
        return verdict;
    }

    static std::size_t data(void *data, pace_conn_t *raw, const void *bytes, std::size_t size) noexcept {
        // More than there was: a failure.
        std::size_t consumed = SIZE_MAX;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            consumed = handler.data(conn, {static_cast<const char *>(bytes), size});
        });
        return consumed;
    }

    template <void (ConnHandler::*hook)(Conn &)>
    static void tell(void *data, pace_conn_t *raw) noexcept {
        run_or_fail(data, raw, [](ConnHandler &handler, Conn &conn) { (handler.*hook)(conn); });
    }

    static void written(void *data, pace_conn_t *raw, std::uint64_t token) noexcept {
        run_or_fail(data, raw, [=](ConnHandler &handler, Conn &conn) { handler.written(conn, token); });
    }

    static std::int32_t timeout(void *data, pace_conn_t *raw, std::uint32_t kind) noexcept {
        std::int32_t patience = -1;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            patience = static_cast<std::int32_t>(handler.timeout(conn, static_cast<Timeout>(kind)));
        });
        return patience;
    }

    static void error(void *data, pace_conn_t *raw, std::int32_t os_error) noexcept {
        run_or_fail(data, raw, [=](ConnHandler &handler, Conn &conn) { handler.error(conn, os_error); });
    }

    static void close(void *data, pace_conn_t *raw, std::uint32_t reason, std::int32_t detail) noexcept {
        if (data != nullptr) {
            // Nothing of the library's tells of its failure.
            ConnBox &box = of(data);
            const bool closed = guard([&] {
                Conn conn(raw, box.state);
                box.own->close(conn, Reason(reason, detail));
            });
            if (!closed) {
                (void)pace_conn_fail(raw);
            }
        }
    }

    static void close_new(void *data, pace_conn_t *raw, std::uint32_t reason,
                          std::int32_t detail) noexcept {
        close(data, raw, reason, detail);
        delete static_cast<ConnBox *>(data);
    }

    static pace_conn_hooks_t hooks() noexcept {
        pace_conn_hooks_t hooks{};
        (void)pace_conn_hooks_init(&hooks, sizeof hooks);
        hooks.open = open;
        hooks.data = data;
        hooks.finished = tell<&ConnHandler::finished>;
        hooks.writable = tell<&ConnHandler::writable>;
        hooks.written = written;
        hooks.timeout = timeout;
        hooks.notified = tell<&ConnHandler::notified>;
        hooks.draining = tell<&ConnHandler::draining>;
        hooks.error = error;
        hooks.close = close;
        return hooks;
    }

private:
    template <class Hook>
    static bool run(void *data, pace_conn_t *raw, Hook hook) noexcept {
        ConnBox &box = of(data);
        return guard_or_fail([&] {
            Conn conn(raw, box.state);
            hook(*box.own, conn);
        });
    }

    template <class Hook>
    static void run_or_fail(void *data, pace_conn_t *raw, Hook hook) noexcept {
        if (!run(data, raw, hook)) {
            (void)pace_conn_fail(raw);
        }
    }
};

} // namespace detail

inline ConnRef Conn::ref() const {
    pace_conn_id_t id{};
    (void)pace_conn_id(raw_, &id);
    return ConnRef(state_.core(), id);
}

/// A place to listen at, and the settings of its connections. What is not set is the library's choice;
/// ranges and defaults are those of pace_listener_options_t. In C++20:
/// `Listen{.address = "*:80", .max_connections = 1000}`; in C++17:
/// `Listen{"*:80"}.set_max_connections(1000)`.
struct Listen {
    /// "127.0.0.1:80", "[::1]:80", "*:80", "unix:/run/socket", "unix:@name". Port 0 is a free port,
    /// which Server::address() tells.
    std::string address{};
    /// Instead of an address: a socket that listens already. It stays the caller's.
    std::optional<int> fd{};
    std::optional<std::uint64_t> max_connections{};
    /// What connections beyond the maximum are sent.
    std::string refusal{};
    std::optional<std::uint64_t> max_requests{};
    /// What a request beyond the maximum is answered with.
    std::string busy{};
    std::optional<std::uint64_t> max_unconsumed{};
    /// Bytes: low < high <= max.
    std::optional<std::uint64_t> output_low{}, output_high{}, output_max{};
    /// A hook that answers later has to admit the request (Conn::admit): otherwise the idle time runs while the answer
    /// is worked on, and the connection may be closed before it is written.
    std::optional<Duration> idle_timeout{};
    std::optional<Duration> read_timeout{}, stall_timeout{}, linger{};
    /// TCP asks silent peers whether they are there, first after this time: 1 s to 32767 s, in whole
    /// seconds, to which it is rounded up; 0: it does not, as without.
    std::optional<Duration> keep_alive{};
    std::optional<std::uint64_t> send_buffer{}, receive_buffer{};
    std::optional<std::uint32_t> backlog{};
    std::optional<bool> no_delay{};
    bool v6_only{};
    bool reuse_port{};
    /// Mode of the file of a Unix socket.
    std::optional<std::uint32_t> socket_mode{};
    /// What happens when the peer has finished: it sends no more, and may still read. By default such a connection is
    /// closed by itself, when its admitted requests have ended and everything is sent. With `true` it stays open until
    /// its handler closes it: for protocols in which one direction ends before the other, as with a proxy.
    bool allow_half_open{};
    /// Makes what turns the bytes of connections that are accepted here: TLS, as a rule.
    FilterFactory filter{};

    Listen &set_address(std::string value) { return address = std::move(value), *this; }
    Listen &set_fd(int value) { return fd = value, *this; }
    Listen &set_max_connections(std::uint64_t value) { return max_connections = value, *this; }
    Listen &set_refusal(std::string value) { return refusal = std::move(value), *this; }
    Listen &set_max_requests(std::uint64_t value) { return max_requests = value, *this; }
    Listen &set_busy(std::string value) { return busy = std::move(value), *this; }
    Listen &set_max_unconsumed(std::uint64_t value) { return max_unconsumed = value, *this; }
    Listen &set_output_marks(std::uint64_t low, std::uint64_t high, std::uint64_t max) {
        return output_low = low, output_high = high, output_max = max, *this;
    }
    Listen &set_idle_timeout(Duration value) { return idle_timeout = value, *this; }
    Listen &set_read_timeout(Duration value) { return read_timeout = value, *this; }
    Listen &set_stall_timeout(Duration value) { return stall_timeout = value, *this; }
    Listen &set_linger(Duration value) { return linger = value, *this; }
    Listen &set_keep_alive(Duration value) { return keep_alive = value, *this; }
    Listen &set_send_buffer(std::uint64_t value) { return send_buffer = value, *this; }
    Listen &set_receive_buffer(std::uint64_t value) { return receive_buffer = value, *this; }
    Listen &set_backlog(std::uint32_t value) { return backlog = value, *this; }
    Listen &set_no_delay(bool value = true) { return no_delay = value, *this; }
    Listen &set_v6_only(bool value = true) { return v6_only = value, *this; }
    Listen &set_reuse_port(bool value = true) { return reuse_port = value, *this; }
    Listen &set_socket_mode(std::uint32_t value) { return socket_mode = value, *this; }
    Listen &set_allow_half_open(bool value = true) { return allow_half_open = value, *this; }
    Listen &set_filter(FilterFactory value) { return filter = std::move(value), *this; }

    /// As a struct of paceline.h, without the filter. The texts stay this one's.
    pace_listener_options_t native() const noexcept {
        pace_listener_options_t raw{};
        (void)pace_listener_options_init(&raw, sizeof raw);
        const auto set = [](auto &field, const auto &value) {
            if (value) {
                field = *value;
            }
        };
        const auto set_time = [](std::uint64_t &field, const std::optional<Duration> &value) {
            if (value) {
                field = detail::nanos(*value);
            }
        };
        set(raw.fd, fd);
        raw.address = address.empty() ? nullptr : address.c_str();
        set(raw.max_connections, max_connections);
        raw.refusal = refusal.data();
        raw.refusal_size = refusal.size();
        set(raw.max_requests, max_requests);
        raw.busy = busy.data();
        raw.busy_size = busy.size();
        set(raw.max_unconsumed, max_unconsumed);
        set(raw.output_low, output_low);
        set(raw.output_high, output_high);
        set(raw.output_max, output_max);
        set_time(raw.idle_timeout_ns, idle_timeout);
        set_time(raw.read_timeout_ns, read_timeout);
        set_time(raw.stall_timeout_ns, stall_timeout);
        set_time(raw.linger_ns, linger);
        set_time(raw.keep_alive_ns, keep_alive);
        set(raw.send_buffer, send_buffer);
        set(raw.receive_buffer, receive_buffer);
        set(raw.backlog, backlog);
        set(raw.no_delay, no_delay);
        raw.v6_only = v6_only;
        raw.reuse_port = reuse_port;
        set(raw.socket_mode, socket_mode);
        raw.allow_half_open = allow_half_open;
        return raw;
    }
};

namespace detail {

/// Listeners as C has them, until the server is made.
struct Listeners {
    std::vector<pace_listener_options_t> raw;
    std::vector<pace_filter_hooks_t> hooks;
    /// Factories of filters, which go with their listeners once the server is made.
    std::vector<std::unique_ptr<FilterFactory>> filters;

    explicit Listeners(const std::vector<Listen> &listeners) {
        raw.reserve(listeners.size());
        hooks.reserve(listeners.size());
        for (const Listen &listener : listeners) {
            raw.push_back(listener.native());
            if (listener.filter) {
                filters.push_back(std::make_unique<FilterFactory>(listener.filter));
                hooks.push_back(FilterBox::hooks(filters.back().get()));
                raw.back().filter = &hooks.back();
            }
        }
    }

    /// The server is made.
    void keep() noexcept {
        for (auto &filter : filters) {
            (void)filter.release();
        }
    }
};

} // namespace detail

/// A socket that a supervisor has opened. It is closed when it goes; servers have their own duplicate
/// by then.
class [[nodiscard]] Inherited {
public:
    Inherited(int fd, std::string name) noexcept : fd_(fd), name_(std::move(name)) {}
    Inherited(Inherited &&other) noexcept
        : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
    Inherited &operator=(Inherited &&other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(name_, other.name_);
        return *this;
    }
    ~Inherited() {
        if (fd_ >= 0) {
            (void)::close(fd_);
        }
    }

    /// What the supervisor calls it: "unknown" if it has no name.
    const std::string &name() const noexcept { return name_; }
    /// For Listen::fd or UdpConfig::fd. It stays this one's.
    int fd() const noexcept { return fd_; }
    /// It is the caller's from here on.
    int release() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
    std::string name_;
};

/// The sockets that systemd, or whoever speaks its protocol (sd_listen_fds(3)), has passed to this
/// process, in their order. A socket is given once. Call it early. Code::Invalid names the variable that
/// makes no sense, Code::Os a descriptor that is not open, or no socket.
inline Result<std::vector<Inherited>> inherited() {
    constexpr std::size_t some = 16;
    std::vector<Inherited> sockets;
    std::size_t count = some;
    while (count == some) {
        pace_inherited_t raw[some];
        const pace_status_t status = pace_inherited_take(raw, some, &count);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        for (std::size_t n = 0; n < count; ++n) {
            sockets.emplace_back(raw[n].fd, raw[n].name);
        }
    }
    return sockets;
}

/// Settings of a server.
struct ServerConfig {
    /// Where to listen. None: such a server only connects.
    std::vector<Listen> listeners{};
    /// Settings of outgoing connections, and of no listener. Its address and fd are not looked at; what
    /// is about accepting (refusal, backlog, socket_mode, v6_only, reuse_port, filter) must not be set.
    std::optional<Listen> outgoing{};
    std::optional<Duration> connect_timeout{};
    /// Called once each time that accepting pauses for want of descriptors or memory, or since the socket
    /// accepts no more, with what to log. It is tried again every 50 ms.
    Function<void(const char *)> on_exhausted{};

    ServerConfig &add_listener(Listen value) { return listeners.push_back(std::move(value)), *this; }
    ServerConfig &set_outgoing(Listen value) { return outgoing = std::move(value), *this; }
    ServerConfig &set_connect_timeout(Duration value) { return connect_timeout = value, *this; }
    ServerConfig &set_on_exhausted(Function<void(const char *)> hook) {
        return on_exhausted = std::move(hook), *this;
    }
};

/// What a server, or a listener, has done so far. The counts add up exactly while no connection begins or ends. Fields as in pace_server_stats_t.
struct ServerStats : pace_server_stats_t {
    ServerStats() noexcept : pace_server_stats_t{} { struct_size = sizeof(pace_server_stats_t); }
};

/// How a drain went. Fields as in pace_drain_report_t.
struct DrainReport : pace_drain_report_t {
    DrainReport() noexcept : pace_drain_report_t{} { struct_size = sizeof(pace_drain_report_t); }
};

/// Listeners and connections on a pool. When it goes it stops: connections are cut off, and their handlers are gone
/// when the destructor returns. Inside a handler, and on a thread of the pool, it does not wait. drain() first for an
/// orderly end.
class [[nodiscard]] Server {
public:
    /// Starts a server whose connections get handlers from `factory`, which is called on the pool's
    /// threads; if it gives none, the connection is refused. Code::Invalid names the setting, its
    /// value and its bounds, Code::Os the address that could not be listened on.
    static Result<Server> create(const Pool &pool, const ServerConfig &config, ConnFactory factory) {
        auto state = std::make_unique<detail::ServerState>(std::move(factory), config.on_exhausted);
        detail::Listeners listeners(config.listeners);
        pace_server_options_t options{};
        (void)pace_server_options_init(&options, sizeof options);
        options.listeners = listeners.raw.data();
        options.listener_count = listeners.raw.size();
        pace_listener_options_t outgoing{};
        if (config.outgoing) {
            outgoing = config.outgoing->native();
            options.outgoing = &outgoing;
        }
        if (config.connect_timeout) {
            options.connect_timeout_ns = detail::nanos(*config.connect_timeout);
        }
        options.on_exhausted = config.on_exhausted ? detail::ServerState::exhausted : nullptr;
        pace_conn_hooks_t hooks = detail::ConnBox::hooks();
        hooks.open = detail::ConnBox::open_new;
        hooks.close = detail::ConnBox::close_new;
        hooks.user_data = state.get();
        hooks.drop = detail::drop_box<detail::ServerState>;
        return start(pool, options, hooks, std::move(state), listeners);
    }

    /// As above, with `H(args...)` for each connection; the arguments are copied.
    template <class H, class... Args>
    static Result<Server> create_for(const Pool &pool, const ServerConfig &config, Args... args) {
        static_assert(std::is_base_of_v<ConnHandler, H>, "a handler is a ConnHandler");
        return create(pool, config, [args...](Conn &) { return std::make_unique<H>(args...); });
    }

    Server(Server &&) noexcept = default;
    Server &operator=(Server &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(state_, other.state_);
        return *this;
    }
    ~Server() {
        if (core_) {
            (void)pace_server_stop(core_->server);
        }
    }

    /// Where listener `index` listens, with the port that it got.
    Result<std::string> address(std::size_t index = 0) const {
        return detail::text_of([this, index](char *text, std::size_t size) {
            return pace_server_address(native(), index, text, size);
        });
    }

    /// Connects, with a handler of its own. It returns at once; `open` comes when the connection is
    /// there, or else `close`. A handler that is refused stays the caller's.
    Result<ConnRef> connect(const std::string &address, std::unique_ptr<ConnHandler> &&handler) {
        if (!core_ || handler == nullptr) {
            return core_ ? Error(Code::Invalid, "handler is nullptr") : detail::gone("server");
        }
        auto box = std::unique_ptr<detail::ConnBox>(new detail::ConnBox{std::move(handler), *state_});
        pace_conn_hooks_t hooks = detail::ConnBox::hooks();
        hooks.user_data = box.get();
        hooks.drop = detail::drop_box<detail::ConnBox>;
        pace_conn_id_t id{};
        const pace_status_t status = pace_server_connect(core_->server, address.c_str(), &hooks, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            handler = std::move(box->own);
            return error;
        }
        (void)box.release();
        return ConnRef(core_, id);
    }

    /// The connection of this number: see ConnRef::id().
    ConnRef conn(std::uint64_t id) const noexcept { return ConnRef(core_, pace_conn_id_t{id}); }

    /// Waits until it has drained or its pool has shut down. Code::WouldDeadlock on a pool's thread.
    Result<void> wait() const { return detail::outcome(pace_server_wait(native())); }

    /// Stops accepting, lets connections answer what has arrived, and cuts off what is not through
    /// after `time`. Inside a handler it is only a request.
    Result<DrainReport> drain(Duration time) const {
        DrainReport report;
        const pace_status_t status = pace_server_drain(native(), detail::nanos(time), &report);
        return status == PACE_OK ? Result<DrainReport>(report)
                                 : Result<DrainReport>(Error::last(status));
    }

    Result<ServerStats> stats() const {
        ServerStats stats;
        const pace_status_t status = pace_server_stats(native(), &stats);
        return status == PACE_OK ? Result<ServerStats>(stats) : Result<ServerStats>(Error::last(status));
    }
    Result<ServerStats> listener_stats(std::size_t index) const {
        ServerStats stats;
        const pace_status_t status = pace_server_listener_stats(native(), index, &stats);
        return status == PACE_OK ? Result<ServerStats>(stats) : Result<ServerStats>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Server's.
    pace_server_t *native() const noexcept { return core_ ? core_->server : nullptr; }

private:
    Server(detail::SharedServer core, const detail::ServerState *state) noexcept
        : core_(std::move(core)), state_(state) {}

    static Result<Server> start(const Pool &pool, const pace_server_options_t &options,
                                const pace_conn_hooks_t &hooks,
                                std::unique_ptr<detail::ServerState> state,
                                detail::Listeners &listeners) {
        // See ServerState::core().
        std::lock_guard<std::mutex> lock(state->mutex);
        pace_server_t *server = nullptr;
        const pace_status_t status = pace_server_new(pool.native(), &options, &hooks, &server);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        listeners.keep();
        auto *known = state.release();
        auto core = std::make_shared<const detail::ServerCore>(pool.core_, server);
        known->known = core;
        return Server(std::move(core), known);
    }

    detail::SharedServer core_;
    /// Lives as long as the library's server, which `core_` keeps.
    const detail::ServerState *state_;
};

// ---- where a message ends --------------------------------------------------------------------------

/// The first message of some bytes. It points into them.
struct Frame {
    /// Without its delimiter or its length.
    std::string_view body;
    /// How many bytes the message takes up, with these: what to consume.
    std::size_t length;
};

/// Messages that end with a delimiter. One object per connection: it remembers what was searched in vain.
class Delimited {
public:
    /// The delimiter has at least one byte; bodies have up to `max`.
    Delimited(std::string delimiter, std::size_t max) noexcept
        : delimiter_(std::move(delimiter)), max_(max) {}

    /// The first message. nullopt: a part of one, or nothing; `bytes` must begin with it when more has
    /// come. Code::Full: it is longer than the maximum.
    Result<std::optional<Frame>> next(std::string_view bytes) noexcept {
        pace_frame_t frame{};
        const auto status = pace_frame_delimited(bytes.data(), bytes.size(), delimiter_.data(),
                                                 delimiter_.size(), max_, &searched_, &frame);
        return made(status, frame);
    }

private:
    friend class LengthPrefixed;
    friend class FixedLength;

    static Result<std::optional<Frame>> made(pace_status_t status, const pace_frame_t &frame) {
        if (status == PACE_EEMPTY) {
            return std::optional<Frame>();
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return std::optional<Frame>({{static_cast<const char *>(frame.body), frame.size}, frame.length});
    }

    std::string delimiter_;
    std::size_t max_;
    std::size_t searched_ = 0;
};

/// Messages with their length in front: an unsigned number of 1 to 8 bytes, in network order, that does not
/// count itself.
class LengthPrefixed {
public:
    /// Bodies have up to `max` bytes.
    LengthPrefixed(std::size_t width, std::size_t max) noexcept : width_(width), max_(max) {}

    /// The first message. nullopt: a part of one, or nothing. Code::Full: it is longer than the maximum;
    /// Code::Invalid: the width is none.
    Result<std::optional<Frame>> next(std::string_view bytes) const {
        pace_frame_t frame{};
        const auto status = pace_frame_prefixed(bytes.data(), bytes.size(), width_, max_, &frame);
        return Delimited::made(status, frame);
    }

private:
    std::size_t width_, max_;
};

/// Messages that are all of one length, at least 1.
class FixedLength {
public:
    explicit FixedLength(std::size_t length) noexcept : length_(length) {}

    /// The first message. nullopt: a part of one, or nothing. Code::Invalid: the length is 0.
    Result<std::optional<Frame>> next(std::string_view bytes) const {
        pace_frame_t frame{};
        const auto status = pace_frame_fixed(bytes.data(), bytes.size(), length_, &frame);
        return Delimited::made(status, frame);
    }

private:
    std::size_t length_;
};

// ---- servers whose events are pulled ---------------------------------------------------------------

/// What has happened to a connection of a pulled server. It is a pace_conn_event_t; its bytes stay where
/// they are until it is completed.
struct ConnEvent : pace_conn_event_t {
    enum Kind : std::uint32_t {
        Opened = PACE_CONN_EVENT_OPENED,
        Data = PACE_CONN_EVENT_DATA,
        Finished = PACE_CONN_EVENT_FINISHED,
        Writable = PACE_CONN_EVENT_WRITABLE,
        Written = PACE_CONN_EVENT_WRITTEN,
        TimedOut = PACE_CONN_EVENT_TIMED_OUT,
        Draining = PACE_CONN_EVENT_DRAINING,
        Closed = PACE_CONN_EVENT_CLOSED,
    };

    ConnEvent() noexcept : pace_conn_event_t{} {}

    Kind what() const noexcept { return static_cast<Kind>(kind); }
    /// Data: what has arrived.
    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }
    /// Closed: why.
    Reason reason() const noexcept { return Reason(detail, static_cast<std::int32_t>(token)); }
    /// TimedOut: which time is over.
    Timeout timeout() const noexcept { return static_cast<Timeout>(detail); }
};
static_assert(sizeof(ConnEvent) == sizeof(pace_conn_event_t), "a batch of one is a batch of the other");

/// How an event is completed. It is a pace_completion_t.
struct Completion : pace_completion_t {
    /// All bytes are consumed, and nothing is written. PACE_COMPLETE_ bits say what else.
    explicit Completion(const ConnEvent &done, std::uint32_t how = 0) noexcept : pace_completion_t{} {
        event = done.event;
        consumed = PACE_CONSUMED_ALL;
        flags = how;
    }

    /// So many bytes are consumed, from the front; the rest comes again, followed by more.
    Completion &set_consumed(std::uint64_t count) { return consumed = count, *this; }
    /// What is written before. It must stay until PulledServer::complete() has returned.
    Completion &set_text(std::string_view text) {
        return bytes = text.data(), size = text.size(), *this;
    }
};
static_assert(sizeof(Completion) == sizeof(pace_completion_t), "a batch of one is a batch of the other");

namespace detail {

struct PulledCore {
    PulledCore(SharedCore core, pace_pulled_t *raw) noexcept : pool(std::move(core)), pulled(raw) {}
    PulledCore(const PulledCore &) = delete;
    PulledCore &operator=(const PulledCore &) = delete;
    ~PulledCore() { pace_pulled_free(pulled); }

    const SharedCore pool;
    pace_pulled_t *const pulled;
};

} // namespace detail

/// A server whose connections have no handlers: what happens to them is pulled, by any thread but the
/// pool's own, one event of a connection at a time. When it goes it stops; drain() first for an orderly
/// end.
class [[nodiscard]] PulledServer {
public:
    /// `wanted` says with PACE_WANTED_ bits which events there are besides data; for others a connection
    /// does what it does without hooks. Errors as Server::create(). on_exhausted must be empty, or this is
    /// Code::Invalid: it is a callback of hooks, which there are none of here.
    static Result<PulledServer> create(const Pool &pool, const ServerConfig &config,
                                       std::uint32_t wanted = PACE_WANTED_ALL) {
        if (config.on_exhausted) {
            return Error(Code::Invalid, "on_exhausted is set, but a PulledServer has no hooks");
        }
        detail::Listeners listeners(config.listeners);
        pace_server_options_t options{};
        (void)pace_server_options_init(&options, sizeof options);
        options.listeners = listeners.raw.data();
        options.listener_count = listeners.raw.size();
        pace_listener_options_t outgoing{};
        if (config.outgoing) {
            outgoing = config.outgoing->native();
            options.outgoing = &outgoing;
        }
        if (config.connect_timeout) {
            options.connect_timeout_ns = detail::nanos(*config.connect_timeout);
        }
        pace_pulled_t *pulled = nullptr;
        pace_server_t *server = nullptr;
        pace_status_t status = pace_pulled_new(pool.native(), &options, wanted, &pulled);
        if (status == PACE_OK) {
            listeners.keep();
            status = pace_pulled_server(pulled, &server);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        auto core = std::make_shared<const detail::PulledCore>(pool.core_, pulled);
        auto beneath = std::make_shared<const detail::ServerCore>(pool.core_, server, core);
        return PulledServer(std::move(core), std::move(beneath));
    }

    PulledServer(PulledServer &&) noexcept = default;
    PulledServer &operator=(PulledServer &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(server_, other.server_);
        return *this;
    }
    ~PulledServer() {
        if (core_) {
            (void)pace_pulled_close(core_->pulled);
        }
    }

    /// Completes what this thread has pulled before and not held, and waits for up to `time` for more: the
    /// part of `events` that was filled. Code::TimedOut; Code::ShutDown: the server has ended.
    Result<span<ConnEvent>> pull(span<ConnEvent> events, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_pulled_pull(native(), events.data(), events.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<ConnEvent>>(events.first(count))
                                 : Result<span<ConnEvent>>(Error::last(status));
    }
    /// Completes events, in order. Each says in `outcome` what has become of it; the error is the first
    /// one's.
    Result<void> complete(span<Completion> completions) const {
        return detail::outcome(pace_pulled_complete(native(), completions.data(), completions.size()));
    }
    /// As Conn::admit(), while the event is out; the Admission may be kept longer.
    Result<Admission> admit(const ConnEvent &event) const {
        pace_admission_t *admission = nullptr;
        const pace_status_t status = pace_pulled_admit(native(), event.event, &admission);
        return status == PACE_OK ? Result<Admission>(Admission(admission))
                                 : Result<Admission>(Error::last(status));
    }
    /// Completes what this thread has pulled.
    Result<void> done() const { return detail::outcome(pace_pulled_done(native())); }
    /// A descriptor, readable while a pull would not wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_pulled_pollable(native(), &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }

    /// Connects; what happens to the connection is pulled too.
    Result<ConnRef> connect(const std::string &address, std::uint32_t wanted = PACE_WANTED_ALL) const {
        pace_conn_id_t id{};
        const pace_status_t status = pace_pulled_connect(native(), address.c_str(), wanted, &id);
        return status == PACE_OK ? Result<ConnRef>(ConnRef(server_, id))
                                 : Result<ConnRef>(Error::last(status));
    }
    /// The connection of an event.
    ConnRef conn(const ConnEvent &event) const noexcept { return ConnRef(server_, event.conn); }

    /// As Server's methods of these names. A thread that has events completes them before drain().
    Result<std::string> address(std::size_t index = 0) const {
        return detail::text_of([this, index](char *text, std::size_t size) {
            return pace_server_address(server(), index, text, size);
        });
    }
    Result<void> wait() const { return detail::outcome(pace_server_wait(server())); }
    Result<DrainReport> drain(Duration time) const {
        DrainReport report;
        const pace_status_t status = pace_server_drain(server(), detail::nanos(time), &report);
        return status == PACE_OK ? Result<DrainReport>(report)
                                 : Result<DrainReport>(Error::last(status));
    }
    Result<ServerStats> stats() const {
        ServerStats stats;
        const pace_status_t status = pace_server_stats(server(), &stats);
        return status == PACE_OK ? Result<ServerStats>(stats) : Result<ServerStats>(Error::last(status));
    }
    /// Stops at once: connections are cut off, and pulls say Code::ShutDown. Waits for nothing.
    Result<void> close() const { return detail::outcome(pace_pulled_close(native())); }

    /// For calls to paceline.h. Stays the PulledServer's.
    pace_pulled_t *native() const noexcept { return core_ ? core_->pulled : nullptr; }

private:
    PulledServer(std::shared_ptr<const detail::PulledCore> core, detail::SharedServer server) noexcept
        : core_(std::move(core)), server_(std::move(server)) {}

    pace_server_t *server() const noexcept { return server_ ? server_->server : nullptr; }

    std::shared_ptr<const detail::PulledCore> core_;
    detail::SharedServer server_;
};

// ---- datagrams -----------------------------------------------------------------------------------

/// An IP address and a port.
struct Ip : pace_ip_t {
    Ip() noexcept : pace_ip_t{} {}
    explicit Ip(const pace_ip_t &raw) noexcept : pace_ip_t(raw) {}

    /// "127.0.0.1:80", "[::1]:80" or "*:80". Code::Invalid for text that is none.
    static Result<Ip> read(const std::string &text) {
        Ip ip;
        const pace_status_t status = pace_ip_read(text.c_str(), &ip);
        return status == PACE_OK ? Result<Ip>(ip) : Result<Ip>(Error::last(status));
    }
    /// The opposite.
    Result<std::string> text() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_ip_text(this, text, size); });
    }
};

/// A datagram that has arrived, or is to be sent. It is a pace_datagram_t.
struct Datagram : pace_datagram_t {
    Datagram() noexcept : pace_datagram_t{} {}
    /// To be sent: the bytes stay the caller's.
    Datagram(std::string_view payload, const Ip &to) noexcept
        : pace_datagram_t{payload.data(), payload.size(), 0, to} {}

    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }
    /// Whether its end is lost.
    bool is_truncated() const noexcept { return length > size; }
    /// Who has sent it, or whom it is for.
    Ip peer_ip() const noexcept { return Ip(peer); }
};
static_assert(sizeof(Datagram) == sizeof(pace_datagram_t), "a batch of one is a batch of the other");

/// A socket's books. Fields as in pace_udp_stats_t.
struct UdpStats : pace_udp_stats_t {
    UdpStats() noexcept : pace_udp_stats_t{} { struct_size = sizeof(pace_udp_stats_t); }
};

/// A datagram socket that is somebody's. Any thread.
class UdpRef {
public:
    explicit UdpRef(pace_udp_t *raw) noexcept : raw_(raw) {}

    /// To the peer that the socket is connected to, without waiting and without a queue. Code::Full: the
    /// kernel has no room, and it is not sent. Code::Os names the reason, Code::Stale: it is closed.
    Result<void> send(std::string_view bytes) const {
        return detail::outcome(pace_udp_send(raw_, bytes.data(), bytes.size()));
    }
    /// To this peer.
    Result<void> send_to(std::string_view bytes, const Ip &to) const {
        return detail::outcome(pace_udp_send_to(raw_, bytes.data(), bytes.size(), &to));
    }
    /// Several, in order: how many the kernel has taken; an error only if it has not taken the first.
    Result<std::size_t> send_batch(span<const Datagram> datagrams) const {
        std::size_t sent = 0;
        const pace_status_t status =
            pace_udp_send_batch(raw_, datagrams.data(), datagrams.size(), &sent);
        return status == PACE_OK ? Result<std::size_t>(sent) : Result<std::size_t>(Error::last(status));
    }

    /// Where it receives, with the port that it got.
    Result<std::string> address() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_udp_address(raw_, text, size); });
    }
    /// Receives what is sent to this group, on the interface of this index; 0: the system's choice.
    Result<void> join_multicast(const std::string &group, std::uint32_t interface = 0) const {
        return detail::outcome(pace_udp_join_multicast(raw_, group.c_str(), interface));
    }
    Result<void> leave_multicast(const std::string &group, std::uint32_t interface = 0) const {
        return detail::outcome(pace_udp_leave_multicast(raw_, group.c_str(), interface));
    }
    /// From here on nothing is sent, and what has arrived is dropped.
    Result<void> close() const { return detail::outcome(pace_udp_close(raw_)); }
    Result<bool> is_open() const {
        bool open = false;
        const pace_status_t status = pace_udp_is_open(raw_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }
    /// Waits until `close` of its handler has returned. Code::WouldDeadlock on a pool's thread.
    Result<void> wait() const { return detail::outcome(pace_udp_wait(raw_)); }
    /// Handles what has arrived, and closes: whether everything was handled in this time.
    Result<bool> drain(Duration time) const {
        bool drained = false;
        const pace_status_t status = pace_udp_drain(raw_, detail::nanos(time), &drained);
        return status == PACE_OK ? Result<bool>(drained) : Result<bool>(Error::last(status));
    }
    Result<UdpStats> stats() const {
        UdpStats stats;
        const pace_status_t status = pace_udp_stats(raw_, &stats);
        return status == PACE_OK ? Result<UdpStats>(stats) : Result<UdpStats>(Error::last(status));
    }

    /// For calls to paceline.h.
    pace_udp_t *native() const noexcept { return raw_; }

protected:
    pace_udp_t *raw_;
};

/// What a datagram socket does. Its hooks never run on two threads at once, and should not block. It is
/// deleted after `close`.
class UdpHandler {
public:
    UdpHandler() = default;
    UdpHandler(const UdpHandler &) = delete;
    UdpHandler &operator=(const UdpHandler &) = delete;
    virtual ~UdpHandler() = default;

    /// Datagrams have arrived, at least one; they are gone when this returns.
    virtual void data(UdpRef udp, span<const Datagram> datagrams) = 0;
    /// An error came instead. The socket goes on.
    virtual void error(UdpRef, std::int32_t) {}
    /// The end, exactly once.
    virtual void close(UdpRef, Reason) {}
};

/// Settings of a datagram socket: at least one of fd, bind and connect. What is not set is the library's
/// choice; ranges and defaults are those of pace_udp_options_t.
struct UdpConfig {
    /// Receives here. Port 0 is a free port, which Udp::address() tells.
    std::string bind{};
    /// Sends to this peer, and receives from nobody else.
    std::string connect{};
    /// A socket that is bound already. It stays the caller's.
    std::optional<int> fd{};
    std::optional<std::uint32_t> batch{}, max_datagram{}, multicast_ttl{};
    std::optional<std::uint64_t> send_buffer{}, receive_buffer{};
    bool v6_only{}, reuse_port{}, broadcast{};
    std::optional<bool> multicast_loop{};
};

namespace detail {

/// The texts stay the config's.
inline pace_udp_options_t to_native(const UdpConfig &config) noexcept {
    pace_udp_options_t raw{};
    (void)pace_udp_options_init(&raw, sizeof raw);
    const auto set = [](auto &field, const auto &value) {
        if (value) {
            field = *value;
        }
    };
    raw.bind = config.bind.empty() ? nullptr : config.bind.c_str();
    raw.connect = config.connect.empty() ? nullptr : config.connect.c_str();
    set(raw.fd, config.fd);
    set(raw.batch, config.batch);
    set(raw.max_datagram, config.max_datagram);
    set(raw.multicast_ttl, config.multicast_ttl);
    set(raw.send_buffer, config.send_buffer);
    set(raw.receive_buffer, config.receive_buffer);
    raw.v6_only = config.v6_only;
    raw.reuse_port = config.reuse_port;
    raw.broadcast = config.broadcast;
    set(raw.multicast_loop, config.multicast_loop);
    return raw;
}

struct UdpBox {
    std::unique_ptr<UdpHandler> handler;
    /// Whether the library has dropped it.
    std::shared_ptr<std::atomic<bool>> dropped;

    static void data(void *box, pace_udp_t *raw, const pace_datagram_t *datagrams,
                     std::size_t count) noexcept {
        const span<const Datagram> all(static_cast<const Datagram *>(datagrams), count);
        guard([&] { of(box).data(UdpRef(raw), all); });
    }
    static void error(void *box, pace_udp_t *raw, std::int32_t os_error) noexcept {
        guard([&] { of(box).error(UdpRef(raw), os_error); });
    }
    static void close(void *box, pace_udp_t *raw, std::uint32_t reason) noexcept {
        guard([&] { of(box).close(UdpRef(raw), Reason(reason, 0)); });
    }
    static void drop(void *data) noexcept {
        const std::unique_ptr<UdpBox> box(static_cast<UdpBox *>(data));
        *box->dropped = true;
    }

private:
    static UdpHandler &of(void *box) noexcept { return *static_cast<UdpBox *>(box)->handler; }
};

} // namespace detail

/// A UDP socket on a pool. Nothing is queued on the way out. When it goes it is closed; the destructor returns when
/// `close` of its handler has returned, on a thread of the pool, and the handler has been deleted. Inside a handler, on
/// a thread of the pool, and after close(), it does not wait.
class [[nodiscard]] Udp : public UdpRef {
public:
    /// Code::Invalid names the setting, its value and its bounds, Code::Os the address that could not be
    /// bound or connected to.
    static Result<Udp> create(const Pool &pool, const UdpConfig &config,
                              std::unique_ptr<UdpHandler> handler) {
        if (handler == nullptr) {
            return Error(Code::Invalid, "handler is nullptr");
        }
        const pace_udp_options_t options = detail::to_native(config);
        const auto dropped = std::make_shared<std::atomic<bool>>(false);
        auto *box = new detail::UdpBox{std::move(handler), dropped};
        pace_udp_hooks_t hooks{};
        (void)pace_udp_hooks_init(&hooks, sizeof hooks);
        hooks.data = detail::UdpBox::data;
        hooks.error = detail::UdpBox::error;
        hooks.close = detail::UdpBox::close;
        hooks.user_data = box;
        hooks.drop = detail::UdpBox::drop;
        pace_udp_t *udp = nullptr;
        const pace_status_t status = pace_udp_new(pool.native(), &options, &hooks, &udp);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            if (!*dropped) {
                delete box;
            }
            return error;
        }
        return Udp(pool.core_, udp);
    }

    Udp(Udp &&other) noexcept : UdpRef(std::exchange(other.raw_, nullptr)), core_(other.core_) {}
    Udp &operator=(Udp &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Udp() { pace_udp_free(raw_); }

private:
    Udp(detail::SharedCore core, pace_udp_t *raw) noexcept : UdpRef(raw), core_(std::move(core)) {}

    detail::SharedCore core_;
};

/// What has come to a pulled datagram socket. It is a pace_udp_event_t.
struct UdpEvent : pace_udp_event_t {
    UdpEvent() noexcept : pace_udp_event_t{} {}

    /// An error came instead of a datagram: `os_error` says which.
    bool is_error() const noexcept { return kind == PACE_UDP_EVENT_ERROR; }
    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }
    /// Whether its end is lost.
    bool is_truncated() const noexcept { return length > size; }
    /// Who has sent it.
    Ip peer_ip() const noexcept { return Ip(peer); }
};
static_assert(sizeof(UdpEvent) == sizeof(pace_udp_event_t), "a batch of one is a batch of the other");

/// A UDP socket on a pool without a handler: what comes is pulled, by any thread but the pool's own. When
/// it goes it is closed.
class [[nodiscard]] PulledUdp : public UdpRef {
public:
    /// Of what was not pulled up to `max_waiting` bytes are kept, 128 for each datagram included; what
    /// comes beyond that is dropped, and counted. Errors as Udp::create(), and Code::Invalid for it.
    static Result<PulledUdp> create(const Pool &pool, const UdpConfig &config,
                                    std::uint64_t max_waiting = std::uint64_t{1} << 22) {
        const pace_udp_options_t options = detail::to_native(config);
        pace_udp_pulled_t *pulled = nullptr;
        pace_udp_t *udp = nullptr;
        pace_status_t status = pace_udp_pulled_new(pool.native(), &options, max_waiting, &pulled);
        if (status == PACE_OK) {
            status = pace_udp_pulled_udp(pulled, &udp);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return PulledUdp(pool.core_, pulled, udp);
    }

    PulledUdp(PulledUdp &&other) noexcept
        : UdpRef(std::exchange(other.raw_, nullptr)), pulled_(std::exchange(other.pulled_, nullptr)),
          core_(other.core_) {}
    PulledUdp &operator=(PulledUdp &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(pulled_, other.pulled_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~PulledUdp() { pace_udp_pulled_free(pulled_); }

    /// Waits for up to `time` for events: the part of `events` that was filled, whose bytes stay until this
    /// thread pulls datagrams again. Code::TimedOut; Code::ShutDown: it is closed, and nothing is left.
    Result<span<UdpEvent>> pull(span<UdpEvent> events, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_udp_pulled_pull(pulled_, events.data(), events.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<UdpEvent>>(events.first(count))
                                 : Result<span<UdpEvent>>(Error::last(status));
    }
    /// A descriptor, readable while a pull would not wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_udp_pulled_pollable(pulled_, &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }

private:
    PulledUdp(detail::SharedCore core, pace_udp_pulled_t *pulled, pace_udp_t *raw) noexcept
        : UdpRef(raw), pulled_(pulled), core_(std::move(core)) {}

    pace_udp_pulled_t *pulled_;
    detail::SharedCore core_;
};

// ---- HTTP ----------------------------------------------------------------------------------------

/// A request, for as long as its handler runs. What it gives belongs to it.
class Request {
public:
    /// A header, or a parameter of the path.
    struct Field {
        std::string_view name, value;
    };

    explicit Request(const pace_request_t *raw) noexcept : raw_(raw) {}
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;

    /// As it was sent: GET.
    std::string_view method() const noexcept { return text(pace_request_method); }
    /// As it was sent: /hello/you?loud=1.
    std::string_view target() const noexcept { return text(pace_request_target); }
    /// The target's path, as it was sent: percent-encoded.
    std::string_view path() const noexcept { return text(pace_request_path); }
    /// What follows the target's first question mark.
    std::optional<std::string_view> query() const noexcept { return optional(pace_request_query); }
    /// 0 or 1, of HTTP/1.
    std::uint32_t version() const noexcept {
        std::uint32_t version = 0;
        (void)pace_request_version(raw_, &version);
        return version;
    }
    /// The value of the first header of this name, upper or lower case.
    std::optional<std::string_view> header(const char *name) const noexcept {
        return named(pace_request_header, name);
    }
    /// All headers, in order.
    std::vector<Field> headers() const { return fields(pace_request_headers); }
    /// The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
    /// was encoded stays in its part, since routes are matched with the path as it was sent: path(). A
    /// request with a part that cannot be decoded (to UTF-8 without NUL) gets a 400, and has no handler.
    std::optional<std::string_view> param(const char *name) const noexcept {
        return named(pace_request_param, name);
    }
    std::vector<Field> params() const { return fields(pace_request_params); }
    /// The names and values of the query, decoded as a browser's form encodes them: "+" is a space, and what is
    /// percent-encoded is decoded. A pair without "=" has an empty value. Values are bytes; UTF-8 as a rule.
    std::vector<std::pair<std::string, std::string>> query_pairs() const {
        const std::string_view query = text(pace_request_query);
        std::size_t count = 0;
        (void)pace_query_pairs(query.data(), query.size(), nullptr, nullptr, 0, &count);
        std::vector<pace_field_t> raw(count);
        std::string room(query.size(), ' ');
        (void)pace_query_pairs(query.data(), query.size(), room.data(), raw.data(), count, &count);
        std::vector<std::pair<std::string, std::string>> pairs;
        pairs.reserve(count);
        for (const pace_field_t &pair : raw) {
            pairs.emplace_back(view(pair.name), view(pair.value));
        }
        return pairs;
    }
    /// The pattern of the route that it came by: "/hello/{name}". std::nullopt: no route has taken it.
    std::optional<std::string_view> pattern() const noexcept { return optional(pace_request_pattern); }
    /// The whole body. Empty where it is streamed.
    std::string_view body() const noexcept {
        pace_piece_t body{};
        (void)pace_request_body(raw_, &body);
        return {static_cast<const char *>(body.bytes), body.size};
    }
    /// The protocol that it asks to upgrade to.
    std::optional<std::string_view> upgrade() const noexcept { return optional(pace_request_upgrade); }
    /// The other end.
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_request_peer(raw_, text, size); });
    }
    /// Its connection, as a number: see Http::conn().
    std::uint64_t conn() const noexcept {
        pace_conn_id_t id{};
        (void)pace_request_conn(raw_, &id);
        return id.id;
    }

    /// For calls to paceline.h.
    const pace_request_t *native() const noexcept { return raw_; }

private:
    static std::string_view view(pace_text_t text) noexcept {
        return text.text == nullptr ? std::string_view() : std::string_view(text.text, text.size);
    }
    template <class Ask>
    std::string_view text(Ask ask) const noexcept {
        pace_text_t text{};
        (void)ask(raw_, &text);
        return view(text);
    }
    template <class Ask>
    std::optional<std::string_view> optional(Ask ask) const noexcept {
        pace_text_t text{};
        (void)ask(raw_, &text);
        return text.text == nullptr ? std::nullopt : std::optional(view(text));
    }
    template <class Ask>
    std::optional<std::string_view> named(Ask ask, const char *name) const noexcept {
        return optional(
            [ask, name](const pace_request_t *raw, pace_text_t *text) { return ask(raw, name, text); });
    }
    template <class Ask>
    std::vector<Field> fields(Ask ask) const {
        std::size_t count = 0;
        (void)ask(raw_, nullptr, 0, &count);
        std::vector<pace_field_t> raw(count);
        (void)ask(raw_, raw.data(), raw.size(), &count);
        std::vector<Field> fields;
        fields.reserve(count);
        for (const pace_field_t &field : raw) {
            fields.push_back({view(field.name), view(field.value)});
        }
        return fields;
    }

    const pace_request_t *raw_;
};

namespace detail {

/// A text as C has it, where it would end at a NUL. What has one is not cut there: other control characters are
/// refused, too.
inline const char *refused_if_cut(const std::string &text) noexcept {
    return text.find('\0') == std::string::npos ? text.c_str() : "\1";
}

/// Calls `f`, code of a request, which fails if that throws; whether it has returned.
template <class F>
bool guard_request(F &&f) noexcept {
    return contained(std::forward<F>(f), [] {
        tell_what(pace_request_fail);
        report_unhandled(true);
    });
}

} // namespace detail

/// The body of an answer, written piece by piece by whoever holds it. When it goes unfinished the
/// connection is reset, so that the peer can tell; while an exception unwinds, that is a failure (fail()).
class [[nodiscard]] Body {
public:
    Body(Body &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Body &operator=(Body &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Body() { std::uncaught_exceptions() > 0 ? fail() : pace_body_free(raw_); }

    /// As ConnRef::write(). Code::Invalid: more than was announced. WriteStatus::Unwanted: the peer gets no body,
    /// and the bytes were dropped. No mark paces such a body: finish() it.
    Result<WriteStatus> write(std::string_view bytes) {
        std::uint32_t what = 0;
        const auto status = pace_body_write(raw_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    /// Ends the body. The connection's next request may come.
    Result<void> finish() {
        return raw_ == nullptr ? detail::gone("body")
                               : detail::outcome(pace_body_finish(std::exchange(raw_, nullptr)));
    }
    /// What writes it has failed: the connection is reset, and the failure counted.
    void fail() noexcept { pace_body_fail(std::exchange(raw_, nullptr)); }
    bool is_pressed() const noexcept {
        bool pressed = false;
        (void)pace_body_is_pressed(raw_, &pressed);
        return pressed;
    }
    /// Has `f()` called, in a run of the connection, each time that the output has fallen to its low
    /// mark. If the output is not above its high mark now, it is called once without delay.
    template <class F>
    Result<void> on_writable(F &&f) {
        using D = std::decay_t<F>;
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status =
            pace_body_on_writable(raw_, writable<D>, box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }
    /// Has `f(Body &)` write the body, as fast as the peer takes it and no faster: as long as it
    /// answers Flow::Again and there is something left to be sent; with Flow::Done the body is finished.
    /// It is not called for a body that is not sent (an answer to HEAD, or with the status 204, 205 or
    /// 304). This one is empty afterwards.
    template <class F>
    Result<void> pump(F &&f) {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_r_v<Flow, D &, Body &>, "a producer is Flow(Body &)");
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_body_pump(raw_, produce<D>, box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
            raw_ = nullptr;
        }
        return detail::outcome(status);
    }

private:
    friend class Response;

    explicit Body(pace_body_t *raw) noexcept : raw_(raw) {}

    template <class F>
    static void writable(void *data) noexcept {
        detail::guard_request([&] { (*static_cast<F *>(data))(); });
    }
    template <class F>
    static std::int32_t produce(void *data, pace_body_t *raw) noexcept {
        Body lent(raw);
        auto flow = Flow::Done;
        detail::guard_request([&] { flow = (*static_cast<F *>(data))(lent); });
        lent.raw_ = nullptr;
        return static_cast<std::int32_t>(flow);
    }

    pace_body_t *raw_;
};

namespace detail {
template <class F>
struct Route;
} // namespace detail

class Next;

/// The answer to a request, to be completed by its handler, or by any thread later. When it goes
/// uncompleted, the peer gets a 500; while an exception unwinds, that is a failure (fail()).
class [[nodiscard]] Response {
public:
    Response(Response &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), typed_(other.typed_), state_(other.state_) {}
    Response &operator=(Response &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(typed_, other.typed_);
        std::swap(state_, other.state_);
        return *this;
    }
    ~Response() { std::uncaught_exceptions() > 0 ? fail() : pace_response_free(raw_); }

    /// 200 to 599; without this it is 200. Another one is an error of what completes the response.
    Response &status(std::uint32_t status) & {
        (void)pace_response_status(raw_, status);
        return *this;
    }
    Response &&status(std::uint32_t value) && { return std::move(status(value)); }
    /// Adds a header. Content-Length, Transfer-Encoding, Connection, Upgrade and Date are the
    /// library's own. One that is not allowed is an error of what completes the response.
    Response &header(const char *name, const std::string &value) & {
        if (pace_response_header(raw_, name, detail::refused_if_cut(value)) != PACE_OK) {
            // NULL or not UTF-8: C keeps no such name. This one is no name either.
            (void)pace_response_header(raw_, "", "");
            return *this;
        }
        typed_ = typed_ || is_content_type(name);
        return *this;
    }
    Response &&header(const char *name, const std::string &value) && {
        return std::move(header(name, value));
    }
    /// No more requests follow on this connection.
    Response &close() & {
        (void)pace_response_close(raw_);
        return *this;
    }
    Response &&close() && { return std::move(close()); }

    /// Completes it. Code::Invalid names the status or header that was not allowed, and Code::Full
    /// tells of a body larger than a connection's output may be (stream it): then the peer gets a 500.
    /// Code::Stale: the connection has ended, or the library has answered already.
    Result<void> send(std::string_view body) {
        if (raw_ == nullptr) {
            return detail::gone("response");
        }
        return detail::outcome(pace_response_send(take(), body.data(), body.size()));
    }
    /// As send(), with Content-Type: text/plain; charset=utf-8 unless it has another.
    Result<void> text(std::string_view text) {
        if (!typed_) {
            header("Content-Type", "text/plain; charset=utf-8");
        }
        return send(text);
    }
    /// As send(), with this Content-Type unless it has another: a media type, as "application/json".
    Result<void> send_as(const std::string &content_type, std::string_view body) {
        if (!typed_) {
            header("Content-Type", content_type);
        }
        return send(body);
    }
    /// As send(), of a text that is JSON, with Content-Type: application/json unless it has another.
    Result<void> json(std::string_view text) { return send_as("application/json", text); }
    /// Completes it with a short page about its status, as the server's own errors have it, in the form that the
    /// request's Accept wants most: text ("404 Not Found"), JSON ({"title":"Not Found","status":404}, as
    /// RFC 9457 has it) or HTML.
    Result<void> error() {
        return raw_ == nullptr ? detail::gone("response") : detail::outcome(pace_response_error(take()));
    }
    /// Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks if
    /// that is not known. A peer that waits for "100 Continue" is told so first.
    Result<Body> stream(std::optional<std::uint64_t> length = std::nullopt) {
        if (raw_ == nullptr) {
            return detail::gone("response");
        }
        pace_body_t *body = nullptr;
        const pace_status_t status =
            pace_response_stream(take(), length.value_or(PACE_LENGTH_UNKNOWN), &body);
        return status == PACE_OK ? Result<Body>(Body(body)) : Result<Body>(Error::last(status));
    }

    /// What was to answer has failed: the peer gets a 500, the connection closes, and the failure is counted
    /// (HttpStats::panics).
    void fail() noexcept { pace_response_fail(take()); }

    /// Answers with 101, and gives the connection to `handler`, for a protocol that the request has asked
    /// for. Its `open` comes next. A handler that is refused stays the caller's.
    Result<void> upgrade(const std::string &protocol, std::unique_ptr<ConnHandler> &&handler);

private:
    template <class F>
    friend struct detail::Route;
    friend class Next;

    Response(pace_response_t *raw, const detail::ServerState &state) noexcept
        : raw_(raw), state_(&state) {}

    pace_response_t *take() noexcept { return std::exchange(raw_, nullptr); }

    static bool is_content_type(const char *name) noexcept {
        const char *known = "content-type";
        for (; *known != '\0' && (*name | 0x20) == *known; ++known, ++name) {
        }
        return *known == *name;
    }

    pace_response_t *raw_;
    bool typed_ = false;
    /// Of its server. It lives as long as any response.
    const detail::ServerState *state_;
};

inline Result<void> Response::upgrade(const std::string &protocol,
                                      std::unique_ptr<ConnHandler> &&handler) {
    if (raw_ == nullptr) {
        return detail::gone("response");
    }
    if (handler == nullptr) {
        return Error(Code::Invalid, "handler is nullptr");
    }
    auto box = std::unique_ptr<detail::ConnBox>(new detail::ConnBox{std::move(handler), *state_});
    pace_conn_hooks_t hooks = detail::ConnBox::hooks();
    hooks.user_data = box.get();
    hooks.drop = detail::drop_box<detail::ConnBox>;
    const pace_status_t status = pace_response_upgrade(take(), detail::refused_if_cut(protocol), &hooks);
    if (status != PACE_OK) {
        Error error = Error::last(status);
        handler = std::move(box->own);
        return error;
    }
    (void)box.release();
    return {};
}

/// The rest of a request's way, in a middleware: see Http::around().
class [[nodiscard]] Next {
public:
    explicit Next(pace_next_t *raw) noexcept : raw_(raw) {}
    Next(Next &&) noexcept = default;
    Next(const Next &) = delete;
    Next &operator=(const Next &) = delete;

    /// Goes on with the request, on this thread, and returns when the handler has returned or thrown. The status is
    /// the one with which it was answered by then: 500 if the handler has thrown without an answer.
    /// std::nullopt: it will be answered later, or its answer was lost; Http::on_end() tells. So is a second call.
    std::optional<std::uint32_t> run(const Request &request, Response response) {
        std::uint32_t status = 0;
        if (pace_next_run(raw_, request.native(), response.raw_, &status) == PACE_OK) {
            (void)response.take();
        }
        return status == 0 ? std::nullopt : std::optional(status);
    }

private:
    pace_next_t *raw_;
};

/// What has become of a request: see Http::on_end(). Its texts are good while that runs.
struct RequestEnd {
    /// As they were sent. Empty if they are not known, as of a malformed request.
    std::string_view method, target;
    /// Of the answer. std::nullopt: no whole answer has left.
    std::optional<std::uint32_t> status;
    /// From the head until the answer was complete. What the peer has not taken yet may still be queued.
    std::chrono::nanoseconds duration;
    /// The other end.
    std::string_view peer;
};

/// The handler of a route, for many requests at once. The request is lent, the response is given.
using RequestHandler = Function<void(const Request &, Response)>;

/// What takes the body of a request as it comes. It is called by one thread at a time.
class RequestBody {
public:
    RequestBody() = default;
    RequestBody(const RequestBody &) = delete;
    RequestBody &operator=(const RequestBody &) = delete;
    virtual ~RequestBody() = default;

    /// A part has come: how many of its bytes were taken, from the front. The rest is shown again
    /// after ConnRef::resume(); until then nothing is read.
    virtual std::size_t data(std::string_view bytes) = 0;
    /// The last call, exactly once: it was whole, or it never will be.
    virtual void end(bool is_whole) = 0;
};

/// Makes what takes a body, when the head of the request is there. nullptr: what comes is dropped.
using BodyFactory = Function<std::unique_ptr<RequestBody>(const Request &, Response)>;

/// Settings of an HTTP server. What is not set is the library's choice; ranges and defaults are those of
/// pace_http_options_t.
struct HttpConfig {
    std::vector<Listen> listeners{};
    std::optional<std::uint64_t> max_head{}, max_target{}, max_body{}, body_rate{}, max_requests{};
    std::optional<std::uint32_t> max_headers{}, keep_alive_requests{};
    std::optional<Duration> head_timeout{}, body_timeout{}, keep_alive_timeout{};

    HttpConfig &add_listener(Listen value) { return listeners.push_back(std::move(value)), *this; }
    HttpConfig &set_max_head(std::uint64_t value) { return max_head = value, *this; }
    HttpConfig &set_max_target(std::uint64_t value) { return max_target = value, *this; }
    HttpConfig &set_max_headers(std::uint32_t value) { return max_headers = value, *this; }
    HttpConfig &set_max_body(std::uint64_t value) { return max_body = value, *this; }
    HttpConfig &set_body_rate(std::uint64_t value) { return body_rate = value, *this; }
    HttpConfig &set_max_requests(std::uint64_t value) { return max_requests = value, *this; }
    HttpConfig &set_keep_alive_requests(std::uint32_t value) {
        return keep_alive_requests = value, *this;
    }
    HttpConfig &set_head_timeout(Duration value) { return head_timeout = value, *this; }
    HttpConfig &set_body_timeout(Duration value) { return body_timeout = value, *this; }
    HttpConfig &set_keep_alive_timeout(Duration value) { return keep_alive_timeout = value, *this; }
};

/// The books of an HTTP server. Fields as in pace_http_stats_t.
struct HttpStats : pace_http_stats_t {
    HttpStats() noexcept : pace_http_stats_t{} { struct_size = sizeof(pace_http_stats_t); }

    /// By handlers, whatever the status.
    std::uint64_t answered() const noexcept {
        return answered_upgraded + answered_successful + answered_redirected + answered_client_errors +
               answered_server_errors;
    }
    /// Answered by the library in a handler's place.
    std::uint64_t refused() const noexcept {
        return refused_bad_request + refused_not_found + refused_method_not_allowed + refused_timed_out +
               refused_body_too_large + refused_target_too_long + refused_expectation +
               refused_head_too_large + refused_panicked + refused_unanswered + refused_not_implemented +
               refused_busy + refused_version;
    }
    /// Not answered, or not to the end.
    std::uint64_t aborted() const noexcept {
        return aborted_disconnected + aborted_timed_out + aborted_unfinished + aborted_closed +
               aborted_cut_off;
    }
};

namespace detail {

struct HttpCore {
    HttpCore(SharedCore core, pace_http_t *raw) noexcept : pool(std::move(core)), http(raw) {}
    HttpCore(const HttpCore &) = delete;
    HttpCore &operator=(const HttpCore &) = delete;
    ~HttpCore() { pace_http_free(http); }

    const SharedCore pool;
    pace_http_t *const http;
};

/// A handler, or what makes bodies. The library deletes it after the last connection and response.
template <class F>
struct Route {
    F f;
    std::shared_ptr<const ServerState> state;

    static void handle(void *data, const pace_request_t *raw, pace_response_t *response) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { route.f(Request(raw), std::move(given)); });
    }

    static void around(void *data, const pace_request_t *raw, pace_response_t *response,
                       pace_next_t *next) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { route.f(Request(raw), std::move(given), Next(next)); });
    }

    static void ended(void *data, const pace_http_end_t *raw) noexcept {
        const auto view = [](pace_text_t text) { return std::string_view(text.text, text.size); };
        const auto status = raw->status == 0 ? std::nullopt : std::optional(raw->status);
        const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(raw->duration_ns));
        const RequestEnd end{view(raw->method), view(raw->target), status, time, view(raw->peer)};
        guard_request([&] { static_cast<Route *>(data)->f(end); });
    }

    static void begin(void *data, const pace_request_t *raw, pace_response_t *response,
                      void **body) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { *body = route.f(Request(raw), std::move(given)).release(); });
    }
};

inline std::size_t body_data(void *body, const void *bytes, std::size_t size) noexcept {
    std::size_t taken = size;
    guard_request([&] {
        taken = static_cast<RequestBody *>(body)->data({static_cast<const char *>(bytes), size});
    });
    return taken;
}

inline void body_end(void *body, bool is_whole) noexcept {
    const std::unique_ptr<RequestBody> owned(static_cast<RequestBody *>(body));
    guard_request([&] { owned->end(is_whole); });
}

} // namespace detail

class PulledRequests;

/// An HTTP/1.1 server on a pool. When it goes it stops: connections are cut off, and their handlers
/// are done when the destructor returns, as ~Server() says. drain() first for an orderly end.
///
///     auto http = Http::create(pool).value();
///     http.route("GET", "/hello/{name}", [](const Request &request, Response response) {
///         response.text("Hello, " + std::string(*request.param("name")) + "!\n").value();
///     }).value();
///     http.start(HttpConfig().add_listener({"127.0.0.1:8080"})).value();
class [[nodiscard]] Http {
public:
    /// A server without routes, to be given some and started.
    static Result<Http> create(const Pool &pool) {
        pace_http_t *http = nullptr;
        const pace_status_t status = pace_http_new(pool.native(), &http);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Http(std::make_shared<const detail::HttpCore>(pool.core_, http));
    }

    Http(Http &&) noexcept = default;
    Http &operator=(Http &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(state_, other.state_);
        std::swap(server_, other.server_);
        return *this;
    }
    ~Http() {
        if (server_) {
            (void)pace_server_stop(server());
        }
    }

    /// Requests of this method whose path matches this pattern go to this handler, with their whole
    /// body. "/hello/{name}" stands for one segment, "/files/{*path}" for all that follows. GET serves
    /// HEAD too. Each method is routed by itself; OPTIONS without a route of its own is answered with 204
    /// and the methods of the path (Allow). What is wrong with a route is told by start().
    Result<void> route(const char *method, const char *pattern, RequestHandler handler) {
        using Route = detail::Route<RequestHandler>;
        auto box = std::unique_ptr<Route>(new Route{std::move(handler), state_});
        const pace_status_t status = pace_http_route(native(), method, pattern, Route::handle, box.get(),
                                                     detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// The same for requests whose body is taken as it comes. A peer that waits for "100 Continue" is told so
    /// when the factory has returned what takes the body, or before the head of an answer that it has begun
    /// by Response::stream(). It is not told if the factory has answered by Response::send(), or has
    /// returned nullptr: then the answer is the final one, and the connection closes behind it.
    Result<void> route_streaming(const char *method, const char *pattern, BodyFactory factory) {
        using Route = detail::Route<BodyFactory>;
        auto box = std::unique_ptr<Route>(new Route{std::move(factory), state_});
        pace_request_body_hooks_t hooks{};
        (void)pace_request_body_hooks_init(&hooks, sizeof hooks);
        hooks.begin = Route::begin;
        hooks.data = detail::body_data;
        hooks.end = detail::body_end;
        const pace_status_t status = pace_http_route_streaming(native(), method, pattern, &hooks,
                                                               box.get(), detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Calls `f(const Request &, Response, Next)` around the handler of every request that has a whole head: of all
    /// routes, of requests that no route takes (404, 405), and of what the library answers to OPTIONS. Several are
    /// called in the order in which they were told, each around all that follow.
    ///
    /// It goes on by Next::run(), with the response, to which it may have added headers: they are sent with every
    /// answer, errors of the server included. Or it answers by itself, and the handler is not called.
    /// Request::pattern() says which route it is. A request that is refused for its head, its body's length or for want
    /// of room is not seen here, but by on_end().
    ///
    ///     http.around([](const Request &request, Response response, Next next) {
    ///         if (!request.header("authorization")) {
    ///             response.status(401).header("WWW-Authenticate", "Basic").error();
    ///             return;
    ///         }
    ///         next.run(request, std::move(response.header("Access-Control-Allow-Origin", "*")));
    ///     });
    template <class F>
    Result<void> around(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const Request &, Response, Next>,
                      "a middleware is void(const Request &, Response, Next)");
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_around, Route::around, std::move(box));
    }

    /// Requests that no route takes go to `f(const Request &, Response)`, without their body, which is dropped. The
    /// response has the status that they would get otherwise: 404, 405 (with Allow), 501, or 400 for a parameter that
    /// cannot be decoded. Response::error() answers as the server does, and Response::status() sets another status. The
    /// last fallback that was told is the one, pulled or not.
    template <class F>
    Result<void> fallback(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const Request &, Response>,
                      "a fallback is void(const Request &, Response)");
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_fallback, Route::handle, std::move(box));
    }

    /// Calls `f(const RequestEnd &)` at the end of each request, once: answered by a handler or refused by the server
    /// (400, 404, 408, 413, 431 and others), or lost with its connection. It is what an access log needs. It must not
    /// block: the connection waits for it. The last function that was told is the one, pulled or not.
    template <class F>
    Result<void> on_end(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const RequestEnd &>,
                      "a hook of ends is void(const RequestEnd &)");
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_on_end, Route::ended, std::move(box));
    }

    /// The same for ends that are pulled from `requests`, as events of the kind RequestEvent::Ended.
    Result<void> on_end_pulled(const PulledRequests &requests);

    /// Requests that no route takes are pulled from `requests`, as events with the number `route`.
    Result<void> fallback_pulled(const PulledRequests &requests, std::uint32_t route = 0);

    /// The same for requests that are pulled from `requests`, as events with the number `route`.
    Result<void> route_pulled(const char *method, const char *pattern, const PulledRequests &requests,
                              std::uint32_t route = 0);
    /// The same, where each part of the body comes after PulledRequests::read().
    Result<void> route_pulled_streaming(const char *method, const char *pattern,
                                        const PulledRequests &requests, std::uint32_t route = 0);

    /// Starts. Code::Invalid names the setting, its value and its bounds, or the route that cannot be;
    /// Code::Os the address that could not be listened on. If it fails, it may be tried again.
    Result<void> start(const HttpConfig &config) {
        if (!core_) {
            return detail::gone("HTTP server");
        }
        detail::Listeners listeners(config.listeners);
        pace_http_options_t options{};
        (void)pace_http_options_init(&options, sizeof options);
        options.listeners = listeners.raw.data();
        options.listener_count = listeners.raw.size();
        const auto set = [](auto &field, const auto &value) {
            if (value) {
                field = *value;
            }
        };
        const auto set_time = [](std::uint64_t &field, const std::optional<Duration> &value) {
            if (value) {
                field = detail::nanos(*value);
            }
        };
        set(options.max_head, config.max_head);
        set(options.max_target, config.max_target);
        set(options.max_headers, config.max_headers);
        set(options.max_body, config.max_body);
        set(options.body_rate, config.body_rate);
        set(options.max_requests, config.max_requests);
        set(options.keep_alive_requests, config.keep_alive_requests);
        set_time(options.head_timeout_ns, config.head_timeout);
        set_time(options.body_timeout_ns, config.body_timeout);
        set_time(options.keep_alive_timeout_ns, config.keep_alive_timeout);
        // See ServerState::core().
        std::lock_guard<std::mutex> lock(state_->mutex);
        pace_status_t status = pace_http_start(native(), &options);
        pace_server_t *under = nullptr;
        if (status == PACE_OK) {
            listeners.keep();
            status = pace_http_server(native(), &under);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        server_ = std::make_shared<const detail::ServerCore>(core_->pool, under, core_);
        state_->known = server_;
        return {};
    }

    /// As Server's methods of these names.
    Result<std::string> address(std::size_t index = 0) const {
        return detail::text_of([this, index](char *text, std::size_t size) {
            return pace_server_address(server(), index, text, size);
        });
    }
    Result<void> wait() const { return detail::outcome(pace_server_wait(server())); }
    Result<DrainReport> drain(Duration time) const {
        DrainReport report;
        const pace_status_t status = pace_server_drain(server(), detail::nanos(time), &report);
        return status == PACE_OK ? Result<DrainReport>(report)
                                 : Result<DrainReport>(Error::last(status));
    }

    /// The connection of this number: see Request::conn(). Its resume() reads on after a RequestBody has
    /// not taken everything.
    ConnRef conn(std::uint64_t id) const noexcept { return ConnRef(server_, pace_conn_id_t{id}); }

    /// What has answered a request of this connection has failed after that: the connection closes when all
    /// that is queued was sent, and the failure is counted. A handler throws, before that.
    Result<void> fail(std::uint64_t conn) const {
        return detail::outcome(pace_http_fail(native(), pace_conn_id_t{conn}));
    }

    Result<HttpStats> stats() const {
        HttpStats stats;
        const pace_status_t status = pace_http_stats(native(), &stats);
        return status == PACE_OK ? Result<HttpStats>(stats) : Result<HttpStats>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Http's.
    pace_http_t *native() const noexcept { return core_ ? core_->http : nullptr; }

private:
    explicit Http(std::shared_ptr<const detail::HttpCore> core)
        : core_(std::move(core)), state_(std::make_shared<detail::ServerState>()) {}

    template <class Route, class Register, class Hook>
    Result<void> registered(Register add, Hook hook, std::unique_ptr<Route> box) {
        const pace_status_t status = add(native(), hook, box.get(), detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// The stream server beneath, once it was started.
    pace_server_t *server() const noexcept { return server_ ? server_->server : nullptr; }

    std::shared_ptr<const detail::HttpCore> core_;
    std::shared_ptr<detail::ServerState> state_;
    detail::SharedServer server_;
};

// ---- HTTP: requests that are pulled ----------------------------------------------------------------

/// A pulled request, or what has come of its body or its answer. It is a pace_request_event_t.
struct RequestEvent : pace_request_event_t {
    enum Kind : std::uint32_t {
        Request = PACE_REQUEST_EVENT_REQUEST,
        /// The output of an answer that goes on has fallen.
        Writable = PACE_REQUEST_EVENT_WRITABLE,
        /// A part of a streamed body, and its end.
        Part = PACE_REQUEST_EVENT_PART,
        End = PACE_REQUEST_EVENT_END,
        Broken = PACE_REQUEST_EVENT_BROKEN,
        /// A request of the server has ended: end().
        Ended = PACE_REQUEST_EVENT_ENDED,
    };

    RequestEvent() noexcept : pace_request_event_t{} {}

    Kind what() const noexcept { return static_cast<Kind>(kind); }

    /// Of a Request; its texts stay where they are until it is answered.
    std::string_view method() const noexcept { return text(0); }
    std::string_view target() const noexcept { return text(1); }
    std::string_view path() const noexcept { return text(2); }
    std::optional<std::string_view> query() const noexcept {
        return number(3) == none ? std::nullopt : std::optional(text(3));
    }
    /// 0 or 1, of HTTP/1.
    std::uint32_t version() const noexcept { return number(4) & 0xffffU; }
    /// The status of a request that no route has taken: 404, 405, 501 or 400. 0: a route has it.
    std::uint32_t refusal() const noexcept { return number(4) >> 16U; }
    /// Parameters of the path, percent-decoded, and headers, in order.
    std::vector<paceline::Request::Field> params() const { return fields(0, number(5)); }
    std::vector<paceline::Request::Field> headers() const { return fields(number(5), number(6)); }
    /// Of an Ended; its texts are good until the thread pulls again.
    RequestEnd end() const noexcept {
        std::uint64_t time = 0;
        std::memcpy(&time, base(), sizeof time);
        const char *const texts = base() + 8 * sizeof(std::uint32_t);
        const std::size_t method = number(5), target = number(6), peer = number(7);
        const auto status = number(4) == 0 ? std::nullopt : std::optional(number(4));
        return {{texts, method},
                {texts + method, target},
                status,
                std::chrono::nanoseconds(static_cast<std::int64_t>(time)),
                {texts + method + target, peer}};
    }
    /// The whole body; of a Part, the part.
    std::string_view body() const noexcept {
        const std::size_t from = what() == Request ? number(7) : 0;
        return {base() + from, size - from};
    }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::size_t front = 8;

    const char *base() const noexcept { return static_cast<const char *>(bytes); }
    std::uint32_t number(std::size_t index) const noexcept {
        std::uint32_t value = 0;
        std::memcpy(&value, base() + index * sizeof value, sizeof value);
        return value;
    }
    std::size_t length(std::size_t index) const noexcept {
        const std::uint32_t value = number(index);
        return index == 3 && value == none ? 0 : value;
    }
    std::size_t texts() const noexcept {
        return sizeof(std::uint32_t) * (front + 2 * (number(5) + std::size_t{number(6)}));
    }
    std::string_view text(std::size_t index) const noexcept {
        std::size_t from = texts();
        for (std::size_t before = 0; before < index; ++before) {
            from += length(before);
        }
        return {base() + from, length(index)};
    }
    std::vector<paceline::Request::Field> fields(std::size_t first, std::size_t count) const {
        const char *place = base() + texts() + length(0) + length(1) + length(2) + length(3);
        std::vector<paceline::Request::Field> all;
        for (std::size_t n = 0; n < first + count; ++n) {
            const std::size_t name = number(front + 2 * n), value = number(front + 2 * n + 1);
            if (n >= first) {
                all.push_back({{place, name}, {place + name, value}});
            }
            place += name + value;
        }
        return all;
    }
};
static_assert(sizeof(RequestEvent) == sizeof(pace_request_event_t),
              "a batch of one is a batch of the other");

/// What a pulled request is answered with, or the next piece of an answer's body. It is a pace_answer_t;
/// its texts must stay until PulledRequests::answer() has returned.
struct Answer : pace_answer_t {
    explicit Answer(std::uint64_t to, std::string_view text = {}, std::uint32_t code = 200) noexcept
        : pace_answer_t{} {
        request = to;
        length = PACE_LENGTH_UNKNOWN;
        bytes = text.data();
        size = text.size();
        status = code;
    }

    /// Lines, each ended by CR LF.
    Answer &set_headers(std::string_view lines) {
        return headers = lines.data(), headers_size = lines.size(), *this;
    }
    /// The body goes on: other answers write its next pieces. Its whole length, if that is known.
    Answer &set_more(std::uint64_t whole = PACE_LENGTH_UNKNOWN) {
        return flags |= PACE_ANSWER_MORE, length = whole, *this;
    }
    /// Its body is a short page about its status, as Response::error() has it.
    Answer &set_error() { return flags |= PACE_ANSWER_ERROR, *this; }
    /// No more requests follow on this connection.
    Answer &set_close() { return flags |= PACE_ANSWER_CLOSE, *this; }
};
static_assert(sizeof(Answer) == sizeof(pace_answer_t), "a batch of one is a batch of the other");

/// Where requests of routes wait for host threads: see Http::route_pulled(). Any thread but the pool's own
/// may pull. When it goes, requests that are out get a 500.
class [[nodiscard]] PulledRequests {
public:
    static Result<PulledRequests> create(const Pool &pool) {
        pace_requests_t *requests = nullptr;
        const pace_status_t status = pace_requests_new(pool.native(), &requests);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return PulledRequests(pool.core_, requests);
    }

    PulledRequests(PulledRequests &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(other.core_) {}
    PulledRequests &operator=(PulledRequests &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~PulledRequests() { pace_requests_free(raw_); }

    /// Waits for up to `time` for events: the part of `events` that was filled. Code::TimedOut;
    /// Code::ShutDown: the server has ended, and nothing is left.
    Result<span<RequestEvent>> pull(span<RequestEvent> events, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_requests_pull(raw_, events.data(), events.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<RequestEvent>>(events.first(count))
                                 : Result<span<RequestEvent>>(Error::last(status));
    }
    /// Gives answers, in order. Each says in `outcome` what has become of it; the error is the first one's.
    Result<void> answer(span<Answer> answers) const {
        return detail::outcome(pace_requests_answer(raw_, answers.data(), answers.size()));
    }
    /// A request is not answered: the peer gets a 500, or sees its answer break off.
    Result<void> drop(std::uint64_t request) const {
        return detail::outcome(pace_requests_drop(raw_, request));
    }
    /// What was to answer a request has failed: the same, the connection closes, and the failure is counted.
    Result<void> fail(std::uint64_t request) const {
        return detail::outcome(pace_requests_fail(raw_, request));
    }
    /// Asks for the next part of a streamed request's body, or its end. Code::Stale: there is none.
    Result<void> read(std::uint64_t request) const {
        return detail::outcome(pace_requests_read(raw_, request));
    }
    /// Answers with 101: what happens to the connection is pulled from `to`, beginning with Opened. It stays
    /// the HTTP server's: Http::conn() finds it, by this number.
    Result<std::uint64_t> upgrade(std::uint64_t request, const std::string &protocol,
                                  const PulledServer &to, std::uint32_t wanted = PACE_WANTED_ALL,
                                  std::string_view headers = {}) const {
        pace_conn_id_t id{};
        const pace_status_t status =
            pace_requests_upgrade(raw_, request, detail::refused_if_cut(protocol), headers.data(),
                                  headers.size(), to.native(), wanted, &id);
        return status == PACE_OK ? Result<std::uint64_t>(id.id)
                                 : Result<std::uint64_t>(Error::last(status));
    }
    /// A descriptor, readable while a pull would not wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_requests_pollable(raw_, &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }
    /// Ends it at once: pulls say Code::ShutDown, and requests that nobody has pulled get a 500.
    Result<void> close() const { return detail::outcome(pace_requests_close(raw_)); }

    /// For calls to paceline.h. Stays the PulledRequests'.
    pace_requests_t *native() const noexcept { return raw_; }

private:
    PulledRequests(detail::SharedCore core, pace_requests_t *raw) noexcept
        : raw_(raw), core_(std::move(core)) {}

    pace_requests_t *raw_;
    detail::SharedCore core_;
};

inline Result<void> Http::on_end_pulled(const PulledRequests &requests) {
    return detail::outcome(pace_http_on_end_pulled(native(), requests.native()));
}

inline Result<void> Http::fallback_pulled(const PulledRequests &requests, std::uint32_t route) {
    return detail::outcome(pace_http_fallback_pulled(native(), requests.native(), route));
}

inline Result<void> Http::route_pulled(const char *method, const char *pattern,
                                       const PulledRequests &requests, std::uint32_t route) {
    return detail::outcome(pace_http_route_pulled(native(), method, pattern, requests.native(), route));
}

inline Result<void> Http::route_pulled_streaming(const char *method, const char *pattern,
                                                 const PulledRequests &requests, std::uint32_t route) {
    return detail::outcome(
        pace_http_route_pulled_streaming(native(), method, pattern, requests.native(), route));
}

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
        auto box = detail::boxed(std::forward<F>(f));
        pace_signals_t *signals = nullptr;
        const pace_status_t status = pace_signals_new(
            pool.native(), numbers.data(), numbers.size(),
            [](void *data, std::int32_t signal) noexcept {
                (void)detail::guard([&] { (*static_cast<D *>(data))(static_cast<int>(signal)); });
            },
            box.get(), detail::drop_box<D>, &signals);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        (void)box.release();
        return Signals(signals, pool.core_);
    }
    /// SIGTERM and SIGINT begin to shut the pool down: it refuses work from outside, and runs what it has
    /// accepted for up to `drain`. Whoever wants to know how it went waits, and calls Pool::shutdown() too.
    static Result<Signals> shut_down(const Pool &pool, Duration drain) {
        pace_signals_t *signals = nullptr;
        const pace_status_t status =
            pace_signals_shut_down(pool.native(), detail::nanos(drain), &signals);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Signals(signals, pool.core_);
    }

    Signals(Signals &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    Signals &operator=(Signals &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Signals() { pace_signals_free(raw_); }

    /// Waits for a signal whose callable has run and that nobody has waited for. Code::ShutDown: the pool
    /// has ended; Code::WouldDeadlock on a thread of the pool.
    Result<int> wait() const {
        std::int32_t signal = 0;
        const pace_status_t status = pace_signals_wait(raw_, &signal);
        return status == PACE_OK ? Result<int>(signal) : Result<int>(Error::last(status));
    }

private:
    Signals(pace_signals_t *raw, detail::SharedCore core) noexcept : raw_(raw), core_(std::move(core)) {}

    pace_signals_t *raw_;
    detail::SharedCore core_;
};

// ---- worker pools --------------------------------------------------------------------------------

/// How a task of a worker pool stands. Completed and all below it are ends.
enum class TaskStatus : std::uint32_t {
    Pending = PACE_TASK_PENDING,
    Running = PACE_TASK_RUNNING,
    Retrying = PACE_TASK_RETRYING,
    Completed = PACE_TASK_COMPLETED,
    Failed = PACE_TASK_FAILED,
    Cancelled = PACE_TASK_CANCELLED,
    TimedOut = PACE_TASK_TIMED_OUT,
    Rejected = PACE_TASK_REJECTED,
};

/// How failed attempts are followed by others.
class Retry {
public:
    static Retry none() noexcept { return Retry(PACE_RETRY_NONE, 0, {}, {}); }
    /// Each `delay` after the failure before it.
    static Retry fixed(std::uint32_t retries, Duration delay) noexcept {
        return Retry(PACE_RETRY_FIXED, retries, delay, {});
    }
    /// Each `step` later after its failure than the one before.
    static Retry linear(std::uint32_t retries, Duration step) noexcept {
        return Retry(PACE_RETRY_LINEAR, retries, step, {});
    }
    /// Each twice as late as the one before, with full jitter: from 100 ms to 30 s unless given.
    static Retry exponential(std::uint32_t retries, Duration first = {}, Duration cap = {}) noexcept {
        return Retry(PACE_RETRY_EXPONENTIAL, retries, first, cap);
    }
    /// Each anywhere between the two after its failure.
    static Retry random(std::uint32_t retries, Duration least, Duration most) noexcept {
        return Retry(PACE_RETRY_RANDOM, retries, least, most);
    }

    /// No attempt begins later than this after the submission.
    Retry &within(Duration limit) noexcept {
        raw_.within_ns = detail::limit_nanos(limit);
        return *this;
    }
    /// PACE_JITTER_: how delays are spread.
    Retry &jitter(std::uint32_t jitter) noexcept {
        raw_.jitter = jitter;
        return *this;
    }

    const pace_retry_t &native() const noexcept { return raw_; }

private:
    Retry(std::uint32_t shape, std::uint32_t retries, Duration first, Duration cap) noexcept {
        raw_.shape = shape;
        raw_.retries = retries;
        raw_.first_ns = detail::limit_nanos(first);
        raw_.cap_ns = detail::limit_nanos(cap);
    }

    pace_retry_t raw_{};
};

/// How many retries the tasks of a task type may make together: see pace_task_type_config_t.
struct RetryBudget {
    double ratio{0.2};
    std::uint32_t per_second{10};
    std::uint32_t burst{100};
};

/// How often tasks of a task type may start.
struct Rate {
    std::uint32_t starts{};
    Duration per{std::chrono::seconds(1)};
    std::uint32_t burst{1};
};

/// What is done with a task for which its lane has no room.
class OverloadPolicy {
public:
    /// It is given back at once.
    static OverloadPolicy reject() noexcept { return OverloadPolicy(PACE_OVERLOAD_REJECT); }
    /// Its submitter waits for room; inside the pool it is given back.
    static OverloadPolicy wait(Duration time = forever) noexcept {
        return OverloadPolicy(PACE_OVERLOAD_WAIT, time);
    }
    /// Its first attempt runs in the submitter's thread; inside the pool it is given back.
    static OverloadPolicy run_here() noexcept { return OverloadPolicy(PACE_OVERLOAD_RUN_HERE); }
    /// The oldest task with this policy in the lowest lane is dropped, and ends as Rejected.
    static OverloadPolicy drop_oldest() noexcept { return OverloadPolicy(PACE_OVERLOAD_DROP_OLDEST); }

    /// Writes it to a struct of paceline.h.
    template <class Raw>
    void fill(Raw &raw) const noexcept {
        raw.full = full_;
        raw.full_wait_ns = detail::nanos(time_);
    }

private:
    explicit OverloadPolicy(std::uint32_t full, Duration time = {}) noexcept
        : full_(full), time_(time) {}

    std::uint32_t full_;
    Duration time_;
};

/// Settings of a TaskType. Times that are zero, or `forever`, are no limit.
struct TaskTypeConfig {
    Lane lane{Lane::Normal};
    std::optional<Retry> retry{};
    /// How long each attempt may take.
    Duration timeout{};
    /// How long a task may wait for its first attempt.
    Duration queue_timeout{};
    /// How long a task may take in all.
    Duration deadline{};
    std::optional<RetryBudget> retry_budget{};
    std::optional<Rate> rate{};
    /// How many attempts may run at once. Zero: as many as can.
    std::uint32_t max_running{};
    /// How long each attempt may take before it is asked to give up; nothing else follows.
    Duration soft_timeout{};
    /// How long an attempt whose time is over, and that another might follow, may take to return. Zero: one
    /// second.
    Duration grace{};
    /// What is done when the lane is full. None: as the worker pool has it.
    std::optional<OverloadPolicy> full{};
    /// An attempt whose time is over does not hold up the next one: the callable must bear to run in both at
    /// once. What the one that was overtaken comes to is discarded and counted.
    bool overlap_retries{};
    /// For tasks without a callable: how long a host may be silent about an attempt that it has pulled, before
    /// it counts as gone, and the attempt as failed: 1 ms or more. Zero: it is waited for.
    Duration lease{};
};

/// What one task has in place of its task type's settings. Times that are zero are the task type's.
struct TaskOptions {
    std::optional<Lane> lane{};
    std::optional<Retry> retry{};
    Duration timeout{};
    Duration queue_timeout{};
    Duration deadline{};
    /// Not before so long from now.
    Duration delay{};
    /// Tasks with equal keys run one at a time, in the order of their submission.
    std::optional<std::uint64_t> key{};
    Duration soft_timeout{};
    Duration grace{};
    std::optional<OverloadPolicy> full{};
};

/// One run of a task's callable, which may take it as its argument. Good during that run.
class Attempt {
public:
    explicit Attempt(pace_attempt_t *raw) noexcept : raw_(raw) {}
    Attempt(const Attempt &) = delete;
    Attempt &operator=(const Attempt &) = delete;

    /// 1 for the first run, 2 for the first retry.
    std::uint32_t number() const noexcept {
        std::uint32_t number = 0;
        (void)pace_attempt_number(raw_, &number);
        return number;
    }
    /// The task's number, as in its report.
    std::uint64_t task() const noexcept {
        std::uint64_t id = 0;
        (void)pace_attempt_task(raw_, &id);
        return id;
    }
    /// The name of the task's kind. Static.
    const char *name() const noexcept {
        const char *name = "";
        (void)pace_attempt_name(raw_, &name);
        return name;
    }
    /// Whether the callable should give up: the task was cancelled, its time is over, or the worker
    /// pool stops.
    bool is_cancelled() const noexcept {
        bool cancelled = false;
        (void)pace_attempt_is_cancelled(raw_, &cancelled);
        return cancelled;
    }
    /// How long until the time of this attempt is over; `forever` without a limit.
    nanoseconds time_left() const noexcept {
        std::uint64_t left = PACE_FOREVER;
        (void)pace_attempt_time_left(raw_, &left);
        return detail::time_of(left);
    }
    /// Says that it still makes progress: the time of this attempt begins anew.
    void heartbeat() const noexcept { (void)pace_attempt_heartbeat(raw_); }
    /// If this attempt fails, there is no other. What throws next says why.
    void permanent() noexcept { (void)pace_attempt_permanent(raw_); }
    /// If this attempt fails, the next is not earlier than `delay` from now.
    void retry_after(Duration delay) noexcept {
        (void)pace_attempt_retry_after(raw_, detail::nanos(delay));
    }

    pace_attempt_t *native() const noexcept { return raw_; }

private:
    pace_attempt_t *raw_;
};

/// How a task ended.
template <class T>
struct TaskReport {
    TaskStatus status{};
    /// The task's number, which no other task of this process has or had.
    std::uint64_t id{};
    /// The name of its task type. Static.
    const char *name{};
    /// What went wrong last: what() of what was thrown. Empty if it has completed.
    std::string message{};
    std::uint32_t attempts{};
    /// From its submission, or from when it was due, to the first attempt.
    nanoseconds queue_time{};
    /// What its attempts took together.
    nanoseconds run_time{};
    /// The thread of the last attempt, if there was one on a thread of the pool.
    std::optional<std::uint32_t> worker{};
    /// What the callable returned, if the task has completed: a monostate for void.
    std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> value{};

    bool completed() const noexcept { return status == TaskStatus::Completed; }
};

namespace detail {

/// A worker pool's C object, which keeps its pool's.
struct WorkersCore {
    WorkersCore(SharedCore core, pace_workers_t *raw) noexcept : pool(std::move(core)), workers(raw) {}
    WorkersCore(const WorkersCore &) = delete;
    WorkersCore &operator=(const WorkersCore &) = delete;
    ~WorkersCore() { pace_workers_free(workers); }

    const SharedCore pool;
    pace_workers_t *const workers;
};

using SharedWorkers = std::shared_ptr<const WorkersCore>;

/// Calls `f`, code of an attempt, which fails if that throws; whether it has returned.
template <class F>
bool guard_attempt(pace_attempt_t *attempt, F &&f) noexcept {
    return contained(std::forward<F>(f), [attempt] {
        tell_what([attempt](const char *what) { return pace_attempt_fail(attempt, what); });
    });
}

template <class F, class = void>
struct AttemptResult {
    using type = std::invoke_result_t<F &>;
};
template <class F>
struct AttemptResult<F, std::enable_if_t<std::is_invocable_v<F &, Attempt &>>> {
    using type = std::invoke_result_t<F &, Attempt &>;
};

template <class F>
decltype(auto) call_attempt(F &f, Attempt &attempt) {
    if constexpr (std::is_invocable_v<F &, Attempt &>) {
        return f(attempt);
    } else {
        return f();
    }
}

/// What a WorkTask shares with its callable.
template <class T>
struct AttemptPlace : PlaceOf<T> {
    std::mutex placing;
    /// what() of what was thrown last.
    std::string message{};
};

#if defined(__cpp_exceptions)

/// The promise of a WorkTask's future, and the task's share of the place.
template <class T>
struct WorkPromise {
    std::promise<T> promise{};
    AttemptPlace<T> *place = nullptr;

    WorkPromise() = default;
    WorkPromise(const WorkPromise &) = delete;
    WorkPromise &operator=(const WorkPromise &) = delete;
    ~WorkPromise() {
        if (place != nullptr) {
            place->release();
        }
    }

    static void ended(void *data, std::uint32_t raw) noexcept {
        auto *self = static_cast<WorkPromise *>(data);
        std::unique_lock<std::mutex> hold;
        if (self->place != nullptr) {
            hold = std::unique_lock<std::mutex>(self->place->placing);
        }
        const auto fail = [&](Code code, std::string message) {
            const Error error(code, std::move(message));
            keep_promise<T>(self->promise, nullptr, &error);
        };
        switch (static_cast<TaskStatus>(raw)) {
        case TaskStatus::Completed: return keep_promise<T>(self->promise, self->place, nullptr);
        case TaskStatus::TimedOut: return fail(Code::TimedOut, "a time of the task was over");
        case TaskStatus::Cancelled: return fail(Code::Cancelled, "the task was cancelled");
        case TaskStatus::Rejected:
            return fail(Code::Full, "the task was dropped for the sake of others");
        default:
            return fail(Code::Failed, self->place != nullptr ? self->place->message : std::string());
        }
    }
};

#endif

/// A callable that may run several times, perhaps at once, and the place for its value. What comes late does
/// not take the place of what a later attempt has put there.
template <class F, class T>
struct Attempted final : AttemptPlace<T> {
    Kept<F> f;
    std::uint32_t placed{};

    template <class G>
    explicit Attempted(G &&g) : f(std::forward<G>(g)) {}

    void attempt(Attempt &which) {
        const auto call = [&]() -> decltype(auto) { return call_attempt(*f, which); };
        if constexpr (std::is_void_v<T>) {
            call();
        } else {
            T made = call();
            const std::uint32_t number = which.number();
            const std::lock_guard<std::mutex> hold(this->placing);
            if (number >= placed) {
                placed = number;
                this->fill([&]() -> T && { return std::move(made); });
            }
        }
    }

    static void run(void *data, pace_attempt_t *raw, std::int32_t *outcome) noexcept {
        auto *self = static_cast<Attempted *>(data);
        const bool returned = contained(
            [&] {
                Attempt attempt(raw);
                self->attempt(attempt);
            },
            [&] {
                tell_what([&](const char *what) {
                    (void)pace_attempt_fail(raw, what);
                    const std::lock_guard<std::mutex> hold(self->placing);
                    self->message = what;
                });
            });
        *outcome = returned ? PACE_OK : PACE_EFAILED;
    }

    static void drop(void *data) noexcept {
        auto *self = static_cast<Attempted *>(data);
        self->f.drop();
        self->release();
    }
};

inline pace_task_options_t to_native(const TaskOptions &options) noexcept {
    pace_task_options_t raw{};
    (void)pace_task_options_init(&raw, sizeof raw);
    if (options.lane) {
        raw.lane = static_cast<std::uint32_t>(*options.lane);
    }
    if (options.retry) {
        raw.retry = options.retry->native();
    }
    raw.timeout_ns = limit_nanos(options.timeout);
    raw.queue_timeout_ns = limit_nanos(options.queue_timeout);
    raw.deadline_ns = limit_nanos(options.deadline);
    raw.delay_ns = nanos(options.delay);
    raw.keyed = options.key.has_value();
    raw.key = options.key.value_or(0);
    raw.soft_timeout_ns = limit_nanos(options.soft_timeout);
    raw.grace_ns = limit_nanos(options.grace);
    if (options.full) {
        options.full->fill(raw);
    }
    return raw;
}

} // namespace detail

/// A descriptor for a loop of one's own: readable from the end of a task that it was given to until
/// take(). One may serve many tasks.
class [[nodiscard]] TaskFd {
public:
    static Result<TaskFd> create() {
        pace_task_fd_t *raw = nullptr;
        const pace_status_t status = pace_task_fd_new(&raw);
        return status == PACE_OK ? Result<TaskFd>(TaskFd(raw)) : Result<TaskFd>(Error::last(status));
    }

    TaskFd(TaskFd &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    TaskFd &operator=(TaskFd &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~TaskFd() { pace_task_fd_free(raw_); }

    /// The descriptor. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_task_fd_pollable(raw_, &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }
    /// How many ends it has told of since this was last called; it is not readable until the next.
    Result<std::uint64_t> take() const {
        std::uint64_t ended = 0;
        const pace_status_t status = pace_task_fd_take(raw_, &ended);
        return status == PACE_OK ? Result<std::uint64_t>(ended)
                                 : Result<std::uint64_t>(Error::last(status));
    }

    pace_task_fd_t *native() const noexcept { return raw_; }

private:
    explicit TaskFd(pace_task_fd_t *raw) noexcept : raw_(raw) {}

    pace_task_fd_t *raw_;
};

/// A task of a worker pool, to wait for. When it goes the task goes on all the same.
template <class T>
class [[nodiscard]] WorkTask {
public:
    WorkTask() noexcept = default;
    WorkTask(WorkTask &&other) noexcept
        : core_(std::move(other.core_)), id_(other.id_), place_(std::exchange(other.place_, nullptr)) {}
    WorkTask &operator=(WorkTask &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        std::swap(place_, other.place_);
        return *this;
    }
    ~WorkTask() { detach(); }

    /// Whether there is something to wait for.
    bool valid() const noexcept { return core_ != nullptr; }

    /// Waits until the task has ended, and says how. Code::WouldDeadlock, Code::Busy and Code::TimedOut
    /// leave something to wait for.
    Result<TaskReport<T>> wait(Duration time = forever) {
        if (!valid()) {
            return detail::gone("task");
        }
        pace_task_report_t raw{};
        raw.struct_size = sizeof raw;
        const pace_status_t status = pace_workers_wait(core_->workers, id_, detail::nanos(time), &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        TaskReport<T> report;
        report.status = static_cast<TaskStatus>(raw.status);
        report.id = raw.id;
        report.name = raw.name;
        report.message = raw.message == nullptr ? "" : raw.message;
        report.attempts = raw.attempts;
        report.queue_time = detail::time_of(raw.queue_time_ns);
        report.run_time = detail::time_of(raw.run_time_ns);
        if (raw.worker != PACE_NONE) {
            report.worker = raw.worker;
        }
        if (report.completed()) {
            if constexpr (std::is_void_v<T>) {
                report.value.emplace();
            } else if (place_ != nullptr) {
                report.value = std::move(place_->value);
            }
        }
        let_go();
        return report;
    }

    /// How it stands; out of date when it arrives, unless it is an end.
    Result<TaskStatus> status() const {
        if (!valid()) {
            return detail::gone("task");
        }
        std::uint32_t raw = 0;
        const pace_status_t status = pace_workers_status(core_->workers, id_, &raw);
        return status == PACE_OK ? Result<TaskStatus>(static_cast<TaskStatus>(raw))
                                 : Result<TaskStatus>(Error::last(status));
    }

    /// True: it waited, and has ended as Cancelled. False: it runs and is asked, or it has ended.
    Result<bool> cancel() const {
        if (!valid()) {
            return detail::gone("task");
        }
        bool cancelled = false;
        const pace_status_t status = pace_workers_cancel(core_->workers, id_, &cancelled);
        return status == PACE_OK ? Result<bool>(cancelled) : Result<bool>(Error::last(status));
    }

    /// True: it waited, and has ended as Rejected, for the sake of others. False: it runs, or has ended.
    Result<bool> drop() const {
        if (!valid()) {
            return detail::gone("task");
        }
        bool dropped = false;
        const pace_status_t status = pace_workers_drop(core_->workers, id_, &dropped);
        return status == PACE_OK ? Result<bool>(dropped) : Result<bool>(Error::last(status));
    }

    /// Calls `f(TaskStatus)` when it has ended, on the thread that ends it; here, at once, if it has.
    template <class F>
    Result<void> on_end(F &&f) const {
        using D = std::decay_t<F>;
        if (!valid()) {
            return detail::gone("task");
        }
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_workers_on_end(
            core_->workers, id_,
            [](void *data, std::uint32_t raw) noexcept {
                (void)detail::guard([&] { (*static_cast<D *>(data))(static_cast<TaskStatus>(raw)); });
            },
            box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Has `fd` tell of its end; at once, if it has ended.
    Result<void> tell(const TaskFd &fd) const {
        if (!valid()) {
            return detail::gone("task");
        }
        return detail::outcome(pace_workers_tell(core_->workers, id_, fd.native()));
    }

    /// Lets it go on without anybody waiting for it.
    void detach() noexcept {
        if (valid()) {
            (void)pace_workers_detach(core_->workers, id_);
            let_go();
        }
    }

#if defined(__cpp_exceptions)
    /// A std::future of its value: `std::move(task).to_future()`. No thread waits for it: the thread that ends the task
    /// makes it ready. get() throws an Exception if the task has not completed: Code::Failed, with what() of what its
    /// last attempt has thrown; Code::TimedOut; Code::Cancelled; Code::Full if it was dropped for others; Code::Stale
    /// if this is empty. Unlike wait(), the future's waits do not let another thread lead: do not wait for it inside a
    /// handler. This is empty afterwards.
    std::future<T> to_future() && {
        detail::Boxed<detail::WorkPromise<T>> box(new detail::WorkPromise<T>());
        std::future<T> future = box->promise.get_future();
        if (!valid()) {
            box->promise.set_exception(detail::thrown_by(detail::gone("task")));
            return future;
        }
        box->place = std::exchange(place_, nullptr);
        const pace_status_t status =
            pace_workers_on_end(core_->workers, id_, detail::WorkPromise<T>::ended, box.get(),
                                detail::drop_box<detail::WorkPromise<T>>);
        if (status == PACE_OK) {
            (void)box.release();
        } else {
            box->promise.set_exception(detail::thrown_by(Error::last(status)));
        }
        detach();
        return future;
    }
#endif

    /// For calls to paceline.h.
    pace_task_t native() const noexcept { return id_; }

private:
    friend class TaskType;

    WorkTask(detail::SharedWorkers core, pace_task_t id, detail::AttemptPlace<T> *place) noexcept
        : core_(std::move(core)), id_(id), place_(place) {}

    void let_go() noexcept {
        if (place_ != nullptr) {
            std::exchange(place_, nullptr)->release();
        }
        core_.reset();
    }

    detail::SharedWorkers core_;
    pace_task_t id_{};
    detail::AttemptPlace<T> *place_ = nullptr;
};

/// A task that runs again and again, until this goes: a run that waits is cancelled, one that runs is asked to stop
/// (Attempt::is_cancelled()), and the destructor returns when no run is left and the callable has been deleted. Inside a
/// handler or task, on a thread of the pool, it does not wait.
class [[nodiscard]] Periodic {
public:
    Periodic(Periodic &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    Periodic &operator=(Periodic &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Periodic() { pace_periodic_free(raw_); }

    /// How many runs were submitted, and how many ticks started none.
    struct Counts {
        std::uint64_t runs{}, missed{};
    };
    Result<Counts> counts() const {
        Counts counts;
        const pace_status_t status = pace_periodic_counts(raw_, &counts.runs, &counts.missed);
        return status == PACE_OK ? Result<Counts>(counts) : Result<Counts>(Error::last(status));
    }

private:
    friend class TaskType;

    Periodic(pace_periodic_t *raw, detail::SharedWorkers core) noexcept
        : raw_(raw), core_(std::move(core)) {}

    pace_periodic_t *raw_;
    detail::SharedWorkers core_;
};

/// What becomes of the ticks of a Periodic that come while a run has not ended.
enum class MissedTick : std::uint32_t {
    Skip = PACE_MISSED_TICK_SKIP,
    Coalesce = PACE_MISSED_TICK_COALESCE,
};

/// A name of tasks with its settings and statistics. Its callables are called as f(Attempt &) or f(),
/// once for each attempt; one that throws has failed, and what() is the report's message.
class [[nodiscard]] TaskType {
public:
    TaskType(TaskType &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    TaskType &operator=(TaskType &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~TaskType() { pace_task_type_free(raw_); }

    template <class F>
    using TaskFor = WorkTask<std::decay_t<typename detail::AttemptResult<std::decay_t<F>>::type>>;

    /// Submits a task. A callable that is refused is given back.
    template <class F>
    Result<TaskFor<F>> submit(F &&f, const TaskOptions &options = {}) const {
        using D = std::decay_t<F>;
        using R = typename detail::AttemptResult<D>::type;
        static_assert(!std::is_reference_v<R>, "return a value or a pointer: the task keeps it");
        using Box = detail::Attempted<D, R>;
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        auto *box = new Box(std::forward<F>(f));
        pace_task_t id{};
        const pace_status_t status =
            pace_workers_submit(core_->workers, raw_, Box::run, box, Box::drop, &raw, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(f, *box->f);
            Box::drop(box);
            box->release();
            return error;
        }
        return TaskFor<F>(core_, id, box);
    }

    /// Runs `f()` once, in the task type's lane, for what Pool::post() costs: no limits, no retries, and it is
    /// counted in the pool's books, not in the task type's. A callable that is refused is given back.
    template <class F>
    Result<void> post(F &&f) const {
        static_assert(detail::is_task<F>, "what is posted is called without arguments");
        if (!core_) {
            return detail::gone("task type");
        }
        detail::Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        return detail::outcome(
            packed.settle(pace_task_type_post(raw_, work.run, work.user_data, work.drop)));
    }

    /// Submits the callables in order, for whose outcomes nobody waits; says how many were taken. Those
    /// that were are moved from.
    template <class F>
    Result<std::size_t> post_batch(span<F> work, const TaskOptions &options = {}) const {
        using R = typename detail::AttemptResult<F>::type;
        using Box = detail::Attempted<F, R>;
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        std::vector<Box *> boxes;
        std::vector<pace_attempt_work_t> works;
        boxes.reserve(work.size());
        works.reserve(work.size());
        for (F &f : work) {
            boxes.push_back(new Box(std::move(f)));
            // Nobody waits for the value.
            boxes.back()->release();
            works.push_back({Box::run, boxes.back(), Box::drop});
        }
        std::size_t accepted = 0;
        const pace_status_t status = pace_workers_submit_batch(core_->workers, raw_, works.data(),
                                                               works.size(), &raw, nullptr, &accepted);
        for (std::size_t n = accepted; n < boxes.size(); ++n) {
            detail::give_back<F>(work[n], *boxes[n]->f);
            Box::drop(boxes[n]);
        }
        if (status == PACE_OK || accepted > 0) {
            return accepted;
        }
        return Error::last(status);
    }

    /// Runs it every `period`, first after one: each run is a task of its own, and runs never overlap.
    template <class F>
    Result<Periodic> every(Duration period, F &&f, MissedTick missed = MissedTick::Skip,
                           const TaskOptions &options = {}) const {
        using D = std::decay_t<F>;
        using Box = detail::Attempted<D, void>;
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        auto *box = new Box(std::forward<F>(f));
        pace_periodic_t *periodic = nullptr;
        const pace_status_t status = pace_workers_every(core_->workers, raw_, detail::nanos(period),
                                                        static_cast<std::uint32_t>(missed), Box::run,
                                                        box, Box::drop, &raw, &periodic);
        box->release();
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(f, *box->f);
            Box::drop(box);
            return error;
        }
        return Periodic(periodic, core_);
    }

    /// Submits a task without a callable: its attempts come out of WorkerPool::pull() with `token`.
    Result<WorkTask<void>> submit_pulled(std::uint64_t token, const TaskOptions &options = {}) const {
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        pace_task_t id{};
        const pace_status_t status = pace_workers_submit_pulled(core_->workers, raw_, token, &raw, &id);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return WorkTask<void>(core_, id, nullptr);
    }

    /// The same for many, which nobody waits for; says how many were taken.
    Result<std::size_t> post_pulled_batch(span<const std::uint64_t> tokens,
                                          const TaskOptions &options = {}) const {
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        std::size_t accepted = 0;
        const pace_status_t status = pace_workers_submit_pulled_batch(
            core_->workers, raw_, tokens.data(), tokens.size(), &raw, nullptr, &accepted);
        if (status == PACE_OK || accepted > 0) {
            return accepted;
        }
        return Error::last(status);
    }

    /// What has happened to the tasks of this name. Fields as in paceline.h.
    Result<pace_task_type_stats_t> stats() const {
        pace_task_type_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_task_type_stats(raw_, &stats);
        return status == PACE_OK ? Result<pace_task_type_stats_t>(stats)
                                 : Result<pace_task_type_stats_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the TaskType's.
    pace_task_type_t *native() const noexcept { return raw_; }

private:
    friend class WorkerPool;

    TaskType(pace_task_type_t *raw, detail::SharedWorkers core) noexcept
        : raw_(raw), core_(std::move(core)) {}

    pace_task_type_t *raw_;
    detail::SharedWorkers core_;
};

/// What runs around each attempt of every task of a worker pool, on the attempt's own thread and within its
/// time, by several threads at once. It should be short.
class Middleware {
public:
    Middleware() = default;
    Middleware(const Middleware &) = delete;
    Middleware &operator=(const Middleware &) = delete;
    virtual ~Middleware() = default;

    /// Before the callable. False, or what it throws, refuses the attempt: it fails.
    virtual bool before(Attempt &attempt) {
        (void)attempt;
        return true;
    }
    /// After the callable, if it was not refused before, whatever came of it.
    virtual void after(const Attempt &attempt) { (void)attempt; }
    /// Before that, if the attempt has failed, with what() of what was thrown.
    virtual void on_error(const Attempt &attempt, const char *message) { (void)attempt, (void)message; }
};

/// How the number of active threads follows how long tasks wait: see pace_workers_config_t.
struct Scaling {
    std::uint32_t min_active{1};
    Duration high{std::chrono::milliseconds(2)};
    Duration low{std::chrono::microseconds(200)};
    Duration period{std::chrono::milliseconds(20)};
    std::uint32_t percentile{95};
    std::uint32_t patience{10};
};

/// Settings of a worker pool. What is not set is as `settings` has it, a file of settings (JSON or YAML, by
/// its name), over which variables PACELINE_WORKERS_… win if `environment`; and then as paceline.h has it.
struct WorkersConfig {
    std::string settings{};
    bool environment = false;
    /// What its figures are labelled with.
    std::string name{};
    std::optional<std::uint32_t> max_waiting{};
    std::optional<std::uint32_t> max_pulled{};
    std::optional<std::uint32_t> max_tasks{};
    std::optional<std::uint32_t> max_droppable{};
    std::optional<std::uint64_t> seed{};
    std::optional<Scaling> scaling{};
    /// Count for WorkerPool::metrics().
    bool metrics = false;
    std::optional<OverloadPolicy> full{};
    /// The first is the outermost.
    std::vector<std::shared_ptr<Middleware>> middleware{};
    /// The log of its tasks in place of the pool's. Each end of a task is a record then, at the level debug:
    /// see pace_workers_config_t.
    Log log{};
};

namespace detail {

/// A text of figures, which may take more digits when it is asked for again.
template <class F>
Result<std::string> figures_of(F &&ask) {
    std::string text;
    std::size_t needed = 0;
    for (;;) {
        const pace_status_t status = ask(text.data(), text.size(), &needed);
        if (status == PACE_OK) {
            text.resize(needed - 1);
            return text;
        }
        if (status != PACE_EFULL) {
            return Error::last(status);
        }
        text.resize(needed + needed / 8);
    }
}

struct MiddlewareBox {
    using Owned = std::shared_ptr<Middleware>;

    static void before(void *data, pace_attempt_t *raw, std::int32_t *outcome) noexcept {
        bool passes = false;
        (void)guard_attempt(raw, [&] {
            Attempt attempt(raw);
            passes = (*static_cast<Owned *>(data))->before(attempt);
        });
        *outcome = passes ? PACE_OK : PACE_EFAILED;
    }
    static void after(void *data, const pace_attempt_t *raw) noexcept {
        const Attempt attempt(const_cast<pace_attempt_t *>(raw));
        (void)guard([&] { (*static_cast<Owned *>(data))->after(attempt); });
    }
    static void on_error(void *data, const pace_attempt_t *raw, std::int32_t,
                         const char *message) noexcept {
        const Attempt attempt(const_cast<pace_attempt_t *>(raw));
        (void)guard([&] { (*static_cast<Owned *>(data))->on_error(attempt, message); });
    }
};

} // namespace detail

/// The text format of metrics that a request wants most, for WorkerPool::metrics() and Hub::metrics(), and its
/// media type, which is to be sent as Content-Type: a collector may take the text for another format without.
///
///     const auto accept = request.header("accept");
///     const auto wanted = MetricsFormat::negotiate(accept ? std::string(*accept) : "");
///     response.header("Content-Type", wanted.media_type).send(*workers.metrics(wanted.format));
struct MetricsFormat {
    /// PACE_METRICS_PROMETHEUS (0.0.4) or PACE_METRICS_OPENMETRICS.
    std::uint32_t format;
    const char *media_type;

    /// For the Accept header of the request; empty: it has none, which gives PACE_METRICS_PROMETHEUS. So does
    /// one that is not UTF-8.
    static MetricsFormat negotiate(const std::string &accept) noexcept {
        MetricsFormat wanted{};
        if (pace_metrics_format(accept.c_str(), &wanted.format, &wanted.media_type) != PACE_OK) {
            (void)pace_metrics_format(nullptr, &wanted.format, &wanted.media_type);
        }
        return wanted;
    }
};

/// A figure of a program's own, beside a worker pool's. Copies are the same figure.
class Metric {
public:
    /// PACE_METRIC_: what it is.
    enum class Kind : std::uint32_t {
        Counter = PACE_METRIC_COUNTER,
        Gauge = PACE_METRIC_GAUGE,
        Times = PACE_METRIC_TIMES,
        Bytes = PACE_METRIC_BYTES,
        Numbers = PACE_METRIC_NUMBERS,
    };

    /// For a counter: so many more.
    Result<void> count(std::uint64_t count = 1) const {
        return detail::outcome(pace_metric_count(raw_.get(), count));
    }
    /// For a gauge: it is this now.
    Result<void> set(double value) const { return detail::outcome(pace_metric_set(raw_.get(), value)); }
    /// For a gauge: it is so much more, or less.
    Result<void> change(double difference) const {
        return detail::outcome(pace_metric_change(raw_.get(), difference));
    }
    /// For a distribution: one value of it.
    Result<void> record(std::uint64_t value) const {
        return detail::outcome(pace_metric_record(raw_.get(), value));
    }
    /// For one of times.
    Result<void> record(Duration time) const { return record(detail::nanos(time)); }

private:
    friend class WorkerPool;

    Metric(pace_metric_t *raw, detail::SharedWorkers core)
        // The figure is freed before what it belongs to.
        : raw_(raw, [core = std::move(core)](pace_metric_t *metric) { pace_metric_free(metric); }) {}

    std::shared_ptr<pace_metric_t> raw_;
};

/// How long each phase of a worker pool's shutdown may take.
struct Phases {
    Duration drain{std::chrono::seconds(30)};
    Duration stop{std::chrono::seconds(5)};
    Duration clean_up{std::chrono::seconds(5)};
};

/// A line of a shutdown's report: what is PACE_ENDED_.
struct Ended {
    std::uint32_t what{};
    std::string name{};
    std::uint64_t count{};
    /// The thread that a stuck one holds.
    std::optional<std::uint32_t> thread{};
};

/// How the shutdown of a worker pool went.
struct WorkersReport {
    bool drained{};
    bool requested{};
    std::uint64_t completed{}, cancelled{};
    std::uint32_t stuck{}, failed_hooks{};
    std::vector<Ended> lines{};
};

/// Tasks with names, priorities, retries and limits, on a pool's threads. When it goes it is not shut
/// down: its tasks go on until the pool stops.
class [[nodiscard]] WorkerPool {
public:
    /// Makes one with what pace_workers_config_init() says, changed by `change(pace_workers_config_t &)`.
    template <class F, class = std::enable_if_t<std::is_invocable_v<F &, pace_workers_config_t &>>>
    static Result<WorkerPool> create(const Pool &pool, F &&change) {
        pace_workers_config_t config{};
        (void)pace_workers_config_init(&config, sizeof config);
        std::forward<F>(change)(config);
        return from_native(pool, config);
    }
    static Result<WorkerPool> create(const Pool &pool, const WorkersConfig &settings = {}) {
        pace_workers_config_t config{};
        (void)pace_workers_config_init(&config, sizeof config);
        if (!settings.settings.empty() || settings.environment) {
            const char *path = settings.settings.empty() ? nullptr : settings.settings.c_str();
            const pace_status_t status = pace_workers_config_load(&config, path, settings.environment);
            if (status != PACE_OK) {
                return Error::last(status);
            }
        }
        config.name = settings.name.empty() ? nullptr : settings.name.c_str();
        config.max_waiting = settings.max_waiting.value_or(config.max_waiting);
        config.max_pulled = settings.max_pulled.value_or(config.max_pulled);
        config.max_tasks = settings.max_tasks.value_or(config.max_tasks);
        config.max_droppable = settings.max_droppable.value_or(config.max_droppable);
        config.seed = settings.seed.value_or(config.seed);
        config.metrics = settings.metrics;
        if (settings.scaling) {
            config.scaling = true;
            config.min_active = settings.scaling->min_active;
            config.scaling_high_ns = detail::nanos(settings.scaling->high);
            config.scaling_low_ns = detail::nanos(settings.scaling->low);
            config.scaling_period_ns = detail::nanos(settings.scaling->period);
            config.scaling_percentile = settings.scaling->percentile;
            config.scaling_patience = settings.scaling->patience;
        }
        if (settings.full) {
            settings.full->fill(config);
        }
        config.log = settings.log.native();
        using Box = detail::MiddlewareBox;
        std::vector<std::unique_ptr<Box::Owned>> boxes;
        std::vector<pace_middleware_t> raw;
        for (const auto &each : settings.middleware) {
            boxes.push_back(std::make_unique<Box::Owned>(each));
            raw.push_back({Box::before, Box::after, Box::on_error, boxes.back().get(),
                           detail::drop_box<Box::Owned>});
        }
        config.middleware = raw.data();
        config.middleware_count = static_cast<std::uint32_t>(raw.size());
        auto made = from_native(pool, config);
        if (made) {
            for (auto &box : boxes) {
                (void)box.release();
            }
        }
        return made;
    }

    WorkerPool(WorkerPool &&) noexcept = default;
    WorkerPool &operator=(WorkerPool &&) noexcept = default;

    /// A task type: a name and its settings. The same name with the same settings is the same type.
    Result<TaskType> task_type(const char *name, const TaskTypeConfig &settings = {}) const {
        pace_task_type_config_t raw{};
        (void)pace_task_type_config_init(&raw, sizeof raw);
        const auto limit = [](Duration time) {
            return time == forever ? PACE_FOREVER : detail::limit_nanos(time);
        };
        raw.lane = static_cast<std::uint32_t>(settings.lane);
        if (settings.retry) {
            raw.retry = settings.retry->native();
        }
        raw.timeout_ns = limit(settings.timeout);
        raw.queue_timeout_ns = limit(settings.queue_timeout);
        raw.deadline_ns = limit(settings.deadline);
        if (settings.retry_budget) {
            raw.retry_budget = true;
            raw.budget_ratio = settings.retry_budget->ratio;
            raw.budget_per_second = settings.retry_budget->per_second;
            raw.budget_burst = settings.retry_budget->burst;
        }
        if (settings.rate) {
            raw.rate_starts = settings.rate->starts;
            raw.rate_per_ns = detail::nanos(settings.rate->per);
            raw.rate_burst = settings.rate->burst;
        }
        raw.max_running = settings.max_running;
        raw.soft_timeout_ns = limit(settings.soft_timeout);
        raw.grace_ns = detail::limit_nanos(settings.grace);
        if (settings.full) {
            settings.full->fill(raw);
        }
        raw.overlap_retries = settings.overlap_retries;
        raw.lease_ns = limit(settings.lease);
        pace_task_type_t *kind = nullptr;
        const pace_status_t status = pace_task_type_new(native(), name, &raw, &kind);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return TaskType(kind, core_);
    }

    /// Has `f()` called at the end of a shutdown, the last one that was registered first.
    template <class F>
    Result<void> on_shutdown(const char *name, F &&f) const {
        using D = std::decay_t<F>;
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_workers_on_shutdown(
            native(), name,
            [](void *data) noexcept { (void)detail::guard([&] { (*static_cast<D *>(data))(); }); },
            box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Refuses new tasks, lets what was accepted end, cancels the rest, runs the hooks. Inside the pool
    /// it is a request.
    Result<WorkersReport> shutdown(const Phases &phases = {}) const {
        WorkersReport report;
        pace_workers_report_t raw{};
        raw.struct_size = sizeof raw;
        detail::Rows<Ended> rows;
        const auto each = [](void *data, std::uint32_t what, const char *name, std::uint64_t count,
                             std::uint32_t thread) noexcept {
            detail::Rows<Ended>::add(data, [&] {
                Ended line{what, name, count, {}};
                if (thread != PACE_NONE) {
                    line.thread = thread;
                }
                return line;
            });
        };
        auto lines = rows.taken(
            pace_workers_shutdown(native(), detail::nanos(phases.drain), detail::nanos(phases.stop),
                                  detail::nanos(phases.clean_up), &raw, each, &rows));
        if (!lines) {
            return lines.error();
        }
        report.lines = *std::move(lines);
        report.drained = raw.drained;
        report.requested = raw.requested;
        report.completed = raw.completed;
        report.cancelled = raw.cancelled;
        report.stuck = raw.stuck;
        report.failed_hooks = raw.failed_hooks;
        return report;
    }

    /// Waits for attempts of tasks that have no callable, and for ends; says how many came.
    Result<std::size_t> pull(span<pace_task_event_t> events, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_workers_pull(native(), events.data(), events.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<std::size_t>(count) : Result<std::size_t>(Error::last(status));
    }
    /// Completes attempts; each says in its `result` and `status` what came of it.
    Result<void> complete(span<pace_attempt_end_t> ends) const {
        return detail::outcome(pace_workers_complete(native(), ends.data(), ends.size()));
    }
    /// Whether an attempt that is out should be given up.
    Result<bool> is_cancelled(std::uint64_t attempt) const {
        bool cancelled = false;
        const pace_status_t status = pace_workers_is_cancelled(native(), attempt, &cancelled);
        return status == PACE_OK ? Result<bool>(cancelled) : Result<bool>(Error::last(status));
    }
    /// An attempt that is out still makes progress.
    Result<void> heartbeat(std::uint64_t attempt) const {
        return detail::outcome(pace_workers_heartbeat(native(), attempt));
    }
    /// A descriptor, readable while a pull would not wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_workers_pollable(native(), &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }

    /// The books. Fields as in paceline.h.
    Result<pace_workers_audit_t> audit() const {
        pace_workers_audit_t audit{};
        audit.struct_size = sizeof audit;
        const pace_status_t status = pace_workers_audit(native(), &audit);
        return status == PACE_OK ? Result<pace_workers_audit_t>(audit)
                                 : Result<pace_workers_audit_t>(Error::last(status));
    }
    /// How it is, with what is left of it. Fields as in paceline.h.
    Result<pace_health_t> health() const {
        pace_health_t health{};
        health.struct_size = sizeof health;
        const pace_status_t status = pace_workers_health(native(), &health);
        return status == PACE_OK ? Result<pace_health_t>(health)
                                 : Result<pace_health_t>(Error::last(status));
    }
    /// Figures as text, PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS, if its `metrics`
    /// was set. To serve them, see MetricsFormat.
    Result<std::string> metrics(std::uint32_t format) const {
        return detail::figures_of([&](char *text, std::size_t size, std::size_t *needed) {
            return pace_workers_metrics(native(), format, text, size, needed);
        });
    }

    /// A figure of the program's own, if its `metrics` was set: metrics() tells it from then on. With the
    /// same name and labels it is the same. Code::Invalid for a name that is none or is taken.
    Result<Metric> metric(Metric::Kind kind, const std::string &name, const std::string &help,
                          const std::vector<std::pair<std::string, std::string>> &labels = {}) const {
        std::vector<pace_label_t> raw;
        for (const auto &[label, value] : labels) {
            raw.push_back({label.c_str(), value.c_str()});
        }
        pace_metric_t *made = nullptr;
        const pace_status_t status =
            pace_workers_metric(native(), static_cast<std::uint32_t>(kind), name.c_str(), help.c_str(),
                                raw.data(), raw.size(), &made);
        return status == PACE_OK ? Result<Metric>(Metric(made, core_))
                                 : Result<Metric>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the WorkerPool's.
    pace_workers_t *native() const noexcept { return core_ ? core_->workers : nullptr; }

private:
    explicit WorkerPool(detail::SharedWorkers core) noexcept : core_(std::move(core)) {}

    static Result<WorkerPool> from_native(const Pool &pool, const pace_workers_config_t &config) {
        pace_workers_t *workers = nullptr;
        const pace_status_t status = pace_workers_new(pool.native(), &config, &workers);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return WorkerPool(std::make_shared<const detail::WorkersCore>(pool.core_, workers));
    }

    detail::SharedWorkers core_;
};

// ---- the event hub -------------------------------------------------------------------------------

/// Which messages of a mailbox that regards it are delivered first.
enum class Priority : std::int32_t {
    Low = PACE_PRIORITY_LOW,
    Normal = PACE_PRIORITY_NORMAL,
    High = PACE_PRIORITY_HIGH,
    Critical = PACE_PRIORITY_CRITICAL,
};

/// Where a subscription's handler runs.
enum class Execution : std::uint32_t {
    /// On the pool, never on two threads at once, in the order of its mailbox.
    Serial = PACE_EXECUTION_SERIAL,
    /// In the publisher's thread, before publishing returns, with no mailbox.
    Inline = PACE_EXECUTION_INLINE,
    /// On up to SubscriptionConfig::threads threads of the pool at once.
    Concurrent = PACE_EXECUTION_CONCURRENT,
    /// On the pool, one at a time with all others of its hub that have this, in one order over all keys.
    Strand = PACE_EXECUTION_STRAND,
};

/// What happens to a message for a mailbox that is full.
enum class Overflow : std::uint32_t {
    Reject = PACE_OVERFLOW_REJECT,
    DropNewest = PACE_OVERFLOW_DROP_NEWEST,
    DropOldest = PACE_OVERFLOW_DROP_OLDEST,
    Conflate = PACE_OVERFLOW_CONFLATE,
    Block = PACE_OVERFLOW_BLOCK,
    Default = PACE_OVERFLOW_DEFAULT,
};

/// How to unsubscribe.
enum class Unsubscribe : std::uint32_t {
    Async = PACE_UNSUBSCRIBE_ASYNC,
    Drain = PACE_UNSUBSCRIBE_DRAIN,
    Sync = PACE_UNSUBSCRIBE_SYNC,
};

/// What becomes of a message that its handler has failed at for good.
enum class OnExhausted : std::uint32_t {
    DeadLetter = PACE_ON_EXHAUSTED_DEAD_LETTER,
    Discard = PACE_ON_EXHAUSTED_DISCARD,
};

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

    /// Nothing suspends.
    static Intensity unlimited() noexcept { return Intensity{PACE_UNLIMITED32, nanoseconds(1)}; }
    /// A suspension lasts until resume().
    Intensity &set_suspend_for_good() noexcept { return suspension = forever, *this; }
    /// How long suspensions last.
    Intensity &set_suspension(Duration first, Duration longest) noexcept {
        return suspension = first, longest_suspension = longest, *this;
    }
};

/// Whom a failure restarts: the handler that failed, or all of its supervisor.
enum class RestartStrategy : std::uint32_t {
    OneForOne = PACE_RESTART_ONE_FOR_ONE,
    OneForAll = PACE_RESTART_ONE_FOR_ALL,
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
    static Balance by_header(std::string name) {
        return Balance(PACE_BALANCE_BY_HEADER, std::move(name));
    }

private:
    friend struct SubscriptionConfig;
    explicit Balance(std::uint32_t kind, std::string header = {}, std::uint64_t seed = 0)
        : kind_(kind), header_(std::move(header)), seed_(seed) {}

    std::uint32_t kind_;
    std::string header_;
    std::uint64_t seed_;
};

struct Message;

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
    static Result<MessageFilter> header(const char *name, const char *value) {
        pace_message_filter_t *raw = nullptr;
        return made(pace_message_filter_header(name, value, &raw), raw);
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

/// Settings of a subscription.
struct SubscriptionConfig {
    Execution execution = Execution::Serial;
    /// For Execution::Concurrent: 1 to 1024.
    std::uint32_t threads = 1;
    /// How many messages may wait, 1 to 2^24.
    std::uint64_t capacity = 1024;
    /// What happens to a message for a full mailbox. By default nothing is lost unseen: publishers wait for room in the
    /// mailbox of a handler, and where they may not wait, publishing fails with Code::Full; a mailbox that is pulled
    /// refuses.
    Overflow overflow = Overflow::Default;
    /// For Overflow::Block: how long a publisher waits at most.
    Duration block{forever};
    /// For mailboxes: the subscription ends when nobody has pulled for so long, at least 1 ms.
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
    /// Measures how long messages take from publishing to the handler, or to who pulls them: the latencies of
    /// SubscriptionStats. Each thread that serves it takes 43 KB for that.
    bool measured = false;

    SubscriptionConfig &set_measured(bool value) { return measured = value, *this; }
    SubscriptionConfig &set_on_failure(OnExhausted value, std::optional<Retry> before = {}) {
        return on_exhausted = value, retry = before, *this;
    }
    SubscriptionConfig &set_intensity(Intensity value) { return intensity = value, *this; }
    SubscriptionConfig &set_supervisor(Supervisor value) { return supervisor = std::move(value), *this; }
    SubscriptionConfig &set_filter(MessageFilter value) { return filter = std::move(value), *this; }
    SubscriptionConfig &set_group(std::string name, Balance how = Balance::round_robin()) {
        return group = std::move(name), balance = std::move(how), *this;
    }
    SubscriptionConfig &set_execution(Execution value, std::uint32_t on_threads = 1) {
        return execution = value, threads = on_threads, *this;
    }
    SubscriptionConfig &set_capacity(std::uint64_t value) { return capacity = value, *this; }
    SubscriptionConfig &set_overflow(Overflow value, Duration wait = forever) {
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
        raw.group = group.empty() ? nullptr : group.c_str();
        raw.balance = balance.kind_;
        raw.balance_header = balance.header_.c_str();
        raw.balance_seed = balance.seed_;
        raw.measured = measured;
        return raw;
    }
};

/// What a publisher is told. Fields as in pace_receipt_t.
struct [[nodiscard]] Receipt : pace_receipt_t {
    Receipt() noexcept : pace_receipt_t{} { struct_size = sizeof(pace_receipt_t); }
    /// Whether everybody who matched will get it.
    bool is_complete() const noexcept { return enqueued == matched; }
};

/// The counts of a subscription. Fields as in pace_subscription_stats_t.
struct SubscriptionStats : pace_subscription_stats_t {
    SubscriptionStats() noexcept : pace_subscription_stats_t{} {
        struct_size = sizeof(pace_subscription_stats_t);
    }
};

/// The books of a hub. Fields as in pace_hub_audit_t.
struct HubAudit : pace_hub_audit_t {
    HubAudit() noexcept : pace_hub_audit_t{} { struct_size = sizeof(pace_hub_audit_t); }
};

/// A message, lent: to a handler until it returns, to the thread that pulled it until that pulls again.
/// Fields as in pace_message_t.
struct Message : pace_message_t {
    std::string_view key_text() const noexcept { return view(key); }
    /// Its bytes.
    std::string_view text() const noexcept { return {static_cast<const char *>(payload), size}; }
    /// The value of the first header of this name.
    std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (std::size_t i = 0; i < header_count; ++i) {
            if (view(headers[i].name) == name) {
                return view(headers[i].value);
            }
        }
        return std::nullopt;
    }

    static std::string_view view(pace_text_t text) noexcept {
        return text.size == 0 ? std::string_view() : std::string_view(text.text, text.size);
    }
};
static_assert(sizeof(Message) == sizeof(pace_message_t), "arrays of one are arrays of the other");

template <class F>
Result<MessageFilter> MessageFilter::test(F &&says) {
    using D = std::decay_t<F>;
    static_assert(std::is_invocable_r_v<bool, D &, const Message &>, "a test is bool(const Message &)");
    auto box = detail::boxed(std::forward<F>(says));
    const auto ask = [](void *data, const pace_message_t *raw) noexcept -> std::int32_t {
        std::int32_t passes = -1;
        (void)detail::guard([&] { passes = (*static_cast<D *>(data))(Message{*raw}) ? 1 : 0; });
        return passes;
    };
    pace_message_filter_t *raw = nullptr;
    const pace_status_t status = pace_message_filter_test(ask, box.get(), detail::drop_box<D>, &raw);
    if (status == PACE_OK) {
        (void)box.release();
    }
    return made(status, raw);
}

/// A message that a subscription could not deal with. Fields as in pace_dead_letter_t, without what is
/// lent; see Hub::dead_letters().
struct DeadLetter {
    std::string key{}, payload{}, failure{}, pattern{};
    std::vector<std::pair<std::string, std::string>> headers{};
    std::uint64_t number{}, sequence{}, subscription{}, time_ns{}, died_ns{};
    /// PACE_DEAD_.
    std::uint32_t reason{};
    std::uint32_t attempts{};
};

/// A message that a history has kept: a copy.
struct Record {
    std::string key{}, payload{};
    std::vector<std::pair<std::string, std::string>> headers{};
    std::uint64_t sequence{}, time_ns{};
    Priority priority{};
};

/// Which messages of a history are asked for; what is zero is not asked about.
struct Query {
    std::string pattern{">"};
    /// Sequences and times (Duration since 1970), the ends included.
    std::uint64_t first{}, last{}, since_ns{}, until_ns{};
    /// At most so many, the oldest, or the newest.
    std::uint64_t limit{};
    bool newest{};

    pace_query_t native() const noexcept {
        pace_query_t raw{};
        raw.struct_size = sizeof raw;
        raw.newest = newest;
        raw.pattern = pattern.c_str();
        raw.first = first;
        raw.last = last;
        raw.since_ns = since_ns;
        raw.until_ns = until_ns;
        raw.limit = limit;
        return raw;
    }
};

/// What a history has done. Fields as in pace_history_stats_t, copied.
struct HistoryStats {
    std::string pattern{}, last_error{}, last_read_error{}, last_lines_error{};
    std::uint64_t recorded{}, in_memory{}, memory_bytes{}, waiting{}, commits{}, given_up{}, errors{},
        read_errors{}, durable{}, lines_lost{};
};

/// What a hub keeps of the messages that a pattern matches. Without a limit it has none.
struct HistoryConfig {
    std::string pattern{">"};
    std::optional<std::uint64_t> keep_count{1024}, keep_bytes{};
    std::optional<Duration> keep_age{};
    /// A file of SQLite, and not ":memory:". Code::Unsupported if the library was built without the feature `archive`.
    std::string archive{};
    std::optional<std::uint64_t> archive_count{}, archive_bytes{};
    std::optional<Duration> archive_age{};
    /// A commit counts when the file was written, and not only when the disk has it.
    bool process_only = false;
    /// Reads the whole archive when it is opened.
    bool check = false;
    /// A file of lines of JSON. Several histories may write one. It may be a device, as that of a Log, and is no pipe.
    std::string lines{};
    /// Where there is no room publishers write to the disk themselves, or wait for so long, and their publication is
    /// refused then: Code::Full. On threads of the pool it is refused at once if the disk fails. Without it
    /// (std::nullopt) they never wait, and the archive goes without the oldest: flush() fails then, and says how many.
    std::optional<Duration> disk_wait{std::chrono::seconds(10)};

    HistoryConfig &set_pattern(std::string value) { return pattern = std::move(value), *this; }
    HistoryConfig &set_keep_count(std::uint64_t value) { return keep_count = value, *this; }
    HistoryConfig &set_keep_bytes(std::uint64_t value) { return keep_bytes = value, *this; }
    HistoryConfig &set_keep_age(Duration value) { return keep_age = value, *this; }
    HistoryConfig &set_archive(std::string path) { return archive = std::move(path), *this; }
    HistoryConfig &set_lines(std::string path) { return lines = std::move(path), *this; }

    pace_history_options_t native() const noexcept {
        pace_history_options_t raw{};
        (void)pace_history_options_init(&raw, sizeof raw);
        const auto age = [](const std::optional<Duration> &value) {
            return value ? detail::nanos(*value) : PACE_UNLIMITED;
        };
        raw.pattern = pattern.c_str();
        raw.keep_count = keep_count.value_or(PACE_UNLIMITED);
        raw.keep_bytes = keep_bytes.value_or(PACE_UNLIMITED);
        raw.keep_age_ns = age(keep_age);
        raw.archive = archive.empty() ? nullptr : archive.c_str();
        raw.archive_count = archive_count.value_or(PACE_UNLIMITED);
        raw.archive_bytes = archive_bytes.value_or(PACE_UNLIMITED);
        raw.archive_age_ns = age(archive_age);
        raw.lines = lines.empty() ? nullptr : lines.c_str();
        raw.process_only = process_only;
        raw.check = check;
        raw.when_full = disk_wait ? PACE_DISK_WAIT : PACE_DISK_GIVE_UP;
        raw.disk_wait_ns = disk_wait ? detail::nanos(*disk_wait) : 0;
        return raw;
    }
};

/// Settings of a hub.
struct HubConfig {
    /// The largest payload, 1 byte to 1 GiB.
    std::uint64_t max_payload = std::uint64_t{16} << 20;
    /// How many dead letters are kept, 1 to 10,000,000.
    std::uint64_t dead_letters = 10000;
    /// Up to 31.
    std::vector<HistoryConfig> histories{};
    /// The label `hub` of its figures.
    std::string name{"main"};
    /// How many errors are kept for Hub::errors(), 1 to 1,000,000.
    std::uint64_t errors = 1024;
    /// How often losses of the same kind are told under $SYS., 1 ms to 1 hour.
    Duration notice_interval = std::chrono::seconds(1);
    /// Of so many keys, up to 1,000,000, it is counted how often each was published.
    std::uint64_t count_keys = 0;

    HubConfig &set_name(std::string value) { return name = std::move(value), *this; }
    HubConfig &set_errors(std::uint64_t value) { return errors = value, *this; }
    HubConfig &set_notice_interval(Duration value) { return notice_interval = value, *this; }
    HubConfig &set_count_keys(std::uint64_t value) { return count_keys = value, *this; }
    HubConfig &set_max_payload(std::uint64_t value) { return max_payload = value, *this; }
    HubConfig &set_dead_letters(std::uint64_t value) { return dead_letters = value, *this; }
    HubConfig &add_history(HistoryConfig value) { return histories.push_back(std::move(value)), *this; }
};

/// Where a replay begins.
class ReplayFrom {
public:
    static ReplayFrom beginning() noexcept { return {PACE_REPLAY_BEGINNING, 0}; }
    static ReplayFrom sequence(std::uint64_t number) noexcept { return {PACE_REPLAY_SEQUENCE, number}; }
    static ReplayFrom time(detail::SystemTime time) noexcept {
        return {PACE_REPLAY_TIME, time.nanos_since_1970};
    }
    /// With the last so many messages that are kept.
    static ReplayFrom last(std::uint64_t messages) noexcept { return {PACE_REPLAY_LAST, messages}; }
    static ReplayFrom now() noexcept { return {PACE_REPLAY_NOW, 0}; }

private:
    friend class Hub;
    ReplayFrom(std::uint32_t from, std::uint64_t at) noexcept : from_(from), at_(at) {}

    std::uint32_t from_;
    std::uint64_t at_;
};

/// How a replay is supervised: what becomes of messages that its handler fails at, and of the handler.
struct ReplayConfig {
    /// How a message that the handler fails at is tried again, and what then becomes of it.
    std::optional<Retry> retry{};
    OnExhausted on_exhausted = OnExhausted::DeadLetter;
    /// More restarts suspend it for a while. Without one: 3 in 5 seconds.
    std::optional<Intensity> intensity{};
    /// Restarts it together with others, in place of an intensity of its own.
    std::optional<Supervisor> supervisor{};

    ReplayConfig &set_on_failure(OnExhausted value, std::optional<Retry> before = {}) {
        return on_exhausted = value, retry = before, *this;
    }
    ReplayConfig &set_intensity(Intensity value) { return intensity = value, *this; }
    ReplayConfig &set_supervisor(Supervisor value) { return supervisor = std::move(value), *this; }

    pace_replay_options_t native() const noexcept {
        pace_replay_options_t raw{};
        (void)pace_replay_options_init(&raw, sizeof raw);
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
        return raw;
    }
};

/// The counts of a replay. Fields as in pace_replay_stats_t.
struct ReplayStats : pace_replay_stats_t {
    ReplayStats() noexcept : pace_replay_stats_t{} { struct_size = sizeof(pace_replay_stats_t); }
};

/// Which dead letters: those that all conditions hold for; what is zero or empty is not asked about.
struct DeadFilter {
    std::string pattern{};
    /// PACE_DEAD_.
    std::uint32_t reason{};
    std::uint64_t subscription{}, first{}, last{}, since_ns{};
    /// At most so many, the oldest.
    std::uint64_t limit{};

    pace_dead_filter_t native() const noexcept {
        pace_dead_filter_t raw{};
        raw.struct_size = sizeof raw;
        raw.reason = reason;
        raw.pattern = pattern.empty() ? nullptr : pattern.c_str();
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

/// How bad something is.
enum class Severity : std::uint32_t {
    Info = PACE_SEVERITY_INFO,
    Warning = PACE_SEVERITY_WARNING,
    Error = PACE_SEVERITY_ERROR,
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
    /// This bad, or worse.
    Severity severity = Severity::Info;
    /// What events and origins begin with.
    std::string event{}, origin{};
    /// Nanoseconds since 1970.
    std::uint64_t since_ns{};
    /// With greater numbers than this.
    std::uint64_t after{};
    /// At most so many, the latest.
    std::uint64_t limit{};

    pace_error_filter_t native() const noexcept {
        pace_error_filter_t raw{};
        raw.struct_size = sizeof raw;
        raw.severity = static_cast<std::uint32_t>(severity);
        raw.event = event.empty() ? nullptr : event.c_str();
        raw.origin = origin.empty() ? nullptr : origin.c_str();
        raw.since_ns = since_ns;
        raw.after = after;
        raw.limit = limit;
        return raw;
    }
};

/// What a hub has and has told. Fields as in pace_hub_stats_t.
struct HubStats : pace_hub_stats_t {
    HubStats() noexcept : pace_hub_stats_t{} { struct_size = sizeof(pace_hub_stats_t); }
};

/// A limit for a figure. Its name and labels are those of Hub::metrics().
class Threshold {
public:
    /// Crossed when the figure is above the limit.
    static Threshold above(std::string metric, double limit) {
        return Threshold(std::move(metric), limit, false);
    }
    /// Crossed when it is below.
    static Threshold below(std::string metric, double limit) {
        return Threshold(std::move(metric), limit, true);
    }

    /// Of the first figure that has this label, and the others that were given.
    Threshold &label(std::string name, std::string value) {
        return labels_.emplace_back(std::move(name), std::move(value)), *this;
    }
    /// Back when the figure is not beyond this, which lies before the limit.
    Threshold &back_at(double value) noexcept { return back_at_ = value, *this; }
    /// Looks at how much the figure grows in a second.
    Threshold &rate() noexcept { return part_ = PACE_THRESHOLD_RATE, *this; }
    /// Looks at this quantile of a distribution, 0 to 1.
    Threshold &quantile(double value) noexcept {
        return part_ = PACE_THRESHOLD_QUANTILE, quantile_ = value, *this;
    }
    Threshold &severity(Severity value) noexcept { return severity_ = value, *this; }

private:
    friend class Hub;
    Threshold(std::string metric, double limit, bool below)
        : metric_(std::move(metric)), limit_(limit), below_(below) {}

    pace_threshold_t native(std::vector<pace_label_t> &labels) const {
        pace_threshold_t raw{};
        (void)pace_threshold_init(&raw, sizeof raw);
        for (const auto &[name, value] : labels_) {
            labels.push_back({name.c_str(), value.c_str()});
        }
        raw.part = part_;
        raw.severity = static_cast<std::uint32_t>(severity_);
        raw.below = below_;
        raw.metric = metric_.c_str();
        raw.labels = labels.data();
        raw.label_count = labels.size();
        raw.limit = limit_;
        raw.back_at = back_at_.value_or(limit_);
        raw.quantile = quantile_;
        return raw;
    }

    std::string metric_;
    std::vector<std::pair<std::string, std::string>> labels_{};
    double limit_;
    std::optional<double> back_at_{};
    double quantile_ = 0;
    std::uint32_t part_ = PACE_THRESHOLD_NUMBER;
    Severity severity_ = Severity::Warning;
    bool below_;
};

/// A threshold was crossed, or its figure is back.
struct Crossing {
    /// As people read it. It lives as long as the call.
    std::string_view message{};
    double figure{};
    /// Which of the thresholds: 0 for the first.
    std::size_t threshold{};
    Severity severity{};
    /// False: back.
    bool crossed{};
};

/// Thresholds that are watched, until this goes: the destructor returns when its callable does not run and has been
/// deleted. Inside a handler, and on a thread of the pool, it does not wait.
class [[nodiscard]] Watch {
public:
    /// How often it has looked, and how many thresholds are crossed now.
    Result<pace_watch_stats_t> stats() const {
        pace_watch_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_watch_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<pace_watch_stats_t>(stats)
                                 : Result<pace_watch_stats_t>(Error::last(status));
    }

private:
    friend class Hub;
    explicit Watch(pace_watch_t *raw) : raw_(raw, &pace_watch_free) {}

    std::unique_ptr<pace_watch_t, void (*)(pace_watch_t *)> raw_;
};

/// The counts of a publisher. Fields as in pace_publisher_stats_t.
struct PublisherStats : pace_publisher_stats_t {
    PublisherStats() noexcept : pace_publisher_stats_t{} {
        struct_size = sizeof(pace_publisher_stats_t);
    }
};

/// What is published beside a payload.
struct Publication {
    Priority priority = Priority::Normal;
    std::vector<std::pair<std::string, std::string>> headers{};
    /// Does not wait for room in mailboxes that let publishers wait: they refuse. For threads that must not be held up,
    /// as those of an event loop.
    bool no_wait = false;

    Publication &set_priority(Priority value) { return priority = value, *this; }
    Publication &add_header(std::string name, std::string value) {
        return headers.emplace_back(std::move(name), std::move(value)), *this;
    }
    Publication &set_no_wait(bool value = true) { return no_wait = value, *this; }
};

namespace detail {

struct HubCore {
    SharedCore pool;
    pace_hub_t *hub;

    HubCore(SharedCore the_pool, pace_hub_t *the_hub) noexcept
        : pool(std::move(the_pool)), hub(the_hub) {}
    HubCore(const HubCore &) = delete;
    HubCore &operator=(const HubCore &) = delete;
    ~HubCore() { pace_hub_free(hub); }
};

/// What is published beside a payload, as C has it. It points into the Publication.
struct RawPublication {
    explicit RawPublication(const Publication &with) {
        (void)pace_publication_init(&raw, sizeof raw);
        for (const auto &[name, value] : with.headers) {
            headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
        }
        raw.priority = static_cast<std::int32_t>(with.priority);
        raw.headers = headers.data();
        raw.header_count = headers.size();
        flags = with.no_wait ? PACE_PUBLISH_NO_WAIT : 0;
    }
    RawPublication(const RawPublication &) = delete;
    RawPublication &operator=(const RawPublication &) = delete;

    std::vector<pace_field_t> headers{};
    pace_publication_t raw{};
    std::uint32_t flags{};
};

inline std::vector<std::pair<std::string, std::string>> headers_of(const pace_message_t &message) {
    std::vector<std::pair<std::string, std::string>> headers;
    for (std::size_t i = 0; i < message.header_count; ++i) {
        headers.emplace_back(Message::view(message.headers[i].name),
                             Message::view(message.headers[i].value));
    }
    return headers;
}

inline void collect_record(void *data, const pace_message_t *raw) noexcept {
    Rows<Record>::add(data, [&] {
        const Message message{*raw};
        return Record{std::string(message.key_text()),
                      std::string(message.text()),
                      headers_of(*raw),
                      raw->sequence,
                      raw->time_ns,
                      static_cast<Priority>(raw->priority)};
    });
}

inline void collect_history(void *data, const pace_history_stats_t *raw) noexcept {
    Rows<HistoryStats>::add(data, [&] {
        HistoryStats stats;
        stats.pattern = Message::view(raw->pattern);
        stats.last_error = Message::view(raw->last_error);
        stats.last_read_error = Message::view(raw->last_read_error);
        stats.last_lines_error = Message::view(raw->last_lines_error);
        stats.recorded = raw->recorded;
        stats.in_memory = raw->in_memory;
        stats.memory_bytes = raw->memory_bytes;
        stats.waiting = raw->waiting;
        stats.commits = raw->commits;
        stats.given_up = raw->given_up;
        stats.errors = raw->errors;
        stats.read_errors = raw->read_errors;
        stats.durable = raw->durable;
        stats.lines_lost = raw->lines_lost;
        return stats;
    });
}

inline void collect_letter(void *data, const pace_dead_letter_t *raw) noexcept {
    Rows<DeadLetter>::add(data, [&] {
        DeadLetter letter;
        const Message message{raw->message};
        letter.key = message.key_text();
        letter.payload = message.text();
        letter.failure = Message::view(raw->failure);
        letter.pattern = Message::view(raw->pattern);
        letter.headers = headers_of(message);
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

/// Tells of a crossing: void(const Crossing &).
template <class F>
void tell_crossing(void *data, const pace_crossing_t *raw) noexcept {
    (void)guard([&] {
        Crossing crossing;
        crossing.message = Message::view(raw->message);
        crossing.figure = raw->figure;
        crossing.threshold = raw->threshold;
        crossing.severity = static_cast<Severity>(raw->severity);
        crossing.crossed = raw->crossed;
        (*static_cast<F *>(data))(static_cast<const Crossing &>(crossing));
    });
}

/// A handler with a function that is told of restarts.
template <class F, class R>
struct Supervised {
    F handler;
    R on_restart;

    decltype(auto) operator()(const Message &message) { return handler(message); }
};

template <class F, class R>
void restarted(void *data, pace_text_t failure, std::uint64_t count) noexcept {
    (void)guard(
        [&] { static_cast<Supervised<F, R> *>(data)->on_restart(Message::view(failure), count); });
}

/// A handler of messages: void(const Message &), or Result<void>(const Message &). What it throws is a failure of its
/// message if it is a std::exception, and else a crash of the handler.
template <class F>
void handle_message(void *data, const pace_message_t *raw, std::int32_t *outcome) noexcept {
    (void)contained(
        [&] {
            auto &handler = *static_cast<F *>(data);
            const Message message{*raw};
            if constexpr (std::is_same_v<std::invoke_result_t<F &, const Message &>, Result<void>>) {
                const Result<void> done = handler(message);
                if (!done) {
                    (void)pace_message_fail(done.error().message());
                    return;
                }
            } else {
                handler(message);
            }
            *outcome = PACE_OK;
        },
        [&] {
            // What is no std::exception is no way to fail at a message.
            if (!tell_what(pace_message_fail)) {
                *outcome = PACE_EPANIC;
            }
        });
}

/// Tells a function of the end of a request.
template <class D>
void tell_reply(void *data, pace_status_t status, const pace_message_t *reply) noexcept {
    (void)guard([&] {
        auto &on_reply = *static_cast<D *>(data);
        if (status == PACE_OK) {
            on_reply(Result<Message>(Message{*reply}));
        } else {
            on_reply(Result<Message>(Error(static_cast<Code>(status))));
        }
    });
}

} // namespace detail

/// Names a request whose function is still to be called; see Key::request_async() and Hub::give_up().
struct Asked {
    pace_asked_t raw{};
};

/// What became of a request; see Key::request_pulled().
struct Reply : pace_reply_t {
    Reply() noexcept : pace_reply_t{} {}
    /// The reply, which is lent as Replies::pull() says; Code::TimedOut; Code::Cancelled: the request was given
    /// up, or its hub has gone.
    Result<Message> result() const {
        return status == PACE_OK ? Result<Message>(Message{message})
                                 : Result<Message>(Error(static_cast<Code>(status)));
    }
};

/// Where replies wait to be pulled, for any number of requests. Made by Hub::replies().
class [[nodiscard]] Replies {
public:
    /// Waits for up to `time` for what has become of requests: the part of `rows` that was filled. Replies stay
    /// until this thread pulls or asks again. Code::TimedOut: nothing came; Code::WouldDeadlock on a thread of
    /// the pool.
    Result<span<Reply>> pull(span<Reply> rows, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_replies_pull(raw_.get(), rows.data(), rows.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<Reply>>(rows.first(count))
                                 : Result<span<Reply>>(Error::last(status));
    }
    /// A descriptor, readable while a pull would not wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_replies_pollable(raw_.get(), &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Replies'.
    const pace_replies_t *native() const noexcept { return raw_.get(); }

private:
    friend class Hub;
    explicit Replies(pace_replies_t *raw) : raw_(raw, &pace_replies_free) {}

    std::unique_ptr<pace_replies_t, void (*)(pace_replies_t *)> raw_;
};

/// A key of a hub that was looked up once: publishing with it is faster than with its text.
class [[nodiscard]] Key {
public:
    Key(Key &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Key &operator=(Key &&other) noexcept { return std::swap(raw_, other.raw_), *this; }
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
    /// Publishes a request, and waits for up to `time` for the reply of whoever is first, which stays until
    /// this thread asks or pulls again. Code::NoResponders: nobody subscribes; Code::Full: nobody has taken
    /// it; Code::TimedOut; Code::WouldDeadlock on a thread of the pool, if no other is left.
    Result<Message> request(std::string_view payload, Duration time,
                            const Publication &with = {}) const {
        const detail::RawPublication terms(with);
        Message reply{};
        const pace_status_t status = pace_key_request(raw_, &terms.raw, payload.data(), payload.size(),
                                                      detail::nanos(time), &reply);
        return status == PACE_OK ? Result<Message>(reply) : Result<Message>(Error::last(status));
    }
    /// As request(), and waits for nothing: a thread of the pool calls `on_reply`, void(Result<Message>), once,
    /// with the reply, which is lent until it returns, or Code::TimedOut. It may be called before this returns.
    /// `time` counts from now; paceline::forever: without an end. Not called if this is refused; nor if the request
    /// is given up, or its hub ends before a reply came: then it is deleted alone. What it throws is told as
    /// what a posted task throws. A std::promise in it makes a future.
    template <class F>
    Result<Asked> request_async(std::string_view payload, Duration time, F &&on_reply,
                                const Publication &with = {}) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, Result<Message>>,
                      "what is called with a reply is void(Result<Message>)");
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
    /// As request_async(), and what becomes of the request is pulled, once, with this token.
    Result<Asked> request_pulled(std::string_view payload, Duration time, const Replies &replies,
                                 std::uint64_t token, const Publication &with = {}) const {
        const detail::RawPublication terms(with);
        Asked asked;
        const pace_status_t status =
            pace_key_request_pulled(raw_, &terms.raw, payload.data(), payload.size(),
                                    detail::nanos(time), replies.native(), token, &asked.raw);
        return status == PACE_OK ? Result<Asked>(asked) : Result<Asked>(Error::last(status));
    }
    /// Publishes several messages in order. The receipt is the sum of theirs, as is that of Code::Full, which `told`
    /// gets. Any other error: none was.
    Result<Receipt> publish_batch(span<const std::string_view> payloads, Receipt *told = nullptr) const {
        const auto pieces = detail::pieces_of(payloads);
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

/// Settings of a publisher.
struct PublisherConfig {
    /// How many messages it may publish in which time.
    std::optional<Rate> quota{};
    /// Patterns of the keys that it may publish with. None: all keys.
    std::vector<std::string> allow{};
    /// Does not wait for room in mailboxes that let publishers wait: they refuse.
    bool no_wait = false;

    PublisherConfig &set_quota(Rate value) { return quota = value, *this; }
    PublisherConfig &add_allowed(std::string pattern) {
        return allow.push_back(std::move(pattern)), *this;
    }
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
        Receipt receipt;
        return Key::answer(pace_publisher_publish_batch(raw_.get(), key.native(), pieces.data(),
                                                        pieces.size(), 0, &receipt),
                           receipt, told);
    }
    /// Its counts.
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

/// A subscription. When it goes it unsubscribes as Unsubscribe::Sync: what waits is discarded, and the destructor returns
/// when the handler does not run and has been deleted. Inside a handler, and on a thread of the pool, it does not wait:
/// no call begins, and the handler is deleted after the last. drain() handles what waits; unsubscribe() does not wait
/// for the handler unless it is told to; detach() keeps it.
class [[nodiscard]] Subscription {
public:
    Subscription(Subscription &&other) noexcept
        : core_(std::move(other.core_)), id_(std::exchange(other.id_, pace_subscription_t{})) {}
    Subscription &operator=(Subscription &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        return *this;
    }
    ~Subscription() {
        if (id_.id != 0) {
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

/// A subscription whose messages are pulled by the host's own threads.
class [[nodiscard]] Mailbox {
public:
    Mailbox(Mailbox &&other) noexcept
        : core_(std::move(other.core_)), raw_(std::exchange(other.raw_, nullptr)) {}
    Mailbox &operator=(Mailbox &&other) noexcept {
        std::swap(core_, other.core_);
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Mailbox() { pace_mailbox_free(raw_); }

    /// Waits for up to `time` for messages: the part of `messages` that was filled, in order. They stay
    /// until this thread pulls again. Code::TimedOut; Code::Stale: it has ended, and nothing is left.
    Result<span<Message>> pull(span<Message> messages, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_mailbox_pull(raw_, messages.data(), messages.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<Message>>(messages.first(count))
                                 : Result<span<Message>>(Error::last(status));
    }
    /// Makes a message that was pulled here a dead letter, after so many attempts: it counts as that then,
    /// and no longer as delivered.
    Result<void> bury(const Message &message, const char *failure, std::uint32_t attempts = 1) const {
        return detail::outcome(pace_mailbox_bury(raw_, &message, failure, attempts));
    }
    /// A descriptor, readable while a message may wait. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_mailbox_pollable(raw_, &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }
    /// Its counts; what was pulled counts as delivered.
    Result<SubscriptionStats> stats() const {
        SubscriptionStats stats;
        const pace_status_t status = pace_mailbox_stats(raw_, &stats);
        return status == PACE_OK ? Result<SubscriptionStats>(stats)
                                 : Result<SubscriptionStats>(Error::last(status));
    }
    /// Ends it; with Unsubscribe::Drain what waits can be pulled still. True: nothing is left.
    Result<bool> unsubscribe(Unsubscribe how = Unsubscribe::Async) const {
        bool ended = false;
        const pace_status_t status =
            pace_mailbox_unsubscribe(raw_, static_cast<std::uint32_t>(how), &ended);
        return status == PACE_OK ? Result<bool>(ended) : Result<bool>(Error::last(status));
    }

private:
    friend class Hub;
    Mailbox(std::shared_ptr<const detail::HubCore> core, pace_mailbox_t *raw) noexcept
        : core_(std::move(core)), raw_(raw) {}

    std::shared_ptr<const detail::HubCore> core_;
    pace_mailbox_t *raw_;
};

/// A replay to a handler. When it goes it ends, and the destructor returns when the handler does not run and has been
/// deleted. Inside a handler, on a thread of the pool, and after end(), it does not wait.
class [[nodiscard]] Replay {
public:
    /// Its counts.
    Result<ReplayStats> stats() const {
        ReplayStats stats;
        const pace_status_t status = pace_replay_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<ReplayStats>(stats) : Result<ReplayStats>(Error::last(status));
    }
    /// Ends its suspension, and that of all others of its supervisor: it goes on with the message behind the
    /// last that its handler was called with. False: none was suspended.
    Result<bool> resume() const {
        bool resumed = false;
        const pace_status_t status = pace_replay_resume(raw_.get(), &resumed);
        return status == PACE_OK ? Result<bool>(resumed) : Result<bool>(Error::last(status));
    }
    /// Ends it. True: no handler runs or will run, and it has been deleted.
    Result<bool> end(Unsubscribe how = Unsubscribe::Async) const {
        bool ended = false;
        const pace_status_t status =
            pace_replay_end(raw_.get(), static_cast<std::uint32_t>(how), &ended);
        return status == PACE_OK ? Result<bool>(ended) : Result<bool>(Error::last(status));
    }

private:
    friend class Hub;
    Replay(std::shared_ptr<const detail::HubCore> core, pace_replay_t *raw)
        : core_(std::move(core)), raw_(raw, &pace_replay_free) {}

    std::shared_ptr<const detail::HubCore> core_;
    std::unique_ptr<pace_replay_t, void (*)(pace_replay_t *)> raw_;
};

/// A replay to whoever pulls.
class [[nodiscard]] ReplayMailbox {
public:
    /// Waits for up to `time` for the next messages: the part of `messages` that was filled. They stay until
    /// this thread pulls again. Code::TimedOut: none came; Code::Stale: it has ended; Code::ShutDown when the pool
    /// ends; Code::WouldDeadlock on a thread of the pool.
    Result<span<Message>> pull(span<Message> messages, Duration time) const {
        std::size_t count = 0;
        const pace_status_t status = pace_replay_mailbox_pull(
            raw_.get(), messages.data(), messages.size(), detail::nanos(time), &count);
        return status == PACE_OK ? Result<span<Message>>(messages.first(count))
                                 : Result<span<Message>>(Error::last(status));
    }
    /// Makes a message that was pulled here a dead letter, after so many attempts: it counts as that then,
    /// and no longer as delivered.
    Result<void> bury(const Message &message, const char *failure, std::uint32_t attempts = 1) const {
        return detail::outcome(pace_replay_mailbox_bury(raw_.get(), &message, failure, attempts));
    }
    /// A descriptor, readable while a message may wait, or when it has ended. Not to be read or closed.
    Result<int> pollable() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_replay_mailbox_pollable(raw_.get(), &fd);
        return status == PACE_OK ? Result<int>(fd) : Result<int>(Error::last(status));
    }
    /// Its counts; what was pulled counts as delivered.
    Result<ReplayStats> stats() const {
        ReplayStats stats;
        const pace_status_t status = pace_replay_mailbox_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<ReplayStats>(stats) : Result<ReplayStats>(Error::last(status));
    }
    /// Ends it: nothing can be pulled any more, and who waits gets Code::Stale.
    Result<void> end() const { return detail::outcome(pace_replay_mailbox_end(raw_.get())); }

private:
    friend class Hub;
    ReplayMailbox(std::shared_ptr<const detail::HubCore> core, pace_replay_mailbox_t *raw)
        : core_(std::move(core)), raw_(raw, &pace_replay_mailbox_free) {}

    std::shared_ptr<const detail::HubCore> core_;
    std::unique_ptr<pace_replay_mailbox_t, void (*)(pace_replay_mailbox_t *)> raw_;
};

template <class T, class C>
class Topic;

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
        options.name = config.name.c_str();
        options.errors = config.errors;
        options.notice_interval_ns = detail::limit_nanos(config.notice_interval);
        options.count_keys = config.count_keys;
        pace_hub_t *hub = nullptr;
        const pace_status_t status = pace_hub_new(pool.native(), &options, &hub);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Hub(std::make_shared<const detail::HubCore>(pool.core_, hub));
    }

    /// Looks a key up. Code::Invalid says what is wrong with it.
    Result<Key> key(const char *text) const {
        pace_key_t *key = nullptr;
        const pace_status_t status = pace_hub_key(native(), text, &key);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Key(key);
    }

    /// As Key::publish(), with the text of the key, which is looked up.
    Result<Receipt> publish(const char *key, std::string_view payload, Receipt *told = nullptr) const {
        Receipt receipt;
        const pace_status_t status =
            pace_hub_publish(native(), key, payload.data(), payload.size(), 0, &receipt);
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

    /// A place for replies to requests that are pulled; see Key::request_pulled().
    Result<Replies> replies() const {
        pace_replies_t *raw = nullptr;
        const pace_status_t status = pace_replies_new(native(), &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Replies(raw);
    }
    /// Gives a request up. True: its function will never be called, and is deleted. False: it is being called,
    /// or was.
    Result<bool> give_up(Asked asked) const {
        bool given_up = false;
        const pace_status_t status = pace_hub_give_up(native(), asked.raw, &given_up);
        return status == PACE_OK ? Result<bool>(given_up) : Result<bool>(Error::last(status));
    }

    /// Subscribes to a key or a pattern: `*` stands for one token, a final `>` for one or more. The handler
    /// is void(const Message &), or answers a Result<void>. An error that it answers, and a std::exception that it
    /// throws, is a failure of its message, which is tried again, or becomes a dead letter, as the config says.
    /// Anything else that it throws is a crash: the handler is restarted, and suspended for a while if that happens
    /// too often; see Intensity.
    /// It may run before this returns, and is deleted when the subscription has ended. Handlers of
    /// Execution::Inline and Execution::Concurrent are called by several threads at once.
    template <class F>
    Result<Subscription> subscribe(const char *pattern, F &&handler,
                                   const SubscriptionConfig &config = {}) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is void(const Message &) or Result<void>(const Message &)");
        const pace_subscription_options_t options = config.native();
        auto box = detail::boxed(std::forward<F>(handler));
        pace_subscription_t id{};
        const pace_status_t status = pace_hub_subscribe(
            native(), pattern, &options, detail::handle_message<D>, box.get(), detail::drop_box<D>, &id);
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
    Result<Subscription> subscribe(const char *pattern, F &&handler, R &&on_restart,
                                   const SubscriptionConfig &config = {}) const {
        using S = detail::Supervised<std::decay_t<F>, std::decay_t<R>>;
        pace_subscription_options_t options = config.native();
        options.on_restart = detail::restarted<std::decay_t<F>, std::decay_t<R>>;
        auto box = detail::boxed(S{std::forward<F>(handler), std::forward<R>(on_restart)});
        pace_subscription_t id{};
        const pace_status_t status = pace_hub_subscribe(
            native(), pattern, &options, detail::handle_message<S>, box.get(), detail::drop_box<S>, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, box->handler);
            detail::give_back<R>(on_restart, box->on_restart);
            return error;
        }
        (void)box.release();
        return Subscription(core_, id);
    }

    /// A publisher of this name, which is for people to read.
    Result<Publisher> publisher(const char *name, const PublisherConfig &config = {}) const {
        pace_publisher_options_t options{};
        (void)pace_publisher_options_init(&options, sizeof options);
        std::vector<const char *> patterns;
        for (const std::string &pattern : config.allow) {
            patterns.push_back(pattern.c_str());
        }
        options.allow = patterns.data();
        options.allow_count = patterns.size();
        options.no_wait = config.no_wait;
        if (config.quota) {
            options.quota = config.quota->starts;
            options.quota_per_ns = detail::nanos(config.quota->per);
            options.quota_burst = config.quota->burst;
        }
        pace_publisher_t *raw = nullptr;
        const pace_status_t status = pace_publisher_new(native(), name, &options, &raw);
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
    /// Replays what a history has kept of the keys that the pattern matches, and goes on with what is
    /// published: each message once, in the order of their sequences. The handler is as of subscribe(); a
    /// message that it fails at is counted, and the next one comes.
    template <class F>
    Result<Replay> replay(const char *pattern, ReplayFrom from, F &&handler) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is void(const Message &) or Result<void>(const Message &)");
        auto box = detail::boxed(std::forward<F>(handler));
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay(native(), pattern, from.from_, from.at_, detail::handle_message<D>,
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
    Result<Replay> replay(const char *pattern, ReplayFrom from, F &&handler,
                          const ReplayConfig &config) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Message &>,
                      "a handler is void(const Message &) or Result<void>(const Message &)");
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        auto box = detail::boxed(std::forward<F>(handler));
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay_supervised(native(), pattern, &options, detail::handle_message<D>, box.get(),
                                       detail::drop_box<D>, &raw);
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
    Result<Replay> replay(const char *pattern, ReplayFrom from, F &&handler, R &&on_restart,
                          const ReplayConfig &config = {}) const {
        using S = detail::Supervised<std::decay_t<F>, std::decay_t<R>>;
        pace_replay_options_t options = config.native();
        options.from = from.from_;
        options.at = from.at_;
        options.on_restart = detail::restarted<std::decay_t<F>, std::decay_t<R>>;
        auto box = detail::boxed(S{std::forward<F>(handler), std::forward<R>(on_restart)});
        pace_replay_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay_supervised(native(), pattern, &options, detail::handle_message<S>, box.get(),
                                       detail::drop_box<S>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, box->handler);
            detail::give_back<R>(on_restart, box->on_restart);
            return error;
        }
        (void)box.release();
        return Replay(core_, raw);
    }
    /// As replay(), to whoever pulls.
    Result<ReplayMailbox> replay_mailbox(const char *pattern, ReplayFrom from) const {
        pace_replay_mailbox_t *raw = nullptr;
        const pace_status_t status =
            pace_hub_replay_mailbox(native(), pattern, from.from_, from.at_, &raw);
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
    /// What each history has done.
    Result<std::vector<HistoryStats>> history_stats() const {
        detail::Rows<HistoryStats> rows;
        return rows.taken(pace_hub_history_stats(native(), detail::collect_history, &rows));
    }

    /// The topic of a key, or of all keys that a pattern matches: its messages are values of one type. The
    /// codec has `Result<std::string> encode(const T &) const` and `Result<T> decode(std::string_view) const`,
    /// which several threads may call.
    template <class T, class C>
    Topic<T, C> topic(std::string pattern, C codec) const {
        return Topic<T, C>(*this, std::move(pattern), std::move(codec));
    }

    /// Replies to a request; the first reply counts. Code::Invalid: it is no request.
    Result<Receipt> reply(const Message &request, std::string_view payload) const {
        Receipt receipt;
        return Key::answer(pace_hub_reply(native(), &request, payload.data(), payload.size(), &receipt),
                           receipt, nullptr);
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
    Result<Mailbox> mailbox(const char *pattern, const SubscriptionConfig &config = {}) const {
        const pace_subscription_options_t options = config.native();
        pace_mailbox_t *mailbox = nullptr;
        const pace_status_t status = pace_hub_mailbox(native(), pattern, &options, &mailbox);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Mailbox(core_, mailbox);
    }

    /// How many subscriptions a key has, those of patterns included.
    Result<std::size_t> subscriber_count(const char *key) const {
        std::size_t count = 0;
        const pace_status_t status = pace_hub_subscriber_count(native(), key, &count);
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
    /// of itself as messages.
    Result<std::vector<HubError>> errors(const ErrorFilter &filter = {}) const {
        detail::Rows<HubError> rows;
        const pace_error_filter_t raw = filter.native();
        return rows.taken(pace_hub_errors(native(), &raw, detail::collect_error, &rows, nullptr));
    }
    /// What it has and has told, beside its books.
    Result<HubStats> stats() const {
        HubStats stats;
        const pace_status_t status = pace_hub_stats(native(), &stats);
        return status == PACE_OK ? Result<HubStats>(stats) : Result<HubStats>(Error::last(status));
    }
    /// Its figures as text: PACE_METRICS_HUB (all of them as JSON), PACE_METRICS_JSON,
    /// PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS. To serve them, see MetricsFormat.
    Result<std::string> metrics(std::uint32_t format) const {
        return detail::figures_of([&](char *text, std::size_t size, std::size_t *needed) {
            return pace_hub_metrics(native(), format, text, size, needed);
        });
    }
    /// Tells its figures with those of a worker pool that was made with `metrics`.
    Result<void> share_metrics(const WorkerPool &workers) const {
        return detail::outcome(pace_hub_share_metrics(native(), workers.native()));
    }
    /// Watches figures of the hub (or of `workers`, if it was made with `metrics`): looks at them so often,
    /// 1 ms to 1 day, and tells of each threshold that is crossed, and when its figure is back, under
    /// "$SYS.threshold." and by calling void(const Crossing &), on a thread of the pool. What that throws goes
    /// nowhere.
    template <class F>
    Result<Watch> watch(Duration every, const std::vector<Threshold> &thresholds, F &&on_crossing,
                        const WorkerPool *workers = nullptr) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const Crossing &>, "it is void(const Crossing &)");
        std::vector<std::vector<pace_label_t>> labels(thresholds.size());
        std::vector<pace_threshold_t> raw;
        for (std::size_t i = 0; i < thresholds.size(); ++i) {
            raw.push_back(thresholds[i].native(labels[i]));
        }
        auto box = detail::boxed(std::forward<F>(on_crossing));
        pace_watch_t *made = nullptr;
        const pace_status_t status = pace_hub_watch(
            native(), workers != nullptr ? workers->native() : nullptr, detail::nanos(every), raw.data(),
            raw.size(), detail::tell_crossing<D>, box.get(), detail::drop_box<D>, &made);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(on_crossing, *box);
            return error;
        }
        (void)box.release();
        return Watch(made);
    }

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

/// Settings of a webhook.
struct WebhookConfig {
    /// How many bodies may wait, 1 to 65536; what comes while so many wait is dropped.
    std::uint64_t capacity = 1024;
    /// How long one attempt may take: 1 ms to 5 minutes.
    Duration timeout = std::chrono::seconds(10);
    /// How an attempt that failed is followed by others. Without one: 5 of them, after 1 s, and twice as long
    /// after each other.
    std::optional<Retry> retry{};
    /// More headers of each request.
    std::vector<std::pair<std::string, std::string>> headers{};
    /// "http://proxy.example:3128". Empty: none.
    std::string proxy{};

    WebhookConfig &set_capacity(std::uint64_t value) { return capacity = value, *this; }
    WebhookConfig &set_timeout(Duration value) { return timeout = value, *this; }
    WebhookConfig &set_retry(Retry value) { return retry = std::move(value), *this; }
    WebhookConfig &add_header(std::string name, std::string value) {
        return headers.emplace_back(std::move(name), std::move(value)), *this;
    }
    WebhookConfig &set_proxy(std::string value) { return proxy = std::move(value), *this; }
};

/// What a webhook has done. Fields as in pace_webhook_stats_t.
struct WebhookStats : pace_webhook_stats_t {
    WebhookStats() noexcept : pace_webhook_stats_t{} { struct_size = sizeof(pace_webhook_stats_t); }
};

/// Posts JSON to a URL, from a thread of its own, in order. Copies are the same one; when the last is gone, and
/// no subscription has it, its thread ends, and what waits is dropped: flush() before.
class Webhook {
public:
    /// Code::Unsupported: the library was built without the feature `webhook`; Code::Invalid names the
    /// setting. That nobody listens there is no error.
    static Result<Webhook> create(const std::string &url, const WebhookConfig &config = {}) {
        pace_webhook_options_t options{};
        (void)pace_webhook_options_init(&options, sizeof options);
        options.capacity = config.capacity;
        options.timeout_ns = detail::nanos(config.timeout);
        if (config.retry) {
            options.retry = config.retry->native();
        }
        std::vector<pace_field_t> headers;
        for (const auto &[name, value] : config.headers) {
            headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
        }
        options.headers = headers.data();
        options.header_count = headers.size();
        options.proxy = config.proxy.empty() ? nullptr : config.proxy.c_str();
        pace_webhook_t *raw = nullptr;
        const pace_status_t status = pace_webhook_new(url.c_str(), &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Webhook(raw);
    }

    /// Posts this, which should be JSON. Code::Full: there was no room, and it was dropped. It never waits.
    Result<void> post(std::string_view json) const {
        return detail::outcome(pace_webhook_post(raw_.get(), json.data(), json.size()));
    }
    /// Posts the payloads of all messages of a hub that the pattern matches, "$SYS.>" say.
    Result<Subscription> forward(const Hub &hub, const char *pattern) const {
        pace_subscription_t id{};
        const pace_status_t status = pace_webhook_forward(raw_.get(), hub.native(), pattern, &id);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Subscription(hub.core_, id);
    }
    /// Waits until everything that was posted before has been delivered or given up. Code::TimedOut.
    Result<void> flush(Duration time) const {
        return detail::outcome(pace_webhook_flush(raw_.get(), detail::nanos(time)));
    }
    /// What it has done so far.
    Result<WebhookStats> stats() const {
        WebhookStats stats;
        const pace_status_t status = pace_webhook_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<WebhookStats>(stats)
                                 : Result<WebhookStats>(Error::last(status));
    }
    /// What the last attempt that failed has failed of; empty: none has.
    Result<std::string> last_error() const {
        return detail::figures_of([this](char *text, std::size_t size, std::size_t *needed) {
            return pace_webhook_last_error(raw_.get(), text, size, needed);
        });
    }

private:
    explicit Webhook(pace_webhook_t *raw) : raw_(raw, pace_webhook_free) {}

    std::shared_ptr<pace_webhook_t> raw_;
};

/// This process as a service of systemd, which counts as ready from its start on and as stopping when this is
/// gone: let it go before the drain.
class [[nodiscard]] Service {
public:
    /// Tells systemd that the process is ready. If its unit has a watchdog, a timer of the pool asks the
    /// bool() twice in its time, and feeds it when the answer is true; what it throws is a no. Where no systemd
    /// has started the process, nothing is told and nobody asks. Code::Unsupported: the library was built
    /// without the feature `systemd`; Code::Os: systemd cannot be told.
    template <class F>
    static Result<Service> start(const Pool &pool, F &&is_well) {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_r_v<bool, D &>, "whether it is well is told by a bool()");
        auto box = detail::boxed(std::forward<F>(is_well));
        const auto ask = [](void *data) noexcept -> std::int32_t {
            bool well = false;
            (void)detail::guard([&] { well = (*static_cast<D *>(data))(); });
            return well;
        };
        pace_service_t *raw = nullptr;
        const pace_status_t status =
            pace_service_start(pool.native(), ask, box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(is_well, *box);
            return error;
        }
        (void)box.release();
        return Service(raw);
    }
    /// It is well as long as the pool comes round to telling it.
    static Result<Service> start(const Pool &pool) {
        pace_service_t *raw = nullptr;
        const pace_status_t status = pace_service_start(pool.native(), nullptr, nullptr, nullptr, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Service(raw);
    }

    /// What `systemctl status` shows: one line.
    Result<void> status(const char *text) const {
        return detail::outcome(pace_service_status(raw_.get(), text));
    }

private:
    struct Free {
        void operator()(pace_service_t *raw) const noexcept { pace_service_free(raw); }
    };
    explicit Service(pace_service_t *raw) : raw_(raw) {}

    std::unique_ptr<pace_service_t, Free> raw_;
};

/// A key, or a pattern, whose messages are values of one type; see Hub::topic(). Copies are the same topic.
template <class T, class C>
class Topic {
public:
    /// Publishes a value with the topic's key. Code::Invalid if it has wildcards; what encode() says.
    Result<Receipt> publish(const T &value) const { return publish_to(pattern_.c_str(), value); }
    /// Publishes a value with a key, which is not compared with the pattern of the topic.
    Result<Receipt> publish_to(const char *key, const T &value) const {
        const Result<std::string> bytes = codec_->encode(value);
        if (!bytes) {
            return bytes.error();
        }
        return hub_.publish(key, *bytes);
    }
    /// Subscribes as Hub::subscribe() does, with a handler of values: void or Result<void>, of (const T &) or
    /// (const T &, const Message &). What cannot be decoded is a failure of the subscription, and the handler
    /// is not called.
    template <class F>
    Result<Subscription> subscribe(F &&handler, const SubscriptionConfig &config = {}) const {
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
            if constexpr (std::is_void_v<decltype(call())>) {
                call();
                return {};
            } else {
                return call();
            }
        };
        return hub_.subscribe(pattern_.c_str(), std::move(take), config);
    }

private:
    friend class Hub;
    Topic(Hub hub, std::string pattern, C codec)
        : hub_(std::move(hub)), pattern_(std::move(pattern)),
          codec_(std::make_shared<const C>(std::move(codec))) {}

    Hub hub_;
    std::string pattern_;
    std::shared_ptr<const C> codec_;
};

} // inline namespace
} // namespace paceline

#undef PACELINE_DETAIL_TRY
#undef PACELINE_DETAIL_CATCH

#endif // PACELINE_HPP
