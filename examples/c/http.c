/* A web server for a directory, and for one small JSON route.
 *
 *     cc examples/c/http.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o http
 *     ./http --listen 127.0.0.1:8080 --directory .
 *     curl -i http://127.0.0.1:8080/README.md
 *     curl -i http://127.0.0.1:8080/api/hello/you
 *
 * What it answers, row by row, is told at the head of examples/http/main.rs; it is the same in every
 * language.
 *
 * The kernel has no readiness for files: a read of what is not in the page cache waits for the disk,
 * and the thread that waits may be the one that leads. So each read first asks for what is cached
 * (RWF_NOWAIT); only when that is not there, the pool is told that this thread is about to block, and
 * another one leads on meanwhile. What fits into one read is sent with its head at once. More is pumped:
 * 64 KiB at a time, as fast as the peer takes it.
 *
 * feature: http/routes
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paceline/http.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define READ ((size_t)64 << 10) /* at once */
#define DATE 30                 /* bytes of a date of HTTP, with its NUL */

static const char *directory;

static const char *const types[][2] = {
    {"css", "text/css; charset=utf-8"},
    {"gif", "image/gif"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"svg", "image/svg+xml"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"webp", "image/webp"},
    {"xml", "application/xml"},
};

static bool is(pace_text_t text, const char *expected) {
    return text.size == strlen(expected) && memcmp(text.text, expected, text.size) == 0;
}

static pace_text_t header(const pace_request_t *request, const char *name) {
    pace_text_t value;
    must(pace_request_header(request, name, &value));
    return value;
}

/* What the peer does not get because it has gone is nobody's failure. */
static void sent(pace_status_t status) {
    if (status != PACE_OK && status != PACE_ESTALE) must(status);
}

/* --- texts ---------------------------------------------------------------------------------------- */

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes per cent signs. What is no such sequence stays as it is. `out` has room for as much. */
static size_t percent_decode(pace_text_t text, char *out) {
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++, size++) {
        const bool is_sequence = text.text[i] == '%' && i + 2 < text.size &&
                                 digit(text.text[i + 1]) >= 0 && digit(text.text[i + 2]) >= 0;
        out[size] = text.text[i];
        if (!is_sequence) continue;
        out[size] = (char)(digit(text.text[i + 1]) * 16 + digit(text.text[i + 2]));
        i += 2;
    }
    return size;
}

static void write_date(time_t time, char text[DATE]) {
    struct tm parts;
    gmtime_r(&time, &parts);
    strftime(text, DATE, "%a, %d %b %Y %H:%M:%S GMT", &parts);
}

/* One of the three kinds of date that HTTP has ever had (RFC 9110, 5.6.7). */
static bool read_date(pace_text_t text, time_t *time) {
    static const char *const kinds[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    char copy[64];
    if (text.text == NULL || text.size >= sizeof copy) return false;
    memcpy(copy, text.text, text.size);
    copy[text.size] = 0;
    for (size_t kind = 0; kind < 3; kind++) {
        struct tm parts = {0};
        const char *end = strptime(copy, kinds[kind], &parts);
        if (end == NULL || *end != 0) continue;
        *time = timegm(&parts);
        return true;
    }
    return false;
}

/* --- ranges --------------------------------------------------------------------------------------- */

typedef enum wanted { WHOLE, PART, NOTHING } wanted_t;

/* A number; one that is too large for any file is the largest. */
static bool number(const char *text, size_t size, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        const uint64_t next = (uint64_t)(text[i] - '0');
        *value = *value > (UINT64_MAX - next) / 10 ? UINT64_MAX : *value * 10 + next;
    }
    return size > 0;
}

/* What a Range header asks for, of a file of this size. Nonsense, and what is not served, is for the
 * whole. */
