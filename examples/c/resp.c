/* A store in memory that speaks the protocol of Redis, on the stream server: examples/resp in C, with
 * fewer commands.
 *
 * A connection is one parser: requests are found in the bytes where they are, and what is incomplete is
 * left unconsumed, to be shown again with more behind it. No thread owns the data: keys are dealt out
 * to shards, each with a lock that is held for one look.
 *
 *     cc examples/c/resp.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o resp
 *     ./resp --listen 127.0.0.1:6380 --threads 2
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SHARDS 64
#define SWEEP UINT64_C(100000000) /* what has expired is taken out so often */
#define SWEPT 256                 /* entries of a shard that are looked at then */
#define NEVER INT64_MAX
#define MAX_LINE 65536
#define MAX_BULK (512 << 20)
#define GATHER 16384 /* replies that are gathered before they are written */
#define KEPT 64      /* an idle connection keeps room for so many arguments */

static void need(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "resp: %s\n", what);
    exit(EXIT_FAILURE);
}

static void must(pace_status_t status) { need(status == PACE_OK, pace_last_error()); }

static void *more(void *old, size_t size) {
    void *place = realloc(old, size);
    need(place != NULL, "out of memory");
    return place;
}

/* ------------------------------------------------------------------------------------ bytes, numbers */

typedef struct text {
    const char *at;
    size_t size;
} text_t;

static text_t copy(text_t text) {
    char *at = memcpy(more(NULL, text.size + 1), text.at, text.size);
    return (text_t){at, text.size};
}

