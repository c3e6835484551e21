// A timeline of what each thread does, for Perfetto.
//
// feature: ops/timeline
// prints:
//   a text for https://ui.perfetto.dev: {"displayTimeUnit":"ns" ...
//   with a row for thread 0: true

#include <chrono>
#include <iostream>
#include <paceline/ops.hpp>
#include <string>
#include <thread>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    for (int n = 0; n < 10; ++n) {
        pool.post([] { std::this_thread::sleep_for(1ms); }).value();
    }
    const std::string json = pool.trace(20ms).value(); // to be written to a file
    const bool has_row = json.find("\"thread 0\"") != std::string::npos;
    std::cout << "a text for https://ui.perfetto.dev: " << json.substr(0, json.find(',')) << " ...\n";
    std::cout << std::boolalpha << "with a row for thread 0: " << has_row << '\n';
    return 0;
}
