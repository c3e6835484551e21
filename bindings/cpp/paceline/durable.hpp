// paceline/durable.hpp: durable tasks: a NATS broker has them, and worker pools run them.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_DURABLE_HPP
#define PACELINE_DURABLE_HPP

#include "bridge.hpp"
#include "workers.hpp"

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

/// Settings of a DurableQueue, for DurableQueue::create().
struct DurableConfig {
    /// How many tasks of each name and lane this process may have taken and not ended, up to 65536. More keep threads busy;
    /// fewer leave more to other processes. 0 (default): twice the pool's threads.
    std::uint32_t in_flight = 0;
    /// How long results are kept: 1 second to 100 years.
    Duration results_last = std::chrono::hours(1);
    /// After how long without a sign of life the broker gives a task to another process: 100 ms to 1 day.
    Duration ack_wait = std::chrono::seconds(30);
    /// How long a unique id is known, where this process makes the broker's streams.
    Duration window = std::chrono::minutes(2);

    DurableConfig &set_in_flight(std::uint32_t value) { return in_flight = value, *this; }
    DurableConfig &set_results_last(Duration value) { return results_last = value, *this; }
    DurableConfig &set_ack_wait(Duration value) { return ack_wait = value, *this; }
    DurableConfig &set_window(Duration value) { return window = value, *this; }

    /// For calls to paceline.h, which has times in nanoseconds.
    pace_durable_options_t native() const noexcept {
        pace_durable_options_t raw{};
        (void)pace_durable_options_init(&raw, sizeof raw);
        raw.in_flight = in_flight;
        raw.results_ns = detail::nanos(results_last);
        raw.ack_wait_ns = detail::nanos(ack_wait);
        raw.window_ns = detail::nanos(window);
        return raw;
    }
};

/// What a durable task is submitted with beside its name and arguments.
struct Submission {
    /// Each lane is a stream of the broker, and workers run what they have taken in the order of lanes.
    Lane lane{Lane::Normal};
    /// How long it waits before its first attempt, by the clocks of submitter and worker.
    Duration delay{};
    /// How long it may take from now on, by the clocks of submitter and worker. After that no attempt begins, and one that
    /// runs has failed. Default: no limit.
    Duration deadline{FOREVER};
    /// How many attempts there may be, if those are fewer than the handler's retries allow. 0 (default): as many as those.
    std::uint32_t attempts = 0;
    /// Stores no result: nobody waits for its end.
    bool ignore_result = false;
    /// Submits it once: while the broker has one of this id in the same lane that was stored within the queue's window, it is
    /// that one. Up to 200 bytes. Empty (default): each submission is a task of its own.
    std::string unique{};
    /// How long submit() waits until the broker has stored it.
    Duration timeout = std::chrono::seconds(30);

    Submission &set_lane(Lane value) { return lane = value, *this; }
    Submission &set_delay(Duration value) { return delay = value, *this; }
    Submission &set_deadline(Duration value) { return deadline = value, *this; }
    Submission &set_attempts(std::uint32_t value) { return attempts = value, *this; }
    Submission &set_ignore_result(bool value = true) { return ignore_result = value, *this; }
    Submission &set_unique(std::string_view id) { return unique = id, *this; }
    Submission &set_timeout(Duration value) { return timeout = value, *this; }

    /// For calls to paceline.h. It points into the Submission.
    pace_submission_t native() const noexcept {
        pace_submission_t raw{};
        (void)pace_submission_init(&raw, sizeof raw);
        raw.lane = static_cast<std::uint32_t>(lane);
        raw.delay_ns = detail::nanos(delay);
        raw.deadline_ns = detail::nanos(deadline);
        raw.attempts = attempts;
        raw.ignore_result = ignore_result;
        raw.unique = detail::c_text_if_any(unique);
        return raw;
    }
};

/// How a durable task has ended, and with what.
struct DurableReport {
    DurableStatus status{};
    /// How many attempts were begun, in all processes together.
    std::uint32_t attempts{};
    std::string id{};
    /// What its handler has returned, if it has completed.
    std::string value{};
    /// What went wrong last. Empty if it has completed.
    std::string failure{};

    bool completed() const noexcept { return status == DurableStatus::Completed; }
};

/// A durable task that has failed for good.
struct DeadTask {
    /// Its number among the dead of its queue.
    std::uint64_t number{};
    /// How many attempts were begun, in all processes together.
    std::uint32_t attempts{};
    std::string id{}, name{};
    /// What it was submitted with.
    std::string arguments{};
    /// What went wrong at its last attempt.
    std::string failure{};
};

