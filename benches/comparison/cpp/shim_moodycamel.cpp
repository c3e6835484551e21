// moodycamel::ConcurrentQueue as a queue of 8 or 56 bytes, and its blocking form as a pool of
// workers that take tasks in bulk. Threads use tokens, as its documentation advises.

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <concurrentqueue/concurrentqueue.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "shim.hpp"

namespace {

struct Pool;

struct Task {
    void (*run)(Pool *);
};

using TaskQueue = moodycamel::BlockingConcurrentQueue<Task>;

struct Pool {
    TaskQueue queue{kInFlight};
    std::vector<std::thread> threads;

    explicit Pool(int workers) {
        for (int i = 0; i < workers; i++) threads.emplace_back([this] { work(); });
    }

    ~Pool() {
        for (size_t i = 0; i < threads.size(); i++) queue.enqueue(Task{nullptr});
        for (auto &thread : threads) thread.join();
    }

    void work() {
        moodycamel::ConsumerToken token(queue);
        Task tasks[32];
        for (;;) {
            const size_t n = queue.wait_dequeue_bulk(token, tasks, 32);
            for (size_t i = 0; i < n; i++) {
                if (!tasks[i].run) {
                    // One stop mark per worker: hand the others' back with what follows.
                    if (i + 1 < n) queue.enqueue_bulk(tasks + i + 1, n - i - 1);
                    return;
                }
                tasks[i].run(this);
            }
        }
    }
};

const Task kTick{[](Pool *) { comparison_tick(); }};

void burst(Pool *pool) {
    moodycamel::ProducerToken token(pool->queue);
    if (burst_of([&] { pool->queue.enqueue(token, kTick); })) pool->queue.enqueue(token, Task{burst});
}

template <size_t Words>
struct Item {
    uint64_t words[Words];
};

template <size_t Words>
using Queue = moodycamel::ConcurrentQueue<Item<Words>>;

} // namespace

extern "C" {
void *moodycamel_pool_new(int workers) { return new Pool(workers); }

void moodycamel_pool_free(void *pool) { delete static_cast<Pool *>(pool); }

void moodycamel_pool_post(void *p, size_t count) {
    auto *pool = static_cast<Pool *>(p);
    // Taking up a producer again costs little, once in a few hundred tasks.
    moodycamel::ProducerToken token(pool->queue);
    for (size_t i = 0; i < count; i++) pool->queue.enqueue(token, kTick);
}

void moodycamel_pool_post_batches(void *p, size_t batches, size_t size) {
    auto *pool = static_cast<Pool *>(p);
    moodycamel::ProducerToken token(pool->queue);
    Task tasks[kBurst];
    std::fill_n(tasks, size, kTick);
    for (size_t i = 0; i < batches; i++) pool->queue.enqueue_bulk(token, tasks, size);
}

void moodycamel_pool_post_started(void *pool) {
    static_cast<Pool *>(pool)->queue.enqueue(Task{[](Pool *) { comparison_started(); }});
}

void moodycamel_pool_post_inside(void *pool) { static_cast<Pool *>(pool)->queue.enqueue(Task{burst}); }
}

// The queue's functions once for each item size.
#define QUEUE_FUNCTIONS(bytes, words)                                                                   \
    extern "C" {                                                                                        \
    void *moodycamel_queue##bytes##_new(size_t capacity, size_t producers) {                            \
        return new Queue<words>(capacity, producers, 0);                                                \
    }                                                                                                   \
    void moodycamel_queue##bytes##_free(void *q) { delete static_cast<Queue<words> *>(q); }             \
    void *moodycamel_queue##bytes##_producer_new(void *q) {                                             \
        return new moodycamel::ProducerToken(*static_cast<Queue<words> *>(q));                          \
    }                                                                                                   \
    void *moodycamel_queue##bytes##_consumer_new(void *q) {                                             \
        return new moodycamel::ConsumerToken(*static_cast<Queue<words> *>(q));                          \
    }                                                                                                   \
    size_t moodycamel_queue##bytes##_size(void *q) {                                                    \
        return static_cast<Queue<words> *>(q)->size_approx();                                           \
    }                                                                                                   \
    void moodycamel_queue##bytes##_push(void *q, void *token, const Item<words> *items, size_t n) {     \
        auto &producer = *static_cast<moodycamel::ProducerToken *>(token);                              \
        auto *queue = static_cast<Queue<words> *>(q);                                                   \
        n == 1 ? queue->enqueue(producer, *items) : queue->enqueue_bulk(producer, items, n);            \
    }                                                                                                   \
    size_t moodycamel_queue##bytes##_pop(void *q, void *token, Item<words> *items, size_t n) {          \
        auto &consumer = *static_cast<moodycamel::ConsumerToken *>(token);                              \
        auto *queue = static_cast<Queue<words> *>(q);                                                   \
        if (n == 1) return queue->try_dequeue(consumer, *items);                                        \
        return queue->try_dequeue_bulk(consumer, items, n);                                             \
    }                                                                                                   \
    }

QUEUE_FUNCTIONS(8, 1)
QUEUE_FUNCTIONS(56, 7)

extern "C" {
void moodycamel_producer_free(void *token) { delete static_cast<moodycamel::ProducerToken *>(token); }
void moodycamel_consumer_free(void *token) { delete static_cast<moodycamel::ConsumerToken *>(token); }
}
