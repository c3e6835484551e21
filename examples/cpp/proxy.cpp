// A TCP proxy: whoever connects here talks to whoever listens there.
//
//     c++ -std=c++17 examples/cpp/proxy.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o proxy
//     ./proxy --listen 127.0.0.1:7000 --to 127.0.0.1:80
//
// A stream is two connections, and what the one reads is written to the other:
//
//     client ══► data ─► write ══► upstream        not all of it sent? pause the reader,
//            ◄══ write ◄─ data ◄══                 until the kernel has the last byte
//
// So each direction is held back by itself: what the library reads at once, 64 KiB, is the most that
// waits here. An end is passed on as what it was: a half-close as a half-close, a reset as a reset. An
// upstream that cannot be reached resets the client, and is told on stderr. When interrupted, the proxy
// lets streams go on to their ends, for up to 10 s.
//
// feature: server/connect

#include "server.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

using namespace std::chrono_literals;
using paceline::Accept;
using paceline::Admission;
using paceline::Conn;
using paceline::ConnHandler;
using paceline::ConnRef;
using paceline::Listen;
using paceline::Reason;
using paceline::Server;
using paceline::ServerConfig;
using paceline::WriteStatus;

// How long streams may go on after an interrupt.
constexpr auto DRAIN = 10s;

struct Proxy {
    Proxy(std::string address, Server server) : to(std::move(address)), upstreams(std::move(server)) {}

    void tell_unreachable(const std::string &cause) {
        ++unreachable;
        std::cerr << "proxy: no upstream at " + to + ": " + cause + '\n' << std::flush;
    }

    const std::string to;
    // Without listeners it only connects. Apart from the clients', so that these drain first.
    Server upstreams;
    // Streams whose upstream could not be reached.
    std::atomic<std::uint64_t> unreachable{0};
    // The longest queue.
    std::atomic<std::size_t> peak{0};
};

// What both connections of a stream share.
struct Stream {
    // One of both peers has finished.
    std::atomic<bool> half_done{false};
    std::mutex mutex;
    // Keeps the client's connection from being drained away before the stream has ended.
    std::optional<Admission> admission;
};

std::string cause_of(Reason reason) {
    if (reason == Reason::TimedOut) {
        return "it does not answer";
    }
    if (reason == Reason::Failed && reason.os_error() == ECONNREFUSED) {
        return "connection refused";
    }
    return reason == Reason::Failed ? std::strerror(reason.os_error()) : "it has ended";
}

// A connection of a stream: the client's or the upstream's.
class Half : public ConnHandler {
public:
    // `other` is empty before the client's is open.
    Half(Proxy *proxy, std::shared_ptr<Stream> stream, ConnRef other)
        : proxy_(*proxy), stream_(std::move(stream)), other_(std::move(other)) {}

    Accept open(Conn &conn) override {
        open_ = true;
        if (!conn.is_outgoing()) {
            connect(conn);
        }
        return Accept::Yes;
    }

    std::size_t data(Conn &conn, std::string_view bytes) override {
        const auto wrote = other_.write(bytes);
        if (!wrote || *wrote != WriteStatus::Sent) {
            // First the pause: another thread may tell of the token at once.
            conn.pause();
            note_peak();
            // It fails if the other has ended, and then the other's `close` ends this one.
            (void)other_.write_tracked({}, 0);
        }
        return bytes.size();
    }

    // It fails if the other has ended: then nobody waits for this.
    void written(Conn &, std::uint64_t) override { (void)other_.resume(); }

    void finished(Conn &conn) override {
        (void)other_.shutdown_write();
        if (stream_->half_done.exchange(true)) {
            answer();
            conn.close();
            (void)other_.close();
        }
    }

    void close(Conn &conn, Reason reason) override {
        if (conn.is_outgoing() && !open_) {
            proxy_.tell_unreachable(cause_of(reason));
        }
        // An end in good order is one for both, and only such a stream is drained; any other breaks off
        // the other one, too. It fails if that has ended already.
        if (reason != Reason::Local && reason != Reason::Peer && reason != Reason::Drained) {
            (void)other_.abort();
        }
    }

private:
    // Before the client's connection may end.
    void answer() {
        const std::lock_guard<std::mutex> lock(stream_->mutex);
        if (stream_->admission) {
            stream_->admission->answered();
        }
    }

    void connect(Conn &conn) {
        {
            const std::lock_guard<std::mutex> lock(stream_->mutex);
            stream_->admission.emplace(conn.admit().value());
        }
        auto upstream =
            proxy_.upstreams.connect(proxy_.to, std::make_unique<Half>(&proxy_, stream_, conn.ref()));
        if (upstream) {
            other_ = *std::move(upstream);
        } else {
            proxy_.tell_unreachable(upstream.error().message());
            conn.abort();
        }
    }

    void note_peak() {
        const std::size_t queued = other_.queued().value_or(0);
        std::size_t peak = proxy_.peak;
        while (peak < queued && !proxy_.peak.compare_exchange_weak(peak, queued)) {
        }
    }

    Proxy &proxy_;
    const std::shared_ptr<Stream> stream_;
    ConnRef other_;
    bool open_ = false;
};

int main(int count, char **arguments) {
    return exit_code("proxy", [&] {
        const Flags flags(count, arguments, {"--listen", "--to", "--threads"});
        ServerConfig config;
        // Each direction of a stream ends by itself.
        config.add_listener(Listen{flags.required("--listen")}.set_allow_half_open());
        ServerConfig connecting;
        connecting.set_outgoing(Listen{}.set_allow_half_open());
        const std::string &to = flags.required("--to");
        const Interrupts interrupts;
        const auto pool = flags.pool();
        const auto nobody = [](Conn &) { return std::unique_ptr<ConnHandler>(); };
        Proxy proxy(to, Server::create(pool, connecting, nobody).value());
        const auto clients =
            Server::create(pool, config, [&proxy](Conn &) {
                return std::make_unique<Half>(&proxy, std::make_shared<Stream>(), ConnRef());
            }).value();
        std::cout << "listening on " << clients.address().value() << std::endl;
        interrupts.wait();
        (void)clients.drain(DRAIN).value();
        // What the clients have sent last may still be on its way.
        (void)proxy.upstreams.drain(DRAIN).value();
        const auto books = clients.stats().value();
        std::cout << books.requests << " streams: " << books.answered << " to their ends, "
                  << books.requests_aborted << " broken off, of them " << proxy.unreachable
                  << " without upstream; up to " << proxy.peak << " bytes waited" << std::endl;
    });
}
