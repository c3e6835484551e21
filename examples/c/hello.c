/* A task, ten tasks, a timer.
 *
 *     cc examples/c/hello.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o hello
 *
 * feature: pool/tasks
 */
#include <paceline/pool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void six_times_seven(void *user_data, int32_t *outcome) {
    *(int *)user_data = 6 * 7;
    *outcome = 0; /* it worked; without this it would count as failed */
}

/* What a task works on, and where it leaves its value. */
typedef struct square {
    int of, is;
} square_t;

static void square(void *user_data, int32_t *outcome) {
    square_t *square = user_data;
    square->is = square->of * square->of;
    *outcome = 0;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MILLISECOND + (uint64_t)now.tv_nsec;
}

static atomic_uint_least64_t rang_at;

static void ring(void *user_data, int32_t *outcome) {
    (void)user_data;
    atomic_store(&rang_at, now_ns());
    *outcome = 0;
}

int main(void) {
    /* A thread per CPU that this process may use. */
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));

    /* A task, and its value. */
    int answer = 0;
    pace_task_t task;
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, six_times_seven, &answer, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    printf("a task says %d\n", answer);

    /* Ten tasks. They run on any thread in any order; the values are taken in this one. */
    square_t squares[10];
    pace_task_t tasks[10];
    for (int i = 0; i < 10; i++) {
        squares[i].of = i + 1;
        must(pace_pool_submit(pool, PACE_LANE_NORMAL, square, &squares[i], NULL, &tasks[i]));
    }
    printf("ten tasks say [");
    for (int i = 0; i < 10; i++) {
        must(pace_task_wait(pool, tasks[i], PACE_FOREVER, NULL));
        printf(i == 0 ? "%d" : ", %d", squares[i].is);
    }
    printf("]\n");

    /* A timer, which ends by itself: nothing need be kept. It runs late if at all, never early. */
    uint64_t began = now_ns();
    must(pace_pool_after(pool, 20 * MILLISECOND, ring, NULL, NULL, NULL));
    while (atomic_load(&rang_at) == 0) usleep(1000);
    int late_enough = atomic_load(&rang_at) - began >= 20 * MILLISECOND;
    printf("a timer says that 20 ms have passed: %s\n", late_enough ? "true" : "false");

    /* What was accepted has ended, and every task is accounted for. */
    pace_report_t report = {.struct_size = sizeof report};
    pace_audit_t audit = {.struct_size = sizeof audit};
    must(pace_pool_shutdown(pool, 1000 * MILLISECOND, &report));
    must(pace_pool_audit(pool, &audit));
    printf("drained: %s, the books balance: %s\n", report.drained ? "true" : "false",
           audit.balances ? "true" : "false");
    pace_pool_free(pool);
    return 0;
}
