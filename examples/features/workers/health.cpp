// Health, what each thread has run, and figures of tasks as text for a collector, with figures of the program's own.
//
// feature: workers/health
// prints:
//   completed by the thread that has run the task: 1
//   ready, threads that are stuck: 0
//   orders_total{shop="eu"} 3.0
//   draining

#include <iostream>
#include <paceline/workers.hpp>
#include <sstream>
#include <string>

int main() {
    const auto pool = paceline::Pool::create().value();
    paceline::WorkersConfig config;
    config.metrics = true;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("fetch").value();
    const auto report = type.submit([] {}).value().wait().value();
    const auto threads = workers.worker_stats().value();
    std::cout << "completed by the thread that has run the task: "
              << threads[report.worker.value()].completed << '\n';

    const auto health = workers.health().value();
    std::cout << (health.health == PACE_HEALTH_READY ? "ready" : "not ready")
              << ", threads that are stuck: " << health.stuck << '\n';
    const auto orders =
        workers.metric(paceline::MetricKind::Counter, "orders", "Orders.", {{"shop", "eu"}}).value();
    orders.count(3).value();
    const auto format = paceline::MetricsFormat::negotiate("text/plain"); // a request's Accept header
    std::istringstream lines(workers.metrics(format.format).value());
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("orders_total", 0) == 0) { // among the library's
            std::cout << line << '\n';
        }
    }
    workers.shutdown().value();
    const bool draining = workers.health().value().health == PACE_HEALTH_DRAINING;
    std::cout << (draining ? "draining\n" : "not draining\n");
    return 0;
}
