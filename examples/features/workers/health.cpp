// Health, what each thread has run, and figures of tasks as text for a collector, with figures of the program's own.
//
// feature: workers/health

#include "../check.h"
#include <paceline/workers.hpp>
#include <string>

int main() {
    const auto pool = paceline::Pool::create().value();
    paceline::WorkersConfig config;
    config.metrics = true;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("fetch").value();
    const auto report = type.submit([] {}).value().wait().value();
    const auto threads = workers.worker_stats().value();
    CHECK(report.completed() && threads[report.worker.value()].completed == 1); // the thread that ran it
    const auto orders =
        workers.metric(paceline::MetricKind::Counter, "orders", "Orders.", {{"shop", "eu"}}).value();
    orders.count(3).value();

    const auto health = workers.health().value();
    CHECK(health.health == PACE_HEALTH_READY && health.stuck == 0);
    const auto format = paceline::MetricsFormat::negotiate("text/plain"); // a request's Accept header
    const auto text = workers.metrics(format.format).value();
    CHECK(text.find("orders_total{shop=\"eu\"} 3") != std::string::npos);
    CHECK(text.find("fetch") != std::string::npos);
    CHECK(workers.shutdown().value().drained);
    CHECK(workers.health().value().health == PACE_HEALTH_DRAINING);
    return 0;
}
