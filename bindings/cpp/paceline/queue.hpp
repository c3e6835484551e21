// paceline/queue.hpp: queues between threads, without a pool.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_QUEUE_HPP
#define PACELINE_QUEUE_HPP

#include "core.hpp"

#include <paceline/queue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// A bounded queue of plain values for any number of threads on both ends. It needs no pool.
template <class T>
class [[nodiscard]] Queue {
    static_assert(detail::is_plain<T>,
                  "items are trivially copyable, of at most 128 KiB and the alignment of uint64_t");

public:
    /// The capacity is rounded up to a power of two.
    static Result<Queue> create(std::size_t capacity) {
        pace_queue_t *queue = nullptr;
        const pace_status_t status = pace_queue_new(sizeof(T), capacity, &queue);
        return status == PACE_OK ? Result<Queue>(Queue(queue)) : Result<Queue>(Error::last(status));
    }

    Queue(Queue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Queue &operator=(Queue other) noexcept {
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

} // inline namespace
} // namespace paceline

#endif // PACELINE_QUEUE_HPP
