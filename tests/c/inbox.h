/* The messages of one mailbox or replay, which a completion queue of its own brings. */
#ifndef INBOX_H
#define INBOX_H

#include "check.h"

enum { INBOX = 32 };

typedef struct inbox {
    pace_cq_t *cq;
    pace_cq_entry_t entries[INBOX];
    size_t out;
    bool ended;
} inbox_t;

static inline inbox_t inbox_of(pace_pool_t *pool, pace_mailbox_t *mailbox) {
    inbox_t inbox = {0};
    OK(pace_cq_new(pool, NULL, &inbox.cq));
    OK(pace_cq_mailbox(inbox.cq, mailbox, 0));
    return inbox;
}

/* A replay with a mailbox. */
static inline pace_mailbox_t *replay_to(pace_hub_t *hub, const char *pattern, uint32_t from,
                                        uint64_t at) {
    pace_mailbox_t *mailbox = NULL;
    pace_replay_options_t options;
    OK(pace_replay_options_init(&options, sizeof options));
    options.from = from;
    options.at = at;
    OK(pace_hub_replay_mailbox(hub, pattern, &options, &mailbox));
    return mailbox;
}

static inline void inbox_done(inbox_t *inbox) {
    OK(pace_cq_done(inbox->cq, inbox->entries, inbox->out));
    inbox->out = 0;
}

/* Completes what was taken before, and takes messages. PACE_ESTALE: it has ended, and nothing is left. */
static inline pace_status_t inbox_take(inbox_t *inbox, pace_message_t *messages, size_t capacity,
                                       uint64_t timeout_ns, size_t *count) {
    size_t got = 0;
    inbox_done(inbox);
    if (inbox->ended) return PACE_ESTALE;
    pace_status_t status =
        pace_cq_wait(inbox->cq, inbox->entries, capacity < INBOX ? capacity : INBOX, timeout_ns, &got);
    if (status != PACE_OK) return status;
    inbox->out = got;
    inbox->ended = inbox->entries[got - 1].kind == PACE_CQ_ENDED;
    *count = got - inbox->ended;
    for (size_t i = 0; i < *count; i++) messages[i] = inbox->entries[i].detail.message;
    return *count > 0 ? PACE_OK : PACE_ESTALE;
}

static inline void inbox_free(inbox_t *inbox) {
    inbox_done(inbox);
    pace_cq_free(inbox->cq);
}

#endif
