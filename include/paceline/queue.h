/* paceline/queue.h: queues between threads, without a pool.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_QUEUE_H
#define PACELINE_QUEUE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------- Queues: without a pool */

/** A bounded first-in first-out queue of items of one size. */
typedef struct pace_queue_t pace_queue_t;

/**
 * Makes a queue. `item_size` is 1 to 131072 bytes; `capacity`, 1 to 2^31 items, is rounded up to a
 * power of two. All memory is taken now, except that of items of more than 256 bytes: a push
 * allocates for each of them, and a pop frees it.
 *
 * PACE_EINVAL, PACE_EOS.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_queue_new(size_t item_size, size_t capacity, pace_queue_t **queue);

/**
 * Appends one item: item_size bytes are copied. Waits for room for up to `timeout_ns`.
 *
 * PACE_EFULL: there is no room, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_push(const pace_queue_t *queue,
                              const void *item,
                              uint64_t timeout_ns);

/**
 * Appends items that lie item_size bytes apart, as many of `count` as there is room for, in one step:
 * they follow each other in the queue. Never waits. *pushed says how many, and is 0 for PACE_EFULL
 * and PACE_ESHUTDOWN.
 *
 * PACE_EFULL: no room for any; PACE_ESHUTDOWN: closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_push_batch(const pace_queue_t *queue,
                                    const void *items,
                                    size_t count,
                                    size_t *pushed);

/**
 * Removes the oldest item into `item`, item_size bytes. Waits for one for up to `timeout_ns`.
 *
 * PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
 * empty.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_pop(const pace_queue_t *queue, void *item, uint64_t timeout_ns);

/**
 * Removes up to `capacity` of the oldest items in one step into `items`, where they lie item_size
 * bytes apart. Waits for the first for up to `timeout_ns`. *popped says how many.
 *
 * PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
 * empty; PACE_EINVAL: `capacity` is 0.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_pop_batch(const pace_queue_t *queue,
                                   void *items,
                                   size_t capacity,
                                   uint64_t timeout_ns,
                                   size_t *popped);

/**
 * A descriptor that is readable while the queue may have something, or is closed, for hosts that wait
 * in a loop of their own. When it is, pop until nothing comes: a pop that finds nothing makes it
 * unreadable. It belongs to the queue: never read, write or close it. Made on the first call.
 *
 * PACE_EOS.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_pollable(const pace_queue_t *queue,
                                  int32_t *fd);

/**
 * Refuses pushes from now on. What is in the queue can still be popped. Threads that wait in a push,
 * and in a pop of an empty queue, return.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_close(const pace_queue_t *queue);

/**
 * How many items are in the queue. While others push or pop this may be out of date at once.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_len(const pace_queue_t *queue, size_t *len);

/**
 * How many items there is room for in all: what was asked for, rounded up.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_capacity(const pace_queue_t *queue, size_t *capacity);

/**
 * Whether pace_queue_close() has been called.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_is_closed(const pace_queue_t *queue, bool *closed);

/**
 * Frees a queue with all that is in it. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the queue any more. In handlers: yes, it never waits.
 */
void pace_queue_free(pace_queue_t *queue);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_QUEUE_H */
