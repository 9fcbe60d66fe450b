#include <gtest/gtest.h>

#include <stdexcept>

#include "sc_main/explore/sweep/expression.h"

namespace kernbench::sweep {
namespace {

double value_of(const std::string& text) {
  return Expression(text).value([](const std::string& name) {
    if (name == "cube.noc.rows") return 4.0;
    if (name == "x") return 2.5;
    return number_of_text(name);
  });
}

TEST(Formula, TakesDottedKeysAsNames) {
  EXPECT_EQ(Expression("cube.noc.rows * x + 1.5").names(), (std::vector<std::string>{"cube.noc.rows", "x"}));
  EXPECT_DOUBLE_EQ(value_of("cube.noc.rows * x + 1.5"), 11.5);
}

TEST(Formula, CountsUnitsInBaseUnits) {
  EXPECT_DOUBLE_EQ(value_of("2 * KiB"), 2048);
  EXPECT_DOUBLE_EQ(value_of("64 * GB"), 64e9);
  EXPECT_DOUBLE_EQ(value_of("3 * ns"), 3000);  // ps
}

TEST(Formula, HoldsOneForTrueAndZeroForFalse) {
  EXPECT_EQ(value_of("cube.noc.rows <= 4 && x < 3"), 1);
  EXPECT_EQ(value_of("cube.noc.rows < 4 || not(x < 3)"), 0);
  EXPECT_EQ(value_of("divides(4, 16)"), 1);
  EXPECT_EQ(value_of("divides(3, 16)"), 0);
  EXPECT_EQ(value_of("mod(7, 4) + floor(2.9) + ceil(0.1)"), 6);
}

TEST(Formula, ATextEqualsOnlyItself) {
  EXPECT_EQ(value_of("ring_1d == ring_1d"), 1);
  EXPECT_EQ(value_of("ring_1d == torus_2d"), 0);
  EXPECT_NE(number_of_text("ring_1d"), 1);
}

TEST(Formula, RefusesWhatIsNone) {
  EXPECT_THROW(Expression("2 * * 3"), std::invalid_argument);
  EXPECT_THROW(Expression("(2"), std::invalid_argument);
  EXPECT_THROW(Expression("unknown_function(2)"), std::invalid_argument);
  EXPECT_THROW(value_of("1 / (x - 2.5)"), std::invalid_argument);
}

}  // namespace
}  // namespace kernbench::sweep
