// A program that finds paceline where it was installed.

#include <iostream>
#include <paceline/pool.hpp>

int main() {
    const auto pool = paceline::Pool::create().value();
    std::cout << "C++ " << pool.submit([] { return 6 * 7; }).value().wait().value() << '\n';
}