/// One attempt of a durable task, which its handler is lent: good during that call.
class DurableJob {
public:
    explicit DurableJob(pace_job_t *raw) noexcept : raw_(raw) {
        info_.struct_size = sizeof info_;
        (void)pace_job_info(raw, &info_);
    }
    DurableJob(const DurableJob &) = delete;
    DurableJob &operator=(const DurableJob &) = delete;

    /// The task's id, the same for each attempt in any process.
    std::string_view id() const noexcept { return Message::view(info_.id); }
    /// The name of the task, which has chosen its handler.
    std::string_view name() const noexcept { return Message::view(info_.name); }
    /// What the task was submitted with.
    std::string_view arguments() const noexcept {
        return Message::view({static_cast<const char *>(info_.arguments), info_.size});
    }
    /// Which attempt it is, in all processes together: 1 for the first. An attempt counts if its process ended in it; a task
    /// that was given back before it began has had none.
    std::uint32_t number() const noexcept { return info_.number; }
    /// How long the attempt may take still: zero if its time is over, and when it was ended; `forever` without a
    /// limit.
    nanoseconds time_left() const noexcept {
        pace_job_info_t now{};
        now.struct_size = sizeof now;
        (void)pace_job_info(raw_, &now);
        return detail::time_of(now.time_left_ns);
    }
    /// Whether the attempt is to end, because its time is over or the pool ends: what comes of it then is waited for no
    /// longer. Also if it was ended.
    bool is_cancelled() const noexcept {
        bool cancelled = true;
        (void)pace_job_is_cancelled(raw_, &cancelled);
        return cancelled;
    }

    /// The attempt has succeeded, with these bytes. The first end that is said counts: Code::Stale if it is not this one.
    Result<void> complete(std::string_view value = {}) const {
        return detail::outcome(pace_job_complete(raw_, value.data(), value.size()));
    }
    /// The attempt has failed; another follows as the retry says. Code::Stale as with complete().
    Result<void> fail(std::string_view message) const { return end(message, false, 0); }
    /// The attempt has failed, and no other follows. Code::Stale as with complete().
    Result<void> permanent(std::string_view message) const { return end(message, true, 0); }
    /// The attempt has failed; another follows after `delay`, or as the retry says if that is zero. Code::Stale as with
    /// complete().
    Result<void> retry_after(std::string_view message, Duration delay) const {
        return end(message, false, detail::nanos(delay));
    }

    /// For calls to paceline.h. Stays the DurableJob's.
    pace_job_t *native() const noexcept { return raw_; }

private:
    friend class OpenJob;

    Result<void> end(std::string_view message, bool permanent, std::uint64_t delay) const {
        return detail::outcome(
            pace_job_fail(raw_, detail::shown_text(message).c_str(), permanent, delay));
    }

    pace_job_t *raw_;
    pace_job_info_t info_{};
};

/// One attempt of a durable task that the host has taken (DurableQueue::take()), and is to end on any thread. The destructor
/// gives back what was not ended: it is run again, by this process or another, and this attempt does not count.
class [[nodiscard]] OpenJob : public DurableJob {
public:
    OpenJob(OpenJob &&other) noexcept : DurableJob(std::exchange(other.raw_, nullptr)) {
        other.info_ = pace_job_info_t{};
    }
    OpenJob &operator=(OpenJob other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(info_, other.info_);
        return *this;
    }
    ~OpenJob() { pace_job_free(raw_); }

    /// Begins the attempt of a job of DurableQueue::take_waiting(), once. False if it is not to be run, because the task was
    /// cancelled, its time is over, or it was given back: destroy it then. It waits for the broker, up to five seconds, unless
    /// this is the first attempt of several.
    bool begin() const noexcept {
        bool begun = false;
        (void)pace_job_begin(raw_, &begun);
        return begun;
    }

private:
    friend class DurableQueue;

    explicit OpenJob(pace_job_t *raw) noexcept : DurableJob(raw) {}
};

