// paceline/workers.hpp: worker pools: priorities, retries, limits in time, results.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_WORKERS_HPP
#define PACELINE_WORKERS_HPP

#include "pool.hpp"
#include "work_task.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

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
    /// For tasks without a callable: how long a host may be silent about an attempt that it has taken, before
    /// it counts as gone, and the attempt as failed: 1 ms or more. Zero: it is waited for.
    Duration lease{};

    /// As the section `tasks` of settings says.
    static Result<TaskTypeConfig> load(const Settings &settings) {
        using Raw = pace_task_type_config_t;
        return detail::loaded<TaskTypeConfig, Raw>(
            settings, pace_task_type_config_init, pace_task_type_config_load, [](const Raw &raw) {
                TaskTypeConfig config;
                config.lane = static_cast<Lane>(raw.lane);
                config.retry = Retry::of(raw.retry);
                config.timeout = detail::time_of(raw.timeout_ns);
                config.queue_timeout = detail::time_of(raw.queue_timeout_ns);
                config.deadline = detail::time_of(raw.deadline_ns);
                config.soft_timeout = detail::time_of(raw.soft_timeout_ns);
                config.grace = detail::time_of(raw.grace_ns);
                config.lease = detail::time_of(raw.lease_ns);
                config.max_running = raw.max_running == PACE_UNLIMITED32 ? 0 : raw.max_running;
                config.full = OverloadPolicy::of(raw.full, raw.full_wait_ns);
                return config;
            });
    }
};

