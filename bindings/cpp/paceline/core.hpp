// paceline/core.hpp: what all headers share: errors, results, durations, callables.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_CORE_HPP
#define PACELINE_CORE_HPP

#include "enums.hpp"

#include <paceline/core.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
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

// What fails differs without exceptions, so objects compiled in different modes must not take each other's inline functions
// for their own. The standard makes no difference.
#if defined(__cpp_exceptions)
#define PACELINE_DETAIL_ABI v0
#else
#define PACELINE_DETAIL_ABI v0_noexcept
#endif

#if defined(__SANITIZE_THREAD__)
#define PACELINE_DETAIL_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PACELINE_DETAIL_TSAN
#endif
#endif
#if defined(PACELINE_DETAIL_TSAN)
extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
// The library's own memory, of which ThreadSanitizer sees only parts.
__attribute__((weak)) const char *__tsan_default_suppressions() {
    return "called_from_lib:libpaceline.so\n";
}
}
#endif

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

using std::chrono::nanoseconds;

/// As a time-out: without a limit.
constexpr nanoseconds FOREVER = nanoseconds::max();
// Qt has a macro of this name.
#if !defined(forever)
/// As a time-out: without a limit, as FOREVER.
constexpr nanoseconds forever = FOREVER;
#endif

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

/// The constant's name in paceline.h, such as "PACE_EFULL". Static.
inline const char *name(Code code) noexcept {
    return pace_status_name(static_cast<pace_status_t>(code));
}

/// A failed call, or a task that has thrown.
class Error {
public:
    /// A failure with a text of one's own.
    explicit Error(Code code, std::string_view text = {}) : code_(code), text_(text) {}

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

    /// This thread's call has just returned `status`, which is not PACE_OK. That a queue is full or
    /// empty carries no text: it is an answer, and costs no memory.
    static Error last(pace_status_t status) {
        Error error(static_cast<Code>(status));
        switch (error.code_) {
        case Code::Empty: break;
        case Code::Full:
            // Of a lane, a strand and the like it is known what helps.
            if (std::strstr(pace_last_error(), "what helps: ") != nullptr) {
                error.text_ = pace_last_error();
            }
            break;
        case Code::TimedOut:
            // A bridge and a durable queue may know why.
            if (std::strcmp(pace_last_error(), pace_strerror(status)) != 0) {
                error.text_ = pace_last_error();
            }
            break;
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

/// The exception that Result::value() throws: an Error with its text.
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
    std::fprintf(stderr, "paceline: value() of an error: %s\n", error.message());
    std::abort();
#endif
}

/// A callable that has no result to fail by has failed.
inline void fail(const Error &error) {
#if defined(__cpp_exceptions)
    raise(error);
#else
    pace_unhandled(error.message(), false);
#endif
}

} // namespace detail

/// A value or an Error: as std::expected<T, Error>, which it converts to where there is one. It is the same class in every
/// standard. Only value() throws: what a task has thrown, if
/// that is the error, else an Exception. Without exceptions it writes the error's text to the standard error stream, and
/// aborts.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : either_(std::in_place_index_t<0>(), std::move(value)) {}
    Result(Error error) : either_(std::in_place_index_t<1>(), std::move(error)) {}

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

    T &value() & { return require(), **this; }
    const T &value() const & { return require(), **this; }
    /// By value, so that `for (auto &entry : queue.wait(room, time).value())` holds on to it.
    T value() && { return require(), std::move(**this); }

