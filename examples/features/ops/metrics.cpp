// Figures of a pool, the process, the disks and a hub, as JSON or as text for a collector.
//
// feature: ops/metrics
// prints:
//   # TYPE paceline_handles gauge
//   paceline_hub_published_total{hub="main"} 1.0
//   JSON: {"failures":0,"families":[

#include <iostream>
#include <paceline/ops.hpp>
#include <string>

static void print_line(const std::string &text, const std::string &start) {
    const auto line = text.substr(text.find(start));
    std::cout << line.substr(0, line.find('\n')) << '\n';
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    pool.add_disk("/").value();
    (void)hub.publish("orders", "").value();
    print_line(pool.metrics(PACE_METRICS_PROMETHEUS).value(), "# TYPE paceline_handles ");
    print_line(hub.metrics(PACE_METRICS_PROMETHEUS).value(), "paceline_hub_published_total{");
    const auto json = hub.metrics(PACE_METRICS_JSON).value();
    std::cout << "JSON: " << json.substr(0, json.find('[') + 1) << '\n';
    return 0;
}