/// A task that runs again and again, until this goes: a run that waits is cancelled, one that runs is asked to stop
/// (Attempt::is_cancelled()), and the destructor returns when no run is left and the callable has been deleted. Inside a
/// handler or task, on a thread of the pool, it does not wait.
class [[nodiscard]] Periodic {
public:
    Periodic(Periodic &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    Periodic &operator=(Periodic other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Periodic() {
        const detail::Waits waits;
        pace_periodic_free(raw_);
    }

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

/// A name of tasks with its settings and statistics. Its callables are called as f(Attempt &) or f(),
/// once for each attempt; one that throws has failed, and what() is the report's message.
class [[nodiscard]] TaskType {
public:
    TaskType(TaskType &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), core_(std::move(other.core_)) {}
    TaskType &operator=(TaskType other) noexcept {
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
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
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
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        if (!core_) {
            return detail::gone("task type");
        }
        detail::Packed<F> packed(std::forward<F>(f));
        const pace_work_t &work = packed.work();
        return detail::outcome(
            packed.settle(pace_task_type_post(raw_, work.run, work.user_data, work.drop)));
    }

    /// Submits the callables in order, at the price of few: a WorkTask for each that was taken, in order. Those that
    /// were taken are moved from. The tasks are fewer than the callables if the rest was refused; an error only if
    /// none was taken.
    template <class F>
    Result<std::vector<TaskFor<F>>> submit_batch(span<F> work, const TaskOptions &options = {}) const {
        std::vector<pace_task_t> ids(work.size());
        std::vector<TaskFor<F>> tasks;
        tasks.reserve(work.size());
        const auto boxes = put_batch(work, options, ids.data());
        if (!boxes) {
            return boxes.error();
        }
        for (auto *box : *boxes) {
            tasks.push_back(TaskFor<F>(core_, ids[tasks.size()], box));
        }
        return tasks;
    }
    /// As above, for a std::vector or std::array of callables.
    template <class C>
    auto submit_batch(C &work, const TaskOptions &options = {}) const
        -> decltype(submit_batch(span(std::data(work), std::size(work)), options)) {
        return submit_batch(span(std::data(work), std::size(work)), options);
    }

    /// Submits the callables in order, without a WorkTask to wait for; says how many were taken. Those that
    /// were taken are moved from. An error only if none was.
    template <class F>
    Result<std::size_t> post_batch(span<F> work, const TaskOptions &options = {}) const {
        const auto boxes = put_batch(work, options, nullptr);
        if (!boxes) {
            return boxes.error();
        }
        for (auto *box : *boxes) {
            box->release();
        }
        return boxes->size();
    }

    /// Runs it every `period`, first after one: each run is a task of its own, and runs never overlap.
    template <class F>
    Result<Periodic> every(Duration period, F &&f, MissedTick missed = MissedTick::Skip,
                           const TaskOptions &options = {}) const {
        using D = std::decay_t<F>;
        using Box = detail::Attempted<D, void>;
        if (auto refused = detail::refused_if_negative(period)) {
            return *std::move(refused);
        }
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
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

    /// Submits a task without a callable: its attempts come as EntryKind::Attempt, with this tag, to the
    /// completion queue that the worker pool is attached to.
    Result<WorkTask<void>> submit_tagged(std::uint64_t tag, const TaskOptions &options = {}) const {
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        pace_task_t id{};
        const pace_status_t status = pace_workers_submit_tagged(core_->workers, raw_, tag, &raw, &id);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return WorkTask<void>(core_, id, nullptr);
    }

    /// Submits a task for each of these tags, as submit_tagged() does; nobody waits for them. Says how many were taken.
    Result<std::size_t> post_tagged_batch(span<const std::uint64_t> tags,
                                          const TaskOptions &options = {}) const {
        if (!core_) {
            return detail::gone("task type");
        }
        const pace_task_options_t raw = detail::to_native(options);
        std::size_t accepted = 0;
        const pace_status_t status = pace_workers_submit_tagged_batch(
            core_->workers, raw_, tags.data(), tags.size(), &raw, nullptr, &accepted);
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

    template <class F>
    using BoxFor = detail::Attempted<F, typename detail::AttemptResult<F>::type>;

    /// Submits a batch: the boxes of those that were taken, of which a share is the caller's.
    template <class F>
    Result<std::vector<BoxFor<F> *>> put_batch(span<F> work, const TaskOptions &options,
                                               pace_task_t *ids) const {
        using Box = BoxFor<F>;
        if (auto refused = detail::refused_if_any_empty(work)) {
            return *std::move(refused);
        }
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
            works.push_back({Box::run, boxes.back(), Box::drop});
        }
        std::size_t accepted = 0;
        const pace_status_t status = pace_workers_submit_batch(core_->workers, raw_, works.data(),
                                                               works.size(), &raw, ids, &accepted);
        std::optional<Error> error;
        if (status != PACE_OK && accepted == 0) {
            error = Error::last(status);
        }
        for (std::size_t n = accepted; n < boxes.size(); ++n) {
            detail::give_back<F>(work[n], *boxes[n]->f);
            Box::drop(boxes[n]);
            boxes[n]->release();
        }
        if (error) {
            return *error;
        }
        boxes.resize(accepted);
        return boxes;
    }

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

/// Settings of a worker pool. What is not set is as the section `workers` of `settings` has it; and then as paceline.h has
/// it.
struct WorkersConfig {
    Settings settings{};
    /// What its figures are labelled with.
    std::string name{};
    std::optional<std::uint32_t> max_waiting{};
    std::optional<std::uint32_t> max_queued{};
    std::optional<std::uint32_t> max_tasks{};
    std::optional<std::uint32_t> max_droppable{};
    std::optional<std::uint64_t> seed{};
    std::optional<Scaling> scaling{};
    /// Whether the worker pool counts for WorkerPool::metrics(). Default false.
    bool metrics = false;
    std::optional<OverloadPolicy> full{};
    /// The first is the outermost.
    std::vector<std::shared_ptr<Middleware>> middleware{};
    /// The log of its tasks in place of the pool's. Each end of a task is a record then, at the level debug:
    /// see pace_workers_config_t.
    Log log{};
};

namespace detail {

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
    /// The format for WorkerPool::metrics(): PACE_METRICS_PROMETHEUS (0.0.4) or
    /// PACE_METRICS_OPENMETRICS.
    std::uint32_t format;
    const char *media_type;

    /// For the Accept header of the request; empty: it has none, which gives PACE_METRICS_PROMETHEUS. So does
    /// one that is not UTF-8.
    static MetricsFormat negotiate(const detail::Text &accept) noexcept {
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
    /// What the metric measures: a MetricKind.
    using Kind = MetricKind;

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
    /// For a distribution of times: one value of it.
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
        if (auto refused = detail::refused_if_empty(change, "change")) {
            return *std::move(refused);
        }
        pace_workers_config_t config{};
        (void)pace_workers_config_init(&config, sizeof config);
        std::forward<F>(change)(config);
        return from_native(pool, config);
    }
    static Result<WorkerPool> create(const Pool &pool, const WorkersConfig &settings = {}) {
        pace_workers_config_t config{};
        (void)pace_workers_config_init(&config, sizeof config);
        const pace_status_t loaded = detail::load(settings.settings, config, pace_workers_config_load);
        if (loaded != PACE_OK) {
            return Error::last(loaded);
        }
        config.name = detail::c_text_if_any(settings.name);
        config.max_waiting = settings.max_waiting.value_or(config.max_waiting);
        config.max_queued = settings.max_queued.value_or(config.max_queued);
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
            if (each == nullptr) {
                return Error(Code::Invalid,
                             "middleware[" + detail::number_text(boxes.size()) + "] is nullptr");
            }
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
    Result<TaskType> task_type(const detail::Text &name, const TaskTypeConfig &settings = {}) const {
        pace_task_type_config_t raw{};
        (void)pace_task_type_config_init(&raw, sizeof raw);
        const auto limit = [](Duration time) {
            return time == FOREVER ? PACE_FOREVER : detail::limit_nanos(time);
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
        const pace_status_t status = pace_task_type_new(native(), name.c_str(), &raw, &kind);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return TaskType(kind, core_);
    }

    /// Has `f()` called at the end of a shutdown, the last one that was registered first.
    template <class F>
    Result<void> on_shutdown(const detail::Text &name, F &&f) const {
        using D = std::decay_t<F>;
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_workers_on_shutdown(
            native(), name.c_str(),
            [](void *data) noexcept {
                (void)detail::guard([&] { return (*static_cast<D *>(data))(); });
            },
            box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Refuses new tasks, lets what was accepted end, cancels the rest, runs the hooks. A task has ended when what its
    /// on_end() was given has returned. Inside the pool it is a request.
    Result<WorkersReport> shutdown(const Phases &phases = {}) const {
        WorkersReport report;
        pace_workers_report_t raw{};
        raw.struct_size = sizeof raw;
        detail::Rows<Ended> rows;
        const detail::Waits waits;
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
    /// What each thread of the pool has done for this worker pool, by its number, which is TaskReport::worker.
    /// Fields as in paceline.h; `role` as Role.
    Result<std::vector<pace_worker_stats_t>> worker_stats() const {
        std::vector<pace_worker_stats_t> rows;
        pace_pool_stats_t pool{};
        pool.struct_size = sizeof pool;
        pace_status_t status = pace_pool_stats(core_ ? core_->pool->pool : nullptr, &pool);
        for (std::uint32_t worker = 0; status == PACE_OK && worker < pool.threads; worker++) {
            pace_worker_stats_t row{};
            row.struct_size = sizeof row;
            status = pace_workers_worker_stats(native(), worker, &row);
            rows.push_back(row);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return rows;
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
    Result<Metric> metric(Metric::Kind kind, const detail::Text &name, const detail::Text &help,
                          const std::vector<std::pair<std::string, std::string>> &labels = {}) const {
        std::vector<pace_label_t> raw;
        for (const auto &[label, value] : labels) {
            raw.push_back({detail::c_text(label), detail::c_text(value)});
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
        return WorkerPool(detail::shared_of<const detail::WorkersCore>(pool.core_, workers));
    }

    detail::SharedWorkers core_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_WORKERS_HPP
