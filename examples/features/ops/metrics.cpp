// Figures of a pool, the process, the disks and a hub, as JSON or as text for a collector.
//
// feature: ops/metrics

#include "../check.h"
#include <paceline/ops.hpp>
#include <string>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    pool.add_disk("/").value();
    (void)hub.publish("orders", "").value();
    const auto text = pool.metrics(PACE_METRICS_PROMETHEUS).value();
    CHECK(text.find("paceline_handles{pool=") != std::string::npos);
    const auto json = hub.metrics(PACE_METRICS_JSON).value();
    CHECK(json[0] == '{' && json.find("paceline_hub_published") != std::string::npos);
    return 0;
}