    template <class U>
    T value_or(U &&other) const & {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    T value_or(U &&other) && {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
    }

#if defined(__cpp_lib_expected)
    operator std::expected<T, Error>() const & {
        return has_value() ? std::expected<T, Error>(**this) : std::unexpected(error());
    }
    operator std::expected<T, Error>() && {
        return has_value() ? std::expected<T, Error>(std::move(**this)) : std::unexpected(error());
    }
#endif

private:
    void require() const {
        if (!has_value()) {
            detail::raise(error());
        }
    }

    std::variant<T, Error> either_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() noexcept = default;
    Result(Error error) : error_(std::move(error)) {}

    bool has_value() const noexcept { return !error_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    void operator*() const noexcept {}

    Error &error() &noexcept { return *error_; }
    const Error &error() const &noexcept { return *error_; }
    Error &&error() &&noexcept { return std::move(*error_); }

    void value() const {
        if (!has_value()) {
            detail::raise(error());
        }
    }

#if defined(__cpp_lib_expected)
    operator std::expected<void, Error>() const {
        return has_value() ? std::expected<void, Error>() : std::unexpected(error());
    }
#endif

private:
    std::optional<Error> error_{};
};

template <class Signature>
class Function;

namespace detail {

/// As std::make_shared(), whose inline functions have a symbol that keeps a plugin from being unloaded.
template <class T, class... Args>
std::shared_ptr<T> shared_of(Args &&...args) {
    return std::shared_ptr<T>(new T(std::forward<Args>(args)...));
}

/// A number as text, without such a symbol.
inline std::string number_text(std::size_t number) {
    char text[24];
    (void)std::snprintf(text, sizeof text, "%zu", number);
    return text;
}

/// Results by which a callable of the user's says whether it has failed.
template <class R>
inline constexpr bool is_outcome = false;
template <>
inline constexpr bool is_outcome<Error> = true;
template <class T>
inline constexpr bool is_outcome<Result<T>> = true;

/// The error in a result, if it is a failure.
inline const Error *error_in(const Error &error) noexcept {
    return error.code() == Code::Ok ? nullptr : &error;
}
template <class T>
const Error *error_in(const Result<T> &result) noexcept {
    return result ? nullptr : &result.error();
}

/// Callables that may be empty.
template <class F>
inline constexpr bool may_be_empty = std::is_pointer_v<F> || std::is_member_pointer_v<F>;
template <class S>
inline constexpr bool may_be_empty<std::function<S>> = true;
template <class S>
inline constexpr bool may_be_empty<Function<S>> = true;
#if defined(__cpp_lib_move_only_function)
template <class S>
inline constexpr bool may_be_empty<std::move_only_function<S>> = true;
#endif

template <class F>
bool is_empty(const F &f) noexcept {
    if constexpr (may_be_empty<F>) {
        return !f;
    } else {
        return (void)f, false;
    }
}

/// The error of a call that is given an empty callable. `what`: the parameter's name.
template <class F>
std::optional<Error> refused_if_empty(const F &f, const char *what) {
    return is_empty(f) ? std::optional<Error>(Error(
                             Code::Invalid, std::string(what) + " is empty, but must be a callable"))
                       : std::nullopt;
}

} // namespace detail

/// A callable of any type that takes A... and answers with R: what settings and long-lived hooks are kept in. It is as
/// a std::function, and takes callables that can only be moved too. A copy has a copy of the callable if that can be
/// copied; otherwise both call the same one. To call an empty one is a failure: Code::Invalid. A Result or an Error that a
/// callable without a result returns is a failure, too, and thrown as an Exception.
template <class R, class... A>
class Function<R(A...)> {
    template <class D>
    using if_callable =
        std::enable_if_t<!std::is_same_v<D, Function> && std::is_invocable_r_v<R, D &, A...>>;

public:
    /// An empty function, which must not be called.
    Function() noexcept = default;
    Function(std::nullptr_t) noexcept {}
    /// Empty too, if it is made of a pointer that is null, or of a std::function that is empty.
    template <class F, class = if_callable<std::decay_t<F>>>
    Function(F &&f) {
        if (!detail::is_empty(f)) {
            kept_ = detail::shared_of<Kept<std::decay_t<F>>>(std::forward<F>(f));
        }
    }
    Function(const Function &other) : kept_(other.kept_ ? other.kept_->copy(other.kept_) : nullptr) {}
    Function(Function &&) noexcept = default;
    Function &operator=(const Function &other) { return *this = Function(other); }
    Function &operator=(Function &&) noexcept = default;

    explicit operator bool() const noexcept { return kept_ != nullptr; }

    R operator()(A... arguments) const {
        if (kept_ == nullptr) {
            detail::raise(Error(Code::Invalid, "an empty function was called"));
        }
        return kept_->call(std::forward<A>(arguments)...);
    }

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
            using Given = std::decay_t<std::invoke_result_t<D &, A...>>;
            if constexpr (std::is_void_v<R> && detail::is_outcome<Given>) {
                const Given outcome = std::invoke(f_, std::forward<A>(arguments)...);
                if (const Error *error = detail::error_in(outcome)) {
                    detail::fail(*error);
                }
            } else if constexpr (std::is_void_v<R>) {
                (void)std::invoke(f_, std::forward<A>(arguments)...);
            } else {
                return std::invoke(f_, std::forward<A>(arguments)...);
            }
        }
        std::shared_ptr<Callable> copy(const std::shared_ptr<Callable> &self) const override {
            if constexpr (std::is_copy_constructible_v<D>) {
                return detail::shared_of<Kept>(f_);
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

    static UnhandledHook &get();
};

/// One for the process. It is weak, because the symbol of an inline variable keeps a plugin from being unloaded.
__attribute__((weak)) std::atomic<UnhandledHook *> unhandled_hook{nullptr};

inline UnhandledHook &UnhandledHook::get() {
    UnhandledHook *known = unhandled_hook.load(std::memory_order_acquire);
    if (known == nullptr) {
        // Never destroyed: a pool's threads may still run while static objects are being destroyed.
        auto made = std::make_unique<UnhandledHook>();
        if (unhandled_hook.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
            known = made.release();
        }
    }
    return *known;
}

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
    auto next = hook ? detail::shared_of<const Unhandled>(std::move(hook)) : nullptr;
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

/// Keeps a failure of the program's code, of which the program has told already, among the last faults that operations
/// endpoints show, and counts it in their figures. Nothing is logged. `is_error`: it is an error, and no warning.
///
/// Threads: any. In handlers: yes, it never waits.
inline void note_fault(const char *what, bool is_error = true) noexcept {
    pace_note_fault(what, is_error);
}

// ---- words of the library ----------------------------------------------------------------------

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
    /// The conditions as a number: PACE_READY_ bits, or-ed.
    constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    constexpr bool has(std::uint32_t bit) const noexcept { return (bits_ & bit) != 0; }

    std::uint32_t bits_;
};

/// The library that was loaded, as major << 16 | minor << 8 | patch. PACE_VERSION_* in paceline.h
/// tell which one the program was compiled for.
inline std::uint32_t version() noexcept { return pace_version(); }

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
    /// Of braces, whose values live until the end of the statement.
    template <class V = T, class = std::enable_if_t<std::is_const_v<V>>>
    constexpr span(std::initializer_list<value_type> values) noexcept
        : data_(std::data(values)), size_(values.size()) {}
    template <class C, class = if_contiguous<C>>
    constexpr span(C &&values) : data_(std::data(values)), size_(std::size(values)) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
    constexpr span first(std::size_t count) const noexcept { return span(data_, count); }
    constexpr span subspan(std::size_t begin) const noexcept {
        return span(data_ + begin, size_ - begin);
    }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// ---- texts ---------------------------------------------------------------------------------------

namespace detail {

/// A text as C has it, where it ends at a NUL. One with a NUL inside would be cut: in its place C gets what it refuses, which
/// is no UTF-8, with the name of the parameter.
inline const char *c_text(const std::string &text) noexcept {
    return text.find('\0') == std::string::npos ? text.c_str() : "\1\xFF (a text with a NUL)";
}
/// The same, of a setting that is not given if it is empty.
inline const char *c_text_if_any(const std::string &text) noexcept {
    return text.empty() ? nullptr : c_text(text);
}
inline std::vector<const char *> c_texts(const std::vector<std::string> &texts) {
    std::vector<const char *> raw;
    for (const std::string &text : texts) {
        raw.push_back(c_text(text));
    }
    return raw;
}
/// A text for people: it is not refused, and a NUL in it is shown.
inline std::string shown_text(std::string_view text) {
    std::string shown;
    for (const char c : text) {
        shown += c == '\0' ? std::string("\\0") : std::string(1, c);
    }
    return shown;
}

template <class T>
using if_text = std::enable_if_t<std::is_convertible_v<const T &, std::string_view>>;

/// A text that a function is given: a std::string_view, and what converts to one. NULL, and a NUL in it, is Code::Invalid
/// with the parameter's name.
class Text {
public:
    Text(const char *text) noexcept : text_(text) {}
    Text(const std::string &text) noexcept : text_(c_text(text)) {}
    template <class T, class = if_text<T>,
              class = std::enable_if_t<!std::is_convertible_v<const T &, const char *>>>
    Text(const T &text) : kept_(std::string_view(text)), text_(c_text(kept_)) {}
    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;

    const char *c_str() const noexcept { return text_; }
    /// Whether it had a NUL.
    bool is_cut() const noexcept {
        return text_ != nullptr && std::string_view(text_).substr(0, 2) == "\1\xFF";
    }

private:
    std::string kept_{};
    const char *text_;
};

} // namespace detail

// ---- what callables are carried in ---------------------------------------------------------------

namespace detail {

/// A time as C has it.
inline std::uint64_t nanos(Duration time) noexcept {
    if (time == FOREVER) {
        return PACE_FOREVER;
    }
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

/// The same for what is none or the default in C where it finds 0: a limit that is negative is over at once.
inline std::uint64_t limit_nanos(Duration time) noexcept { return time.count() < 0 ? 1 : nanos(time); }

/// The error of a period that is negative, which C would find to be 0.
inline std::optional<Error> refused_if_negative(Duration period) {
    return period.count() < 0
               ? std::optional<Error>(
                     Error(Code::Invalid, "period is negative, but must be 1 microsecond to 100 years"))
               : std::nullopt;
}

/// A time that C has measured.
inline nanoseconds time_of(std::uint64_t measured) noexcept {
    const auto most = static_cast<std::uint64_t>(FOREVER.count());
    return measured >= most ? FOREVER : nanoseconds(static_cast<std::int64_t>(measured));
}

/// As refused_if_empty(), of the callables of a batch.
template <class F>
std::optional<Error> refused_if_any_empty(span<F> work) {
    for (std::size_t n = 0; may_be_empty<F> && n < work.size(); ++n) {
        if (is_empty(work[n])) {
            return refused_if_empty(work[n], ("work[" + number_text(n) + "]").c_str());
        }
    }
    return std::nullopt;
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

// ThreadSanitizer does not see how the library orders threads. What a thread has done before it hands something over
// happens before each call of the user's code that begins later; what such a call has done happens before what a thread
// does that has waited for something.
#if defined(PACELINE_DETAIL_TSAN)
inline void *order() noexcept { return reinterpret_cast<void *>(&pace_version); }
inline void hands_over() noexcept { __tsan_release(order()); }
inline void takes_over() noexcept { __tsan_acquire(order()); }
#else
inline void hands_over() noexcept {}
inline void takes_over() noexcept {}
#endif

/// In a function that waits, or ends something.
struct Waits {
    Waits() noexcept { hands_over(); }
    Waits(const Waits &) = delete;
    Waits &operator=(const Waits &) = delete;
    ~Waits() { takes_over(); }
};

/// Why code of the user's has failed: the error that it has returned, or else what it has thrown, in whose catch block this
/// is used.
class Failure {
public:
    explicit Failure(const Error *returned = nullptr) noexcept : returned_(returned) {}

    /// Calls `call` with a text about it: the error's, or what(). False: it is no error and no std::exception.
    template <class Tell>
    bool tell(Tell call) const {
        if (returned_ != nullptr) {
            (void)call(returned_->message());
            return true;
        }
#if defined(__cpp_exceptions)
        try {
            throw;
        } catch (const std::exception &thrown) {
            const char *what = thrown.what();
            (void)call(what != nullptr ? what : "an exception whose what() is NULL");
            return true;
        } catch (...) {
            (void)call("what was thrown is no std::exception");
        }
#endif
        return false;
    }

    /// As tell(), with the type of what was thrown before its text: "std::out_of_range: no such number".
    template <class Tell>
    bool tell_typed(Tell call) const {
        return tell([&](const char *what) {
#if defined(__cpp_exceptions) && defined(__cpp_rtti)
            const std::string type = returned_ == nullptr ? thrown_type() : std::string();
            if (!type.empty() && type != what) {
                return call((type + ": " + what).c_str());
            }
#endif
            return call(what);
        });
    }

    std::exception_ptr thrown() const {
        return returned_ != nullptr ? std::make_exception_ptr(Exception(*returned_))
                                    : std::current_exception();
    }

private:
#if defined(__cpp_exceptions) && defined(__cpp_rtti)
    /// The name of its type; none of an Exception, which says all by its text.
    static std::string thrown_type() {
        const std::type_info *type = abi::__cxa_current_exception_type();
        if (type == nullptr || *type == typeid(Exception)) {
            return {};
        }
        int status = 0;
        const std::unique_ptr<char, void (*)(void *)> name(
            abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
        return name ? name.get() : type->name();
    }
#endif

    const Error *returned_;
};

/// Tells of a failure that nobody waits for. What the hook throws is the caller's. `fails`: the callback answers that it
/// has failed, which the library tells of. Without a hook the library is told the text.
inline void report_unhandled(const Failure &failure, bool fails) {
    auto &slot = UnhandledHook::get();
    std::shared_ptr<const Unhandled> hook;
    {
        std::lock_guard<std::mutex> lock(slot.mutex);
        hook = slot.hook;
    }
    if (!hook) {
        (void)failure.tell([fails](const char *what) { pace_unhandled(what, fails); });
        return;
    }
    pace_unhandled(nullptr, fails);
    (*hook)(failure.thrown());
}

/// Calls `f`: the error that it returns, if it returns one.
template <class F>
std::optional<Error> returned_error(F &&f) {
    using R = std::decay_t<std::invoke_result_t<F>>;
    if constexpr (is_outcome<R>) {
        const R outcome = std::forward<F>(f)();
        const Error *error = error_in(outcome);
        return error != nullptr ? std::optional<Error>(*error) : std::nullopt;
    } else {
        (void)std::forward<F>(f)();
        return std::nullopt;
    }
}

/// Calls `f`, the user's code; whether it has returned, and no error. Otherwise calls `told` with the Failure. What throws
/// after that, as the destructor of an exception or the hook of on_unhandled() may, goes nowhere. Whatever C calls back
/// goes through here: nothing passes.
template <class F, class Told>
bool contained(F &&f, Told &&told) noexcept {
    bool succeeded = false;
    takes_over();
    PACELINE_DETAIL_TRY {
        std::optional<Error> returned;
        PACELINE_DETAIL_TRY {
            returned = returned_error(std::forward<F>(f));
            succeeded = !returned;
        }
        PACELINE_DETAIL_CATCH { told(Failure()); }
        if (returned) {
            told(Failure(&*returned));
        }
    }
    PACELINE_DETAIL_CATCH {}
    hands_over();
    return succeeded;
}

/// Calls `f`; whether it has returned, and no error. What it throws, or the error, goes to the hook of on_unhandled().
template <class F>
bool guard(F &&f) noexcept {
    return contained(std::forward<F>(f),
                     [](const Failure &failure) { report_unhandled(failure, false); });
}

/// As guard(), for a callback that answers that it has failed if this does not return.
template <class F>
bool guard_or_fail(F &&f) noexcept {
    return contained(std::forward<F>(f),
                     [](const Failure &failure) { report_unhandled(failure, true); });
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
                            [&](const Failure &failure) { rows.thrown = failure.thrown(); });
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
    Boxed<std::decay_t<F>> box(new std::decay_t<F>(std::forward<F>(f)));
    hands_over();
    return box;
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

/// What rings and queues copy as bytes.
template <class T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && sizeof(T) <= 131072 &&
                                 alignof(T) <= alignof(std::uint64_t);

inline std::vector<pace_piece_t> pieces_of(span<const std::string_view> pieces) {
    std::vector<pace_piece_t> raw;
    raw.reserve(pieces.size());
    for (const std::string_view piece : pieces) {
        raw.push_back({piece.data(), piece.size()});
    }
    return raw;
}

} // namespace detail

/// Where settings come from: files, JSON or YAML by their names, of which later ones win, and over them variables
/// PACELINE_… if `environment`. docs/SETTINGS.md lists all settings. What cannot be read or is wrong is Code::Invalid, which
/// tells all of it. A configuration's load() gives what its section says, beside the defaults.
struct Settings {
    std::vector<std::string> files{};
    /// Whether variables win over the files. Default false.
    bool environment = false;

    Settings() = default;
    explicit Settings(std::vector<std::string> paths, bool variables = false)
        : files(std::move(paths)), environment(variables) {}
};

namespace detail {
/// Changes what C reads to what settings say.
template <class Raw, class Load>
pace_status_t load(const Settings &settings, Raw &raw, Load call) {
    for (const std::string &file : settings.files) {
        const pace_status_t status = call(&raw, c_text(file), false);
        if (status != PACE_OK) {
            return status;
        }
    }
    return settings.environment ? call(&raw, nullptr, true) : PACE_OK;
}

/// The configuration that `make` makes of what C reads, with its defaults and the settings over them.
template <class Config, class Raw, class Init, class Load, class Make>
Result<Config> loaded(const Settings &settings, Init init, Load call, Make make) {
    Raw raw{};
    (void)init(&raw, sizeof raw);
    const pace_status_t status = load(settings, raw, call);
    return status == PACE_OK ? Result<Config>(make(raw)) : Result<Config>(Error::last(status));
}

inline std::optional<std::uint64_t> unless_unlimited(std::uint64_t limit) noexcept {
    return limit == PACE_UNLIMITED ? std::nullopt : std::optional<std::uint64_t>(limit);
}

inline std::string text_of(const char *text) { return text == nullptr ? std::string() : text; }
} // namespace detail

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

    /// What C has, if it is not the default.
    static std::optional<Retry> of(const pace_retry_t &raw) noexcept {
        Retry retry(raw.shape, 0, {}, {});
        retry.raw_ = raw;
        return raw.shape == PACE_RETRY_DEFAULT ? std::nullopt : std::optional<Retry>(retry);
    }

private:
    Retry(std::uint32_t shape, std::uint32_t retries, Duration first, Duration cap) noexcept {
        raw_.shape = shape;
        raw_.retries = retries;
        raw_.first_ns = detail::limit_nanos(first);
        raw_.cap_ns = detail::limit_nanos(cap);
    }

    pace_retry_t raw_{};
};

/// How often tasks of a task type may start.
struct Rate {
    std::uint32_t starts{};
    Duration per{std::chrono::seconds(1)};
    std::uint32_t burst{1};
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

} // namespace detail

} // inline namespace
} // namespace paceline

#undef PACELINE_DETAIL_TSAN
#undef PACELINE_DETAIL_TRY
#undef PACELINE_DETAIL_CATCH

#endif // PACELINE_CORE_HPP