static wanted_t read_range(pace_text_t text, uint64_t size, uint64_t *from, uint64_t *to) {
    const char *equals = memchr(text.text, '=', text.size), *end = text.text + text.size;
    if (equals == NULL || equals - text.text != 5 || strncasecmp(text.text, "bytes", 5) != 0)
        return WHOLE;
    const char *first = equals + 1;
    while (first < end && (*first == ' ' || *first == '\t')) first++;
    const char *dash = memchr(first, '-', (size_t)(end - first));
    if (dash == NULL) return WHOLE;
    const bool has_first = dash > first, has_last = end > dash + 1;
    uint64_t last = UINT64_MAX;
    *from = 0;
    if (!has_first && !has_last) return WHOLE;
    if (has_first && !number(first, (size_t)(dash - first), from)) return WHOLE;
    if (has_last && !number(dash + 1, (size_t)(end - dash - 1), &last)) return WHOLE;
    if (has_first && last < *from) return WHOLE;
    *to = !has_first || last >= size ? size : last + 1;
    if (!has_first) *from = last < size ? size - last : 0;
    return *from < *to ? PART : NOTHING;
}

/* --- files ---------------------------------------------------------------------------------------- */

/* Reads what is there, once. It fails at the end of a file that has become shorter meanwhile: then an
 * answer can never be whole. */
static bool read_some(int fd, void *bytes, size_t size, uint64_t at, size_t *count) {
    struct iovec place = {bytes, size};
    ssize_t got = preadv2(fd, &place, 1, (off_t)at, RWF_NOWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) {
        /* It is not cached; or its file system cannot tell. */
        must(pace_promote_new_leader());
        got = pread(fd, bytes, size, (off_t)at);
    }
    *count = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void plain(pace_response_t *response, uint32_t status, const char *text) {
    must(pace_response_status(response, status));
    sent(pace_response_text(response, text));
}

static void bare(pace_response_t *response, uint32_t status) {
    must(pace_response_status(response, status));
    sent(pace_response_send(response, NULL, 0));
}

static void add_header(pace_response_t *response, const char *name, const char *format, ...) {
    char value[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    must(pace_response_header(response, name, value));
}

/* A part of a file on its way. */
typedef struct part {
    int fd;
    uint64_t at, end;
} part_t;

static int32_t send_more(void *user_data, pace_body_t *body) {
    part_t *part = user_data;
    char bytes[READ];
    const uint64_t left = part->end - part->at;
    size_t count;
    if (!read_some(part->fd, bytes, left < READ ? (size_t)left : READ, part->at, &count)) return -1;
    if (pace_body_write(body, bytes, count, NULL) != PACE_OK) return -1;
    part->at += count;
    return part->at < part->end ? PACE_FLOW_AGAIN : PACE_FLOW_DONE;
}

static void free_part(void *user_data) {
    part_t *part = user_data;
    close(part->fd);
    free(part);
}

/* Head and body leave in one send. */
static void send_at_once(part_t part, pace_response_t *response) {
    char bytes[READ];
    const size_t size = (size_t)(part.end - part.at);
    size_t filled = 0, count = 0;
    while (filled < size && read_some(part.fd, bytes + filled, size - filled, part.at + filled, &count))
        filled += count;
    close(part.fd);
    if (filled == size)
        sent(pace_response_send(response, bytes, size));
    else
        plain(response, 500, "the file cannot be read\n");
}

static void send_part(part_t part, bool is_head, pace_response_t *response) {
    pace_body_t *body;
    if (!is_head && part.end - part.at <= READ) {
        send_at_once(part, response);
        return;
    }
    part_t *kept = malloc(sizeof *kept);
    if (kept == NULL) FAIL(1, "out of memory");
    *kept = part;
    const pace_status_t status = pace_response_stream(response, part.end - part.at, &body);
    if (status == PACE_OK && !is_head) {
        must(pace_body_pump(body, send_more, kept, free_part));
        return;
    }
    free_part(kept);
    sent(status);
    if (status == PACE_OK) sent(pace_body_finish(body));
}

static const char *type_of(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strchr(dot, '/') == NULL)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strcasecmp(dot + 1, types[i][0]) == 0) return types[i][1];
    return "application/octet-stream";
}

