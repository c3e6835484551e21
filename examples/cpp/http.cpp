// A web server for a directory, and for one small JSON route.
//
//     c++ -std=c++17 examples/cpp/http.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o http
//     ./http --listen 127.0.0.1:8080 --directory .
//     curl -i http://127.0.0.1:8080/README.md
//     curl -i http://127.0.0.1:8080/api/hello/you
//
// What is answered to which request is told by the table in examples/http/main.rs: it is the same in
// every language.
//
// The kernel has no readiness for files: a read of what is not in the page cache waits for the disk, and
// the thread that waits may be the one that leads. So each read first asks for what is cached
// (RWF_NOWAIT); only when that is not there, the pool is told that this thread is about to block.
//
// feature: http/routes

#include "server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <paceline/http.hpp>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;
using paceline::Body;
using paceline::Flow;
using paceline::Http;
using paceline::HttpConfig;
using paceline::Listen;
using paceline::Request;
using paceline::Response;

constexpr auto DRAIN = 10s;
// Read at once.
constexpr std::uint64_t READ = 64 << 10;

constexpr std::array<std::pair<const char *, const char *>, 18> TYPES{{
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
}};

// ---- text ----------------------------------------------------------------------------------------

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool equal_ignoring_case(std::string_view one, std::string_view other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

std::optional<unsigned> hex(char letter) {
    if (is_digit(letter)) {
        return static_cast<unsigned>(letter - '0');
    }
    const char small = lower(letter);
    return small >= 'a' && small <= 'f' ? std::optional(static_cast<unsigned>(small - 'a' + 10))
                                        : std::nullopt;
}

// What stands behind % signs; a % before anything else stands for itself.
std::string percent_decoded(std::string_view text) {
    std::string decoded;
    for (std::size_t n = 0; n < text.size(); ++n) {
        if (text[n] == '%' && n + 2 < text.size() && hex(text[n + 1]) && hex(text[n + 2])) {
            decoded += static_cast<char>(*hex(text[n + 1]) * 16 + *hex(text[n + 2]));
            n += 2;
        } else {
            decoded += text[n];
        }
    }
    return decoded;
}

std::string json_string(std::string_view text) {
    std::string quoted = "\"";
    for (const char letter : text) {
        switch (letter) {
        case '"': quoted += "\\\""; break;
        case '\\': quoted += "\\\\"; break;
        case '\b': quoted += "\\b"; break;
        case '\f': quoted += "\\f"; break;
        case '\n': quoted += "\\n"; break;
        case '\r': quoted += "\\r"; break;
        case '\t': quoted += "\\t"; break;
        default:
            if (static_cast<unsigned char>(letter) < 0x20) {
                std::array<char, 7> escaped{};
                std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(letter));
                quoted += escaped.data();
            } else {
                quoted += letter;
            }
        }
    }
    return quoted + '"';
}

std::string http_date(std::time_t time) {
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return text.data();
}

