// Completion queues: every kind of entry, what it says, and how it is completed.

#include "client.hpp"

#include <csignal>
#include <poll.h>

using paceline::Completion;
using paceline::CompletionQueue;
using paceline::ConnEventKind;
using paceline::Entry;
using paceline::EntryKind;
using paceline::Hub;
using paceline::HubConfig;
using paceline::Listen;
using paceline::ServerConfig;

namespace {

const ServerConfig ANYWHERE = ServerConfig().add_listener(Listen{"127.0.0.1:0"});

Entry of_conn(const CompletionQueue &queue, std::uint64_t tag, ConnEventKind event) {
    const Entry entry = next_entry(queue, EntryKind::Conn, tag);
    REQUIRE(entry.conn().event == event);
    return entry;
}

Pool hosted() { return Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value(); }

/// Nothing is out, and nothing comes any more.
void settle(const CompletionQueue &queue) {
    const auto stats = queue.stats().value();
    CHECK(stats.out == 0);
    CHECK(stats.brought == stats.completed + stats.withdrawn);
    CHECK(queue.close().has_value());
    std::array<Entry, 1> room;
    CHECK(queue.wait(room, PATIENCE).error() == Code::ShutDown);
}

/// What a client is told up to the end of an answer's head.
std::string head_of(Client &client) {
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
        const auto more = client.receive(1);
        REQUIRE(!more.empty());
        head += more;
    }
    return head;
}

} // namespace

TEST_CASE("descriptors, timers and tags come as entries") {
    for (const std::uint32_t threads : {0U, 2U}) {
        INFO(threads);
        const Pool pool = threads == 0 ? hosted() : make_pool(threads);
        const auto queue = CompletionQueue::create(pool).value();
        Pipe pipe;
        auto handle =
            queue
                .register_fd(pipe.reader(), 11,
                             paceline::HandleOptions().set_interest(paceline::Interest::readable()))
                .value();
        std::array<Entry, 4> room;
        CHECK(queue.wait(room, 0ns).error() == Code::TimedOut);
        CHECK(queue.wait({}, 0ns).error() == Code::Invalid);
        pipe.write("x");
        Entry entry = next_entry(queue, EntryKind::Ready, 11);
        CHECK(entry.ready().ready.readable());
        CHECK(entry.ready().handle.id == handle.native().id);
        // In a pool with threads who waits is no host.
        CHECK(pool.name_host(0, "a pipe").has_value() == (threads == 0));
        CHECK(pool.name_host(1, "no host").error() == Code::Stale);
        CHECK(!entry.is_again());
        // It stays unread.
        queue.complete(Completion::flow(entry, Flow::Again)).value();
        CHECK(queue.complete(Completion::flow(entry, Flow::Again)).error() == Code::Stale);
        entry = next_entry(queue, EntryKind::Ready, 11);
        CHECK(read_all(pipe.reader()) == "x");
        queue.done(entry).value();
        CHECK(queue.done(entry).error() == Code::Stale);
        CHECK(queue.renew(entry).error() == Code::Stale);
        pipe.write("y");
        entry = next_entry(queue, EntryKind::Ready, 11);
        queue.complete(Completion::flow(entry, Flow::Done)).value();
        CHECK_FALSE(handle.is_open().value());

        auto ticker = queue.every(1ms, 12).value();
        for (const Flow next : {Flow::Wait, Flow::Done}) {
            entry = next_entry(queue, EntryKind::Tick, 12);
            CHECK(entry.ready().handle.id == ticker.native().id);
            CHECK(entry.ready().ready.bits() == 0);
            queue.complete(Completion::flow(entry, next)).value();
        }
        CHECK_FALSE(ticker.is_open().value());
        const auto timer = queue.after(1ms, 13).value();
        CHECK(next_entry(queue, EntryKind::Timer, 13).token == 0);
        CHECK_FALSE(timer.is_pending().value());

        queue.post(14).value();
        const std::uint64_t tags[] = {15, 16};
        CHECK(queue.post_batch(tags).value() == 2);
        for (std::uint64_t tag = 14; tag <= 16; ++tag) {
            entry = next_entry(queue, EntryKind::Task, tag);
            CHECK(queue.done(entry).has_value());
        }
        queue.wake(17).value();
        CHECK(next_entry(queue, EntryKind::Task, 17).token == 0);
        settle(queue);
        finish(pool);
        CHECK(queue.post(1).error() == Code::ShutDown);
        CHECK(queue.wake(1).error() == Code::ShutDown);
        CHECK(CompletionQueue::create(pool).error() == Code::ShutDown);
    }
}

