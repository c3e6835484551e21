/* A bounded queue for any number of threads, for use without a pool.
 *
 * feature: pool/queues
 * prints:
 *   sum of what two threads have pushed: 1001000
 *   room for 8
 *   taken out after the queue was closed: 8
 *   then: PACE_ESHUTDOWN
 */
#include <paceline/queue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void *produce(void *queue) {
    for (int number = 1; number <= 1000; number++) must(pace_queue_push(queue, &number, PACE_FOREVER));
    return NULL;
}

int main(void) {
    pace_queue_t *queue;
    pthread_t producers[2];
    int number, sum = 0, room = 0, rest = 0;
    pace_status_t status;
    must(pace_queue_new(sizeof number, 8, &queue));
    for (int n = 0; n < 2; n++) pthread_create(&producers[n], NULL, produce, queue);
    for (int n = 0; n < 2000; n++) {
        must(pace_queue_pop(queue, &number, PACE_FOREVER));
        sum += number;
    }
    for (int n = 0; n < 2; n++) pthread_join(producers[n], NULL);
    printf("sum of what two threads have pushed: %d\n", sum);

    while (pace_queue_push(queue, &room, 0) == PACE_OK) room++; /* 0: without waiting for room */
    printf("room for %d\n", room);
    must(pace_queue_close(queue));
    while ((status = pace_queue_pop(queue, &number, 0)) == PACE_OK) rest++;
    printf("taken out after the queue was closed: %d\nthen: %s\n", rest, pace_status_name(status));
    pace_queue_free(queue);
    return 0;
}