static bool same(text_t one, text_t other) {
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

/* `word` is in lower case. */
static bool is(text_t text, const char *word) {
    return text.size == strlen(word) && strncasecmp(text.at, word, text.size) == 0;
}

/* A whole number with nothing around it: no blank, no +, no zero in front. */
static bool number(text_t text, int64_t *value) {
    bool negative = text.size > 0 && text.at[0] == '-';
    size_t from = negative ? 1 : 0;
    *value = 0;
    if (from == text.size || (text.at[from] == '0' && text.size > 1)) return false;
    for (size_t i = from; i < text.size; i++) { /* downwards: there is one more below zero */
        if (!isdigit((unsigned char)text.at[i])) return false;
        if (__builtin_mul_overflow(*value, 10, value)) return false;
        if (__builtin_sub_overflow(*value, text.at[i] - '0', value)) return false;
    }
    return negative || !__builtin_sub_overflow(0, *value, value);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* ---------------------------------------------------------------------------------------- the store */

typedef enum { TEXT, LIST, HASH } kind_t;

struct table;

typedef struct value {
    kind_t kind;
    text_t text;         /* TEXT */
    text_t *items;       /* LIST: the first is the last */
    size_t count, room;  /* LIST */
    struct table *table; /* HASH */
} value_t;

typedef struct entry {
    text_t key;
    uint64_t hash;
    int64_t expires; /* milliseconds since 1970 */
    value_t value;
} entry_t;

/* Entries in the order in which they came, and an index: 0 is free, else one more than a place. */
typedef struct table {
    entry_t *entries;
    uint32_t *index;
    size_t count, room, mask;
} table_t;

typedef struct shard {
    pthread_mutex_t lock;
    table_t table;
    size_t swept;
} shard_t;

static shard_t shards[SHARDS];

/* FNV-1a, and a mix so that all bits depend on all bytes. Not for keys that an enemy chooses. */
static uint64_t hash_of(text_t key) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.size; i++)
        hash = (hash ^ (unsigned char)key.at[i]) * UINT64_C(0x100000001b3);
    return (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

static shard_t *shard_of(text_t key) { return &shards[hash_of(key) >> 58]; }

static size_t place_of(const table_t *table, text_t key, uint64_t hash) {
    size_t place = hash & table->mask;
    while (table->index[place] != 0) {
        entry_t *entry = &table->entries[table->index[place] - 1];
        if (entry->hash == hash && same(entry->key, key)) break;
        place = (place + 1) & table->mask;
    }
    return place;
}

static void grow(table_t *table) {
    table->room = table->room == 0 ? 8 : table->room * 2;
    table->entries = more(table->entries, table->room * sizeof *table->entries);
    free(table->index);
    table->index = calloc(table->room * 2, sizeof *table->index);
    need(table->index != NULL, "out of memory");
    table->mask = table->room * 2 - 1;
    for (size_t i = 0; i < table->count; i++)
        table->index[place_of(table, table->entries[i].key, table->entries[i].hash)] = (uint32_t)i + 1;
}

static void clear(table_t *table);

static void empty(value_t *value) {
    if (value->kind == TEXT) free((char *)value->text.at);
    for (size_t i = 0; i < value->count; i++) free((char *)value->items[i].at);
    free(value->items);
    if (value->table != NULL) clear(value->table);
    free(value->table);
}

static void clear(table_t *table) {
    for (size_t i = 0; i < table->count; i++) {
        free((char *)table->entries[i].key.at);
        empty(&table->entries[i].value);
    }
    free(table->entries);
    free(table->index);
    *table = (table_t){0};
}

/* Frees a place of the index, and moves up what would not be found behind it any more. */
static void close_gap(table_t *table, size_t gap) {
    table->index[gap] = 0;
    for (size_t at = (gap + 1) & table->mask; table->index[at] != 0; at = (at + 1) & table->mask) {
        size_t home = table->entries[table->index[at] - 1].hash & table->mask;
        if (((at - home) & table->mask) < ((at - gap) & table->mask)) continue;
        table->index[gap] = table->index[at];
        table->index[gap = at] = 0;
    }
}

/* The last entry takes its place. */
static void take_out(table_t *table, entry_t *entry) {
    entry_t *last = &table->entries[table->count - 1];
    size_t of_last = place_of(table, last->key, last->hash);
    size_t gap = place_of(table, entry->key, entry->hash);
    free((char *)entry->key.at);
    empty(&entry->value);
    *entry = *last;
    table->index[of_last] = (uint32_t)(entry - table->entries) + 1;
    close_gap(table, gap);
    table->count--;
}

/* NULL: it is not there, or not any more. */
static entry_t *find(table_t *table, text_t key) {
    if (table->count == 0) return NULL;
    size_t place = place_of(table, key, hash_of(key));
    if (table->index[place] == 0) return NULL;
    entry_t *entry = &table->entries[table->index[place] - 1];
    if (entry->expires == NEVER || entry->expires > now()) return entry;
    take_out(table, entry);
    return NULL;
}

/* Puts a value in place of the one that is there, if there is one. */
static entry_t *put(table_t *table, text_t key, value_t value, int64_t expires) {
    if (table->count == table->room) grow(table);
    uint64_t hash = hash_of(key);
    size_t place = place_of(table, key, hash);
    if (table->index[place] == 0) {
        table->entries[table->count++] = (entry_t){copy(key), hash, expires, value};
        table->index[place] = (uint32_t)table->count;
        return &table->entries[table->count - 1];
    }
    entry_t *entry = &table->entries[table->index[place] - 1];
    empty(&entry->value);
    entry->value = value;
    entry->expires = expires;
    return entry;
}

/* Puts a text in place of `entry`, which the key has, or NULL. One of the same size stays where the old
 * one was. */
static void put_text(table_t *table, entry_t *entry, text_t key, text_t text, int64_t expires) {
    if (entry == NULL || entry->value.kind != TEXT || entry->value.text.size != text.size) {
        put(table, key, (value_t){.kind = TEXT, .text = copy(text)}, expires);
        return;
    }
    memcpy((char *)entry->value.text.at, text.at, text.size);
    entry->expires = expires;
}

static int32_t sweep(void *user_data, pace_handle_t self) {
    (void)user_data, (void)self;
    int64_t time = now();
    for (shard_t *shard = shards; shard < shards + SHARDS; shard++) {
        pthread_mutex_lock(&shard->lock);
        for (size_t i = 0; i < SWEPT && shard->table.count > 0; i++) {
            if (shard->swept >= shard->table.count) shard->swept = 0;
            entry_t *entry = &shard->table.entries[shard->swept];
            if (entry->expires <= time)
                take_out(&shard->table, entry);
            else
                shard->swept++;
        }
        pthread_mutex_unlock(&shard->lock);
    }
    return PACE_FLOW_WAIT;
}

/* -------------------------------------------------------------------------------------- the requests */

typedef struct span {
    size_t from, size;
} span_t;

typedef struct session {
    span_t *spans; /* arguments that are complete */
    size_t count, room;
    size_t missing; /* arguments that are to come still */
    size_t at;      /* where the next of them begins; 0: even their number is not known */
    size_t needed;  /* no look before so many bytes are there */
    char *line;     /* the words of an inline request */
} session_t;

typedef struct call {
    text_t *words;
    size_t count;
    char *out; /* the replies */
    size_t size, room;
    pace_conn_t *conn;
    shard_t *shard; /* locked */
    bool quits, pressed;
} call_t;

typedef enum { WHOLE, NOTHING, PARTIAL, TOO_LONG, WRONG } found_t;

static void add_span(session_t *session, size_t from, size_t size) {
    if (session->count == session->room)
        session->spans = more(session->spans, (session->room = session->room * 2 + 4) * sizeof(span_t));
    session->spans[session->count++] = (span_t){from, size};
}

/* Reads the number behind the byte at `from`, up to the CR and the byte after it. */
static found_t header(text_t bytes, size_t from, int64_t *value, size_t *end) {
    size_t size = bytes.size - from;
    const char *at = bytes.at + from;
    const char *cr = memchr(at, '\r', size < MAX_LINE + 1 ? size : MAX_LINE + 1);
    if (cr == NULL) return size > MAX_LINE ? TOO_LONG : PARTIAL;
    *end = from + (size_t)(cr - at) + 2;
    if (*end > bytes.size) return PARTIAL;
    return cr > at && number((text_t){at + 1, (size_t)(cr - at) - 1}, value) ? WHOLE : WRONG;
}

static found_t wrong(char *why, const char *what) {
    strcpy(why, what);
    return WRONG;
}

static found_t arguments(session_t *session, text_t bytes, size_t *consumed, char *why) {
    for (; session->missing > 0; session->missing--) {
        int64_t size;
        size_t start;
        found_t found = header(bytes, session->at, &size, &start);
        if (found == PARTIAL) return PARTIAL;
        if (found == TOO_LONG) return wrong(why, "too big bulk count string");
        if (bytes.at[session->at] != '$') {
            char got = bytes.at[session->at];
            sprintf(why, "expected '$', got '%c'", got == '\r' || got == '\n' ? ' ' : got);
            return WRONG;
        }
        if (found == WRONG || size < 0 || size > MAX_BULK) return wrong(why, "invalid bulk length");
        session->needed = start + (size_t)size + 2;
        if (bytes.size < session->needed) return PARTIAL;
        add_span(session, start, (size_t)size);
        session->at = session->needed;
    }
    *consumed = session->at;
    session->at = session->needed = 0;
    return WHOLE;
}

static int hex(char digit) {
    return isdigit((unsigned char)digit) ? digit - '0' : tolower((unsigned char)digit) - 'a' + 10;
}

/* One word of a line, which ends with a zero byte, to `to`. NULL: a quote is not closed, or something
 * follows it. */
static const char *word(const char *at, char **to) {
    char quote = 0;
    for (;; at++) {
        if (quote != 0 && *at == 0) return NULL;
        if (quote == '"' && at[0] == '\\' && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
            isxdigit((unsigned char)at[3])) {
            *(*to)++ = (char)(hex(at[2]) << 4 | hex(at[3]));
            at += 3;
        } else if (quote == '"' && at[0] == '\\' && at[1] != 0) {
            static const char escapes[] = "nrtba", bytes[] = "\n\r\t\b\a";
            const char *escape = strchr(escapes, *++at);
            *(*to)++ = escape == NULL ? *at : bytes[escape - escapes];
        } else if (quote == '\'' && at[0] == '\\' && at[1] == '\'') {
            *(*to)++ = *++at;
        } else if (quote != 0 && *at == quote) {
            return at[1] == 0 || isspace((unsigned char)at[1]) ? at + 1 : NULL;
        } else if (quote == 0 && (*at == 0 || strchr(" \n\r\t", *at) != NULL)) {
            return at;
        } else if (quote == 0 && (*at == '"' || *at == '\'')) {
            quote = *at;
        } else {
            *(*to)++ = *at;
        }
    }
}

static found_t line(session_t *session, text_t *bytes, size_t *consumed, char *why) {
    size_t most = bytes->size < MAX_LINE + 1 ? bytes->size : MAX_LINE + 1;
    const char *end = memchr(bytes->at, '\n', most);
    if (end == NULL) return bytes->size > MAX_LINE ? wrong(why, "too big inline request") : PARTIAL;
    size_t size = (size_t)(end - bytes->at);
    *consumed = size + 1;
    /* The line with a zero byte behind it, and then its words. */
    session->line = more(session->line, 2 * size + 1);
    memcpy(session->line, bytes->at, size);
    session->line[size - (size > 0 && end[-1] == '\r')] = 0;
    char *words = session->line + size + 1, *to = words;
    const char *at = session->line;
    for (;;) {
        while (isspace((unsigned char)*at)) at++;
        if (*at == 0) break;
        char *start = to;
        at = word(at, &to);
        if (at == NULL) return wrong(why, "unbalanced quotes in request");
        add_span(session, (size_t)(start - words), (size_t)(to - start));
    }
    bytes->at = words;
    return session->count > 0 ? WHOLE : NOTHING;
}

/* Finds the first request in `bytes`; its words are spans of what `bytes` is then. */
static found_t next(session_t *session, text_t *bytes, size_t *consumed, char *why) {
    int64_t count;
    if (bytes->size == 0 || bytes->size < session->needed) return PARTIAL;
    if (session->at > 0) return arguments(session, *bytes, consumed, why);
    session->count = 0;
    if (bytes->at[0] != '*') return line(session, bytes, consumed, why);
    found_t found = header(*bytes, 0, &count, consumed);
    if (found == PARTIAL) return PARTIAL;
    if (found == TOO_LONG) return wrong(why, "too big mbulk count string");
    if (found == WRONG || count > INT32_MAX) return wrong(why, "invalid multibulk length");
    if (count <= 0) return NOTHING;
    session->missing = (size_t)count;
    session->at = *consumed;
    return arguments(session, *bytes, consumed, why);
}

/* --------------------------------------------------------------------------------------- the replies */

static void append(call_t *call, const char *bytes, size_t size) {
    if (call->size + size > call->room)
        call->out = more(call->out, call->room = (call->size + size) * 2);
    memcpy(call->out + call->size, bytes, size);
    call->size += size;
}

static void say(call_t *call, const char *reply) { append(call, reply, strlen(reply)); }

static void reply(call_t *call, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say(call, text);
}

#define QUOTED 128 /* so much of what a client sent is shown in an error */

static int quoted(text_t text, size_t most) { return (int)(text.size < most ? text.size : most); }

/* An error that quotes a client: what it sent must not end the line. */
static void error_line(call_t *call, char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\r' || text[i] == '\n') text[i] = ' ';
    append(call, text, size);
    append(call, "\r\n", 2);
}

/* A line of a byte and a number. */
static void counted(call_t *call, char kind, int64_t value) {
    char line[32], *at = line + sizeof line;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *--at = '\n';
    *--at = '\r';
    do *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0) *--at = '-';
    *--at = kind;
    append(call, at, (size_t)(line + sizeof line - at));
}

static void integer(call_t *call, int64_t value) { counted(call, ':', value); }

static void array(call_t *call, size_t count) { counted(call, '*', (int64_t)count); }

static void bulk(call_t *call, text_t text) {
    counted(call, '$', (int64_t)text.size);
    append(call, text.at, text.size);
    append(call, "\r\n", 2);
}

static void bulk_word(call_t *call, const char *word) { bulk(call, (text_t){word, strlen(word)}); }

static void send_out(call_t *call) {
    uint32_t wrote = 0;
    if (call->size == 0) return;
    /* If it is refused, a reply is missing, and none may follow. */
    if (pace_conn_write(call->conn, call->out, call->size, &wrote) != PACE_OK)
        pace_conn_abort(call->conn);
    call->pressed = wrote != PACE_WRITE_STATUS_QUEUED;
    call->size = 0;
}

#define OK "+OK\r\n"
#define NONE "$-1\r\n"
#define WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
#define NO_NUMBER "-ERR value is not an integer or out of range\r\n"
#define SYNTAX "-ERR syntax error\r\n"
#define ARITY "-ERR wrong number of arguments for '%s' command\r\n"
#define BAD_TIME "-ERR invalid expire time in '%s' command\r\n"

/* -------------------------------------------------------------------------------------- the commands */

/* Locks the shard of the first key, up to `leave`. */
static table_t *at_key(call_t *call) {
    call->shard = shard_of(call->words[1]);
    pthread_mutex_lock(&call->shard->lock);
    return &call->shard->table;
}

static void leave(call_t *call) { pthread_mutex_unlock(&call->shard->lock); }

/* The shards of every `step`th word, so that what is done with them looks like one step. All threads
 * lock them in the same order. */
static uint64_t lock_all(call_t *call, size_t step) {
    uint64_t set = 0;
    for (size_t i = 1; i < call->count; i += step)
        set |= UINT64_C(1) << (shard_of(call->words[i]) - shards);
    for (int i = 0; i < SHARDS; i++)
        if (set >> i & 1) pthread_mutex_lock(&shards[i].lock);
    return set;
}

static void unlock_all(uint64_t set) {
    for (int i = 0; i < SHARDS; i++)
        if (set >> i & 1) pthread_mutex_unlock(&shards[i].lock);
}

static void ping(call_t *call) {
    if (call->count == 1)
        say(call, "+PONG\r\n");
    else if (call->count == 2)
        bulk(call, call->words[1]);
    else
        reply(call, ARITY, "ping");
}

static void echo(call_t *call) { bulk(call, call->words[1]); }

static void quit(call_t *call) {
    say(call, OK);
    call->quits = true;
}

static void select_database(call_t *call) {
    int64_t database;
    if (!number(call->words[1], &database))
        say(call, NO_NUMBER);
    else
        say(call, database == 0 ? OK : "-ERR DB index is out of range\r\n");
}

static void get(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry == NULL)
        say(call, NONE);
    else if (entry->value.kind != TEXT)
        say(call, WRONG_TYPE);
    else
        bulk(call, entry->value.text);
    leave(call);
}