TEST_CASE("the function of another kind of entry throws") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    queue.post(1).value();
    const Entry entry = next_entry(queue, EntryKind::Task, 1);
    const auto refuses = [](auto ask) {
        try {
            ask();
        } catch (const paceline::Exception &thrown) {
            const std::string told = thrown.what();
            return thrown.code() == Code::Invalid && told.find("kind 4") != std::string::npos;
        }
        return false;
    };
    CHECK(refuses([&] { (void)entry.ready(); }));
    CHECK(refuses([&] { (void)entry.conn(); }));
    CHECK(refuses([&] { (void)entry.request(); }));
    CHECK(refuses([&] { (void)entry.body(); }));
    CHECK(refuses([&] { (void)entry.request_end(); }));
    CHECK(refuses([&] { (void)entry.datagram(); }));
    CHECK(refuses([&] { (void)entry.attempt(); }));
    CHECK(refuses([&] { (void)entry.message(); }));
    CHECK(refuses([&] { (void)entry.reply(); }));
    CHECK(refuses([&] { (void)entry.record(); }));
    CHECK(refuses([&] { (void)entry.signal(); }));
    finish(pool);
}

TEST_CASE("a descriptor of a completion queue is polled beside others") {
    for (const std::uint32_t threads : {0U, 2U}) {
        const Pool pool = threads == 0 ? hosted() : make_pool(threads);
        const auto queue = CompletionQueue::create(pool).value();
        pollfd waits{queue.fd().value(), POLLIN, 0};
        std::array<Entry, 4> room;
        queue.after(1ms, 1).value();
        for (std::size_t seen = 0; seen == 0;) {
            CHECK(poll(&waits, 1, 60'000) == 1);
            const auto entries = queue.wait(room, 0ns);
            seen = entries ? entries->size() : 0;
        }
        CHECK(room[0].what() == EntryKind::Timer);
        finish(pool);
    }
}

TEST_CASE("a thread waits beside a pool without threads, which another one drives") {
    const Pool pool = hosted();
    const auto queue = CompletionQueue::create(pool, {}, true).value();
    queue.after(1ms, 1).value();
    std::array<Entry, 1> room;
    CHECK(queue.wait(room, 5ms).error() == Code::TimedOut);
    std::atomic<bool> came{false};
    std::thread driver([&] {
        while (!came) {
            pool.join(1ms).value();
        }
    });
    next_entry(queue, EntryKind::Timer, 1);
    came = true;
    driver.join();
    finish(pool);
}

TEST_CASE("a completion queue that was moved from refuses") {
    const Pool pool = make_pool();
    auto queue = CompletionQueue::create(pool).value();
    auto other = CompletionQueue::create(pool).value();
    const pace_cq_t *kept = queue.native();
    other = std::move(queue);
    const CompletionQueue taken = std::move(other);
    CHECK(taken.native() == kept);
    CHECK(other.native() == nullptr);
    std::array<Entry, 1> room;
    CHECK(other.wait(room, 0ns).error() == Code::Invalid);
    CHECK(other.done(room).error() == Code::Invalid);
    CHECK(other.complete(Completion(1)).error() == Code::Invalid);
    CHECK(other.fd().error() == Code::Invalid);
    CHECK(other.post(1).error() == Code::Invalid);
    CHECK(other.every(1ms, 1).error() == Code::Invalid);
    CHECK(other.stats().error() == Code::Invalid);
    CHECK(other.close().error() == Code::Invalid);
    CHECK(other.server(ANYWHERE, 1).error() == Code::Invalid);
    CHECK(other.udp({}, 1).error() == Code::Invalid);
    CHECK(CompletionQueue::create(pool, 1us).error() == Code::Invalid);
    finish(pool);
}

TEST_CASE("connections come as entries, and are written to and closed by completions") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    auto server = queue.server(ANYWHERE, 1).value();
    {
        Client client(server);
        client.send("one two");
        const Entry opened = of_conn(queue, 1, ConnEventKind::Opened);
        CHECK(opened.text().empty());
        queue.done(opened).value();
        Entry data = of_conn(queue, 1, ConnEventKind::Data);
        CHECK(data.conn().text == "one two");
        const auto conn = server.conn(data.conn().id);
        CHECK(conn == server.conn(opened.conn().id));
        CHECK(queue.complete(Completion::consume(data, 8)).error() == Code::Invalid);
        const auto done = queue.complete(Completion::consume(data, 4).write("ONE")).value();
        CHECK(done.result() == Code::Ok);
        CHECK(done.write_status() <= paceline::WriteStatus::AboveHighMark);
        CHECK(client.receive(3) == "ONE");
        conn.write_tracked("!", 7).value();
        const Entry written = of_conn(queue, 1, ConnEventKind::Written);
        CHECK(written.conn().written() == 7);
        queue.done(written).value();
        client.send(" three");
        data = of_conn(queue, 1, ConnEventKind::Data);
        CHECK(data.conn().text == "two three");
        // It stays out while it is held.
        queue.complete(Completion(data).hold().write("x")).value();
        CHECK(queue.stats().value().out == 1);
        std::array<Completion, 1> last{Completion(data).close()};
        CHECK(queue.complete(last).has_value());
        CHECK(queue.complete(last).error() == Code::Stale);
        CHECK(last[0].result() == Code::Stale);
        CHECK(client.receive() == "!x");
        const Entry closed = of_conn(queue, 1, ConnEventKind::Closed);
        CHECK(closed.conn().reason() == paceline::Reason::Local);
        queue.done(closed).value();
    }
    // One that is made here.
    const auto made = queue.connect(server, server.address().value(), PACE_WANTED_OPENED).value();
    for (int opened = 0; opened < 2; ++opened) {
        const Entry entry = of_conn(queue, 1, ConnEventKind::Opened);
        const bool is_made = server.conn(entry.conn().id) == made;
        queue.complete(is_made ? Completion(entry).abort() : Completion(entry).finish()).value();
    }
    const Entry gone = of_conn(queue, 1, ConnEventKind::Closed);
    CHECK(server.conn(gone.conn().id) != made);
    queue.done(gone).value();
    CHECK(server.drain(PATIENCE).value().drained);
    next_entry(queue, EntryKind::Ended, 1);
    CHECK(server.stats().value().balances);
    settle(queue);
    finish(pool);
}

TEST_CASE("a connection that is refused, admitted, late or failed") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    auto listen = Listen{"127.0.0.1:0"}.set_max_requests(1).set_busy("busy").set_idle_timeout(5ms);
    const auto server = queue.server(ServerConfig().add_listener(std::move(listen)), 1).value();
    {
        Client client(server);
        const Entry opened = of_conn(queue, 1, ConnEventKind::Opened);
        queue.complete(Completion(opened).refuse().write("no")).value();
        CHECK(client.receive() == "no");
        queue.done(of_conn(queue, 1, ConnEventKind::Closed)).value();
    }
    {
        Client client(server);
        queue.done(of_conn(queue, 1, ConnEventKind::Opened)).value();
        Entry late = of_conn(queue, 1, ConnEventKind::TimedOut);
        CHECK(late.conn().timeout() == paceline::Timeout::Idle);
        queue.complete(Completion(late).keep()).value();
        late = of_conn(queue, 1, ConnEventKind::TimedOut);
        auto admission = queue.admit(late).value();
        CHECK(queue.admit(late).error() == Code::Full);
        CHECK(client.receive(4) == "busy");
        queue.complete(Completion(late).keep()).value();
        CHECK(queue.admit(late).error() == Code::Stale);
        CHECK(server.stats().value().in_work == 1);
        client.send("x");
        const Entry data = of_conn(queue, 1, ConnEventKind::Data);
        admission.answered();
        queue.complete(Completion::fail(data)).value();
        const Entry closed = of_conn(queue, 1, ConnEventKind::Closed);
        CHECK(closed.conn().reason() == paceline::Reason::Panicked);
        queue.done(closed).value();
    }
    auto loud = ANYWHERE;
    loud.on_exhausted = [](const char *) {};
    CHECK(queue.server(loud, 2).error() == Code::Invalid);
    CHECK(queue.server(ANYWHERE, 2, 1u << 9).error() == Code::Invalid);
    settle(queue);
    finish(pool);
}

