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
// What ends by itself detaches when its object goes (Task, Timer); what lasts ends with its object
// (Handle: deregistered, Strand and Ring: closed). All types are move-only, all methods that are
// const may be called from any thread at once.
//
// Errors are values: Result<T>, with one throwing accessor, value(). Apart from it, only the memory
// for a callable's Box can throw (std::bad_alloc), before anything has happened. A callable that is
// refused is given back: an rvalue that was handed in is as it was before.
//
// Exceptions never cross into the library. Every trampoline is noexcept and catches: what submit's
// callable throws is rethrown by value(), what any other throws goes to on_unhandled(). Under
// -fno-exceptions value() aborts on an error.
//
// Durations are std::chrono; `forever` means no limit, and a negative one none at all.

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
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

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
        case Code::TimedOut:
            break;
        default:
            error.text_ = pace_last_error();
            error.os_error_ = pace_last_os_error();
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
    explicit Exception(Error error)
        : std::runtime_error(error.message()), error_(std::move(error)) {}

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

/// What a handler or task has thrown, if nobody waits for it.
using Unhandled = std::function<void(std::exception_ptr)>;

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
/// the thread that caught it, and must not throw. An empty one, the default, leaves it at what the
/// library does by itself: the task or handler counts as failed, and the handle is closed. Returns
/// the hook that was set before.
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

// ---- words of the library ----------------------------------------------------------------------

/// Priority of a task. None starves: LOW has its turn at least once in 64.
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
inline std::uint32_t version() noexcept {
    return pace_version();
}

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
    constexpr span subspan(std::size_t begin) const noexcept {
        return {data_ + begin, size_ - begin};
    }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// ---- what callables are carried in ---------------------------------------------------------------

class Pool;

namespace detail {

struct Submitter;

inline std::uint64_t nanos(nanoseconds time) noexcept {
    if (time == forever) {
        return PACE_FOREVER;
    }
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

inline Result<void> outcome(pace_status_t status) {
    return status == PACE_OK ? Result<void>() : Result<void>(Error::last(status));
}

/// What is answered about an object that was moved from, closed or taken.
inline Error gone(const char *what) {
    return Error(Code::Stale,
                 std::string("this ") + what + " has ended, was moved from, or was taken");
}

/// Called inside a catch block.
inline void report_unhandled() noexcept {
    auto &slot = UnhandledHook::get();
    std::shared_ptr<const Unhandled> hook;
    {
        std::lock_guard<std::mutex> lock(slot.mutex);
        hook = slot.hook;
    }
    if (hook) {
        (*hook)(std::current_exception());
    }
}

/// Calls `f`; whether it has returned.
template <class F>
bool guard(F &&f) noexcept {
    PACELINE_DETAIL_TRY {
        std::forward<F>(f)();
        return true;
    }
    PACELINE_DETAIL_CATCH {
        report_unhandled();
        return false;
    }
}

/// The answer that the library takes for a failed handler: none of Flow's.
inline constexpr std::int32_t FAILED_FLOW = -1;

template <class F>
std::int32_t guard_flow(F &&f) noexcept {
    Flow flow{};
    return guard([&] { flow = f(); }) ? static_cast<std::int32_t>(flow) : FAILED_FLOW;
}

/// Callables that post_bytes copies into the task's slot.
template <class F>
inline constexpr bool fits_slot = std::is_trivially_copyable_v<F> && sizeof(F) <= PACE_INLINE_BYTES
                                  && alignof(F) <= alignof(std::uint64_t);

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
    delete static_cast<Box *>(box);
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
            box_ = std::make_unique<D>(std::forward<F>(f));
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
    std::unique_ptr<D> box_;
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
    template <class F>
    void fill(F &&f) {
        std::forward<F>(f)();
    }
    Result<void> take() { return {}; }
};

/// A submitted callable and the place for its value. The callable goes when C drops it; the place may
/// stay.
template <class F, class T>
struct Submitted final : PlaceOf<T> {
    std::optional<F> f;

    template <class G>
    explicit Submitted(G &&g) : f(std::forward<G>(g)) {}

