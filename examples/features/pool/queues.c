/* A bounded queue for any number of threads, for use without a pool.
 *
 * feature: pool/queues
 */
#include "../check.h"
#include <paceline/queue.h>
#include <pthread.h>

static void *produce(void *queue) {
    for (int number = 1; number <= 1000; number++) must(pace_queue_push(queue, &number, PACE_FOREVER));
    return NULL;
}

int main(void) {
    pace_queue_t *queue;
    pthread_t producers[2];
    int number, sum = 0;
    must(pace_queue_new(sizeof number, 8, &queue));
    CHECK(pace_queue_pop(queue, &number, 0) == PACE_EEMPTY);
    for (int n = 0; n < 2; n++) CHECK(pthread_create(&producers[n], NULL, produce, queue) == 0);
    for (int n = 0; n < 2000; n++) {
        must(pace_queue_pop(queue, &number, PACE_FOREVER));
        sum += number;
    }
    CHECK(sum == 1001000);
    for (int n = 0; n < 2; n++) pthread_join(producers[n], NULL);

    for (number = 0; pace_queue_push(queue, &number, 0) == PACE_OK; number++) {
    }
    CHECK(number == 8); /* it is full */
    must(pace_queue_close(queue));
    for (number = 0; number < 8;) must(pace_queue_pop(queue, &number, 0)), number++;
    CHECK(pace_queue_pop(queue, &number, 0) == PACE_ESHUTDOWN);
    pace_queue_free(queue);
    return 0;
}