typedef struct set_options {
    bool only_new, only_old, get, keep_time;
    int64_t expires;
} set_options_t;

/* False: it has replied why not. */
static bool set_time(call_t *call, text_t text, int64_t unit, bool relative, int64_t *expires) {
    int64_t time;
    if (!number(text, &time)) {
        say(call, NO_NUMBER);
        return false;
    }
    if (time <= 0 || __builtin_mul_overflow(time, unit, expires) ||
        __builtin_add_overflow(*expires, relative ? now() : 0, expires)) {
        reply(call, BAD_TIME, "set");
        return false;
    }
    return true;
}

static bool parse_set(call_t *call, set_options_t *options) {
    static const struct {
        const char *word;
        int64_t unit;
        bool relative;
    } units[] = {{"ex", 1000, true}, {"px", 1, true}, {"exat", 1000, false}, {"pxat", 1, false}};
    size_t time = 0, unit = 0;
    for (size_t i = 3; i < call->count; i++) {
        text_t option = call->words[i];
        if (is(option, "nx") && !options->only_old)
            options->only_new = true;
        else if (is(option, "xx") && !options->only_new)
            options->only_old = true;
        else if (is(option, "get"))
            options->get = true;
        else if (is(option, "keepttl") && time == 0)
            options->keep_time = true;
        else {
            for (unit = 0; unit < 4 && !is(option, units[unit].word);) unit++;
            if (unit == 4 || time != 0 || options->keep_time || i + 1 == call->count) {
                say(call, SYNTAX);
                return false;
            }
            time = ++i;
        }
    }
    return time == 0 ||
           set_time(call, call->words[time], units[unit].unit, units[unit].relative, &options->expires);
}

