// A strand: its tasks run one at a time and in order, on any thread, so what they share needs no lock.
//
// feature: pool/strands
// prints:
//   counted to 1000 without a lock

#include <iostream>
#include <paceline/pool.hpp>

int main() {
    int counter = 0;
    const auto pool = paceline::Pool::create().value();
    const auto strand = pool.strand().value();
    for (int n = 0; n < 1000; ++n) {
        strand.post([&counter] { ++counter; }).value();
    }
    auto last = strand.submit([&counter] { return counter; }).value();
    std::cout << "counted to " << last.wait().value() << " without a lock\n";
    return 0;
}