    static void run(void *data, std::int32_t *result) noexcept {
        auto *self = static_cast<Submitted *>(data);
        PACELINE_DETAIL_TRY {
            self->fill(std::move(*self->f));
            *result = PACE_OK;
        }
        PACELINE_DETAIL_CATCH {
            self->thrown = std::current_exception();
            *result = PACE_EFAILED;
        }
    }

    static void drop(void *data) noexcept {
        auto *self = static_cast<Submitted *>(data);
        self->f.reset();
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
        : core_(std::move(other.core_)), id_(other.id_),
          place_(std::exchange(other.place_, nullptr)) {}
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
    Result<T> wait_timeout(nanoseconds time) {
        if (!valid()) {
            return detail::gone("task");
        }
        std::int32_t reported = PACE_EFAILED;
        const pace_status_t status =
            pace_task_wait(core_->pool, id_, detail::nanos(time), &reported);
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

    /// For calls to paceline.h, with the pool's native().
    pace_task_t native() const noexcept { return id_; }

private:
    friend struct detail::Submitter;

    /// The task has ended: its place goes at the end of the block, and the Task is empty.
    struct Ended {
        explicit Ended(Task &task) noexcept : place(task.place_), task_(task) {}
        ~Ended() { task_.let_go(); }

        detail::PlaceOf<T> *const place;

    private:
        Task &task_;
    };

    Task(detail::SharedCore core, pace_task_t id, detail::PlaceOf<T> *place) noexcept
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
    detail::PlaceOf<T> *place_ = nullptr;
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
            box->release();
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
        return Submitter::submit(
            core_, std::forward<F>(f),
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
    /// Begin paused.
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

    /// No more calls before resume(). Events meanwhile are not lost.
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

/// A registered descriptor or periodic timer. When it goes it is deregistered.
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
    Result<bool> postpone(nanoseconds delay) const {
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
    std::uint64_t submitted{}, accepted{}, rejected{}, completed{}, failed{}, cancelled{},
        in_flight{};
};

/// How a shutdown went.
struct Report {
    /// Everything that had been accepted has ended within the drain's time.
    bool drained{};
    /// It was called inside a handler, so it was only a request.
    bool requested{};
    /// Tasks and timers that were accepted and will not run.
    std::uint64_t cancelled{};
    /// Threads whose handlers have not returned: in Stats::threads, those that are not Role::Away.
    std::uint32_t stuck{};
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
    std::optional<nanoseconds> watch_period{};
    std::optional<nanoseconds> spin{};
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
    /// Called on each thread first and last of all, with its index.
    std::function<void(std::uint32_t)> on_start{}, on_stop{};
    /// Called for what takes longer than `slow`.
    std::function<void(const SlowReport &)> on_slow{};
    nanoseconds slow{};

    Config &set_threads(std::uint32_t value) { return threads = value, *this; }
    Config &set_max_joined(std::uint32_t value) { return max_joined = value, *this; }
    Config &set_leaders(std::uint32_t value) { return leaders = value, *this; }
    Config &set_source(Source value) { return source = value, *this; }
    Config &set_promotion(Promotion value) { return promotion = value, *this; }
    Config &set_watch_period(nanoseconds value) { return watch_period = value, *this; }
    Config &set_spin(nanoseconds value) { return spin = value, *this; }
    Config &set_lane_capacity(std::uint32_t value) { return lane_capacity = value, *this; }
    Config &set_strand_capacity(std::uint32_t value) { return strand_capacity = value, *this; }
    Config &set_max_handles(std::uint32_t value) { return max_handles = value, *this; }
    Config &set_pin(std::string value) { return pin = std::move(value), *this; }
    Config &set_pin_strict(bool value = true) { return pin_strict = value, *this; }
    Config &set_name(std::string value) { return name = std::move(value), *this; }
    Config &set_stack_size(std::uint64_t value) { return stack_size = value, *this; }
    Config &set_on_start(std::function<void(std::uint32_t)> hook) {
        return on_start = std::move(hook), *this;
    }
    Config &set_on_stop(std::function<void(std::uint32_t)> hook) {
        return on_stop = std::move(hook), *this;
    }
    Config &set_on_slow(nanoseconds limit, std::function<void(const SlowReport &)> hook) {
        return slow = limit, on_slow = std::move(hook), *this;
    }
};

namespace detail {

struct Hooks {
    std::function<void(std::uint32_t)> on_start, on_stop;
    std::function<void(const SlowReport &)> on_slow;

    static void start(void *data, std::uint32_t thread) noexcept {
        guard([&] { static_cast<Hooks *>(data)->on_start(thread); });
    }
    static void stop(void *data, std::uint32_t thread) noexcept {
        guard([&] { static_cast<Hooks *>(data)->on_stop(thread); });
    }
    static void slow(void *data, std::uint32_t thread, std::uint64_t elapsed,
                     bool running) noexcept {
        const SlowReport report{thread, nanoseconds(elapsed), running};
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
    const auto set_time = [](std::uint64_t &field, const std::optional<nanoseconds> &value) {
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
    raw.on_start = config.on_start ? Hooks::start : nullptr;
    raw.on_stop = config.on_stop ? Hooks::stop : nullptr;
    raw.on_slow = config.on_slow ? Hooks::slow : nullptr;
    raw.slow_ns = nanos(config.slow);
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
/// When it goes it shuts down without draining: handlers that run are waited for, what waits is
/// cancelled and deleted. Inside one of its own handlers that is only a request.
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

    Pool(Pool &&) noexcept = default;
    Pool &operator=(Pool &&other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    ~Pool() {
        // Children may keep the Core, so its end is not the pool's. The core stays in place until
        // the handlers have returned: they may know this object.
        if (core_) {
            (void)pace_pool_shutdown(core_->pool, 0, nullptr);
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
        return add_handler(
            std::forward<F>(handler), [&](auto *box, pace_drop_fn drop, pace_handle_t *id) {
                return pace_pool_register(native(), fd, &raw, box->ready, box, drop, id);
            });
    }

    /// Calls `handler()` or `handler(self)` once in `period`, on one thread at a time, until it
    /// answers Flow::Done or the Handle goes. A period that was missed is not made up for.
    template <class F>
    Result<Handle> every(nanoseconds period, F &&handler) const {
        using D = std::decay_t<F>;
        static_assert(detail::is_tick_handler<D>,
                      "a periodic handler is Flow() or Flow(HandleRef)");
        return add_handler(
            std::forward<F>(handler), [&](auto *box, pace_drop_fn drop, pace_handle_t *id) {
                return pace_pool_every(native(), detail::nanos(period), box->tick, box, drop, id);
            });
    }

    /// Calls `f()` once, `delay` from now or later, never earlier. The Timer need not be kept.
    template <class F>
    Result<Timer> after(nanoseconds delay, F &&f) const {
        static_assert(detail::is_task<F>, "a timer is called without arguments");
        detail::Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        pace_timer_t id{};
        const pace_status_t status = packed.settle(pace_pool_after(
            native(), detail::nanos(delay), work.run, work.user_data, work.drop, &id));
        return made(status, [&] { return Timer(core_, id); });
    }

    // The host's threads

    /// Takes part for a time: handlers run on the calling thread. How many calls it has made.
    /// Code::Full: Config::max_joined threads take part already.
    Result<std::uint64_t> join(nanoseconds time) const {
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
    Result<span<Event>> pull(span<Event> events, nanoseconds time) const {
        std::size_t count = 0;
        const pace_status_t status =
            pace_pool_pull(native(), events.data(), events.size(), detail::nanos(time), &count);
        return made(status, [&] { return events.first(count); });
    }

    /// Completes this thread's batch without pulling on.
    Result<void> pull_done() const { return detail::outcome(pace_pull_done(native())); }

    /// Completes one event earlier, from any thread, with another answer than Flow::Wait.
    Result<void> pull_complete(pace_handle_t handle, Flow flow) const {
        return detail::outcome(
            pace_pull_complete(native(), handle, static_cast<std::int32_t>(flow)));
    }

    /// What register_fd, every, after, post and post_batch are for handlers: `token` comes back with
    /// each event.
    Result<Handle> pull_register(int fd, std::uint64_t token,
                                 const HandleOptions &options = {}) const {
        const pace_handle_options_t raw = options.native();
        pace_handle_t id{};
        const pace_status_t status = pace_pull_register(native(), fd, &raw, token, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    Result<Handle> pull_every(nanoseconds period, std::uint64_t token) const {
        pace_handle_t id{};
        const pace_status_t status = pace_pull_every(native(), detail::nanos(period), token, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    Result<Timer> pull_after(nanoseconds delay, std::uint64_t token) const {
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

    /// Refuses new work, waits for up to `drain` until everything that was accepted has ended,
    /// cancels the rest, and stops the threads. Inside a handler it is a request.
    Result<Report> shutdown(nanoseconds drain) const {
        pace_report_t raw{};
        raw.struct_size = sizeof raw;
        const pace_status_t status = pace_pool_shutdown(native(), detail::nanos(drain), &raw);
        return made(status, [&] {
            return Report{raw.drained, raw.requested, raw.cancelled, raw.stuck};
        });
    }

    /// For calls to paceline.h. Stays the Pool's. NULL, which every function refuses, if it was moved
    /// from.
    pace_pool_t *native() const noexcept { return core_ ? core_->pool : nullptr; }

private:
    template <class T>
    friend class Ring;

    explicit Pool(detail::SharedCore core) noexcept : core_(std::move(core)) {}

    /// The lane of Pool's own methods, without counting one more owner for each call.
    detail::Posting<const detail::SharedCore &> normal() const noexcept {
        return {core_, Lane::Normal};
    }

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
        std::unique_ptr<Box> box(new Box{std::forward<F>(handler), core_->pool});
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

        const T &operator*() const noexcept {
            return *std::launder(reinterpret_cast<const T *>(at_));
        }
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
        iterator(const unsigned char *at, std::ptrdiff_t stride) noexcept
            : at_(at), stride_(stride) {}

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

/// Fixed-size events from any number of threads, handled in batches. When it goes it is closed: what
/// was published is still handled.
template <class T>
class [[nodiscard]] Ring {
    static_assert(
        detail::is_plain<T>,
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
    Ring(detail::SharedCore core, pace_ring_t *ring) noexcept
        : core_(std::move(core)), ring_(ring) {}

    template <class Called, class F, class Make>
    static Result<Ring> make(const Pool &pool, std::size_t capacity, F &&handler, Make make) {
        using D = std::decay_t<F>;
        auto box = std::make_unique<D>(std::forward<F>(handler));
        pace_ring_t *ring = nullptr;
        const pace_status_t status = make(pool.native(), sizeof(T), capacity, handle<Called>,
                                          box.get(), detail::drop_box<D>, &ring);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return Ring(pool.core_, ring);
    }

    template <class Called>
    static void handle(void *data, const void *events, std::size_t stride,
                       std::size_t count) noexcept {
        detail::guard([&] { (*static_cast<Called *>(data))(Events<T>(events, stride, count)); });
    }

    detail::SharedCore core_;
    pace_ring_t *ring_;
};

/// A bounded queue of plain values for any number of threads on both ends. It needs no pool.
template <class T>
class [[nodiscard]] Queue {
    static_assert(
        detail::is_plain<T>,
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
    Result<void> push_timeout(const T &item, nanoseconds time) const {
        return detail::outcome(pace_queue_push(queue_, std::addressof(item), detail::nanos(time)));
    }
    /// Pushes what fits, in order: the number pushed. Code::Full if none was.
    Result<std::size_t> push_batch(span<const T> items) const {
        std::size_t pushed = 0;
        const pace_status_t status =
            pace_queue_push_batch(queue_, items.data(), items.size(), &pushed);
        if (status != PACE_OK && pushed == 0) {
            return Error::last(status);
        }
        return pushed;
    }

    /// Code::Empty at once if there is none; Code::ShutDown if it is closed and empty.
    Result<T> pop() const { return pop_timeout(nanoseconds::zero()); }
    /// As pop(), but waits; then Code::TimedOut.
    Result<T> pop_timeout(nanoseconds time) const {
        alignas(T) unsigned char bytes[sizeof(T)];
        const pace_status_t status = pace_queue_pop(queue_, bytes, detail::nanos(time));
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Result<T>(*std::launder(reinterpret_cast<T *>(bytes)));
    }
    /// Fills the first part of `items` with what there is, waiting for the first only: that part.
    Result<span<T>> pop_batch(span<T> items, nanoseconds time = nanoseconds::zero()) const {
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

} // inline namespace
} // namespace paceline

#undef PACELINE_DETAIL_TRY
#undef PACELINE_DETAIL_CATCH

#endif // PACELINE_HPP
