// A timeline of what each thread does, for Perfetto.
//
// feature: ops/timeline

#include "../check.h"
#include <paceline/ops.hpp>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    for (int n = 0; n < 10; ++n) {
        pool.post([] { usleep(1000); }).value();
    }

    // https://ui.perfetto.dev opens a file of this text.
    const std::string json = pool.trace(20ms).value();
    CHECK(json.find("\"traceEvents\":[") != std::string::npos);
    CHECK(json.find("\"thread 0\"") != std::string::npos);
    return 0;
}