namespace detail {

struct FreeReport {
    void operator()(pace_durable_report_t *raw) const noexcept { pace_durable_report_free(raw); }
};
using OwnedReport = std::unique_ptr<pace_durable_report_t, FreeReport>;

inline pace_durable_info_t info_of(const OwnedReport &report) noexcept {
    pace_durable_info_t info{};
    info.struct_size = sizeof info;
    (void)pace_durable_report_info(report.get(), &info);
    return info;
}

inline std::string bytes_of(const pace_durable_info_t &info) {
    return std::string(Message::view({static_cast<const char *>(info.bytes), info.size}));
}

/// Says how an attempt has ended whose handler has returned this.
template <class R>
void end_job(const DurableJob &job, const R &returned) {
    if constexpr (std::is_convertible_v<const R &, std::string_view>) {
        (void)job.complete(returned);
    } else {
        static_assert(is_outcome<R>,
                      "what runs durable tasks returns nothing, text, a Result or an Error");
        if (const Error *error = error_in(returned)) {
            (void)job.fail(error->message());
        } else if constexpr (!std::is_same_v<R, Error> && !std::is_same_v<R, Result<void>>) {
            (void)job.complete(*returned);
        }
    }
}

/// Runs an attempt, which fails with what() of what is thrown.
template <class F>
pace_status_t run_job(void *data, pace_job_t *raw) noexcept {
    const bool returned = contained(
        [&] {
            auto &handler = *static_cast<F *>(data);
            const DurableJob job(raw);
            using R = std::invoke_result_t<F &, const DurableJob &>;
            if constexpr (std::is_void_v<R>) {
                handler(job);
            } else {
                end_job<std::decay_t<R>>(job, handler(job));
            }
        },
        [raw](const Failure &failure) {
            failure.tell([raw](const char *what) { return pace_job_fail(raw, what, false, 0); });
        });
    return returned ? PACE_OK : PACE_EFAILED;
}

struct FreeDurable {
    void operator()(pace_durable_t *raw) const noexcept { pace_durable_free(raw); }
};

using SharedDurable = std::shared_ptr<pace_durable_t>;

} // namespace detail

/// A durable task that was submitted, maybe by another process: wait for it, or cancel it. It keeps its queue open.
class [[nodiscard]] DurableTask {
public:
    /// The task's id in its queue, for any process: DurableQueue::find().
    const std::string &id() const noexcept { return id_; }
    /// Whether the broker had it already, by the unique id that it was submitted with.
    bool is_duplicate() const noexcept { return is_duplicate_; }
    /// Waits until it has ended: any number of times. Code::TimedOut, also if it was submitted without a result, if the
    /// result is older than results are kept, and if there is no such task; Code::Invalid for what is no id. Not in handlers.
    Result<DurableReport> wait(Duration time) const {
        pace_durable_report_t *raw = nullptr;
        const pace_status_t status =
            pace_durable_wait(queue_.get(), detail::c_text(id_), detail::nanos(time), &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        const detail::OwnedReport owned(raw);
        const pace_durable_info_t info = detail::info_of(owned);
        DurableReport report;
        report.status = static_cast<DurableStatus>(info.status);
        report.attempts = info.attempts;
        report.id = Message::view(info.id);
        report.value = detail::bytes_of(info);
        report.failure = Message::view(info.failure);
        return report;
    }
    /// Has it not begin. True: it has not begun, and will not, and its result is DurableStatus::Cancelled. False: an attempt
    /// has begun, or it has ended, or there is none of this id. Workers are asked first, then it is deleted at the broker, so
    /// it takes up to a second. Code::TimedOut: neither a worker nor the broker has answered, so that it may run;
    /// Code::ShutDown; Code::Invalid for what is no id. Not in handlers.
    Result<bool> cancel() const {
        bool cancelled = false;
        const pace_status_t status = pace_durable_cancel(queue_.get(), detail::c_text(id_), &cancelled);
        return status == PACE_OK ? Result<bool>(cancelled) : Result<bool>(Error::last(status));
    }

private:
    friend class DurableQueue;

    DurableTask(detail::SharedDurable queue, std::string id, bool is_duplicate) noexcept
        : queue_(std::move(queue)), id_(std::move(id)), is_duplicate_(is_duplicate) {}

    detail::SharedDurable queue_;
    std::string id_;
    bool is_duplicate_;
};

/// A queue of tasks that outlive the process: a broker has them, and any process with a handler for a task's name runs it, in
/// its worker pool.
///
///     auto queue = paceline::DurableQueue::create(workers, "pictures", "nats://127.0.0.1:4222").value();
///     queue.task("shrink", [](const paceline::DurableJob &job) { return shrunk(job.arguments()); }).value();
///     queue.open().value();
///     auto task = queue.submit("shrink", "a picture").value(); // the broker has stored it
///     auto report = task.wait(std::chrono::minutes(1)).value();
///
/// It ends with the last of it and its DurableTasks, which takes up to 2 seconds if something waits; close() sets another
/// limit. A handler is deleted when none of its calls runs.
class [[nodiscard]] DurableQueue {
public:
    /// Give it handlers by task() and task_pulled(), and open() it. A process that only submits needs none.
    /// `name` has 1 to 182 bytes, that of a task 1 to 200, both together up to 205, without blanks, control characters, and any
    /// of . * > / \\ %. Code::Unsupported: the library was built without the feature `nats`; Code::Invalid names the setting.
    static Result<DurableQueue> create(const WorkerPool &workers, const detail::Text &name,
                                       const NatsSettings &nats, const DurableConfig &config = {}) {
        const auto broker = nats.native();
        const auto options = config.native();
        pace_durable_t *raw = nullptr;
        const pace_status_t status =
            pace_durable_new(workers.native(), name.c_str(), &broker, &options, &raw);
        return status == PACE_OK ? Result<DurableQueue>(DurableQueue(raw))
                                 : Result<DurableQueue>(Error::last(status));
    }