static void set(call_t *call) {
    set_options_t options = {.expires = NEVER};
    if (call->count > 3 && !parse_set(call, &options)) return;
    table_t *table = at_key(call);
    entry_t *entry = find(table, call->words[1]);
    bool refused = options.only_new ? entry != NULL : options.only_old && entry == NULL;
    if (options.get && entry != NULL && entry->value.kind != TEXT) {
        say(call, WRONG_TYPE);
        refused = true;
    } else if (options.get && entry != NULL) {
        bulk(call, entry->value.text);
    } else {
        say(call, options.get || refused ? NONE : OK);
    }
    if (options.keep_time && entry != NULL) options.expires = entry->expires;
    if (!refused) put_text(table, entry, call->words[1], call->words[2], options.expires);
    leave(call);
}

static void add(call_t *call, int64_t amount) {
    table_t *table = at_key(call);
    entry_t *entry = find(table, call->words[1]);
    int64_t before = 0, sum;
    if (entry != NULL && entry->value.kind != TEXT) {
        say(call, WRONG_TYPE);
    } else if (entry != NULL && !number(entry->value.text, &before)) {
        say(call, NO_NUMBER);
    } else if (__builtin_add_overflow(before, amount, &sum)) {
        say(call, "-ERR increment or decrement would overflow\r\n");
    } else {
        char digits[24];
        size_t size = (size_t)sprintf(digits, "%lld", (long long)sum);
        int64_t expires = entry == NULL ? NEVER : entry->expires;
        put_text(table, entry, call->words[1], (text_t){digits, size}, expires);
        integer(call, sum);
    }
    leave(call);
}

