// A program with a fault, to see that AddressSanitizer looks inside tasks: it must not end well.

#include "paceline.hpp"

int main() {
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(1).set_pin("none")).value();
    auto number = std::make_unique<int>(1);
    const int *gone = number.get();
    number.reset();
    return pool.submit([gone] { return *gone; }).value().wait().value() > 1000;
}
