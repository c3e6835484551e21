/* A million calls in random order with random arguments, ids of the past and made-up ones among them.
 *
 *     random [seed [calls]]
 *
 * Nothing crashes or hangs, every status is one, what was accepted is dropped exactly once, and the
 * books of every pool balance. The seed is printed, and makes the same calls again. */
#include "check.h"

#define KEPT 32

static uint64_t state;
static counts_t counts;
static int accepted;

static uint64_t next(void) { return check_random(&state); }

static uint64_t below(uint64_t bound) { return next() % bound; }

static void any_outcome(void *data, int32_t *outcome) {
    (void)data;
    *outcome = 0;
}

static void any_bytes(void *bytes, size_t size, int32_t *outcome) {
    (void)size;
    *outcome = ((char *)bytes)[0];
}

static int32_t any_ready(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    char byte;
    (void)data, (void)ready;
    ssize_t size = read(fd, &byte, 1);
    return size == 1 ? PACE_FLOW_AGAIN : self.id % 16 == 0 ? PACE_FLOW_DONE : PACE_FLOW_WAIT;
}

static int32_t any_tick(void *data, pace_handle_t self) {
    (void)data;
    return self.id % 4 == 0 ? PACE_FLOW_DONE : PACE_FLOW_AGAIN;
}

static void any_events(void *data, const void *events, size_t stride, size_t count) {
    (void)data, (void)events, (void)stride, (void)count;
}

static uint64_t tasks[KEPT], strands[KEPT], handles[KEPT], timers[KEPT], tokens[KEPT];

static uint64_t pick(uint64_t *from) {
    uint64_t id = from[below(KEPT)];
    switch (below(20)) {
    case 0: return next();
    case 1: return id + 1;
    case 2: return id ^ (UINT64_C(1) << below(64));
    default: return id;
    }
}

static void keep_if(bool made, uint64_t *in, const uint64_t *id) {
    if (made) in[below(KEPT)] = *id;
}

static bool took(pace_status_t status) {
    CHECK(status <= 0 && status >= PACE_EBUSY && status != PACE_EPANIC);
    accepted += status == PACE_OK;
    return status == PACE_OK;
}

static bool any(pace_status_t status) {
    CHECK(status <= 0 && status >= PACE_EBUSY && status != PACE_EPANIC);
    return status == PACE_OK;
}

#define C &counts, count_drop
/* NULL now and then. */
#define MAYBE(value) (below(100) == 0 ? NULL : (value))