    /// Has the tasks of a name run by a function of (const DurableJob &), on threads of the pool, several at once. What it returns,
    /// text or nothing, completes the task, unless it has ended the DurableJob itself. If it throws, or returns a Result with an
    /// error, the attempt fails, with the text of that. Without `retry`: ten attempts in all, after half a second and then
    /// twice as long each time. Code::Invalid if the queue is open already, and for a retry that makes no sense; a bad name
    /// is found by open(). A callable that is refused is given back.
    template <class F>
    Result<void> task(const detail::Text &name, F &&handler,
                      const std::optional<Retry> &retry = {}) const {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_v<D &, const DurableJob &>,
                      "what runs durable tasks is called with a const DurableJob &");
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(handler));
        const pace_status_t status =
            pace_durable_task(raw_.get(), name.c_str(), retry ? &retry->native() : nullptr,
                              detail::run_job<D>, box.get(), detail::drop_box<D>);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(handler, *box);
            return error;
        }
        (void)box.release();
        return {};
    }
    /// Has the tasks of a name taken by the host, on threads of its own: take(). Errors as with task().
    Result<void> task_pulled(const detail::Text &name, const std::optional<Retry> &retry = {}) const {
        return detail::outcome(
            pace_durable_task_pulled(raw_.get(), name.c_str(), retry ? &retry->native() : nullptr));
    }
    /// Submits a task at times of the calendar, in the manner of cron, by UTC: "30 3 * * 1-5" is half past three from Monday
    /// to Friday. All processes with a schedule of this label submit one task together for each time. What comes due while
    /// none of them runs is not submitted later. Code::Invalid if the queue is open already; a bad time or name is found by
    /// open().
    Result<void> schedule(const detail::Text &label, const detail::Text &when, const detail::Text &task,
                          std::string_view arguments = {}) const {
        return detail::outcome(pace_durable_schedule(raw_.get(), label.c_str(), when.c_str(),
                                                     task.c_str(), arguments.data(), arguments.size()));
    }
    /// Begins to connect, on a thread of its own. It does not wait for the broker, which may come later. If it fails, the
    /// queue is of no use any more. Code::Invalid names the name, setting or schedule, also if it is open already; Code::Os:
    /// a thread cannot be created; Code::ShutDown.
    Result<void> open() const { return detail::outcome(pace_durable_open(raw_.get())); }

    /// Waits until it is connected. Nothing needs that. Code::TimedOut; Code::ShutDown if it has ended; Code::Invalid before
    /// it is open.
    Result<void> wait_connected(Duration time) const {
        return detail::outcome(pace_durable_wait_connected(raw_.get(), detail::nanos(time)));
    }
    /// Submits a task, and waits until the broker has stored it: then it is accepted. Code::TimedOut: it is not stored yet,
    /// and will be when the broker takes it; the text says what stands in the way, if that is known. Code::Invalid for a bad name or setting, if the stream refuses it, and before the
    /// queue is open; Code::Full: too many wait to be stored; Code::ShutDown. Not in handlers.
    Result<DurableTask> submit(const detail::Text &name, std::string_view arguments = {},
                               const Submission &with = {}) const {
        const auto submission = with.native();
        pace_durable_id_t id{};
        bool is_duplicate = false;
        const pace_status_t status =
            pace_durable_submit(raw_.get(), name.c_str(), &submission, arguments.data(),
                                arguments.size(), detail::nanos(with.timeout), &id, &is_duplicate);
        return status == PACE_OK ? Result<DurableTask>(DurableTask(raw_, id.text, is_duplicate))
                                 : Result<DurableTask>(Error::last(status));
    }
    /// The task of this id, as DurableTask::id() has given it, maybe to another process. It need not exist.
    DurableTask find(std::string_view id) const { return DurableTask(raw_, std::string(id), false); }
    /// Takes the next task of the names of task_pulled(), that of the most urgent lane, and begins it; waits for it. Several
    /// threads may take. Code::TimedOut; Code::ShutDown when the queue has ended; Code::Invalid before it is open. Not in handlers.
    Result<OpenJob> take(Duration time) const {
        pace_job_t *job = nullptr;
        const pace_status_t status = pace_durable_take(raw_.get(), detail::nanos(time), &job);
        return status == PACE_OK ? Result<OpenJob>(OpenJob(job)) : Result<OpenJob>(Error::last(status));
    }
    /// As take(), for a host whose tasks wait before they are run: OpenJob::begin() begins each. Until then it can be
    /// cancelled, close() gives it back, and if the process ends it has had no attempt.
    Result<OpenJob> take_waiting(Duration time) const {
        pace_job_t *job = nullptr;
        const pace_status_t status = pace_durable_take_waiting(raw_.get(), detail::nanos(time), &job);
        return status == PACE_OK ? Result<OpenJob>(OpenJob(job)) : Result<OpenJob>(Error::last(status));
    }
    /// Up to `most` tasks that have failed for good, the oldest first, from this number on. Code::TimedOut: the broker does
    /// not answer; Code::ShutDown; Code::Invalid before the queue is open. Not in handlers.
    Result<std::vector<DeadTask>> dead(std::uint64_t from = 0, std::size_t most = 100) const {
        std::vector<DeadTask> tasks;
        while (tasks.size() < most) {
            pace_durable_report_t *raw = nullptr;
            const pace_status_t status = pace_durable_dead(raw_.get(), from, &raw);
            if (status == PACE_ESTALE) {
                break;
            }
            if (status != PACE_OK) {
                return Error::last(status);
            }
            const detail::OwnedReport owned(raw);
            const pace_durable_info_t info = detail::info_of(owned);
            DeadTask task;
            task.number = info.number;
            task.attempts = info.attempts;
            task.id = Message::view(info.id);
            task.name = Message::view(info.name);
            task.arguments = detail::bytes_of(info);
            task.failure = Message::view(info.failure);
            tasks.push_back(std::move(task));
            from = info.number + 1;
        }
        return tasks;
    }
    /// Submits a task that has failed for good once more, as a new one, and forgets the dead one, unless the broker is away by
    /// then. Code::Stale: there is none of this number; otherwise as dead() and submit().
    Result<DurableTask> resubmit(std::uint64_t number) const {
        pace_durable_id_t id{};
        const pace_status_t status = pace_durable_resubmit(raw_.get(), number, &id);
        return status == PACE_OK ? Result<DurableTask>(DurableTask(raw_, id.text, false))
                                 : Result<DurableTask>(Error::last(status));
    }
    /// Forgets a task that has failed for good. Code::Stale: there is none of this number; otherwise as dead().
    Result<void> forget(std::uint64_t number) const {
        return detail::outcome(pace_durable_forget(raw_.get(), number));
    }
    /// How its connection is, and what it has carried: tasks out are exports, tasks in are imports. Fields as in paceline.h.
    /// Code::Invalid before it is open.
    Result<pace_bridge_stats_t> stats() const {
        pace_bridge_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_durable_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<pace_bridge_stats_t>(stats)
                                 : Result<pace_bridge_stats_t>(Error::last(status));
    }
    /// Why nothing is stored or comes: it is not connected, or what the broker has refused last; empty if all is well.
    /// Code::Invalid before it is open.
    Result<std::string> reason() const {
        return detail::figures_of([this](char *to, std::size_t size, std::size_t *needed) {
            return pace_durable_reason(raw_.get(), to, size, needed);
        });
    }
    /// Ends it: it takes no more tasks, gives back those that have not begun, and waits until the others have ended, for up
    /// to `time`. What has not ended then is run again elsewhere, or later. The answer says how many submissions, results
    /// and dead tasks were not stored: 0 as a rule. Code::Invalid before it is open. Not in handlers.
    Result<std::uint64_t> close(Duration time) const {
        std::uint64_t left = 0;
        const pace_status_t status = pace_durable_close(raw_.get(), detail::nanos(time), &left);
        return status == PACE_OK ? Result<std::uint64_t>(left)
                                 : Result<std::uint64_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the DurableQueue's.
    pace_durable_t *native() const noexcept { return raw_.get(); }

private:
    explicit DurableQueue(pace_durable_t *raw) : raw_(raw, detail::FreeDurable()) {}

    detail::SharedDurable raw_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_DURABLE_HPP