TEST_CASE("a server that goes does not wait for entries that are out, and calls no handlers") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    Entry data;
    {
        auto server = queue.server(ANYWHERE, 1, 0).value();
        struct Handler : paceline::ConnHandler {
            std::size_t data(paceline::Conn &, std::string_view bytes) override { return bytes.size(); }
        };
        auto handler = std::unique_ptr<paceline::ConnHandler>(new Handler);
        const auto refused = server.connect(server.address().value(), std::move(handler));
        CHECK(refused.error() == Code::Invalid);
        CHECK(handler != nullptr);
        const auto plain = paceline::Server::create_for<Handler>(pool, paceline::ServerConfig()).value();
        CHECK(queue.connect(plain, server.address().value()).error() == Code::Invalid);
        Client client(server);
        client.send("x");
        data = of_conn(queue, 1, ConnEventKind::Data);
    }
    CHECK(data.conn().text == "x");
    queue.done(data).value();
    settle(queue);
    finish(pool);
}

TEST_CASE("requests come as entries, with bodies both ways") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    const auto other = CompletionQueue::create(pool).value();
    const auto upgraded = other.server({}, 70).value();
    auto http = paceline::Http::create(pool).value();
    queue.route(http, "GET", "/hello/{name}", 1).value();
    queue.route_in_parts(http, "PUT", "/file", 2).value();
    queue.fallback(http, 3).value();
    queue.http_ends(http, 4).value();
    CHECK(other.route(http, "GET", "/other", 1).error() == Code::Invalid);
    http.start(paceline::HttpConfig().add_listener({"127.0.0.1:0"})).value();
    const auto ended = [&](std::optional<std::uint32_t> status) {
        const Entry end = next_entry(queue, EntryKind::RequestEnded, 4);
        CHECK(end.request_end().status == status);
        CHECK(end.request_end().duration > 0ns);
        CHECK(end.request_end().peer.rfind("127.0.0.1:", 0) == 0);
        const std::string target(end.request_end().target);
        queue.done(end).value();
        return target;
    };
    {
        Client client(http);
        client.send("GET /hello/you?x=1 HTTP/1.1\r\nHost: here\r\nX-A:  b \r\n\r\n");
        const Entry entry = next_entry(queue, EntryKind::Request, 1);
        const auto asked = entry.request();
        CHECK(asked.method() == "GET");
        CHECK(asked.target() == "/hello/you?x=1");
        CHECK(asked.path() == "/hello/you");
        CHECK(asked.query() == "x=1");
        CHECK(asked.version() == 1);
        CHECK(asked.refusal() == 0);
        CHECK(asked.body().empty());
        REQUIRE(asked.params().size() == 1);
        CHECK(asked.params()[0].name == "name");
        CHECK(asked.params()[0].value == "you");
        REQUIRE(asked.headers().size() == 2);
        CHECK(asked.headers()[1].name == "X-A");
        CHECK(asked.headers()[1].value == "b");
        const auto answer = Completion::answer(entry, 201, "hi", "X-C: d\r\n");
        queue.complete(answer).value();
        CHECK(queue.complete(answer).error() == Code::Stale);
        const auto head = head_of(client);
        CHECK(head.rfind("HTTP/1.1 201 ", 0) == 0);
        CHECK(head.find("X-C: d\r\n") != std::string::npos);
        CHECK(client.receive(2) == "hi");
        CHECK(ended(201) == "/hello/you?x=1");

        client.send("PUT /file HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nabc");
        const Entry upload = next_entry(queue, EntryKind::Request, 2);
        CHECK(!upload.request().query());
        std::string body;
        for (const char *rest : {"de", ""}) {
            queue.read(upload).value();
            const Entry part = next_entry(queue, EntryKind::Body, 2);
            CHECK(part.body().request == upload.token);
            body += part.body().text;
            queue.done(part).value();
            client.send(rest);
        }
        CHECK(body == "abcde");
        queue.read(upload).value();
        CHECK(next_entry(queue, EntryKind::BodyEnd, 2).body().request == upload.token);
        CHECK(queue.read(upload).error() == Code::Stale);
        std::array<Completion, 2> both{Completion::answer(upload, 200, "O").more(2).close(),
                                       Completion::piece(upload, "K")};
        queue.complete(both).value();
        const auto all = client.receive();
        CHECK(all.find("Content-Length: 2\r\n") != std::string::npos);
        CHECK(all.find("\r\n\r\nOK") != std::string::npos);
        CHECK(ended(200) == "/file");
    }
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\n\r\n");
        const Entry asked = next_entry(queue, EntryKind::Request, 1);
        CHECK(!queue.is_client_gone(asked).value());
        queue.watch_client(asked).value();
        client.finish();
        CHECK(next_entry(queue, EntryKind::ClientGone, 1).body().request == asked.token);
        CHECK(queue.is_client_gone(asked).value());
        queue.complete(Completion::answer(asked, 200, "still")).value();
        CHECK(client.receive().find("\r\n\r\nstill") != std::string::npos);
        CHECK(ended(200) == "/hello/you");
        CHECK(queue.watch_client(asked).error() == Code::Stale);
        CHECK(queue.is_client_gone(asked).error() == Code::Stale);
    }
    {
        Client client(http);
        client.send("PUT /file HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\n");
        const Entry upload = next_entry(queue, EntryKind::Request, 2);
        queue.read(upload).value();
        client.finish();
        // Two sources of the same server, in any order.
        std::array<Entry, 1> room;
        for (int broken = 0, ended_at_all = 0; broken + ended_at_all < 2;) {
            const Entry entry = queue.wait(room, PATIENCE).value()[0];
            ended_at_all += entry.what() == EntryKind::RequestEnded;
            if (entry.what() == EntryKind::BodyBroken) {
                CHECK(entry.body().request == upload.token);
                ++broken;
            }
            (void)queue.done(entry);
        }
        (void)queue.done(upload);
    }
    {
        Client client(http);
        client.send("POST /hello/you HTTP/1.0\r\n\r\n");
        const Entry entry = next_entry(queue, EntryKind::Request, 3);
        CHECK(entry.request().refusal() == 405);
        queue.complete(Completion::error_page(entry, entry.request().refusal(), "X-C: d\r\n")).value();
        const auto all = client.receive();
        CHECK(all.rfind("HTTP/1.1 405 ", 0) == 0);
        CHECK(all.find("X-C: d\r\n") != std::string::npos);
        CHECK(ended(405) == "/hello/you");
    }
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\n"
                    "Upgrade: echo\r\n\r\nping");
        const Entry entry = next_entry(queue, EntryKind::Request, 1);
        const auto id = queue.upgrade(entry, "echo", upgraded, PACE_WANTED_ALL, "X-C: d\r\n").value();
        const Entry opened = of_conn(other, 70, ConnEventKind::Opened);
        CHECK(opened.conn().id == id);
        other.done(opened).value();
        const Entry data = of_conn(other, 70, ConnEventKind::Data);
        CHECK(data.text() == "ping");
        other.complete(Completion(data).write("pong")).value();
        http.conn(id).close().value();
        const auto all = client.receive();
        CHECK(all.rfind("HTTP/1.1 101 ", 0) == 0);
        CHECK(all.find("X-C: d\r\n") != std::string::npos);
        CHECK(all.find("\r\n\r\npong") != std::string::npos);
        other.done(of_conn(other, 70, ConnEventKind::Closed)).value();
        CHECK(ended(101) == "/hello/you");
    }
    for (const bool fails : {false, true}) {
        Client client(http);
        client.send("GET /hello/you HTTP/1.0\r\n\r\n");
        const Entry entry = next_entry(queue, EntryKind::Request, 1);
        queue.complete(fails ? Completion::fail(entry) : Completion(entry)).value();
        CHECK(client.receive().rfind("HTTP/1.1 500 ", 0) == 0);
        CHECK(http.stats().value().panics == (fails ? 1 : 0));
        CHECK(ended(500) == "/hello/you");
    }
    {
        Client client(http);
        client.send("GET /hello/you HTTP/1.1\r\nHost: here\r\n\r\n");
        const Entry entry = next_entry(queue, EntryKind::Request, 1);
        const auto conn = entry.request().conn;
        queue.complete(Completion::answer(entry, 200, "well")).value();
        http.fail(conn).value();
        CHECK(client.receive().rfind("HTTP/1.1 200 ", 0) == 0);
        CHECK(ended(200) == "/hello/you");
    }
    CHECK(http.stats().value().panics == 2);
    CHECK(http.drain(PATIENCE).value().drained);
    next_entry(queue, EntryKind::Ended, 1);
    CHECK(http.stats().value().balances);
    settle(other);
    finish(pool);
}

