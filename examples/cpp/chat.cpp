// A line chat: what one says, all others read, in the same order.
//
//     c++ -std=c++17 examples/cpp/chat.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o chat
//     ./chat --listen 127.0.0.1:7000
//     nc 127.0.0.1 7000                  (as often as you like)
//
// The first line is a name, of up to 32 characters and nobody else's; /quit leaves; any other line, of up
// to 1024 bytes, is read by all others as "name: line".
//
// A slow reader harms nobody. What it does not take waits in its connection's output. Above the high
// mark (64 KiB) it misses lines; when it has read down to the low mark it is told how many. One that
// takes nothing at all for 30 s is closed, and has left.
//
// feature: server/handlers

#include "server.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

using namespace std::chrono_literals;
using paceline::Accept;
using paceline::Conn;
using paceline::ConnHandler;
using paceline::ConnRef;
using paceline::Listen;
using paceline::Reason;
using paceline::Server;
using paceline::ServerConfig;
using paceline::WriteStatus;

// Bytes of a line, and characters of a name.
constexpr std::size_t LINE = 1024;
constexpr std::size_t NAME = 32;
// Marks of a connection's output: a slow reader misses lines above HIGH, and none below LOW.
constexpr std::size_t LOW = 16 << 10, HIGH = 64 << 10, MAX = 128 << 10;
constexpr auto DRAIN = 5s;

// A write fails if the connection is about to close, or so full that it is to miss things anyway.
void tell(Conn &conn, const std::string &line) { (void)conn.write(line); }

// Who is there. A line is written to everybody under the lock, so all read one order; that holds nobody
// up, since no write waits.
class Room {
public:
    // False: somebody has that name.
    bool enter(const std::string &name, Conn &conn) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (present_.count(name) != 0) {
            return false;
        }
        ++joined_;
        tell_others(name, "* " + name + " has joined\n");
        present_[name].conn = conn.ref();
        tell(conn, "* welcome, " + name + "\n");
        return true;
    }

    void leave(const std::string &name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        present_.erase(name);
        tell_others(name, "* " + name + " has left\n");
    }

    void say(const std::string &name, const std::string &line) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++lines_;
        tell_others(name, name + ": " + line + "\n");
    }

    // Its output has room again: how many lines it has missed.
    std::uint64_t catch_up(const std::string &name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto member = present_.find(name);
        if (member == present_.end()) {
            return 0;
        }
        member->second.behind = false;
        return std::exchange(member->second.missed, 0);
    }

    friend std::ostream &operator<<(std::ostream &out, const Room &room) {
        const std::lock_guard<std::mutex> lock(room.mutex_);
        return out << room.joined_ << " joined and said " << room.lines_
                   << " lines; slow readers missed " << room.missed_;
    }

private:
    struct Member {
        ConnRef conn;
        // Its output was above the high mark at the last line.
        bool behind = false;
        std::uint64_t missed = 0;
    };

    void tell_others(const std::string &author, const std::string &line) {
        for (auto &[name, member] : present_) {
            if (name == author) {
                continue;
            }
            if (member.behind) {
                ++member.missed;
                ++missed_;
                continue;
            }
            // An error: it has ended, and `close` is under way.
            const auto wrote = member.conn.write(line);
            member.behind = wrote && *wrote == WriteStatus::AboveHighMark;
        }
    }

    mutable std::mutex mutex_;
    std::map<std::string, Member> present_;
    std::uint64_t joined_ = 0, lines_ = 0;
    // Lines that slow readers have missed, each counted once per reader.
    std::uint64_t missed_ = 0;
};

// Whether a byte continues a character of UTF-8.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// No line may play tricks on the others' terminals. Control characters are single bytes of UTF-8, but
// for those that begin with 0xc2 and a byte below 0xa0.
std::string printable(std::string_view line) {
    std::string kept;
    for (std::size_t n = 0; n < line.size(); ++n) {
        const auto byte = static_cast<unsigned char>(line[n]);
        if (byte == 0xc2 && n + 1 < line.size() && static_cast<unsigned char>(line[n + 1]) < 0xa0) {
            ++n;
        } else if (byte >= 0x20 && byte != 0x7f) {
            kept += line[n];
        }
    }
    return kept;
}

std::size_t characters(const std::string &text) {
    std::size_t count = 0;
    for (const char byte : text) {
        count += continues(byte) ? 0U : 1U;
    }
    return count;
}

class Guest : public ConnHandler {
public:
    explicit Guest(Room *room) : room_(*room) {}

    Accept open(Conn &conn) override {
        tell(conn, "* your name?\n");
        return Accept::Yes;
    }

    std::size_t data(Conn &conn, std::string_view bytes) override {
        for (std::size_t begin = 0;;) {
            const std::string_view rest = bytes.substr(begin);
            const std::size_t length = rest.find('\n');
            std::string_view text = rest.substr(0, length);
            if (length != std::string_view::npos && !text.empty() && text.back() == '\r') {
                text.remove_suffix(1);
            }
            if (text.size() > LINE) {
                return end(conn, "* too long a line\n", bytes);
            }
            if (length == std::string_view::npos) {
                return begin;
            }
            begin += length + 1;
            if (printable(text) == "/quit") {
                return end(conn, "* bye\n", bytes);
            }
            take(conn, printable(text));
        }
    }

    void writable(Conn &conn) override {
        const std::uint64_t missed = name_ ? room_.catch_up(*name_) : 0;
        if (missed > 0) {
            tell(conn, "* you have missed " + std::to_string(missed) + " lines\n");
        }
    }

    void draining(Conn &conn) override { tell(conn, "* the chat closes\n"); }

    void close(Conn &, Reason) override {
        if (name_) {
            room_.leave(*name_);
        }
    }

private:
    void take(Conn &conn, const std::string &line) {
        if (name_) {
            room_.say(*name_, line);
        } else if (line.empty() || characters(line) > NAME) {
            tell(conn, "* a name has 1 to 32 characters; yours?\n");
        } else if (room_.enter(line, conn)) {
            name_ = line;
        } else {
            tell(conn, "* somebody has that name; yours?\n");
        }
    }

    static std::size_t end(Conn &conn, const std::string &last, std::string_view bytes) {
        tell(conn, last);
        conn.close();
        return bytes.size();
    }

    Room &room_;
    // None before it has told one that nobody has.
    std::optional<std::string> name_;
};

int main(int count, char **arguments) {
    return exit_code("chat", [&] {
        const Flags flags(count, arguments, {"--listen", "--threads"});
        ServerConfig config;
        config.add_listener(Listen{flags.required("--listen")}.set_output_marks(LOW, HIGH, MAX));
        const Interrupts interrupts;
        const auto pool = flags.pool();
        Room room;
        const auto server = Server::create_for<Guest>(pool, config, &room).value();
        std::cout << "listening on " << server.address().value() << std::endl;
        interrupts.wait();
        const bool drained = server.drain(DRAIN).value().drained;
        std::cout << room << std::endl;
        if (!drained) {
            throw std::runtime_error("not everybody has gone");
        }
    });
}
