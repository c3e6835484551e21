/* A line chat: what one says, all others read, in the same order.
 *
 *     cc examples/c/chat.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o chat
 *     ./chat --listen 127.0.0.1:7000
 *     nc 127.0.0.1 7000        # as often as you like
 *
 * The first line is a name: up to 32 characters, and nobody else's. "/quit" leaves. Any other line, of
 * up to 1024 bytes, goes as "name: line" to all others.
 *
 * A slow reader harms nobody. What it does not take waits in its connection's output. Above the high
 * mark (64 KiB) it misses lines; when it has read down to the low mark it is told how many. One that
 * takes nothing at all for 30 s is closed, and has left.
 *
 * feature: server/handlers
 */
#include "common.h"

#include <pthread.h>

#define LINE 1024 /* bytes */
#define NAME 32   /* characters */
/* Marks of a connection's output: a slow reader misses lines above HIGH, and none below LOW. */
#define LOW (16 << 10)
#define HIGH (64 << 10)
#define MAX (128 << 10)

/* Text that has grown: a byte that is no UTF-8 becomes three. */
#define ROOM(bytes) (3 * (bytes) + 1)

/* A connection; with a name, it is a member of the room. */
typedef struct guest {
    struct guest *next;
    pace_conn_id_t conn;
    char name[4 * NAME + 1]; /* empty before it has told one that nobody has */
    bool behind;             /* its output was above the high mark at the last line */
    uint64_t missed;
} guest_t;

/* Who is there. A line is written to everybody under the lock, so all read one order; that holds
 * nobody up, since no write waits. */
static struct {
    pthread_mutex_t lock;
    guest_t *members;
    uint64_t joined, lines, missed;
} room = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0, 0};

static pace_server_t *server;

static void *checked(void *memory) {
    if (memory == NULL) FAIL(1, "out of memory");
    return memory;
}

/* A write fails if the connection is about to close, or so full that it is to miss things anyway. */
static void tell(pace_conn_t *conn, const char *line) {
    (void)pace_conn_write(conn, line, strlen(line), NULL);
}

/* Under the lock. */
static void tell_others(const guest_t *author, const char *line) {
    for (guest_t *member = room.members; member != NULL; member = member->next) {
        uint32_t wrote = PACE_WRITE_STATUS_SENT;
        if (member == author) continue;
        if (member->behind) {
            member->missed++;
            room.missed++;
            continue;
        }
        /* An error: it has ended, and `close` is under way. */
        (void)pace_server_conn_write(server, member->conn, line, strlen(line), &wrote);
        member->behind = wrote == PACE_WRITE_STATUS_ABOVE_HIGH_MARK;
    }
}

static bool enter(guest_t *guest, pace_conn_t *conn, const char *name) {
    char line[sizeof guest->name + 32];
    bool is_free = true;
    pthread_mutex_lock(&room.lock);
    for (const guest_t *member = room.members; member != NULL; member = member->next)
        is_free = is_free && strcmp(member->name, name) != 0;
    if (is_free) {
        strcpy(guest->name, name);
        room.joined++;
        snprintf(line, sizeof line, "* %s has joined\n", guest->name);
        tell_others(guest, line);
        guest->next = room.members;
        room.members = guest;
        snprintf(line, sizeof line, "* welcome, %s\n", guest->name);
        tell(conn, line);
    }
    pthread_mutex_unlock(&room.lock);
    return is_free;
}

static void leave(guest_t *guest) {
    char line[sizeof guest->name + 32];
    guest_t **place = &room.members;
    pthread_mutex_lock(&room.lock);
    while (*place != guest) place = &(*place)->next;
    *place = guest->next;
    snprintf(line, sizeof line, "* %s has left\n", guest->name);
    tell_others(guest, line);
    pthread_mutex_unlock(&room.lock);
}

static void say(const guest_t *guest, const char *line) {
    char said[sizeof guest->name + ROOM(LINE) + 4];
    snprintf(said, sizeof said, "%s: %s\n", guest->name, line);
    pthread_mutex_lock(&room.lock);
    room.lines++;
    tell_others(guest, said);
    pthread_mutex_unlock(&room.lock);
}

/* How many bytes the character at `text` takes; 0: it is none (RFC 3629). */
static size_t character(const unsigned char *text, size_t size) {
    const unsigned char first = text[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f)) return 0;
    if ((first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f)) return 0;
    return length;
}