TEST_CASE("the output of a body that was too high has fallen") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    auto http = paceline::Http::create(pool).value();
    queue.route(http, "GET", "/", 1).value();
    auto listen = Listen{"127.0.0.1:0"};
    listen.set_output_marks(1, 2, 1 << 30).set_send_buffer(4096);
    http.start(paceline::HttpConfig().add_listener(std::move(listen))).value();
    Client client(http);
    client.send("GET / HTTP/1.0\r\n\r\n");
    const Entry entry = next_entry(queue, EntryKind::Request, 1);
    const std::string large(1 << 22, 'x');
    const auto begun = queue.complete(Completion::answer(entry, 200, large).more()).value();
    REQUIRE(begun.write_status() == paceline::WriteStatus::AboveHighMark);
    std::string all;
    std::thread reader([&] { all = client.receive(); });
    const Entry fallen = next_entry(queue, EntryKind::BodyWritable, 1);
    CHECK(fallen.body().request == entry.token);
    queue.complete(Completion::piece(fallen.body().request, "end")).value();
    reader.join();
    CHECK(all.size() > large.size());
    CHECK(all.substr(all.size() - 3) == "end");
    settle(queue);
    finish(pool);
}

TEST_CASE("datagrams come as entries") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    paceline::UdpConfig config;
    config.bind = "127.0.0.1:0";
    config.max_datagram = 8;
    auto here = queue.udp(config, 1).value();
    auto there = queue.udp(config, 2, 1024).value();
    CHECK(queue.udp(config, 3, 0).error() == Code::Invalid);
    CHECK(queue.udp({}, 3).error() == Code::Invalid);
    const auto to = paceline::Ip::read(here.address().value()).value();
    there.send_to("hello, you", to).value();
    const Entry entry = next_entry(queue, EntryKind::Datagram, 1);
    const auto datagram = entry.datagram();
    CHECK(datagram.text == "hello, y");
    CHECK(datagram.length == 10);
    CHECK(datagram.is_truncated());
    CHECK(datagram.os_error == 0);
    CHECK(datagram.peer.text().value() == there.address().value());
    queue.done(entry).value();
    CHECK(here.stats().value().received == 1);
    here.close().value();
    here.wait().value();
    next_entry(queue, EntryKind::Ended, 1);
    config.bind.clear();
    config.connect = to.text().value();
    const auto asking = queue.udp(config, 4).value();
    asking.send("?").value();
    const Entry error = next_entry(queue, EntryKind::DatagramError, 4);
    CHECK(error.datagram().os_error == ECONNREFUSED);
    CHECK(error.token == 0);
    settle(queue);
    finish(pool);
}