std::optional<std::time_t> parse_http_date(std::string_view text) {
    // RFC 9110, 5.6.7: the one that is written today, and two that were.
    for (const char *format :
         {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"}) {
        std::tm parts{};
        const std::string copy(text);
        const char *end = strptime(copy.c_str(), format, &parts);
        if (end != nullptr && *end == '\0') {
            return timegm(&parts);
        }
    }
    return std::nullopt;
}

// ---- ranges --------------------------------------------------------------------------------------

struct Part {
    std::uint64_t begin, end;
};

// A number; one that is too large for any file is the largest.
std::optional<std::uint64_t> digits(std::string_view text) {
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    for (const char digit : text) {
        const auto value = static_cast<std::uint64_t>(digit - '0');
        if (number > (UINT64_MAX - value) / 10) {
            return UINT64_MAX;
        }
        number = number * 10 + value;
    }
    return number;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// What a Range header asks for: nothing if that is nonsense, or more than is served. A part may be empty.
std::optional<Part> range_of(std::string_view header, std::uint64_t size) {
    const auto equals = header.find('=');
    if (equals == std::string_view::npos || !equal_ignoring_case(header.substr(0, equals), "bytes")) {
        return std::nullopt;
    }
    const std::string_view range = trimmed(header.substr(equals + 1));
    const auto dash = range.find('-');
    if (dash == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view first_text = range.substr(0, dash), last_text = range.substr(dash + 1);
    const auto first = digits(first_text), last = digits(last_text);
    if (first_text.empty()) {
        return last ? std::optional(Part{size - std::min(*last, size), size}) : std::nullopt;
    }
    if (!first || (!last_text.empty() && (!last || *last < *first))) {
        return std::nullopt;
    }
    const std::uint64_t end = last_text.empty() || *last >= size ? size : *last + 1;
    return Part{*first, std::max(*first, end)};
}

// ---- files ---------------------------------------------------------------------------------------

// A file that is read in parts.
class File {
public:
    // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for somebody.
    explicit File(const std::string &path) : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
        if (fd_ >= 0 && fstat(fd_, &status_) != 0) {
            close(std::exchange(fd_, -1));
        }
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    ~File() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }

    bool is_file() const { return fd_ >= 0 && S_ISREG(status_.st_mode); }
    bool is_directory() const { return fd_ >= 0 && S_ISDIR(status_.st_mode); }
    std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
    std::time_t modified() const { return std::max<std::time_t>(status_.st_mtim.tv_sec, 0); }

    // It fails at the end of one that has become shorter meanwhile: then an answer can never be whole.
    std::size_t read(char *bytes, std::size_t size, std::uint64_t at) const {
        iovec piece{bytes, size};
        ssize_t count = preadv2(fd_, &piece, 1, static_cast<off_t>(at), RWF_NOWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) {
            paceline::promote_new_leader().value();
            count = pread(fd_, bytes, size, static_cast<off_t>(at));
        }
        if (count <= 0) {
            throw std::runtime_error("the file cannot be read");
        }
        return static_cast<std::size_t>(count);
    }

private:
    int fd_;
    struct stat status_ {};
};

// The files of a directory.
class Files {
public:
    explicit Files(std::string root) : root_(std::move(root)) {}

    // Answers a GET or HEAD.
    void get(const Request &request, Response response) const {
        const auto path = find(request.path());
        if (!path) {
            return not_found(std::move(response));
        }
        const auto file = std::make_shared<const File>(*path);
        if (file->is_file()) {
            return send(file, *path, request, std::move(response));
        }
        // With a slash at its end, `find` would have looked for its index.
        if (file->is_directory() && request.path().back() != '/') {
            std::string location = std::string(request.path()) + '/';
            if (const auto query = request.query()) {
                location += '?' + std::string(*query);
            }
            (void)response.status(301).header("Location", location).send("");
            return;
        }
        not_found(std::move(response));
    }

private:
    static void not_found(Response response) { (void)response.status(404).text("not found\n"); }

    // The file that a path names, be it there or not. None: no path of this server.
    std::optional<std::string> find(std::string_view path) const {
        if (path.empty() || path[0] != '/') {
            return std::nullopt;
        }
        std::string file = root_;
        for (std::size_t begin = 1;;) {
            const auto end = path.find('/', begin);
            const std::string segment = percent_decoded(path.substr(begin, end - begin));
            if (segment.empty() && end == std::string_view::npos) {
                return file + "/index.html";
            }
            if (segment.empty() || segment[0] == '.' ||
                segment.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
                return std::nullopt;
            }
            file += '/' + segment;
            if (end == std::string_view::npos) {
                return file;
            }
            begin = end + 1;
        }
    }

    static const char *type_of(std::string_view path) {
        const std::string_view name = path.substr(path.rfind('/') + 1);
        const auto dot = name.rfind('.');
        const auto *type = dot == std::string_view::npos || dot == 0
                               ? TYPES.end()
                               : std::find_if(TYPES.begin(), TYPES.end(), [&](const auto &known) {
                                     return equal_ignoring_case(known.first, name.substr(dot + 1));
                                 });
        return type == TYPES.end() ? "application/octet-stream" : type->second;
    }

    static void send(const std::shared_ptr<const File> &file, const std::string &path,
                     const Request &request, Response response) {
        const std::string last_modified = http_date(file->modified());
        response.header("Last-Modified", last_modified).header("Accept-Ranges", "bytes");
        if (const auto status = unmet(*file, request)) {
            (void)response.status(*status).send("");
            return;
        }
        const std::uint64_t size = file->size();
        const auto range = request.header("Range"), validator = request.header("If-Range");
        const bool wants_part =
            range && request.method() == "GET" && (!validator || *validator == last_modified);
        const auto part = wants_part ? range_of(*range, size) : std::nullopt;
        if (!part) {
            return send_part(file, path, {0, size}, request, std::move(response));
        }
        if (part->begin >= part->end) {
            response.status(416).header("Content-Range", "bytes */" + std::to_string(size));
            (void)response.send("");
            return;
        }
        response.status(206).header("Content-Range", "bytes " + std::to_string(part->begin) + '-' +
                                                         std::to_string(part->end - 1) + '/' +
                                                         std::to_string(size));
        send_part(file, path, *part, request, std::move(response));
    }

    // What the peer is told in the file's place since a condition is not met. They are looked at in the
    // order of RFC 9110, 13.2.2. A file has no entity tag, so nothing but * matches it.
    static std::optional<std::uint32_t> unmet(const File &file, const Request &request) {
        const auto date = [&request](const char *name) {
            const auto header = request.header(name);
            return header ? parse_http_date(*header) : std::nullopt;
        };
        if (const auto match = request.header("If-Match")) {
            if (*match != "*") {
                return 412;
            }
        } else if (const auto since = date("If-Unmodified-Since"); since && file.modified() > *since) {
            return 412;
        }
        if (const auto none = request.header("If-None-Match")) {
            return *none == "*" ? std::optional(304U) : std::nullopt;
        }
        const auto since = date("If-Modified-Since");
        return since && file.modified() <= *since ? std::optional(304U) : std::nullopt;
    }

    static void send_part(const std::shared_ptr<const File> &file, const std::string &path, Part part,
                          const Request &request, Response response) {
        response.header("Content-Type", type_of(path));
        const std::uint64_t length = part.end - part.begin;
        if (request.method() == "HEAD") {
            if (auto body = response.stream(length)) {
                (void)body->finish();
            }
            return;
        }
        if (length <= READ) {
            // Head and body leave in one send.
            std::string bytes(length, '\0');
            for (std::size_t filled = 0; filled < bytes.size();) {
                filled += file->read(bytes.data() + filled, bytes.size() - filled, part.begin + filled);
            }
            (void)response.send(bytes);
            return;
        }
        auto body = response.stream(length);
        if (!body) {
            return;
        }
        (void)body->pump([file, at = part.begin, end = part.end](Body &to) mutable {
            std::vector<char> bytes(std::min(end - at, READ));
            const std::size_t count = file->read(bytes.data(), bytes.size(), at);
            to.write({bytes.data(), count}).value();
            at += count;
            return at < end ? Flow::Again : Flow::Done;
        });
    }

    const std::string root_;
};

void hello(const Request &request, Response response) {
    response.header("Content-Type", "application/json");
    (void)response.send("{\"hello\":" + json_string(request.param("name").value_or("")) + '}');
}

bool is_directory(const std::string &path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

int main(int count, char **arguments) {
    return exit_code("http", [&] {
        const Flags flags(count, arguments, {"--listen", "--directory", "--threads"});
        HttpConfig config;
        config.add_listener(Listen{flags.required("--listen")});
        const std::string directory = flags.optional("--directory").value_or(".");
        if (!is_directory(directory)) {
            throw UsageError("--directory is \"" + directory + "\", but must be a directory");
        }
        const Interrupts interrupts;
        const auto pool = flags.pool();
        const Files files(directory);
        const auto get = [&files](const Request &request, Response response) {
            files.get(request, std::move(response));
        };
        auto server = Http::create(pool).value();
        server.route("GET", "/", get).value();
        server.route("GET", "/{*path}", get).value();
        server.route("GET", "/api/hello/{name}", hello).value();
        server.start(config).value();
        std::cout << "listening on " << server.address().value() << std::endl;
        interrupts.wait();
        const bool drained = server.drain(DRAIN).value().drained;
        const auto books = server.stats().value();
        std::cout << books.begun << " requests: " << books.answered() << " answered, " << books.refused()
                  << " refused, " << books.aborted() << " aborted" << std::endl;
        if (!drained) {
            throw std::runtime_error("not everybody was through");
        }
    });
}
