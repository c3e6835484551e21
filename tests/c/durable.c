/* Durable tasks: submitted, run, taken, cancelled and dead, over a broker. */
#include "check.h"

#include "broker.h"

typedef struct seen {
    atomic_int runs, drops;
    atomic_bool is_stale;
    pace_durable_id_t id;
} seen_t;

static void drop(void *data) { atomic_fetch_add(&((seen_t *)data)->drops, 1); }

static pace_durable_t *queue_of(pace_workers_t *workers, const char *name, const char *servers) {
    pace_bridge_options_t broker;
    pace_durable_t *queue = NULL;
    OK(pace_bridge_options_init(&broker, sizeof broker));
    broker.servers = servers;
    broker.reconnect_first_ns = MILLI;
    broker.reconnect_cap_ns = 10 * MILLI;
    OK(pace_durable_new(workers, name, &broker, NULL, &queue));
    return queue;
}

static pace_job_info_t info_of(const pace_job_t *job) {
    pace_job_info_t info = {0};
    info.struct_size = sizeof info;
    OK(pace_job_info(job, &info));
    return info;
}

static pace_durable_info_t told(const pace_durable_report_t *report) {
    pace_durable_info_t info = {0};
    info.struct_size = sizeof info;
    OK(pace_durable_report_info(report, &info));
    return info;
}

static bool is_text(pace_text_t text, const char *expected) {
    return text.size == strlen(expected) && memcmp(text.text, expected, text.size) == 0;
}

static bool is_bytes(const void *bytes, size_t size, const char *expected) {
    return size == strlen(expected) && (size == 0 || memcmp(bytes, expected, size) == 0);
}

static pace_durable_id_t submit(pace_durable_t *queue, const char *name, const char *arguments) {
    pace_durable_id_t id;
    bool duplicate = true;
    OK(pace_durable_submit(queue, name, NULL, arguments, strlen(arguments), PACE_FOREVER, &id,
                           &duplicate));
    CHECK(!duplicate);
    return id;
}

/* Waits for the end of a task, and says what it was. */
static void ends(pace_durable_t *queue, pace_durable_id_t id, uint32_t status, const char *bytes,
                 const char *failure, uint32_t attempts) {
    pace_durable_report_t *report = NULL;
    OK(pace_durable_wait(queue, id.text, PACE_FOREVER, &report));
    pace_durable_info_t info = told(report);
    CHECK(info.status == status && info.attempts == attempts && info.number == 0);
    CHECK(is_text(info.id, id.text) && info.name.text == NULL);
    CHECK(is_bytes(info.bytes, info.size, bytes));
    CHECK(failure == NULL ? info.failure.text == NULL : is_text(info.failure, failure));
    pace_durable_report_free(report);
}

static pace_status_t echo(void *data, pace_job_t *job) {
    seen_t *seen = (seen_t *)data;
    pace_job_info_t info = info_of(job);
    bool cancelled = true;
    CHECK(is_text(info.name, "echo") && info.number == 1);
    OK(pace_job_is_cancelled(job, &cancelled));
    CHECK(!cancelled);
    CHECK(info.id.size < sizeof seen->id.text);
    memcpy(seen->id.text, info.id.text, info.id.size);
    OK(pace_job_complete(job, info.arguments, info.size));
    OK(pace_job_is_cancelled(job, &cancelled));
    CHECK(cancelled);
    atomic_store(&seen->is_stale, pace_job_complete(job, "late", 4) == PACE_ESTALE &&
                                      pace_job_fail(job, "late", false, 0) == PACE_ESTALE);
    atomic_fetch_add(&seen->runs, 1);
    return PACE_EFAILED; /* It has said how it has ended. */
}

/* The second attempt is the last. */
static pace_status_t fail(void *data, pace_job_t *job) {
    atomic_fetch_add(&((seen_t *)data)->runs, 1);
    bool is_first = info_of(job).number == 1;
    OK(pace_job_fail(job, is_first ? "not yet" : "na\xefve", !is_first, 0));
    return PACE_OK;
}

