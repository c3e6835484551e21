#include <iostream>
#include <paceline/pool.hpp>
#include <thread>
using namespace std::chrono_literals;
int main() {
    const auto pool = paceline::Pool::create().value(); // one thread per CPU
    const auto slow = [] { std::this_thread::sleep_for(1s), std::cout << "the slow task has ended\n"; };
    pool.post(slow).value();
    pool.after(20ms, [] { std::cout << "20 ms have passed\n"; }).value();
} // the pool is destroyed: this waits for the slow task