static void incr(call_t *call) { add(call, 1); }

static void decr(call_t *call) { add(call, -1); }

static void incrby(call_t *call) {
    int64_t amount;
    if (number(call->words[2], &amount))
        add(call, amount);
    else
        say(call, NO_NUMBER);
}

static void decrby(call_t *call) {
    int64_t amount;
    if (!number(call->words[2], &amount))
        say(call, NO_NUMBER);
    else if (amount == INT64_MIN)
        say(call, "-ERR decrement would overflow\r\n");
    else
        add(call, -amount);
}

static void mget(call_t *call) {
    uint64_t locked = lock_all(call, 1);
    array(call, call->count - 1);
    for (size_t i = 1; i < call->count; i++) {
        entry_t *entry = find(&shard_of(call->words[i])->table, call->words[i]);
        if (entry == NULL || entry->value.kind != TEXT)
            say(call, NONE);
        else
            bulk(call, entry->value.text);
    }
    unlock_all(locked);
}

static void mset(call_t *call) {
    if (call->count % 2 == 0) {
        reply(call, ARITY, "mset");
        return;
    }
    uint64_t locked = lock_all(call, 2);
    for (size_t i = 1; i < call->count; i += 2) {
        table_t *table = &shard_of(call->words[i])->table;
        put_text(table, find(table, call->words[i]), call->words[i], call->words[i + 1], NEVER);
    }
    unlock_all(locked);
    say(call, OK);
}

static void count_keys(call_t *call, bool take) {
    int64_t count = 0;
    uint64_t locked = lock_all(call, 1);
    for (size_t i = 1; i < call->count; i++) {
        table_t *table = &shard_of(call->words[i])->table;
        entry_t *entry = find(table, call->words[i]);
        count += entry != NULL;
        if (entry != NULL && take) take_out(table, entry);
    }
    unlock_all(locked);
    integer(call, count);
}

static void del(call_t *call) { count_keys(call, true); }

static void exists(call_t *call) { count_keys(call, false); }

static void type(call_t *call) {
    static const char *const kinds[] = {"string", "list", "hash"};
    entry_t *entry = find(at_key(call), call->words[1]);
    reply(call, "+%s\r\n", entry == NULL ? "none" : kinds[entry->value.kind]);
    leave(call);
}

