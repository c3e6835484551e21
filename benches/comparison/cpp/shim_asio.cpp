// Asio's thread_pool as a pool of workers for small tasks.

#include <asio.hpp>

#include "shim.hpp"

using Pool = asio::thread_pool;

static void burst(Pool *pool) {
    if (burst_of([pool] { asio::post(*pool, [] { comparison_tick(); }); }))
        asio::post(*pool, [pool] { burst(pool); });
}

extern "C" {
void *asio_pool_new(int workers) { return new Pool(workers); }

void asio_pool_free(void *pool) {
    static_cast<Pool *>(pool)->join();
    delete static_cast<Pool *>(pool);
}

void asio_pool_post(void *pool, size_t count) {
    for (size_t i = 0; i < count; i++) asio::post(*static_cast<Pool *>(pool), [] { comparison_tick(); });
}

void asio_pool_post_started(void *pool) {
    asio::post(*static_cast<Pool *>(pool), [] { comparison_started(); });
}

void asio_pool_post_inside(void *p) {
    auto *pool = static_cast<Pool *>(p);
    asio::post(*pool, [pool] { burst(pool); });
}
}
