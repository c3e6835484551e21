// paceline/task.hpp: tasks and strands, and what callables are carried in.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_TASK_HPP
#define PACELINE_TASK_HPP

#include "core.hpp"

#include <paceline/pool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <future>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

class Pool;

namespace detail {

struct Submitter;

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
    *result = guard([&] { return std::move(in_bytes<F>(bytes))(); }) ? PACE_OK : PACE_EFAILED;
}

template <class F>
void run_word(void *word, std::int32_t *result) noexcept {
    *result = guard([&] { return std::move(in_bytes<F>(&word))(); }) ? PACE_OK : PACE_EFAILED;
}

template <class F>
void run_box(void *box, std::int32_t *result) noexcept {
    auto &f = *static_cast<F *>(box);
    *result = guard([&] { return std::move(f)(); }) ? PACE_OK : PACE_EFAILED;
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
            hands_over();
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
    ~Core() {
        const Waits waits;
        pace_pool_free(pool);
    }

    pace_pool_t *const pool;
};

using SharedCore = std::shared_ptr<const Core>;
using WeakCore = std::weak_ptr<const Core>;

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
        [&](const Failure &failure) { promise.set_exception(failure.thrown()); });
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
        const bool returned =
            contained([&] { self->fill(std::move(*self->f)); },
                      [&](const Failure &failure) { self->thrown = failure.thrown(); });
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
    Task &operator=(Task other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        std::swap(place_, other.place_);
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
    Result<T> wait() { return wait_timeout(FOREVER); }

    /// As wait(), but Code::TimedOut, after which one may wait again, when the time is over.
    Result<T> wait_timeout(Duration time) {
        if (!valid()) {
            return detail::gone("task");
        }
        std::int32_t reported = PACE_EFAILED;
        detail::hands_over();
        const pace_status_t status = pace_task_wait(core_->pool, id_, detail::nanos(time), &reported);
        detail::takes_over();
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

    Result<bool> ask(pace_status_t (*question)(const pace_pool_t *, pace_task_t, bool *)) const {
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
        if (auto refused = refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        using Box = detail::Submitted<D, R>;
        auto *box = new Box(std::forward<F>(f));
        hands_over();
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

/// Callables that are handed over by one call.
constexpr std::size_t CHUNK = 64;

/// Posts callables in order, some by each `call`, which takes works, their count, and where to say how many were
/// accepted. Those that are refused are given back.
template <class F, class Call>
Result<std::size_t> post_all(span<F> work, Call call) {
    static_assert(is_task<F>, "a task is called without arguments");
    if (auto refused = refused_if_any_empty(work)) {
        return *std::move(refused);
    }
    std::size_t done = 0;
    pace_status_t status = PACE_OK;
    while (status == PACE_OK && done < work.size()) {
        const std::size_t size = std::min(work.size() - done, CHUNK);
        std::array<pace_work_t, CHUNK> works;
        std::vector<Packed<F>> packed;
        packed.reserve(size);
        for (F &f : work.subspan(done).first(size)) {
            packed.emplace_back(std::move(f));
            works[packed.size() - 1] = packed.back().work();
        }
        std::size_t accepted = 0;
        status = call(works.data(), size, &accepted);
        for (std::size_t n = 0; n < accepted; ++n) {
            packed[n].settle(PACE_OK);
        }
        done += accepted;
        if (status != PACE_OK && done == 0) {
            return Error::last(status);
        }
    }
    return done;
}

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
        if (auto refused = refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        if constexpr (fits_slot<D> && !fits_word<D>) {
            const D copy(std::forward<F>(f));
            hands_over();
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
        if (auto refused = refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
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
        return post_all(work,
                        [this](const pace_work_t *works, std::size_t count, std::size_t *accepted) {
                            return pace_pool_post_batch(raw(), lane_, works, count, accepted);
                        });
    }
    /// As above, for a std::vector or std::array of callables.
    template <class C>
    auto post_batch(C &work) const -> decltype(post_batch(span(std::data(work), std::size(work)))) {
        return post_batch(span(std::data(work), std::size(work)));
    }

private:
    friend class paceline::Pool;

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

    Holder core_;
    std::uint32_t lane_;
};

} // namespace detail

/// One lane of a pool, to post to: post, try_post, submit, try_submit, post_batch. Pool's own methods
/// of these names are those of Lane::Normal.
using LaneRef = detail::Posting<detail::SharedCore>;

/// Runs tasks one at a time, in order, without a lock. When it is destroyed it takes no more, and the destructor returns when
/// what was accepted has run: so tasks may refer to an object whose member it is, if it is the last one. Inside a task, on
/// a thread of the pool, it does not wait: what was accepted runs later.
class [[nodiscard]] Strand {
public:
    Strand(Strand &&other) noexcept : core_(std::move(other.core_)), id_(other.id_) {}
    Strand &operator=(Strand other) noexcept {
        std::swap(core_, other.core_);
        std::swap(id_, other.id_);
        return *this;
    }
    ~Strand() {
        if (core_) {
            const detail::Waits waits;
            (void)pace_strand_drain(core_->pool, id_, PACE_FOREVER, nullptr);
            (void)close();
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
    /// As LaneRef's post_batch(). Tasks that other threads post meanwhile may come between them.
    template <class F>
    Result<std::size_t> post_batch(span<F> work) const {
        if (!core_) {
            return detail::gone("strand");
        }
        return detail::post_all(
            work, [this](const pace_work_t *works, std::size_t count, std::size_t *accepted) {
                return pace_strand_post_batch(core_->pool, id_, works, count, accepted);
            });
    }
    template <class C>
    auto post_batch(C &work) const -> decltype(post_batch(span(std::data(work), std::size(work)))) {
        return post_batch(span(std::data(work), std::size(work)));
    }
    template <class F>
    Result<TaskOf<F>> submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_strand_submit);
    }
    template <class F>
    Result<TaskOf<F>> try_submit(F &&f) const {
        return submit_by(std::forward<F>(f), pace_strand_try_submit);
    }

    /// Takes no more, and waits for up to `time` until what was accepted has run: whether it has. Inside a task, on a thread
    /// of the pool, it only asks: false. In a pool without threads this thread runs what no host has begun.
    Result<bool> drain(Duration time) const {
        if (!core_) {
            return detail::gone("strand");
        }
        bool drained = false;
        const detail::Waits waits;
        const pace_status_t status = pace_strand_drain(core_->pool, id_, detail::nanos(time), &drained);
        return status == PACE_OK ? Result<bool>(drained) : Result<bool>(Error::last(status));
    }
    /// Takes no more, and does not wait. What was accepted runs.
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
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
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

} // inline namespace
} // namespace paceline

#endif // PACELINE_TASK_HPP