/* No line may play tricks on the others' terminals: control characters are left out. Counts the
 * characters that stay. */
static size_t printable(const char *line, size_t size, char *out) {
    const unsigned char *text = (const unsigned char *)line;
    size_t count = 0;
    while (size > 0) {
        const size_t length = character(text, size);
        const bool is_control = length == 1 ? text[0] < 0x20 || text[0] == 0x7f
                                            : length == 2 && text[0] == 0xc2 && text[1] < 0xa0;
        if (length == 0)
            out = stpcpy(out, "\xef\xbf\xbd");
        else if (!is_control)
            out = (char *)memcpy(out, text, length) + length;
        count += !is_control;
        text += length > 0 ? length : 1;
        size -= length > 0 ? length : 1;
    }
    *out = 0;
    return count;
}

/* The last words to whoever is to go; NULL: it stays. */
static const char *take_line(guest_t *guest, pace_conn_t *conn, const char *bytes, size_t size) {
    char line[ROOM(LINE)];
    const size_t count = printable(bytes, size, line);
    if (strcmp(line, "/quit") == 0) return "* bye\n";
    if (guest->name[0] != 0)
        say(guest, line);
    else if (count == 0 || count > NAME)
        tell(conn, "* a name has 1 to 32 characters; yours?\n");
    else if (!enter(guest, conn, line))
        tell(conn, "* somebody has that name; yours?\n");
    return NULL;
}

static int32_t come(void *user_data, pace_conn_t *conn) {
    guest_t *guest = checked(calloc(1, sizeof *guest));
    (void)user_data;
    must(pace_conn_id(conn, &guest->conn));
    must(pace_conn_set_user_data(conn, guest));
    tell(conn, "* your name?\n");
    return PACE_ACCEPT_YES;
}

static size_t data(void *user_data, pace_conn_t *conn, const void *bytes, size_t size) {
    const char *rest = bytes, *end = rest + size, *feed;
    for (;;) {
        const char *last = NULL;
        feed = memchr(rest, '\n', (size_t)(end - rest));
        if ((feed == NULL ? end : feed) - rest > LINE)
            last = "* too long a line\n";
        else if (feed == NULL)
            return (size_t)(rest - (const char *)bytes);
        else
            last = take_line(user_data, conn, rest, (size_t)(feed - rest));
        if (last != NULL) {
            tell(conn, last);
            must(pace_conn_close(conn));
            return size;
        }
        rest = feed + 1;
    }
}

/* Its output has room again. */
static void catch_up(void *user_data, pace_conn_t *conn) {
    guest_t *guest = user_data;
    char line[64];
    pthread_mutex_lock(&room.lock);
    const uint64_t missed = guest->missed;
    guest->behind = false;
    guest->missed = 0;
    pthread_mutex_unlock(&room.lock);
    snprintf(line, sizeof line, "* you have missed %llu lines\n", (unsigned long long)missed);
    if (missed > 0) tell(conn, line);
}

static void tell_end(void *user_data, pace_conn_t *conn) {
    (void)user_data;
    tell(conn, "* the chat closes\n");
}

static void end(void *user_data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    guest_t *guest = user_data;
    (void)conn, (void)reason, (void)detail;
    if (guest->name[0] != 0) leave(guest);
    free(guest);
}

int main(int argc, char **argv) {
    const char *listen = NULL, *threads = NULL;
    const common_flag_t flags[] = {{"listen", &listen}, {"threads", &threads}};
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_drain_report_t report = {.struct_size = sizeof report};
    program = "chat";
    common_flags(argc, argv, "chat --listen ADDR [--threads N]", flags, 2);
    pace_listener_options_t listener = common_listener(common_needed("listen", listen));
    listener.output_low = LOW;
    listener.output_high = HIGH;
    listener.output_max = MAX;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.open = come;
    hooks.data = data;
    hooks.writable = catch_up;
    hooks.draining = tell_end;
    hooks.close = end;

    pace_pool_t *pool = common_pool(threads);
    must(pace_server_new(pool, &options, &hooks, &server));
    common_serve(server);
    must(pace_server_drain(server, 5 * SECOND, &report));
    printf("%llu joined and said %llu lines; slow readers missed %llu\n",
           (unsigned long long)room.joined, (unsigned long long)room.lines,
           (unsigned long long)room.missed);
    pace_server_free(server);
    pace_pool_free(pool);
    if (!report.drained) FAIL(1, "not everybody has gone");
    return 0;
}