TEST_CASE("attempts come as entries, and ends of tasks") {
    using paceline::TaskStatus;
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    const auto other = CompletionQueue::create(pool).value();
    auto workers = paceline::WorkerPool::create(pool).value();
    paceline::TaskTypeConfig config;
    config.retry = paceline::Retry::fixed(2, 1ms);
    const auto type = workers.task_type("type", config).value();
    queue.attach(workers, 99).value();
    CHECK(other.attach(workers, 1).error() == Code::Invalid);
    auto task = type.submit_tagged(42).value();
    other.attach(task, 5).value();
    for (std::uint32_t number = 1; number <= 2; ++number) {
        const Entry entry = next_entry(queue, EntryKind::Attempt, 42);
        CHECK(entry.attempt().number == number);
        CHECK(entry.attempt().status == TaskStatus::Running);
        CHECK_FALSE(queue.is_cancelled(entry).value());
        queue.renew(entry).value();
        const auto end =
            number == 1 ? Completion::fail(entry, "not yet").error(7).after(1ms) : Completion(entry);
        const auto completed = queue.complete(end).value();
        CHECK(completed.task_status() == (number == 1 ? TaskStatus::Retrying : TaskStatus::Completed));
        CHECK(queue.is_cancelled(entry).error() == Code::Stale);
    }
    CHECK(next_entry(other, EntryKind::TaskEnded, 5).attempt().status == TaskStatus::Completed);
    const auto report = task.wait().value();
    CHECK(report.attempts == 2);
    CHECK(other.attach(task, 5).error() == Code::Stale);

    auto failed = type.submit_tagged(1).value();
    const Entry entry = next_entry(queue, EntryKind::Attempt, 1);
    CHECK(queue.complete(Completion::fail(entry, "for good").permanent().after(1ms)).error() ==
          Code::Invalid);
    const auto completed = queue.complete(Completion::fail(entry, "for good").permanent()).value();
    CHECK(completed.task_status() == TaskStatus::Failed);
    CHECK(failed.wait().value().message == "for good");
    auto cancelled = type.submit_tagged(2).value();
    CHECK(cancelled.cancel().value());
    CHECK(next_entry(queue, EntryKind::TaskEnded, 2).attempt().status == TaskStatus::Cancelled);
    cancelled.detach();
    CHECK(workers.shutdown().value().drained);
    next_entry(queue, EntryKind::Ended, 99);
    settle(queue);
    settle(other);
    finish(pool);
}

