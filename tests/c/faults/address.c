/* Publishes more bytes than it has: the library reads behind them, which AddressSanitizer must see. */
#include "../check.h"

static void ignore(void *user_data, const void *events, size_t stride, size_t count) {
    (void)user_data, (void)events, (void)stride, (void)count;
}

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(1);
    pace_ring_t *ring;
    uint32_t *half = (uint32_t *)calloc(1, sizeof *half);
    OK(pace_ring_serial(pool, sizeof(uint64_t), 8, ignore, NULL, NULL, &ring));
    OK(pace_ring_publish(ring, half));
    free(half);
    pace_ring_free(ring);
    finish(pool);
    return 0;
}
