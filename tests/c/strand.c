/* Strands: order, one at a time, ids, closing. */
#include "check.h"

typedef struct serial {
    atomic_int inside;
    int next;
} serial_t;

typedef struct step {
    serial_t *serial;
    int number;
} step_t;

static void take_step(void *data, int32_t *outcome) {
    step_t *step = (step_t *)data;
    CHECK(atomic_fetch_add(&step->serial->inside, 1) == 0);
    CHECK(step->serial->next++ == step->number);
    CHECK(atomic_fetch_sub(&step->serial->inside, 1) == 1);
    *outcome = 0;
}

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(4);
    pace_strand_t strand = {0};
    pace_task_t task;
    serial_t serial = {0};
    static step_t steps[20000];
    OK(pace_strand_new(pool, &strand));
    CHECK(strand.id != 0);
    for (int i = 0; i < 20000; i++) {
        steps[i] = (step_t){&serial, i};
        switch (i % 4) {
        case 0: OK(pace_strand_post(pool, strand, take_step, &steps[i], NULL)); break;
        case 1: UNTIL(pace_strand_try_post(pool, strand, take_step, &steps[i], NULL) == PACE_OK); break;
        case 2:
            OK(pace_strand_submit(pool, strand, take_step, &steps[i], NULL, &task));
            OK(pace_task_detach(pool, task));
            break;
        default:
            UNTIL(pace_strand_try_submit(pool, strand, take_step, &steps[i], NULL, &task) == PACE_OK);
            if (i % 1000 == 999)
                OK(pace_task_wait(pool, task, PACE_FOREVER, NULL));
            else
                OK(pace_task_detach(pool, task));
        }
    }

    /* A batch, in order, between single posts. */
    static step_t more[500];
    pace_work_t batch[500];
    size_t accepted = 0;
    for (int i = 0; i < 500; i++) {
        more[i] = (step_t){&serial, 20000 + i};
        batch[i] = (pace_work_t){take_step, &more[i], NULL};
    }
    OK(pace_strand_post_batch(pool, strand, batch, 499, &accepted));
    CHECK(accepted == 499);
    OK(pace_strand_post_batch(pool, strand, NULL, 0, &accepted));
    CHECK(accepted == 0);
    batch[499].run = NULL;
    accepted = 7;
    SAYS(PACE_EINVAL, pace_strand_post_batch(pool, strand, batch, 500, &accepted));
    TELLS("work[499].run");
    CHECK(accepted == 7);
    OK(pace_strand_post(pool, strand, take_step, &more[499], NULL));

    counts_t counts = {0};
    OK(pace_strand_post(pool, strand, count_gated, &counts, count_drop));
    OK(pace_strand_post(pool, strand, count_run, &counts, count_drop));
    OK(pace_strand_close(pool, strand));
    SAYS(PACE_ESTALE, pace_strand_close(pool, strand));
    SAYS(PACE_ESTALE, pace_strand_post(pool, strand, count_run, &counts, count_drop));
    SAYS(PACE_ESTALE, pace_strand_try_submit(pool, strand, count_run, &counts, NULL, &task));
    CHECK(atomic_load(&counts.drops) == 0);
    atomic_store(&counts.gate, true);
    UNTIL(atomic_load(&counts.drops) == 2); /* what was accepted runs */
    SAYS(PACE_EINVAL, pace_strand_new(pool, NULL));

    pace_strand_t drained;
    counts_t rest = {0};
    bool is_drained = true;
    OK(pace_strand_new(pool, &drained));
    OK(pace_strand_post(pool, drained, count_gated, &rest, count_drop));
    OK(pace_strand_drain(pool, drained, 1, &is_drained));
    CHECK(!is_drained);
    SAYS(PACE_ESHUTDOWN, pace_strand_post(pool, drained, count_run, &rest, count_drop));
    atomic_store(&rest.gate, true);
    OK(pace_strand_drain(pool, drained, PACE_FOREVER, &is_drained));
    CHECK(is_drained && atomic_load(&rest.drops) == 1);
    OK(pace_strand_drain(pool, drained, PACE_FOREVER, NULL));
    OK(pace_strand_close(pool, drained));
    SAYS(PACE_ESTALE, pace_strand_drain(pool, drained, 0, &is_drained));

    /* Full, without a thread to empty it. */
    pace_pool_config_t config;
    pace_pool_t *idle = NULL;
    pace_strand_t small;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 0;
    config.max_turn_ns = SECOND;
    config.strand_capacity = 2;
    config.max_handles = 1024;
    OK(pace_pool_new(&config, &idle));
    OK(pace_strand_new(idle, &small));
    OK(pace_strand_try_post(idle, small, count_run, &counts, count_drop));
    OK(pace_strand_try_post(idle, small, count_run, &counts, count_drop));
    SAYS(PACE_EFULL, pace_strand_try_post(idle, small, count_run, &counts, count_drop));
    CHECK(atomic_load(&counts.drops) == 2);
    OK(pace_pool_join(idle, 0, NULL));
    CHECK(atomic_load(&counts.drops) == 4);
    OK(pace_pool_shutdown(idle, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_strand_post(idle, small, count_run, &counts, count_drop));
    pace_work_t late = {count_run, &counts, count_drop};
    SAYS(PACE_ESHUTDOWN, pace_strand_post_batch(idle, small, &late, 1, &accepted));
    CHECK(accepted == 0 && atomic_load(&counts.drops) == 4);
    SAYS(PACE_ESHUTDOWN, pace_strand_new(idle, &small));
    OK(pace_strand_close(idle, small));
    pace_pool_free(idle);
    finish(pool);
    CHECK(serial.next == 20500);
    return 0;
}
