// Several producers, one table, no lock.
//
// Weather stations measure, each in a thread of its own. The pool keeps one table of what all of them
// have seen. A serial ring calls its handler on one thread at a time, with everything that has come
// since the last call, so the table simply belongs to the handler.
//
//     c++ -std=c++17 examples/cpp/ring.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o ring
//
// feature: pool/rings

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <future>
#include <limits>
#include <paceline/pool.hpp>
#include <thread>
#include <vector>

using paceline::Events;
using paceline::Ring;

constexpr std::array<const char *, 3> STATIONS{"harbour", "airport", "summit"};
constexpr std::size_t PER_STATION = 100'000;
constexpr std::size_t BATCH = 100;

// What a ring carries: plain data of a fixed size.
struct Reading {
    std::size_t station;
    double celsius;
};

// What one station has seen.
struct Row {
    std::size_t readings = 0;
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -std::numeric_limits<double>::infinity();
    double sum = 0;

    void add(double celsius) {
        ++readings;
        lowest = std::min(lowest, celsius);
        highest = std::max(highest, celsius);
        sum += celsius;
    }
};

using Table = std::array<Row, STATIONS.size()>;

// A day and a night go by in a thousand readings.
Reading measure(std::size_t station, std::size_t number) {
    constexpr std::array<double, STATIONS.size()> warmth{14.0, 11.0, -3.0};
    const double hour = static_cast<double>(number % 1000) / 1000.0 * 24.0;
    const double sun = std::sin((hour - 9.0) / 24.0 * 6.28318530717958648);
    return {station, warmth[station] + 6.0 * sun};
}

// A full ring makes its producers wait. A batch is published by one compare-and-swap.
void produce(const Ring<Reading> &ring, std::size_t station) {
    std::array<Reading, BATCH> readings;
    for (std::size_t first = 0; first < PER_STATION; first += BATCH) {
        for (std::size_t n = 0; n < BATCH; ++n) {
            readings[n] = measure(station, first + n);
        }
        ring.publish_batch(readings).value();
    }
}

int main() {
    const auto pool = paceline::Pool::create().value();

    std::promise<Table> finished;
    auto table = finished.get_future();
    auto add = [&finished, rows = Table(),
                left = STATIONS.size() * PER_STATION](Events<Reading> readings) mutable {
        for (const Reading &reading : readings) {
            rows[reading.station].add(reading.celsius);
        }
        left -= readings.size();
        if (left == 0) {
            finished.set_value(rows);
        }
    };
    const auto ring = Ring<Reading>::serial(pool, 4096, std::move(add)).value();

    std::vector<std::thread> stations;
    for (std::size_t station = 0; station < STATIONS.size(); ++station) {
        stations.emplace_back([&ring, station] { produce(ring, station); });
    }
    for (auto &station : stations) {
        station.join();
    }

    const Table rows = table.get();
    std::printf("%-8s %8s %7s %7s %7s\n", "station", "readings", "lowest", "mean", "highest");
    for (std::size_t station = 0; station < STATIONS.size(); ++station) {
        const Row &row = rows[station];
        std::printf("%-8s %8zu %7.1f %7.1f %7.1f\n", STATIONS[station], row.readings, row.lowest,
                    row.sum / static_cast<double>(row.readings), row.highest);
    }
}
