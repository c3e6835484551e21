// Workers that take turns at a queue of tasks. The worker that leads takes a task, hands the lead on, and handles the task.
// In `roles` one worker waits for events. Here tasks are in a queue, and whoever is free takes the next one.
//
//     c++ -std=c++17 examples/cpp/turns.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o turns && ./turns

#include <cstdio>
#include <paceline/pool.hpp>
#include <pthread.h>
#include <thread>

using namespace std::chrono_literals;

static void handle(int task) {
    char worker[16];
    pthread_getname_np(pthread_self(), worker, sizeof worker);
    std::printf("%s leads, and takes task %d\n", worker, task);
    paceline::promote_new_leader().value(); // another worker is called for the next task
    std::this_thread::sleep_for(25ms);      // what the task takes
    std::printf("%s has handled task %d\n", worker, task);
}

int main() {
    const auto config = paceline::Config().set_threads(3).set_name("worker");
    const auto pool = paceline::Pool::create(config).value();
    for (int task = 1; task <= 9; ++task) {
        // The queue: a lane of the pool. It is bounded, and a post waits for room.
        pool.post([task] { handle(task); }).value();
        std::this_thread::sleep_for(10ms); // until the next task comes
    }
    const auto report = pool.shutdown(60s).value(); // handles what was accepted, and ends
    const auto threads = pool.stats().value().threads;
    for (int number = 0; number < 3; ++number)
        std::printf("worker-%d: %d tasks\n", number, int(threads[number].tasks));
    std::printf("drained: %s\n", report.drained ? "true" : "false");
}