static void expire_in(call_t *call, int64_t unit, const char *name) {
    int64_t time;
    if (!number(call->words[2], &time)) {
        say(call, NO_NUMBER);
        return;
    }
    if (__builtin_mul_overflow(time, unit, &time) || __builtin_add_overflow(time, now(), &time)) {
        reply(call, BAD_TIME, name);
        return;
    }
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry != NULL) entry->expires = time;
    integer(call, entry != NULL);
    leave(call);
}

static void expire(call_t *call) { expire_in(call, 1000, "expire"); }

static void pexpire(call_t *call) { expire_in(call, 1, "pexpire"); }

static void persist(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    bool changes = entry != NULL && entry->expires != NEVER;
    if (changes) entry->expires = NEVER;
    integer(call, changes);
    leave(call);
}

static int64_t time_left(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    int64_t left = entry == NULL ? -2 : entry->expires == NEVER ? -1 : entry->expires - now();
    leave(call);
    return left;
}

static void ttl(call_t *call) {
    int64_t left = time_left(call);
    integer(call, left < 0 ? left : (left + 500) / 1000);
}

static void pttl(call_t *call) { integer(call, time_left(call)); }

/* The entry of the key, made if it is not there. NULL: it has another kind of value, and that is
 * replied. The shard is locked in any case. */
static entry_t *entry_of(call_t *call, kind_t kind) {
    table_t *table = at_key(call);
    entry_t *entry = find(table, call->words[1]);
    if (entry == NULL) {
        value_t value = {.kind = kind};
        if (kind == HASH) value.table = memset(more(NULL, sizeof(table_t)), 0, sizeof(table_t));
        return put(table, call->words[1], value, NEVER);
    }
    if (entry->value.kind == kind) return entry;
    say(call, WRONG_TYPE);
    return NULL;
}

static void lpush(call_t *call) {
    entry_t *entry = entry_of(call, LIST);
    if (entry != NULL) {
        value_t *list = &entry->value;
        for (size_t i = 2; i < call->count; i++) {
            if (list->count == list->room)
                list->items = more(list->items, (list->room = list->room * 2 + 4) * sizeof(text_t));
            list->items[list->count++] = copy(call->words[i]);
        }
        integer(call, (int64_t)list->count);
    }
    leave(call);
}

static void llen(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry != NULL && entry->value.kind != LIST)
        say(call, WRONG_TYPE);
    else
        integer(call, entry == NULL ? 0 : (int64_t)entry->value.count);
    leave(call);
}

static void lrange(call_t *call) {
    int64_t from, to;
    if (!number(call->words[2], &from) || !number(call->words[3], &to)) {
        say(call, NO_NUMBER);
        return;
    }
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry != NULL && entry->value.kind != LIST) {
        say(call, WRONG_TYPE);
    } else {
        int64_t count = entry == NULL ? 0 : (int64_t)entry->value.count;
        if (from < 0) from = from + count < 0 ? 0 : from + count;
        if (to < 0) to += count;
        if (to >= count) to = count - 1;
        array(call, from > to ? 0 : (size_t)(to - from) + 1);
        for (; from <= to; from++) bulk(call, entry->value.items[count - 1 - from]);
    }
    leave(call);
}

static void hset(call_t *call) {
    if (call->count % 2 == 1) {
        reply(call, ARITY, "hset");
        return;
    }
    entry_t *entry = entry_of(call, HASH);
    if (entry != NULL) {
        table_t *fields = entry->value.table;
        size_t before = fields->count;
        for (size_t i = 2; i < call->count; i += 2)
            put_text(fields, find(fields, call->words[i]), call->words[i], call->words[i + 1], NEVER);
        integer(call, (int64_t)(fields->count - before));
    }
    leave(call);
}

static void hget(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry != NULL && entry->value.kind != HASH) {
        say(call, WRONG_TYPE);
    } else {
        entry_t *field = entry == NULL ? NULL : find(entry->value.table, call->words[2]);
        if (field == NULL)
            say(call, NONE);
        else
            bulk(call, field->value.text);
    }
    leave(call);
}

static void hgetall(call_t *call) {
    entry_t *entry = find(at_key(call), call->words[1]);
    if (entry != NULL && entry->value.kind != HASH) {
        say(call, WRONG_TYPE);
    } else {
        size_t count = entry == NULL ? 0 : entry->value.table->count;
        array(call, 2 * count);
        for (size_t i = 0; i < count; i++) {
            bulk(call, entry->value.table->entries[i].key);
            bulk(call, entry->value.table->entries[i].value.text);
        }
    }
    leave(call);
}

static size_t all_keys(bool take) {
    size_t count = 0;
    for (shard_t *shard = shards; shard < shards + SHARDS; shard++) {
        pthread_mutex_lock(&shard->lock);
        count += shard->table.count;
        if (take) clear(&shard->table);
        pthread_mutex_unlock(&shard->lock);
    }
    return count;
}