TEST_CASE("messages and replies come as entries") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    const auto hub =
        Hub::create(pool, HubConfig().add_history(paceline::HistoryConfig().set_pattern("kept")))
            .value();
    const auto mailbox = hub.mailbox("a.*").value();
    queue.attach(mailbox, 1).value();
    CHECK(queue.attach(mailbox, 2).error() == Code::Invalid);
    (void)hub.key("a.b").value().publish("x", paceline::Publication().add_header("n", "v")).value();
    Entry entry = next_entry(queue, EntryKind::Message, 1);
    CHECK(entry.message().text() == "x");
    CHECK(entry.text() == "x");
    CHECK(entry.message().key_text() == "a.b");
    CHECK(entry.message().header("n") == std::string_view("v"));
    CHECK(entry.message().attempt == 1);
    queue.complete(Completion::retry(entry)).value();
    entry = next_entry(queue, EntryKind::Message, 1);
    CHECK(entry.is_again());
    CHECK(entry.message().attempt == 2);
    queue.complete(Completion::fail(entry, "I cannot").attempts(2)).value();
    const auto letters = hub.dead_letters().value();
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].failure == "I cannot");
    CHECK(letters[0].attempts == 2);
    CHECK(mailbox.unsubscribe(paceline::Unsubscribe::Sync).value());
    next_entry(queue, EntryKind::Ended, 1);

    (void)hub.publish("kept", "1").value();
    const auto replay = hub.replay_mailbox("kept", paceline::ReplayFrom::beginning()).value();
    queue.attach(replay, 3).value();
    entry = next_entry(queue, EntryKind::Message, 3);
    CHECK(entry.message().text() == "1");
    queue.done(entry).value();
    CHECK(replay.unsubscribe().value());
    next_entry(queue, EntryKind::Ended, 3);

    const auto answers = hub.mailbox("q").value();
    queue.attach(answers, 4).value();
    const auto key = hub.key("q").value();
    CHECK(queue.request(hub.key("none").value(), "", 1h, 9).error() == Code::NoResponders);
    queue.request(key, "?", paceline::forever, 5, paceline::Publication().add_header("n", "v")).value();
    entry = next_entry(queue, EntryKind::Message, 4);
    CHECK(entry.message().header("n") == std::string_view("v"));
    (void)hub.reply(entry.message(), "!").value();
    queue.done(entry).value();
    entry = next_entry(queue, EntryKind::Reply, 5);
    CHECK(entry.reply().value().text() == "!");
    queue.done(entry).value();
    queue.request(key, "?", -1s, 6).value();
    for (int n = 0; n < 2; ++n) {
        std::array<Entry, 1> room;
        entry = queue.wait(room, PATIENCE).value()[0];
        if (entry.what() == EntryKind::Reply) {
            CHECK(entry.tag == 6);
            CHECK(entry.reply().error() == Code::TimedOut);
        }
        queue.done(entry).value();
    }
    const auto asked = queue.request(key, "?", paceline::forever, 7).value();
    queue.done(next_entry(queue, EntryKind::Message, 4)).value();
    CHECK(hub.give_up(asked).value());
    CHECK(next_entry(queue, EntryKind::Reply, 7).reply().error() == Code::Cancelled);
    settle(queue);
    finish(pool);
}

