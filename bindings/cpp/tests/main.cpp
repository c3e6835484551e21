// The tests' own main, by doctest. It includes paceline.hpp too: the header serves many files of one
// program.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "common.hpp"
