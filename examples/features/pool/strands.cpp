// A strand: its tasks run one at a time and in order, on any thread, so what they share needs no lock.
//
// feature: pool/strands

#include "../check.h"
#include <paceline/pool.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto strand = pool.strand().value();
    int counter = 0;
    for (int n = 0; n < 1000; ++n) {
        strand.post([&counter] { ++counter; }).value();
    }
    auto last = strand.submit([&counter] { return counter; }).value();
    CHECK(last.wait().value() == 1000);
    return 0;
}
