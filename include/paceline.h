/* paceline.h: an embeddable event engine. A fixed pool of threads takes turns at the front, as riders
 * do in a paceline: the thread that sees an event handles it, and whoever is free next waits for more.
 *
 * This file is generated from src/ffi/overview.h. It includes a header for each topic, of which each may be
 * included alone: paceline/pool.h is enough for the program below.
 *
 * A whole program, which prints "the task says 42", "hello" and "the counters balance":
 *
 *     #include <paceline/pool.h>
 *     #include <stdio.h>
 *     #include <unistd.h>
 *
 *     static void answer(void *user_data, int32_t *outcome) {
 *         (void)user_data;
 *         *outcome = 42;                                  // 0 would be plain success
 *     }
 *
 *     static int32_t echo(void *user_data, pace_handle_t self, int32_t fd, uint32_t ready) {
 *         char bytes[64];
 *         ssize_t size = read(fd, bytes, sizeof bytes);   // on the thread that saw it come
 *         (void)self, (void)ready;
 *         if (size < 0) return PACE_FLOW_WAIT;            // EAGAIN: call me when there is more
 *         if (size == 0) return PACE_FLOW_DONE;           // the end: deregister me
 *         if (write(*(int *)user_data, bytes, (size_t)size) != size) return PACE_FLOW_DONE;
 *         return PACE_FLOW_AGAIN;
 *     }
 *
 *     int main(void) {
 *         pace_pool_t *pool;
 *         pace_task_t task;
 *         pace_handle_t handle;
 *         pace_handle_options_t options;
 *         pace_audit_t audit = {.struct_size = sizeof audit};
 *         int32_t outcome;
 *         int pipes[2], out = STDOUT_FILENO;
 *         if (pace_pool_new(NULL, &pool) != PACE_OK) {    // NULL: a thread per CPU
 *             fprintf(stderr, "%s\n", pace_last_error());
 *             return 1;
 *         }
 *         pace_pool_submit(pool, PACE_LANE_NORMAL, answer, NULL, NULL, &task);
 *         pace_task_wait(pool, task, PACE_FOREVER, &outcome);
 *         printf("the task says %d\n", (int)outcome);
 *         fflush(stdout);
 *
 *         if (pipe(pipes) != 0 || write(pipes[1], "hello\n", 6) != 6) return 1;
 *         close(pipes[1]);
 *         pace_handle_options_init(&options, sizeof options);
 *         options.level = true;                           // a blocking descriptor must be
 *         options.interest = PACE_INTEREST_READABLE;
 *         pace_pool_register(pool, pipes[0], &options, echo, &out, NULL, &handle);
 *         for (bool open = true; open; usleep(1000)) pace_handle_is_open(pool, handle, &open);
 *
 *         pace_pool_shutdown(pool, PACE_FOREVER, NULL);   // runs what was accepted
 *         pace_pool_audit(pool, &audit);
 *         puts(audit.in_flight == 0 && audit.balances ? "the counters balance" : "they do not");
 *         pace_pool_free(pool);
 *         return 0;
 *     }
 *
 * THREADS. Every function may be called by any thread unless its line "Threads:" says otherwise, and
 * the same line says whether a handler may. A handler is any callback: of a task, descriptor, timer,
 * ring or hook. Callbacks run on threads of the pool (or that joined it). They must return: not unwind
 * or longjmp out, nor end the thread (pthread_exit, pthread_cancel). One that forks leaves the child by
 * exec or _exit; a child in which it returns is aborted. "It waits outside" means: on a thread that is
 * not in the pool's handler now. Nothing may be called in a signal handler, and no thread cancelled
 * that is in a call.
 *
 * OWNERSHIP. Each callback gets its own user_data. A registration may name a `drop` for it, which runs
 * exactly once, after the last call. If the registering call fails, nothing has moved: user_data is
 * still the caller's, no call comes, and drop does not run. Texts and arrays are copied, or used only
 * during the call. Big things are pointers and have a _free, where NULL is a no-op; one that a function
 * only uses is const, one that it frees is not. Small things are
 * ids, struct values that may be copied and forgotten: one that is out of date, or made up, gives
 * PACE_ESTALE, never a crash. What ends by itself (tasks, timers) need not be kept; what lasts
 * (handles, strands, rings) is deregistered, closed or freed, or ends with the pool. What a callback
 * is given by a pointer is lent to it, and gone when it returns (bytes, pace_conn_t, pace_request_t),
 * unless its comment says that it is given (pace_response_t).
 *
 * ERRORS. Functions answer PACE_OK or a negative status, and pace_last_error() then tells what was
 * wrong. Outputs are written only on success, except where a count says otherwise. Any function may
 * answer PACE_EINVAL (NULL where that is not allowed), PACE_EFORKED (in a child made by fork: nothing
 * has been touched) and PACE_EPANIC (a fault of the library, caught); comments name the others.
 *
 * TIMES are nanoseconds of the monotonic clock. PACE_FOREVER is no limit, 0 is not to wait.
 *
 * VERSIONS. Structs that may grow begin with struct_size: set by an _init function for inputs, by you
 * for results. A library that knows more than your header treats the rest as defaults, one that knows
 * less says PACE_EVERSION if you use what it does not know.
 */
#ifndef PACELINE_H
#define PACELINE_H

#include "paceline/core.h"     /* what all headers share */
#include "paceline/log.h"      /* the structured log */
#include "paceline/pool.h"     /* pools of threads: tasks, strands, descriptors, timers, rings, signals */
#include "paceline/queue.h"    /* queues between threads, without a pool */
#include "paceline/net.h"      /* stream servers and their connections */
#include "paceline/http.h"     /* HTTP/1.1 servers */
#include "paceline/udp.h"      /* datagram sockets */
#include "paceline/workers.h"  /* worker pools: tasks with priorities, retries, limits in time and results */
#include "paceline/hub.h"      /* the event hub: keyed publish/subscribe, requests, supervision */
#include "paceline/history.h"  /* the hub's history: queries, replays, export and import, archives */
#include "paceline/ops.h"      /* operation: endpoints, figures, timelines, thresholds, webhooks, systemd */
#include "paceline/bridge.h"   /* bridges: keys of a hub, between processes, over a NATS broker */
#include "paceline/cq.h"       /* completion queues: what happens as data, for hosts that cannot be called back */

#endif /* PACELINE_H */
