// Lanes of priority: what waits in a higher lane begins first.
//
// feature: pool/lanes

#include "../check.h"
#include <atomic>
#include <paceline/pool.hpp>
#include <string>

using paceline::Lane;

int main() {
    // By default what has waited for a second is looked at, too.
    const auto config = paceline::Config().set_threads(1).set_ageing(paceline::forever);
    const auto pool = paceline::Pool::create(config).value();
    std::atomic<bool> gate_closed{false}, gate_open{false};
    std::string order; // the only thread writes it, so it needs no lock

    pool.post([&] {
            gate_closed = true;
            WAIT_FOR(gate_open);
        })
        .value();
    WAIT_FOR(gate_closed);
    pool.lane(Lane::Low).post([&order] { order += 'l'; }).value();
    pool.lane(Lane::Normal).post([&order] { order += 'n'; }).value();
    pool.lane(Lane::High).post([&order] { order += 'h'; }).value();
    pool.lane(Lane::Critical).post([&order] { order += 'c'; }).value();
    gate_open = true;
    CHECK(pool.shutdown(paceline::forever).value().drained);
    CHECK(order == "chnl");
    return 0;
}
