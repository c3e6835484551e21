/* Version, status names, texts, and each thread's last error. */
#include "check.h"

static void *other_thread(void *unused) {
    (void)unused;
    CHECK(strcmp(pace_last_error(), "") == 0);
    SAYS(PACE_EINVAL, pace_queue_new(8, 8, NULL));
    TELLS("queue is NULL");
    return NULL;
}

int main(void) {
    check_begin();
    CHECK(pace_version() == (PACE_VERSION_MAJOR << 16 | PACE_VERSION_MINOR << 8 | PACE_VERSION_PATCH));

    const char *names[] = {
        "PACE_OK",         "PACE_EINVAL",        "PACE_EFULL",        "PACE_EEMPTY",   "PACE_ETIMEDOUT",
        "PACE_ESHUTDOWN",  "PACE_EFORKED",       "PACE_ESTALE",       "PACE_ECLOSING", "PACE_EDEADLOCK",
        "PACE_ECANCELLED", "PACE_EFAILED",       "PACE_EPANIC",       "PACE_EOS",      "PACE_EVERSION",
        "PACE_EBUSY",      "PACE_ENORESPONDERS", "PACE_EUNSUPPORTED", "PACE_EGIVENUP"};
    for (int i = 0; i < 19; i++) {
        CHECK(strcmp(pace_status_name(-i), names[i]) == 0);
        CHECK(strlen(pace_strerror(-i)) > 0);
    }
    int32_t none[] = {1, -19, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(pace_status_name(none[i]), "PACE_UNKNOWN") == 0);
        CHECK(strlen(pace_strerror(none[i])) > 0);
    }

    CHECK(strcmp(pace_last_error(), "") == 0 && pace_last_os_error() == 0);
    pace_queue_t *queue = NULL;
    SAYS(PACE_EINVAL, pace_queue_new(0, 8, &queue));
    TELLS("item_size is 0, but must be 1 to 131072");
    CHECK(queue == NULL);
    OK(pace_queue_new(8, 8, &queue));
    TELLS("item_size is 0"); /* what succeeds leaves it alone */

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    TELLS("item_size is 0"); /* each thread has its own */
    pace_queue_free(queue);

    /* The system's number: a regular file cannot be waited for. */
    pace_pool_t *pool = pool_of(1);
    pace_handle_t handle = {0};
    pace_handle_options_t options;
    int file = open("/proc/self/exe", O_RDONLY);
    OK(pace_handle_options_init(&options, sizeof options));
    options.level = true;
    pace_cq_t *cq;
    OK(pace_cq_new(pool, NULL, &cq));
    SAYS(PACE_EOS, pace_cq_register(cq, file, &options, 0, &handle));
    CHECK(pace_last_os_error() == EPERM && handle.id == 0);
    SAYS(PACE_EINVAL, pace_cq_register(cq, -1, NULL, 0, &handle));
    CHECK(pace_last_os_error() == 0);
    pace_cq_free(cq);
    close(file);
    finish(pool);
    return 0;
}