/* Works until it is told to end. */
static pace_status_t obey(void *data, pace_job_t *job) {
    bool cancelled = true;
    OK(pace_job_is_cancelled(job, &cancelled));
    CHECK(!cancelled && info_of(job).time_left_ns > 0);
    CHECK(info_of(job).time_left_ns <= 2 * SECOND);
    while (!cancelled) {
        check_nap();
        OK(pace_job_is_cancelled(job, &cancelled));
    }
    CHECK(info_of(job).time_left_ns == 0);
    atomic_fetch_add(&((seen_t *)data)->runs, 1);
    return PACE_EFAILED;
}

static pace_status_t answer(void *data, pace_job_t *job) {
    (void)data;
    pace_job_info_t info = info_of(job);
    return is_bytes(info.arguments, info.size, "good") ? PACE_OK : PACE_EFAILED;
}

static pace_status_t ask_dead(pace_durable_t *queue) {
    pace_durable_report_t *report = NULL;
    return pace_durable_dead(queue, 0, &report);
}

static pace_status_t ask_forget(pace_durable_t *queue) { return pace_durable_forget(queue, 1); }

static pace_status_t ask_resubmit(pace_durable_t *queue) {
    return pace_durable_resubmit(queue, 1, NULL);
}

static pace_status_t ask_cancel(pace_durable_t *queue) {
    return pace_durable_cancel(queue, "n00000000000000000000000000000000", NULL);
}

typedef struct ask {
    pace_status_t (*call)(pace_durable_t *queue);
    pace_durable_t *queue;
} ask_t;

static void *ask_nobody(void *data) {
    const ask_t *ask = (const ask_t *)data;
    SAYS(PACE_ETIMEDOUT, ask->call(ask->queue));
    return NULL;
}