/* What the peer is told in the file's place since a condition is not met; 0: all are. They are looked at in
 * the order of RFC 9110, 13.2.2. A file has no entity tag, so nothing but * matches it. */
static uint32_t unmet(const pace_request_t *request, time_t modified) {
    const pace_text_t match = header(request, "If-Match"), none = header(request, "If-None-Match");
    time_t date;
    if (match.text != NULL && !is(match, "*")) return 412;
    if (match.text == NULL && read_date(header(request, "If-Unmodified-Since"), &date) &&
        modified > date)
        return 412;
    if (none.text != NULL) return is(none, "*") ? 304 : 0;
    return read_date(header(request, "If-Modified-Since"), &date) && modified <= date ? 304 : 0;
}

static void send_file(const pace_request_t *request, pace_response_t *response, const char *path, int fd,
                      const struct stat *file) {
    pace_text_t method, range = header(request, "Range"), condition = header(request, "If-Range");
    part_t part = {fd, 0, (uint64_t)file->st_size};
    char modified[DATE];
    must(pace_request_method(request, &method));
    write_date(file->st_mtim.tv_sec, modified);
    must(pace_response_header(response, "Last-Modified", modified));
    must(pace_response_header(response, "Accept-Ranges", "bytes"));
    const uint32_t instead = unmet(request, file->st_mtim.tv_sec);
    if (instead != 0) {
        close(fd);
        bare(response, instead);
        return;
    }
    wanted_t wanted = WHOLE;
    if (range.text != NULL && is(method, "GET") && (condition.text == NULL || is(condition, modified)))
        wanted = read_range(range, (uint64_t)file->st_size, &part.at, &part.end);
    if (wanted == NOTHING) {
        close(fd);
        add_header(response, "Content-Range", "bytes */%llu", (unsigned long long)file->st_size);
        bare(response, 416);
        return;
    }
    if (wanted == WHOLE) {
        part.at = 0;
        part.end = (uint64_t)file->st_size;
    } else {
        must(pace_response_status(response, 206));
        add_header(response, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)part.at,
                   (unsigned long long)part.end - 1, (unsigned long long)file->st_size);
    }
    must(pace_response_header(response, "Content-Type", type_of(path)));
    send_part(part, is(method, "HEAD"), response);
}

/* The file that a path names, be it there or not. False: no path of this server. */
static bool find(pace_text_t path, char *file, size_t room) {
    size_t size = strlen(directory);
    const char *rest = path.text, *end = path.text + path.size;
    if (size + path.size + sizeof "/index.html" > room || path.size == 0 || *rest != '/') return false;
    memcpy(file, directory, size);
    while (rest < end) {
        rest++;
        const char *slash = memchr(rest, '/', (size_t)(end - rest));
        const pace_text_t segment = {rest, (size_t)((slash == NULL ? end : slash) - rest)};
        file[size++] = '/';
        if (segment.size == 0 && slash == NULL) {
            strcpy(file + size, "index.html");
            return true;
        }
        const size_t length = percent_decode(segment, file + size);
        if (length == 0 || file[size] == '.' || memchr(file + size, '/', length) != NULL ||
            memchr(file + size, 0, length) != NULL)
            return false;
        size += length;
        rest += segment.size;
    }
    file[size] = 0;
    return true;
}

static void redirect(const pace_request_t *request, pace_response_t *response, pace_text_t path) {
    pace_text_t query;
    char location[PATH_MAX + 8192];
    must(pace_request_query(request, &query));
    snprintf(location, sizeof location, "%.*s/%s%.*s", (int)path.size, path.text,
             query.text == NULL ? "" : "?", (int)query.size, query.text == NULL ? "" : query.text);
    must(pace_response_header(response, "Location", location));
    bare(response, 301);
}