static void one_call(pace_pool_t *pool, pace_cq_t *cq, pace_ring_t *ring, pace_queue_t *queue, int fd,
                     int out) {
    pace_task_t task = {pick(tasks)};
    pace_strand_t strand = {pick(strands)};
    pace_handle_t handle = {pick(handles)};
    pace_timer_t timer = {pick(timers)};
    pace_cq_entry_t entries[4];
    pace_cq_completion_t completion = {0};
    uint64_t items[4], number;
    size_t some;
    int32_t outcome;
    bool flag;
    uint32_t lane = (uint32_t)below(5);
    pace_task_fn run = MAYBE(any_outcome);
    switch (below(46)) {
    case 0:
    case 1: took(pace_pool_post(pool, lane, run, C)); break;
    case 2: took(pace_pool_try_post(pool, lane, run, C)); break;
    case 3: any(pace_pool_post_bytes(pool, lane, any_bytes, items, 1 + below(33))); break;
    case 4: {
        pace_work_t work[8];
        for (int i = 0; i < 8; i++) work[i] = (pace_work_t){run, C};
        some = 0;
        any(pace_pool_post_batch(pool, lane, work, below(9), &some));
        accepted += (int)some;
        break;
    }
    case 5:
    case 6: keep_if(took(pace_pool_submit(pool, lane, run, C, &task)), tasks, &task.id); break;
    case 7: keep_if(took(pace_pool_try_submit(pool, lane, run, C, &task)), tasks, &task.id); break;
    case 8:
    case 9: any(pace_task_wait(pool, task, below(1000), MAYBE(&outcome))); break;
    case 10: any(pace_task_is_done(pool, task, &flag)); break;
    case 11: any(pace_task_cancel(pool, task, MAYBE(&flag))); break;
    case 12: any(pace_task_detach(pool, task)); break;
    case 13: keep_if(any(pace_strand_new(pool, &strand)), strands, &strand.id); break;
    case 14: took(pace_strand_post(pool, strand, run, C)); break;
    case 15: took(pace_strand_try_post(pool, strand, run, C)); break;
    case 16: keep_if(took(pace_strand_submit(pool, strand, run, C, &task)), tasks, &task.id); break;
    case 17: keep_if(took(pace_strand_try_submit(pool, strand, run, C, &task)), tasks, &task.id); break;
    case 18: any(pace_strand_close(pool, strand)); break;
    case 19:
        keep_if(took(pace_pool_register(pool, below(2) ? fd : (int)below(8) - 1, NULL, MAYBE(any_ready),
                                        C, &handle)),
                handles, &handle.id);
        break;
    case 20:
        keep_if(took(pace_pool_every(pool, below(3 * MILLI), any_tick, C, &handle)), handles,
                &handle.id);
        break;
    case 21: any(pace_handle_pause(pool, handle)); break;
    case 22: any(pace_handle_resume(pool, handle)); break;
    case 23:
    case 24: any(pace_handle_deregister(pool, handle)); break;
    case 25: any(pace_handle_is_open(pool, handle, &flag)); break;
    case 26:
        keep_if(took(pace_pool_after(pool, below(MILLI), run, C, &timer)), timers, &timer.id);
        break;
    case 27: any(pace_timer_cancel(pool, timer, &flag)); break;
    case 28: any(pace_timer_postpone(pool, timer, below(MILLI), &flag)); break;
    case 29: any(pace_timer_is_pending(pool, timer, &flag)); break;
    case 30: any(pace_ring_publish(ring, items)); break;
    case 31: any(pace_ring_try_publish(ring, MAYBE(items))); break;
    case 32: any(pace_ring_publish_batch(ring, items, below(5), &some)); break;
    case 33: any(pace_ring_counts(ring, &number, NULL)); break;
    case 34: any(pace_queue_push(queue, items, 0)); break;
    case 35: any(pace_queue_push_batch(queue, items, below(5), &some)); break;
    case 36: any(pace_queue_pop(queue, items, below(100))); break;
    case 37: any(pace_queue_pop_batch(queue, items, below(5), 0, &some)); break;
    case 38: any(pace_queue_pollable(queue, &outcome)); break;
    case 39: any(pace_pool_join(pool, below(10000), &number)); break;
    case 40: any(pace_cq_post(cq, MAYBE(items), below(5), &some)); break;
    case 41:
        keep_if(any(pace_cq_wait(cq, entries, below(5), below(100), &some)), tokens, &entries->token);
        break;
    case 42:
        completion.token = pick(tokens);
        completion.answer = (uint32_t)below(5);
        any(pace_cq_complete(cq, &completion, 1));
        break;
    case 43: keep_if(any(pace_cq_every(cq, below(3 * MILLI), 7, &handle)), handles, &handle.id); break;
    case 44: any(pace_cq_wake(cq, 8)); break;
    default:
        if (write(out, "x", 1) != 1) CHECK(errno == EAGAIN);
        break;
    }
}

static void one_life(uint64_t calls) {
    uint32_t threads = 1 + (uint32_t)below(3);
    pace_pool_t *pool = pool_of(threads);
    pace_ring_t *ring = NULL;
    pace_queue_t *queue = NULL;
    pace_cq_t *cq;
    int ends[2];
    make_pipe(ends);
    OK(pace_cq_new(pool, NULL, &cq));
    accepted = 0;
    atomic_store(&counts.drops, 0);
    OK((below(2) ? pace_ring_serial : pace_ring_concurrent)(pool, 8, 64, any_events, C, &ring));
    accepted++;
    OK(pace_queue_new(8, 16, &queue));
    for (uint64_t call = 0; call < calls; call++) one_call(pool, cq, ring, queue, ends[0], ends[1]);
    OK(pace_pool_shutdown(pool, below(2) ? 0 : 10 * MILLI, NULL));
    for (int call = 0; call < 100; call++) one_call(pool, cq, ring, queue, ends[0], ends[1]);
    OK(pace_pool_shutdown(pool, 0, NULL));
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    OK(pace_pool_audit(pool, &audit));
    CHECK(audit.balances && audit.in_flight == 0);
    pace_cq_free(cq);
    pace_ring_free(ring);
    pace_queue_free(queue);
    pace_pool_free(pool);
    CHECK(atomic_load(&counts.drops) == accepted);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv) {
    check_begin();
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000000;
    printf("seed %llu\n", (unsigned long long)seed);
    state = seed;
    const uint64_t life = 20000;
    for (uint64_t done = 0; done < calls; done += life) one_life(life);
    return 0;
}
