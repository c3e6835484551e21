// The tests' own main, by doctest. It includes paceline.hpp too: the header serves many files of one
// program.

#define DOCTEST_CONFIG_IMPLEMENT
#include "common.hpp"

int main(int count, char **arguments) {
    // Many tests make faults on purpose.
    paceline::quiet();
    return doctest::Context(count, arguments).run();
}