TEST_CASE("what is not completed is brought again, and withdrawn at the end") {
    const Pool pool = make_pool();
    const auto hub = Hub::create(pool).value();
    const auto mailbox = hub.mailbox("a").value();
    {
        // What is brought again is read below, before its lease is over.
        const auto queue = CompletionQueue::create(pool, 500ms).value();
        queue.attach(mailbox, 1).value();
        (void)hub.publish("a", "x").value();
        const Entry first = next_entry(queue, EntryKind::Message, 1);
        const Entry again = next_entry(queue, EntryKind::Message, 1);
        CHECK(again.is_again());
        CHECK(again.message().text() == "x");
        CHECK(queue.done(first).error() == Code::Stale);
        const auto stats = queue.stats().value();
        CHECK(stats.withdrawn >= 1);
        CHECK(stats.brought == stats.completed + stats.withdrawn + stats.out);
    }
    CHECK(hub.dead_letters().value().size() == 1);
    finish(pool);
}

TEST_CASE("records of a log and signals come as entries") {
    paceline::LogConfig config;
    const auto deaf = paceline::Log::create(config).value();
    config.cq_capacity = 100;
    const auto log = paceline::Log::create(config).value();
    const Pool pool = Pool::create(paceline::Config().set_threads(1).set_log(log)).value();
    const auto queue = CompletionQueue::create(pool).value();
    CHECK(queue.attach(deaf, 1).error() == Code::Invalid);
    queue.attach(log, 1).value();
    const Entry entry = next_entry(queue, EntryKind::Record, 1);
    CHECK(entry.record().event == "pool.started");
    CHECK(entry.record().field<std::uint64_t>("threads") == 1);
    queue.done(entry).value();
    const std::array<std::int32_t, 1> user{SIGUSR2}, never{SIGKILL};
    CHECK(queue.watch_signals(never, 2).error() == Code::Invalid);
    const auto signals = queue.watch_signals(user, 2).value();
    CHECK(::kill(::getpid(), SIGUSR2) == 0);
    CHECK(next_entry(queue, EntryKind::Signal, 2).signal() == SIGUSR2);
    settle(queue);
    finish(pool);
}

TEST_CASE("several threads wait at one completion queue") {
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    std::atomic<int> seen{0};
    std::vector<std::thread> waiters;
    for (int n = 0; n < 3; ++n) {
        waiters.emplace_back([&] {
            std::array<Entry, 8> room;
            while (const auto entries = queue.wait(room, paceline::forever)) {
                seen += static_cast<int>(entries->size());
                queue.done(*entries).value();
            }
        });
    }
    for (std::uint64_t tag = 0; tag < 1000;) {
        const std::uint64_t tags[] = {tag, tag + 1};
        tag += queue.post_batch(tags).value_or(0);
    }
    while (seen < 1000) {
        std::this_thread::yield();
    }
    queue.close().value();
    for (auto &waiter : waiters) {
        waiter.join();
    }
    CHECK(seen == 1000);
    finish(pool);
}
