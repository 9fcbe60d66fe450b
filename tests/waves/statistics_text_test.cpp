#include "sc_main/run/statistics_file.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kernbench {
namespace {

// A number is written four digits at a time: those beside each power of ten, and the largest there is.
TEST(StatisticsText, WritesEveryNumberInFullAndWithoutLeadingZeros) {
  topology::ResourceUse use;
  use.name = "sip0.link";
  use.kind = "link";
  std::vector<std::uint64_t> numbers{0, 1, std::numeric_limits<std::uint64_t>::max()};
  for (std::uint64_t power = 10; power <= 1'000'000'000'000'000'000; power *= 10) {
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
    if (power > 1'000'000'000'000'000'000 / 10) break;
  }
  for (const std::uint64_t number : numbers) use.slices.emplace_back().bytes = number;
  use.bytes = numbers.back();
  std::string text;
  StatisticsText writer([&](std::string_view part) { text += part; });
  const topology::RunStatistics known{1000, 14, false, {}, {}, {}};
  writer.take(known, use);
  writer.finish(known);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["resources"][0]["over_time"]["bytes"].get<std::vector<std::uint64_t>>(), numbers);
  EXPECT_EQ(json["resources"][0]["bytes"], numbers.back());
}

}  // namespace
}  // namespace kernbench