/* That there is none is not told by a broker that is away. */
static void nobody_answers(pace_durable_t *queue) {
    ask_t asks[] = {{ask_dead, queue}, {ask_forget, queue}, {ask_resubmit, queue}, {ask_cancel, queue}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, ask_nobody, &asks[i]) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* What is found out without a broker. False: the library has no durable tasks. */
static bool settings(pace_workers_t *workers) {
    pace_bridge_options_t broker;
    pace_durable_options_t options;
    pace_submission_t submission;
    pace_durable_t *queue = NULL;
    pace_durable_report_t *report = NULL;
    pace_job_t *job = NULL;
    pace_durable_id_t id;
    pace_bridge_stats_t stats = {0};
    char text[200];
    size_t needed;
    pace_retry_t retry = {0};
    seen_t seen = {0};
    uint64_t left = 0;
    stats.struct_size = sizeof stats;
    SAYS(PACE_EVERSION, pace_durable_options_init(&options, 8));
    SAYS(PACE_EVERSION, pace_submission_init(&submission, 8));
    OK(pace_durable_options_init(&options, sizeof options));
    CHECK(options.in_flight == 0 && options.results_ns == 3600 * SECOND);
    CHECK(options.ack_wait_ns == 30 * SECOND && options.window_ns == 120 * SECOND);
    OK(pace_submission_init(&submission, sizeof submission));
    CHECK(submission.lane == PACE_LANE_NORMAL && submission.deadline_ns == PACE_FOREVER);
    OK(pace_bridge_options_init(&broker, sizeof broker));
    broker.servers = "nats://127.0.0.1:1";
    if (pace_durable_new(workers, "q", &broker, &options, &queue) == PACE_EUNSUPPORTED) {
        TELLS("without the feature `nats`");
        return false;
    }
    pace_durable_free(queue);
    SAYS(PACE_EINVAL, pace_durable_new(NULL, "q", &broker, NULL, &queue));
    SAYS(PACE_EINVAL, pace_durable_new(workers, NULL, &broker, NULL, &queue));
    SAYS(PACE_EINVAL, pace_durable_new(workers, "q", NULL, NULL, &queue));
    SAYS(PACE_EINVAL, pace_durable_new(workers, "q", &broker, NULL, NULL));
    broker.password = "secret";
    SAYS(PACE_EINVAL, pace_durable_new(workers, "q", &broker, NULL, &queue));
    TELLS("without user");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    broker.password = NULL;

    /* What is found out when it is opened. */
    options.results_ns = MILLI;
    OK(pace_durable_new(workers, "q", &broker, &options, &queue));
    SAYS(PACE_EINVAL, pace_durable_open(queue));
    TELLS("results_last");
    pace_durable_free(queue);
    queue = queue_of(workers, "a name", broker.servers);
    SAYS(PACE_EINVAL, pace_durable_open(queue));
    TELLS("a name");
    pace_durable_free(queue);
    queue = queue_of(workers, "q", broker.servers);
    OK(pace_durable_schedule(queue, "nightly", "61 * * * *", "echo", "x", 1));
    SAYS(PACE_EINVAL, pace_durable_open(queue));
    TELLS("61");
    pace_durable_free(queue);
    queue = queue_of(workers, "q", broker.servers);
    OK(pace_durable_task(queue, "echo", NULL, echo, &seen, drop));
    OK(pace_durable_task_pulled(queue, "echo", NULL));
    SAYS(PACE_EINVAL, pace_durable_open(queue));
    TELLS("one handler for each name");
    pace_durable_free(queue);
    CHECK(atomic_load(&seen.drops) == 1);

    /* Before it is open. */
    queue = queue_of(workers, "q", broker.servers);
    retry.shape = 99;
    SAYS(PACE_EINVAL, pace_durable_task(queue, "echo", &retry, echo, &seen, drop));
    SAYS(PACE_EINVAL, pace_durable_task(queue, "echo", NULL, NULL, &seen, drop));
    SAYS(PACE_EINVAL, pace_durable_task(queue, NULL, NULL, echo, &seen, drop));
    SAYS(PACE_EINVAL, pace_durable_task_pulled(queue, "pulled", &retry));
    SAYS(PACE_EINVAL, pace_durable_wait_connected(queue, 0));
    TELLS("not open");
    SAYS(PACE_EINVAL, pace_durable_submit(queue, "echo", NULL, NULL, 0, 0, &id, NULL));
    SAYS(PACE_EINVAL, pace_durable_wait(queue, "n00000000000000000000000000000000", 0, &report));
    SAYS(PACE_EINVAL, pace_durable_cancel(queue, "n00000000000000000000000000000000", NULL));
    SAYS(PACE_EINVAL, pace_durable_take(queue, 0, &job));
    SAYS(PACE_EINVAL, pace_durable_take_waiting(queue, 0, &job));
    SAYS(PACE_EINVAL, pace_job_begin(NULL, NULL));
    SAYS(PACE_EINVAL, pace_durable_dead(queue, 0, &report));
    SAYS(PACE_EINVAL, pace_durable_resubmit(queue, 1, NULL));
    SAYS(PACE_EINVAL, pace_durable_forget(queue, 1));
    SAYS(PACE_EINVAL, pace_durable_stats(queue, &stats));
    SAYS(PACE_EINVAL, pace_durable_reason(queue, text, sizeof text, &needed));
    SAYS(PACE_EINVAL, pace_durable_close(queue, 0, NULL));

    /* Nobody is there. */
    OK(pace_durable_task(queue, "echo", NULL, echo, &seen, drop));
    OK(pace_durable_open(queue));
    SAYS(PACE_EINVAL, pace_durable_open(queue));
    SAYS(PACE_EINVAL, pace_durable_task(queue, "more", NULL, echo, &seen, drop));
    TELLS("open already");
    SAYS(PACE_EINVAL, pace_durable_schedule(queue, "nightly", "* * * * *", "echo", NULL, 0));
    SAYS(PACE_ETIMEDOUT, pace_durable_wait_connected(queue, MILLI));
    SAYS(PACE_EINVAL, pace_durable_wait(queue, "no id", 0, &report));
    SAYS(PACE_EINVAL, pace_durable_cancel(queue, "no id", NULL));
    SAYS(PACE_EINVAL, pace_durable_submit(queue, "a name", NULL, NULL, 0, 0, &id, NULL));
    submission.lane = 99;
    SAYS(PACE_EINVAL, pace_durable_submit(queue, "echo", &submission, NULL, 0, 0, &id, NULL));
    SAYS(PACE_ETIMEDOUT, pace_durable_submit(queue, "echo", NULL, "x", 1, MILLI, &id, NULL));
    SAYS(PACE_ETIMEDOUT, pace_durable_take(queue, MILLI, &job));
    nobody_answers(queue);
    do {
        OK(pace_durable_reason(queue, text, sizeof text, &needed));
    } while (strstr(text, "refused") == NULL);
    SAYS(PACE_ETIMEDOUT, pace_durable_submit(queue, "echo", NULL, "x", 1, MILLI, &id, NULL));
    TELLS("refused");
    OK(pace_durable_stats(queue, &stats));
    CHECK(!stats.connected && stats.connects == 0);
    OK(pace_durable_close(queue, MILLI, &left));
    CHECK(left == 2);
    SAYS(PACE_ESHUTDOWN, pace_durable_take(queue, PACE_FOREVER, &job));
    SAYS(PACE_ESHUTDOWN, pace_durable_wait_connected(queue, MILLI));
    SAYS(PACE_ESHUTDOWN, pace_durable_dead(queue, 0, &report));
    SAYS(PACE_ESHUTDOWN, pace_durable_cancel(queue, "n00000000000000000000000000000000", NULL));
    pace_durable_free(queue);
    CHECK(atomic_load(&seen.drops) == 2 && atomic_load(&seen.runs) == 0);

    pace_durable_free(NULL);
    pace_job_free(NULL);
    pace_durable_report_free(NULL);
    SAYS(PACE_EINVAL, pace_job_complete(NULL, NULL, 0));
    SAYS(PACE_EINVAL, pace_job_fail(NULL, NULL, false, 0));
    return true;
}

static void results(pace_durable_t *queue, seen_t *seen) {
    pace_durable_report_t *report = NULL;
    pace_submission_t submission;
    pace_durable_id_t id, again;
    bool duplicate = false;
    id = submit(queue, "echo", "hello");
    ends(queue, id, PACE_DURABLE_COMPLETED, "hello", NULL, 1);
    CHECK(atomic_load(&seen->is_stale) && strcmp(seen->id.text, id.text) == 0);
    /* Any number of times. */
    ends(queue, id, PACE_DURABLE_COMPLETED, "hello", NULL, 1);
    ends(queue, submit(queue, "answer", "good"), PACE_DURABLE_COMPLETED, "", NULL, 1);

    OK(pace_submission_init(&submission, sizeof submission));
    submission.attempts = 1;
    OK(pace_durable_submit(queue, "answer", &submission, "bad", 3, PACE_FOREVER, &id, NULL));
    OK(pace_durable_wait(queue, id.text, PACE_FOREVER, &report));
    CHECK(told(report).status == PACE_DURABLE_FAILED && told(report).failure.size > 0);
    pace_durable_report_free(report);

    OK(pace_submission_init(&submission, sizeof submission));
    submission.unique = "once", submission.lane = PACE_LANE_HIGH;
    OK(pace_durable_submit(queue, "echo", &submission, "1", 1, PACE_FOREVER, &id, &duplicate));
    CHECK(!duplicate);
    OK(pace_durable_submit(queue, "echo", &submission, "2", 1, PACE_FOREVER, &again, &duplicate));
    CHECK(duplicate && strcmp(id.text, again.text) == 0);
    ends(queue, id, PACE_DURABLE_COMPLETED, "1", NULL, 1);

    OK(pace_submission_init(&submission, sizeof submission));
    submission.delay_ns = 50 * MILLI, submission.deadline_ns = MILLI;
    OK(pace_durable_submit(queue, "echo", &submission, "", 0, PACE_FOREVER, &id, NULL));
    ends(queue, id, PACE_DURABLE_TIMED_OUT, "", "the deadline was over before it began", 0);

    OK(pace_submission_init(&submission, sizeof submission));
    submission.ignore_result = true;
    int runs = atomic_load(&seen->runs);
    OK(pace_durable_submit(queue, "echo", &submission, "", 0, PACE_FOREVER, &id, NULL));
    UNTIL(atomic_load(&seen->runs) == runs + 1);
    SAYS(PACE_ETIMEDOUT, pace_durable_wait(queue, id.text, MILLI, &report));
}

/* What has failed for good is kept, submitted again, and forgotten. */
static void dead(pace_durable_t *queue, seen_t *seen) {
    pace_durable_report_t *report = NULL;
    pace_durable_id_t id = submit(queue, "fail", "work"), again;
    ends(queue, id, PACE_DURABLE_FAILED, "", "na\xef\xbf\xbdve", 2);
    CHECK(atomic_load(&seen->runs) == 2);
    pace_durable_info_t info = {0};
    uint64_t number = 0;
    /* That of `answer` is there too. */
    do {
        UNTIL(pace_durable_dead(queue, number + 1, &report) == PACE_OK);
        info = told(report);
        number = info.number;
    } while (!is_text(info.name, "fail") && (pace_durable_report_free(report), true));
    CHECK(info.status == PACE_DURABLE_FAILED && info.attempts == 2 && is_text(info.id, id.text));
    CHECK(is_bytes(info.bytes, info.size, "work") && is_text(info.failure, "na\xef\xbf\xbdve"));
    pace_durable_report_free(report);
    SAYS(PACE_ESTALE, pace_durable_dead(queue, number + 1, &report));

    OK(pace_durable_resubmit(queue, number, &again));
    CHECK(strcmp(id.text, again.text) != 0);
    SAYS(PACE_ESTALE, pace_durable_resubmit(queue, number, NULL));
    ends(queue, again, PACE_DURABLE_FAILED, "", "na\xef\xbf\xbdve", 2);
    UNTIL(pace_durable_dead(queue, number + 1, &report) == PACE_OK);
    info = told(report);
    CHECK(is_text(info.id, again.text));
    OK(pace_durable_forget(queue, info.number));
    SAYS(PACE_ESTALE, pace_durable_forget(queue, info.number));
    pace_durable_report_free(report);
}

static void cancelled(pace_durable_t *queue) {
    pace_durable_id_t id = submit(queue, "nobody", "");
    bool is_cancelled = false;
    OK(pace_durable_cancel(queue, id.text, &is_cancelled));
    CHECK(is_cancelled);
    pace_durable_report_t *report = NULL;
    OK(pace_durable_wait(queue, id.text, PACE_FOREVER, &report));
    CHECK(told(report).status == PACE_DURABLE_CANCELLED);
    pace_durable_report_free(report);
    OK(pace_durable_cancel(queue, id.text, &is_cancelled));
    CHECK(!is_cancelled);
}

/* A host takes tasks as data: what it gives back, and what it fails at, comes again; what it gives back has had no
 * attempt. */
static void pulled(pace_durable_t *queue) {
    pace_job_t *job = NULL;
    SAYS(PACE_EINVAL, pace_durable_take(queue, 0, NULL));
    SAYS(PACE_ETIMEDOUT, pace_durable_take(queue, MILLI, &job));
    pace_durable_id_t id = submit(queue, "pulled", "by hand");
    bool has_begun = true;
    for (uint32_t number = 0; number <= 3; number++) {
        OK(number > 1 ? pace_durable_take(queue, PACE_FOREVER, &job)
                      : pace_durable_take_waiting(queue, PACE_FOREVER, &job));
        pace_job_info_t info = info_of(job);
        CHECK(is_text(info.id, id.text) && is_text(info.name, "pulled"));
        CHECK(info.number == (number ? number : 1));
        CHECK(is_bytes(info.arguments, info.size, "by hand") && info.time_left_ns == PACE_FOREVER);
        if (number > 0) OK(pace_job_begin(job, &has_begun));
        CHECK(has_begun);
        if (number == 1) OK(pace_job_fail(job, NULL, false, 0));
        if (number == 2) OK(pace_job_fail(job, "later", false, MILLI));
        if (number == 3) {
            bool is_cancelled = true;
            OK(pace_durable_cancel(queue, id.text, &is_cancelled));
            CHECK(!is_cancelled);
            OK(pace_job_complete(job, "done", 4));
            SAYS(PACE_ESTALE, pace_job_complete(job, "done", 4));
            TELLS("ended before");
            OK(pace_job_begin(job, &has_begun));
            CHECK(!has_begun);
        }
        pace_job_free(job);
    }
    ends(queue, id, PACE_DURABLE_COMPLETED, "done", NULL, 3);
    /* What waits with a host can be cancelled. */
    id = submit(queue, "pulled", "never");
    OK(pace_durable_take_waiting(queue, PACE_FOREVER, &job));
    OK(pace_durable_cancel(queue, id.text, &has_begun));
    CHECK(has_begun);
    OK(pace_job_begin(job, &has_begun));
    CHECK(!has_begun);
    SAYS(PACE_EINVAL, pace_job_begin(job, NULL));
    pace_job_free(job);
    ends(queue, id, PACE_DURABLE_CANCELLED, "", "cancelled before it began", 0);
}

/* An attempt learns that its time is over, in a handler and with a host. It must begin in that time, on a machine that
 * is busy, too. */
static void told_to_end(pace_durable_t *queue, seen_t *seen) {
    pace_submission_t submission;
    pace_durable_id_t id;
    pace_job_t *job = NULL;
    bool cancelled = true;
    OK(pace_submission_init(&submission, sizeof submission));
    submission.deadline_ns = 2 * SECOND;
    OK(pace_durable_submit(queue, "obey", &submission, "", 0, PACE_FOREVER, &id, NULL));
    ends(queue, id, PACE_DURABLE_TIMED_OUT, "", "the deadline was over before it ended", 1);
    UNTIL(atomic_load(&seen->runs) == 1);
    OK(pace_durable_submit(queue, "pulled", &submission, "", 0, PACE_FOREVER, &id, NULL));
    OK(pace_durable_take(queue, PACE_FOREVER, &job));
    CHECK(info_of(job).time_left_ns <= 2 * SECOND);
    UNTIL(pace_job_is_cancelled(job, &cancelled) == PACE_OK && cancelled);
    CHECK(info_of(job).time_left_ns == 0);
    OK(pace_job_complete(job, NULL, 0));
    OK(pace_job_is_cancelled(job, &cancelled));
    CHECK(cancelled);
    pace_job_free(job);
    ends(queue, id, PACE_DURABLE_COMPLETED, "", NULL, 1);
}

int main(void) {
    broker_t broker;
    check_begin();
    bool has_broker = broker_start(&broker);
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = NULL;
    OK(pace_workers_new(pool, NULL, &workers));
    if (settings(workers) && has_broker) {
        pace_durable_t *queue = queue_of(workers, "q", broker.url);
        pace_bridge_stats_t stats = {0};
        seen_t echoes = {0}, failures = {0}, answers = {0}, obeys = {0};
        pace_retry_t retry = {0};
        uint64_t left = 1;
        stats.struct_size = sizeof stats;
        retry.shape = PACE_RETRY_FIXED, retry.retries = 5, retry.first_ns = 10 * MILLI;
        OK(pace_durable_task(queue, "echo", NULL, echo, &echoes, drop));
        OK(pace_durable_task(queue, "fail", &retry, fail, &failures, drop));
        OK(pace_durable_task(queue, "answer", &retry, answer, &answers, drop));
        OK(pace_durable_task(queue, "obey", &retry, obey, &obeys, drop));
        OK(pace_durable_task_pulled(queue, "pulled", &retry));
        OK(pace_durable_schedule(queue, "yearly", "0 0 1 1 *", "echo", "x", 1));
        OK(pace_durable_open(queue));
        OK(pace_durable_wait_connected(queue, PACE_FOREVER));
        results(queue, &echoes);
        dead(queue, &failures);
        cancelled(queue);
        pulled(queue);
        told_to_end(queue, &obeys);
        OK(pace_durable_stats(queue, &stats));
        CHECK(stats.connected && stats.connects == 1 && stats.exports > 0 && stats.imports > 0);
        OK(pace_durable_close(queue, PACE_FOREVER, &left));
        CHECK(left == 0);
        pace_durable_free(queue);
        CHECK(echoes.drops == 1 && failures.drops == 1);
        CHECK(answers.drops == 1 && obeys.drops == 1);
    }
    pace_workers_free(workers);
    finish(pool);
    if (has_broker) broker_stop(&broker);
    return 0;
}