static void dbsize(call_t *call) { integer(call, (int64_t)all_keys(false)); }

static void flushall(call_t *call) {
    all_keys(true);
    say(call, OK);
}

static void info(call_t *call) {
    char text[128];
    /* The last version without RESP3, which is not spoken here, and HELLO, which asks for it. */
    snprintf(text, sizeof text, "# Server\r\nredis_version:5.0.0\r\n\r\n# Keyspace\r\ndb0:keys=%zu\r\n",
             all_keys(false));
    bulk_word(call, text);
}

static void config(call_t *call) {
    static const char *const settings[][2] = {{"save", ""}, {"appendonly", "no"}, {"databases", "1"}};
    if (!is(call->words[1], "get")) {
        char text[256];
        int size = snprintf(text, sizeof text, "-ERR unknown subcommand '%.*s'. Try CONFIG HELP.",
                            quoted(call->words[1], QUOTED), call->words[1].at);
        error_line(call, text, (size_t)size);
        return;
    }
    if (call->count < 3) {
        reply(call, ARITY, "config|get");
        return;
    }
    size_t found = 0;
    while (found < 3 && !is(call->words[2], settings[found][0])) found++;
    array(call, found < 3 ? 2 : 0);
    for (int i = 0; found < 3 && i < 2; i++) bulk_word(call, settings[found][i]);
}

static void command(call_t *call);

