// paceline/work_task.hpp: tasks of worker pools, and what their functions are given.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_WORK_TASK_HPP
#define PACELINE_WORK_TASK_HPP

#include "task.hpp"

#include <paceline/workers.h>

#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- worker pools --------------------------------------------------------------------------------

/// How many retries the tasks of a task type may make together: see pace_task_type_config_t.
struct RetryBudget {
    double ratio{0.2};
    std::uint32_t per_second{10};
    std::uint32_t burst{100};
};

/// What is done with a task for which its lane has no room.
class OverloadPolicy {
public:
    /// It is given back at once.
    static OverloadPolicy reject() noexcept { return OverloadPolicy(PACE_OVERLOAD_REJECT); }
    /// Its submitter waits for room; inside the pool it is given back.
    static OverloadPolicy wait(Duration time = FOREVER) noexcept {
        return OverloadPolicy(PACE_OVERLOAD_WAIT, time);
    }
    /// Its first attempt runs in the submitter's thread; inside the pool it is given back.
    static OverloadPolicy run_here() noexcept { return OverloadPolicy(PACE_OVERLOAD_RUN_HERE); }
    /// The oldest task with this policy in the lowest lane is dropped, and ends as Rejected.
    static OverloadPolicy drop_oldest() noexcept { return OverloadPolicy(PACE_OVERLOAD_DROP_OLDEST); }

    /// What a struct of paceline.h has, if it is not the default.
    static std::optional<OverloadPolicy> of(std::uint32_t full, std::uint64_t wait_ns) noexcept {
        return full == PACE_OVERLOAD_DEFAULT
                   ? std::nullopt
                   : std::optional<OverloadPolicy>(OverloadPolicy(full, detail::time_of(wait_ns)));
    }

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

/// How a task of a worker pool has ended, and its value.
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
    ~WorkersCore() {
        const Waits waits;
        pace_workers_free(workers);
    }

    const SharedCore pool;
    pace_workers_t *const workers;
};

using SharedWorkers = std::shared_ptr<const WorkersCore>;

/// Calls `f`, code of an attempt, which fails if that throws; whether it has returned.
template <class F>
bool guard_attempt(pace_attempt_t *attempt, F &&f) noexcept {
    return contained(std::forward<F>(f), [attempt](const Failure &failure) {
        failure.tell_typed([attempt](const char *what) { return pace_attempt_fail(attempt, what); });
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
    explicit Attempted(G &&g) : f(std::forward<G>(g)) {
        hands_over();
    }

    /// The error that the callable has returned, if it has.
    std::optional<Error> attempt(Attempt &which) {
        const auto call = [&]() -> decltype(auto) { return call_attempt(*f, which); };
        if constexpr (std::is_void_v<T>) {
            // Of a periodic task, whose value nobody gets.
            return returned_error(call);
        } else {
            T made = call();
            if constexpr (is_outcome<T>) {
                if (const Error *error = error_in(made)) {
                    return *error;
                }
            }
            const std::uint32_t number = which.number();
            const std::lock_guard<std::mutex> hold(this->placing);
            if (number >= placed) {
                placed = number;
                this->fill([&]() -> T && { return std::move(made); });
            }
            return std::nullopt;
        }
    }

    static void run(void *data, pace_attempt_t *raw, std::int32_t *outcome) noexcept {
        auto *self = static_cast<Attempted *>(data);
        const bool returned = contained(
            [&]() -> Result<void> {
                Attempt attempt(raw);
                auto error = self->attempt(attempt);
                return error ? Result<void>(*std::move(error)) : Result<void>();
            },
            [&](const Failure &failure) {
                failure.tell_typed([&](const char *what) {
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

/// A task of a worker pool, to wait for. When it goes the task goes on all the same.
template <class T>
class [[nodiscard]] WorkTask {
public:
    WorkTask() noexcept = default;
    WorkTask(WorkTask &&other) noexcept
        : core_(std::move(other.core_)), id_(other.id_), place_(std::exchange(other.place_, nullptr)) {}
    WorkTask &operator=(WorkTask other) noexcept {
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
    Result<TaskReport<T>> wait(Duration time = FOREVER) {
        if (!valid()) {
            return detail::gone("task");
        }
        pace_task_report_t raw{};
        raw.struct_size = sizeof raw;
        detail::hands_over();
        const pace_status_t status = pace_workers_wait(core_->workers, id_, detail::nanos(time), &raw);
        detail::takes_over();
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
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        if (!valid()) {
            return detail::gone("task");
        }
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_workers_on_end(
            core_->workers, id_,
            [](void *data, std::uint32_t raw) noexcept {
                (void)detail::guard(
                    [&] { return (*static_cast<D *>(data))(static_cast<TaskStatus>(raw)); });
            },
            box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
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

    /// The task as functions of the C interface take it.
    pace_task_t native() const noexcept { return id_; }

private:
    friend class TaskType;
    friend class CompletionQueue;

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

} // inline namespace
} // namespace paceline

#endif // PACELINE_WORK_TASK_HPP
