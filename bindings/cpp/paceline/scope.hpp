// paceline/scope.hpp: tasks that end before what they refer to.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_SCOPE_HPP
#define PACELINE_SCOPE_HPP

#include "pool.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// A group of tasks that may refer to everything that was declared before it: the destructor returns when all of them have
/// run, also while an exception unwinds.
///
///     std::vector<Picture> pictures = load();
///     {
///         paceline::Scope scope(pool);
///         for (Picture &picture : pictures) {
///             scope.post([&picture] { picture.sharpen(); }).value();
///         }
///     } // All are sharp.
///
/// Tasks may post more to it. Inside a task or a handler other threads are let lead meanwhile; a task that no thread is
/// left to run is cancelled.
class [[nodiscard]] Scope {
public:
    explicit Scope(const Pool &pool, Lane lane = Lane::Normal) noexcept : lane_(pool.lane(lane)) {}
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    /// The first failure that wait() has not told goes to the hook of on_unhandled().
    ~Scope() {
        const Result<void> ended = wait();
        if (!ended && ended.error() != Code::Cancelled) {
            (void)detail::guard([&] { ended.value(); });
        }
    }

    /// Runs `f()` on some thread of the pool, before the scope ends. Errors are those of Pool::post().
    template <class F>
    Result<void> post(F &&f) {
        static_assert(detail::is_task<F>, "a task is called without arguments");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        Call<std::decay_t<F>> call{std::forward<F>(f)};
        auto task = lane_.submit(std::move(call));
        if (!task) {
            detail::give_back<F>(f, call.f);
            return std::move(task).error();
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        if (tasks_.size() == tasks_.capacity()) {
            forget_ended();
        }
        tasks_.push_back(*std::move(task));
        return {};
    }

    /// Waits until all tasks have run. The first failure that was not told yet: what a task has thrown is the error's
    /// thrown(). Code::Cancelled: the pool has ended before, or no thread was left to run one. Not inside a task of its own.
    Result<void> wait() {
        while (auto task = next()) {
            auto ended = end(*task);
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!ended && failure_) {
                failure_ = std::move(ended);
            }
        }
        return std::exchange(failure_, Result<void>());
    }

private:
    template <class F>
    struct Call {
        F f;

        void operator()() && {
            if (const auto error = detail::returned_error(std::move(f))) {
                detail::fail(*error);
            }
        }
    };

    std::optional<Task<void>> next() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (tasks_.empty()) {
            return std::nullopt;
        }
        std::optional<Task<void>> task(std::move(tasks_.back()));
        tasks_.pop_back();
        return task;
    }

    static Result<void> end(Task<void> &task) {
        for (;;) {
            auto ended = task.wait();
            if (ended || (ended.error() != Code::WouldDeadlock && ended.error() != Code::Busy)) {
                return ended;
            }
            const auto cancelled = task.cancel();
            if (cancelled && *cancelled) {
                return Error(Code::Cancelled);
            }
            // It runs, on a thread that waits for something else.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    /// Those that have ended need no place any more; the first failure is kept.
    void forget_ended() {
        std::vector<Task<void>> rest;
        for (auto &task : tasks_) {
            const auto done = task.is_done();
            if (!done || !*done) {
                rest.push_back(std::move(task));
                continue;
            }
            auto ended = task.wait();
            if (!ended && failure_) {
                failure_ = std::move(ended);
            }
        }
        rest.reserve(2 * rest.size() + 16);
        tasks_ = std::move(rest);
    }

    LaneRef lane_;
    std::mutex mutex_;
    std::vector<Task<void>> tasks_;
    Result<void> failure_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_SCOPE_HPP
