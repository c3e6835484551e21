// Stands for the event loop under Node.js: libuv, one loop per thread. A blocking acceptor deals
// the connections out in turn, so that every loop has the same share.

#include <uv.h>

#include <mutex>
#include <thread>
#include <vector>

#include "echo.hpp"

struct Loop {
    uv_loop_t loop;
    uv_async_t bell;
    std::mutex mutex;
    std::vector<int> inbox;
    std::vector<char> buffer = std::vector<char>(echo::kReadBuffer);
    int sleep_us = 0;
};

struct Write {
    uv_write_t request;
    std::vector<char> rest;
};

static void allocate(uv_handle_t *handle, size_t, uv_buf_t *buffer) {
    auto *loop = static_cast<Loop *>(handle->loop->data);
    *buffer = uv_buf_init(loop->buffer.data(), loop->buffer.size());
}

static void close_stream(uv_stream_t *stream) {
    if (uv_is_closing(reinterpret_cast<uv_handle_t *>(stream))) return;
    uv_close(reinterpret_cast<uv_handle_t *>(stream),
             [](uv_handle_t *handle) { delete reinterpret_cast<uv_tcp_t *>(handle); });
}

// Sends at once what the socket takes and leaves the rest to libuv.
static void send(uv_stream_t *stream, char *data, size_t size) {
    uv_buf_t buffer = uv_buf_init(data, size);
    int sent = uv_try_write(stream, &buffer, 1);
    if (sent == UV_EAGAIN) sent = 0;
    if (sent < 0) return close_stream(stream);
    if (static_cast<size_t>(sent) == size) return;
    auto *write = new Write{{}, std::vector<char>(data + sent, data + size)};
    write->request.data = write;
    buffer = uv_buf_init(write->rest.data(), write->rest.size());
    uv_write(&write->request, stream, &buffer, 1,
             [](uv_write_t *request, int) { delete static_cast<Write *>(request->data); });
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
    if (n < 0) return close_stream(stream);
    if (n == 0) return;
    echo::hold(buffer->base, static_cast<Loop *>(stream->loop->data)->sleep_us);
    send(stream, buffer->base, n);
}

static void on_bell(uv_async_t *bell) {
    auto *loop = static_cast<Loop *>(bell->loop->data);
    std::vector<int> accepted;
    {
        std::lock_guard<std::mutex> lock(loop->mutex);
        accepted.swap(loop->inbox);
    }
    for (int fd : accepted) {
        auto *stream = new uv_tcp_t;
        uv_tcp_init(&loop->loop, stream);
        uv_tcp_open(stream, fd);
        uv_tcp_nodelay(stream, 1);
        uv_read_start(reinterpret_cast<uv_stream_t *>(stream), allocate, on_read);
    }
}

int main(int argc, char **argv) {
    const auto options = echo::parse(argc, argv);
    std::vector<Loop> loops(options.threads);
    std::vector<std::thread> threads;
    for (auto &loop : loops) {
        loop.sleep_us = options.sleep_us;
        uv_loop_init(&loop.loop);
        loop.loop.data = &loop;
        uv_async_init(&loop.loop, &loop.bell, on_bell);
        threads.emplace_back([&loop] { uv_run(&loop.loop, UV_RUN_DEFAULT); });
    }
    const int listener = echo::listen_on(options);
    for (size_t next = 0;; next++) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) continue;
        auto &loop = loops[next % loops.size()];
        {
            std::lock_guard<std::mutex> lock(loop.mutex);
            loop.inbox.push_back(fd);
        }
        uv_async_send(&loop.bell);
    }
}