static void get(void *user_data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t path;
    char name[PATH_MAX];
    struct stat file;
    (void)user_data;
    must(pace_request_path(request, &path));
    /* Without O_NONBLOCK, opening a pipe that nobody writes to would wait for somebody. */
    const int fd = find(path, name, sizeof name) ? open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    const bool is_open = fd >= 0 && fstat(fd, &file) == 0;
    if (is_open && S_ISREG(file.st_mode)) {
        send_file(request, response, name, fd, &file);
        return;
    }
    if (fd >= 0) close(fd);
    /* With a slash at its end, `find` would have looked for its index. */
    if (is_open && S_ISDIR(file.st_mode) && path.text[path.size - 1] != '/')
        redirect(request, response, path);
    else
        plain(response, 404, "not found\n");
}

/* --- JSON ----------------------------------------------------------------------------------------- */

static void hello(void *user_data, const pace_request_t *request, pace_response_t *response) {
    static const char begin[] = "{\"hello\":\"", end[] = "\"}";
    pace_text_t name;
    (void)user_data;
    must(pace_request_param(request, "name", &name));
    must(pace_response_header(response, "Content-Type", "application/json"));
    char *json = malloc(6 * name.size + sizeof begin + sizeof end), *to;
    if (json == NULL) FAIL(1, "out of memory");
    to = stpcpy(json, begin);
    for (size_t i = 0; i < name.size; i++) {
        static const char shorts[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *place = strchr(shorts, name.text[i]);
        if (place != NULL)
            to += sprintf(to, "\\%c", letters[place - shorts]);
        else if ((unsigned char)name.text[i] < 0x20)
            to += sprintf(to, "\\u%04x", name.text[i]);
        else
            *to++ = name.text[i];
    }
    to = stpcpy(to, end);
    sent(pace_response_send(response, json, (size_t)(to - json)));
    free(json);
}

int main(int argc, char **argv) {
    const char *listen = NULL, *threads = NULL;
    const common_flag_t flags[] = {
        {"listen", &listen}, {"directory", &directory}, {"threads", &threads}};
    struct stat file;
    pace_http_t *http;
    pace_server_t *server;
    pace_http_options_t options;
    pace_http_stats_t books = {.struct_size = sizeof books};
    pace_drain_report_t report = {.struct_size = sizeof report};
    program = "http";
    common_flags(argc, argv, "http --listen ADDR [--directory PATH] [--threads N]", flags, 3);
    pace_listener_options_t listener = common_listener(common_needed("listen", listen));
    if (directory == NULL) directory = ".";
    if (stat(directory, &file) != 0 || !S_ISDIR(file.st_mode))
        FAIL(2, "--directory is \"%s\", but must be a directory", directory);
    must(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;

    pace_pool_t *pool = common_pool(threads);
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", get, NULL, NULL));
    must(pace_http_route(http, "GET", "/{*path}", get, NULL, NULL));
    must(pace_http_route(http, "GET", "/api/hello/{name}", hello, NULL, NULL));
    must(pace_http_start(http, &options));
    must(pace_http_server(http, &server));
    common_serve(server);
    must(pace_server_drain(server, 10 * SECOND, &report));
    must(pace_http_stats(http, &books));
    const uint64_t answered = books.answered_upgraded + books.answered_successful +
                              books.answered_redirected + books.answered_client_errors +
                              books.answered_server_errors;
    const uint64_t aborted = books.aborted_disconnected + books.aborted_timed_out +
                             books.aborted_unfinished + books.aborted_closed + books.aborted_cut_off;
    printf("%llu requests: %llu answered, %llu refused, %llu aborted\n", (unsigned long long)books.begun,
           (unsigned long long)answered,
           (unsigned long long)(books.begun - answered - aborted - books.in_work),
           (unsigned long long)aborted);
    pace_http_free(http);
    pace_pool_free(pool);
    if (!report.drained) FAIL(1, "not everybody was through");
    return 0;
}