/* A negative arity is the least number of words. */
static const struct command {
    const char *name;
    int arity;
    void (*run)(call_t *call);
} commands[] = {
    {"get", 2, get},
    {"set", -3, set},
    {"ping", -1, ping},
    {"echo", 2, echo},
    {"quit", -1, quit},
    {"incr", 2, incr},
    {"decr", 2, decr},
    {"incrby", 3, incrby},
    {"decrby", 3, decrby},
    {"mget", -2, mget},
    {"mset", -3, mset},
    {"del", -2, del},
    {"exists", -2, exists},
    {"type", 2, type},
    {"expire", 3, expire},
    {"pexpire", 3, pexpire},
    {"persist", 2, persist},
    {"ttl", 2, ttl},
    {"pttl", 2, pttl},
    {"lpush", -3, lpush},
    {"llen", 2, llen},
    {"lrange", 4, lrange},
    {"hset", -4, hset},
    {"hget", 3, hget},
    {"hgetall", 2, hgetall},
    {"dbsize", 1, dbsize},
    {"flushall", 1, flushall},
    {"info", -1, info},
    {"config", -2, config},
    {"command", -1, command},
    {"select", 2, select_database},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void command(call_t *call) {
    if (call->count > 1 && !is(call->words[1], "info")) {
        /* Documents are not kept; redis-cli does without. */
        if (is(call->words[1], "count"))
            integer(call, COMMANDS);
        else
            array(call, 0);
        return;
    }
    array(call, COMMANDS);
    for (size_t i = 0; i < COMMANDS; i++) {
        array(call, 6);
        bulk_word(call, commands[i].name);
        integer(call, commands[i].arity);
        array(call, 0);
        for (int place = 0; place < 3; place++) integer(call, 0);
    }
}

static void unknown(call_t *call) {
    char text[512];
    int size = snprintf(text, sizeof text, "-ERR unknown command '%.*s', with args beginning with: ",
                        quoted(call->words[0], QUOTED), call->words[0].at);
    for (size_t i = 1, most = QUOTED; i < call->count && most > 0; i++) {
        int added = snprintf(text + size, sizeof text - (size_t)size, "'%.*s' ",
                             quoted(call->words[i], most), call->words[i].at);
        size += added;
        most -= (size_t)added < most ? (size_t)added : most;
    }
    error_line(call, text, (size_t)size);
}

static void run(call_t *call) {
    for (size_t i = 0; i < COMMANDS; i++) {
        if (!is(call->words[0], commands[i].name)) continue;
        int arity = commands[i].arity, count = (int)call->count;
        if (arity < 0 ? count < -arity : count != arity)
            reply(call, ARITY, commands[i].name);
        else
            commands[i].run(call);
        return;
    }
    /* A browser that a web page has sent here speaks HTTP. Its request line or its Host: ends the connection,
     * as with Redis, or lines of its body would be carried out. */
    if (is(call->words[0], "post") || is(call->words[0], "host:"))
        call->quits = true;
    else
        unknown(call);
}

/* ----------------------------------------------------------------------------------- the connections */

static int32_t on_open(void *user_data, pace_conn_t *conn) {
    (void)user_data;
    session_t *session = calloc(1, sizeof *session);
    if (session == NULL) return PACE_ACCEPT_REFUSE;
    must(pace_conn_set_user_data(conn, session));
    return PACE_ACCEPT_YES;
}

/* Buffers of a thread, for all its connections. */
typedef struct scratch {
    text_t *words;
    char *out;
    size_t word_room, out_room;
} scratch_t;

static pthread_key_t scratch_key;

static void free_scratch(void *pointer) {
    scratch_t *scratch = pointer;
    free(scratch->words);
    free(scratch->out);
    free(scratch);
}

static scratch_t *own_scratch(void) {
    scratch_t *scratch = pthread_getspecific(scratch_key);
    if (scratch == NULL) {
        scratch = memset(more(NULL, sizeof *scratch), 0, sizeof *scratch);
        need(pthread_setspecific(scratch_key, scratch) == 0, "out of memory");
    }
    return scratch;
}

static text_t *words_of(const session_t *session, text_t bytes, scratch_t *scratch) {
    if (session->count > scratch->word_room)
        scratch->words =
            more(scratch->words, (scratch->word_room = session->count * 2) * sizeof(text_t));
    for (size_t i = 0; i < session->count; i++)
        scratch->words[i] = (text_t){bytes.at + session->spans[i].from, session->spans[i].size};
    return scratch->words;
}

/* Gives back what the longest request needed. */
static void rest(session_t *session) {
    free(session->spans);
    free(session->line);
    session->spans = NULL;
    session->line = NULL;
    session->room = 0;
}

/* Carries out all requests that are complete. It stops early if the client does not read the replies,
 * and is shown the rest again when it has. */
static size_t on_data(void *user_data, pace_conn_t *conn, const void *data, size_t size) {
    session_t *session = user_data;
    scratch_t *scratch = own_scratch();
    call_t call = {.conn = conn, .out = scratch->out, .room = scratch->out_room};
    size_t consumed = 0;
    char why[64];
    while (!call.pressed && !call.quits) {
        text_t bytes = {(const char *)data + consumed, size - consumed};
        size_t length = 0;
        found_t found = next(session, &bytes, &length, why);
        if (found == PARTIAL) break;
        if (found == WRONG) {
            reply(&call, "-ERR Protocol error: %s\r\n", why);
            call.quits = true;
            break;
        }
        consumed += length;
        if (found == NOTHING) continue;
        call.words = words_of(session, bytes, scratch);
        call.count = session->count;
        run(&call);
        if (call.size > GATHER) send_out(&call);
    }
    send_out(&call);
    if (call.quits) pace_conn_close(conn);
    if (session->at == 0 && (session->room > KEPT || session->line != NULL)) rest(session);
    if (call.room > 16 * GATHER) { /* a long reply is rare */
        free(call.out);
        call.out = NULL;
        call.room = 0;
    }
    scratch->out = call.out;
    scratch->out_room = call.room;
    return consumed;
}

static void on_close(void *user_data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    session_t *session = user_data;
    (void)conn, (void)reason, (void)detail;
    if (session == NULL) return;
    rest(session);
    free(session);
}

static void usage(void) {
    puts("resp [--listen ADDRESS:PORT] [--threads N]\n"
         "serves until it gets SIGINT or SIGTERM; default 127.0.0.1:6380, a thread per CPU");
}

int main(int argc, char **argv) {
    pace_pool_config_t pool_config;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    must(pace_pool_config_init(&pool_config, sizeof pool_config));
    must(pace_listener_options_init(&listener, sizeof listener));
    must(pace_server_options_init(&options, sizeof options));
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    listener.address = "127.0.0.1:6380";
    listener.max_unconsumed = listener.output_max = UINT64_C(1) << 30;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage();
            return 0;
        }
        need(i + 1 < argc, "see --help");
        if (strcmp(argv[i], "--listen") == 0)
            listener.address = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0)
            pool_config.threads = (uint32_t)atoi(argv[++i]);
        else
            need(false, "see --help");
    }
    options.listeners = &listener;
    options.listener_count = 1;
    hooks.open = on_open;
    hooks.data = on_data;
    hooks.close = on_close;

    /* Threads of the pool block signals anyway; this one waits for them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    need(pthread_key_create(&scratch_key, free_scratch) == 0, "no key for what threads own");
    for (int i = 0; i < SHARDS; i++) pthread_mutex_init(&shards[i].lock, NULL);

    pace_pool_t *pool;
    pace_server_t *server;
    pace_handle_t sweeper;
    char address[PACE_ADDRESS_SIZE];
    int caught = 0;
    must(pace_pool_new(&pool_config, &pool));
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_pool_every(pool, SWEEP, sweep, NULL, NULL, &sweeper));
    must(pace_server_address(server, 0, address, sizeof address));
    printf("listening on %s\n", address);
    fflush(stdout);
    sigwait(&signals, &caught);

    pace_drain_report_t report = {.struct_size = sizeof report};
    must(pace_server_drain(server, UINT64_C(2000000000), &report));
    printf("drained: %s\n", report.drained ? "true" : "false");
    pace_server_free(server);
    must(pace_pool_shutdown(pool, 0, NULL));
    pace_pool_free(pool);
    for (int i = 0; i < SHARDS; i++) clear(&shards[i].table);
    return 0;
}
