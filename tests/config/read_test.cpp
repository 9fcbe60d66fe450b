#include "tlm/config/read.h"

#include <gtest/gtest.h>

namespace kernbench {
namespace {

/// The value behind `a:` in a file, read by `reader`.
template <class Reader>
auto read(const std::string& value, Problems& problems, Reader reader) {
  const ConfigNode root = parse_config("a: " + value + "\n", "f.yaml");
  return reader(*root.find("a"), "a", problems);
}

TEST(Read, IntegersAreDecimalOnly) {
  const auto integer = [](const ConfigNode& node, const std::string& what, Problems& problems) {
    return read_integer(node, what, {0, 1'000'000}, problems);
  };
  Problems problems;
  EXPECT_EQ(read("10", problems, integer), 10u);
  EXPECT_EQ(read("0", problems, integer), 0u);
  EXPECT_TRUE(problems.empty());
  for (const char* bad :
       {"010", "0x10", "1e3", "0o7", "4K", "1_000", "+4", "-4", "'4'", "4.0", "[4]", "99999999999999999999"}) {
    Problems found;
    EXPECT_EQ(read(bad, found, integer), std::nullopt) << bad;
    EXPECT_EQ(found.size(), 1u) << bad;
  }
}

TEST(Read, PowersOfTwo) {
  Problems problems;
  const auto power = [](const ConfigNode& node, const std::string& what, Problems& found) {
    return read_integer(node, what, {1, 64, true}, found);
  };
  EXPECT_EQ(read("32", problems, power), 32u);
  EXPECT_EQ(read("33", problems, power), std::nullopt);
  EXPECT_EQ(problems.str(), "f.yaml:1:4: error: a is '33'\n  hint: give a power of two from 1 to 64");
}

TEST(Read, RatiosAreExact) {
  Problems problems;
  const auto ratio = read("236/256", problems, read_ratio);
  EXPECT_EQ(ratio->parts, 59u);
  EXPECT_EQ(ratio->whole, 64u);
  EXPECT_EQ(read("0.98", problems, read_ratio)->parts, 49u);
  EXPECT_EQ(read("1", problems, read_ratio)->whole, 1u);
  EXPECT_TRUE(problems.empty());
  for (const char* bad : {"0", "0/4", "4/0", "2", "1.1", "5/4", "1/", "/2", "-1/2", "a/b", "1/2/3", "0.1234567891"}) {
    Problems found;
    EXPECT_EQ(read(bad, found, read_ratio).has_value(), false) << bad;
    EXPECT_EQ(found.size(), 1u) << bad;
  }
}

TEST(Read, BooleansAreTrueAndFalse) {
  Problems problems;
  EXPECT_EQ(read("true", problems, read_bool), true);
  EXPECT_EQ(read("false", problems, read_bool), false);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(read("yes", problems, read_bool), std::nullopt);
  EXPECT_EQ(problems.str(), "f.yaml:1:4: error: a is 'yes'\n  hint: give true or false");
}

TEST(Read, NamesGetTheNearest) {
  Problems problems;
  const auto name = [](const ConfigNode& node, const std::string& what, Problems& found) {
    return read_name(node, what, {"open", "closed"}, found);
  };
  EXPECT_EQ(read("closed", problems, name), 1u);
  EXPECT_EQ(read("close", problems, name), std::nullopt);
  EXPECT_EQ(problems.str(),
            "f.yaml:1:4: error: a is 'close'\n  hint: did you mean 'closed'? valid values: open, closed");
}

}  // namespace
}  // namespace kernbench
