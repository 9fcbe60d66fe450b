#include "tlm/config/units.h"

#include <gtest/gtest.h>

#include <tuple>

namespace kernbench {
namespace {

std::uint64_t value_of(const std::string& text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  EXPECT_TRUE(result.ok) << text << result.problem;
  return result.value;
}

std::string problem_of(const std::string& text, Dimension dimension) {
  const QuantityResult result = parse_quantity(text, dimension);
  EXPECT_FALSE(result.ok) << text;
  return result.problem;
}

TEST(Units, ReadsEveryDimensionInBaseUnits) {
  EXPECT_EQ(value_of("16 GT/s", Dimension::transfers), 16'000'000'000u);
  EXPECT_EQ(value_of("0.25 pJ", Dimension::energy), 250'000u);
  EXPECT_EQ(value_of("1.5 mW", Dimension::power), 1'500u);
  EXPECT_EQ(value_of("1.2 TB/s", Dimension::bandwidth), 1'200'000'000'000u);
  EXPECT_EQ(value_of("128 GB/s", Dimension::bandwidth), 128'000'000'000u);
  EXPECT_EQ(value_of("2 ns", Dimension::time), 2'000u);
  EXPECT_EQ(value_of("35ns", Dimension::time), 35'000u);
  EXPECT_EQ(value_of("1.6 GHz", Dimension::frequency), 1'600'000'000u);
  EXPECT_EQ(value_of("4 MiB", Dimension::bytes), 4u << 20);
  EXPECT_EQ(value_of("64KiB", Dimension::bytes), 64u << 10);
  EXPECT_EQ(value_of("256 B", Dimension::bytes), 256u);
}

TEST(Units, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_EQ(value_of("1 GB", Dimension::bytes), 1'000'000'000u);
  EXPECT_EQ(value_of("1 GiB", Dimension::bytes), 1u << 30);
  EXPECT_EQ(value_of("1 kB", Dimension::bytes), 1'000u);
  EXPECT_EQ(value_of("1 KB", Dimension::bytes), 1'000u);
  EXPECT_EQ(value_of("1 KiB", Dimension::bytes), 1'024u);
}

TEST(Units, LowerCaseBIsBit) { EXPECT_EQ(value_of("400 Gb/s", Dimension::bandwidth), 50'000'000'000u); }

TEST(Units, MicroSignAndGreekMuAreMicro) {
  EXPECT_EQ(value_of("3 \xC2\xB5s", Dimension::time), 3'000'000u);
  EXPECT_EQ(value_of("3 \xCE\xBCs", Dimension::time), 3'000'000u);
  EXPECT_EQ(value_of("3 us", Dimension::time), 3'000'000u);
}

TEST(Units, FractionsAndExponentsAreExact) {
  EXPECT_EQ(value_of("17.5 ns", Dimension::time), 17'500u);
  EXPECT_EQ(value_of("0.001 ns", Dimension::time), 1u);
  EXPECT_EQ(value_of("0.1 TB/s", Dimension::bandwidth), 100'000'000'000u);
  EXPECT_EQ(value_of("1.5 KiB", Dimension::bytes), 1'536u);
  EXPECT_EQ(value_of("2e3 ps", Dimension::time), 2'000u);
  EXPECT_EQ(value_of("25e-1 ns", Dimension::time), 2'500u);
  EXPECT_EQ(value_of("1.000000000000000000000 ns", Dimension::time), 1'000u);
  EXPECT_EQ(value_of("0 ns", Dimension::time), 0u);
  EXPECT_EQ(value_of("18446744073709551615 ps", Dimension::time), ~std::uint64_t{0});
}

TEST(Units, SaysWhatIsWrong) {
  EXPECT_EQ(problem_of("16", Dimension::bytes), ", which has no unit");
  EXPECT_EQ(problem_of("16 ns", Dimension::bytes), ", which is a time, not a size");
  EXPECT_EQ(problem_of("16 GB", Dimension::bandwidth), ", which is a size, not a bandwidth");
  EXPECT_EQ(problem_of("-1 ns", Dimension::time), ", which is negative");
  EXPECT_EQ(problem_of("0.5 ps", Dimension::time), ", which is no whole number of picoseconds");
  EXPECT_EQ(problem_of("1 Mb/s 2", Dimension::bandwidth), ", whose unit 'Mb/s 2' is unknown");
  EXPECT_EQ(problem_of("18446744073709551616 ps", Dimension::time), ", which is too large");
  EXPECT_EQ(problem_of("1e300 s", Dimension::time), ", which is too large");
  EXPECT_EQ(problem_of(std::string(500, '9') + " s", Dimension::time), ", which is too large");
  EXPECT_EQ(problem_of("1e-300 s", Dimension::time), ", which has too many digits");
  for (const char* text : {"", "ns", ".", "+5 ns", "0x10 B", "nan ns"}) {
    EXPECT_FALSE(parse_quantity(text, Dimension::time).ok) << text;
  }
}

TEST(Units, WrongCaseGetsAHint) {
  EXPECT_EQ(parse_quantity("4 mib", Dimension::bytes).hint, "did you mean 'MiB'?");
  EXPECT_EQ(parse_quantity("4 ghz", Dimension::frequency).hint, "did you mean 'GHz'?");
  EXPECT_EQ(parse_quantity("4 furlongs", Dimension::time).hint, "units of a time: ps, ns, us, ms, s");
}

TEST(Units, FormatIsShortAndReadsBack) {
  EXPECT_EQ(format_quantity(16u << 20, Dimension::bytes), "16 MiB");
  EXPECT_EQ(format_quantity(17'500, Dimension::time), "17.5 ns");
  EXPECT_EQ(format_quantity(128'000'000'000, Dimension::bandwidth), "128 GB/s");
  EXPECT_EQ(format_quantity(1'600'000'000, Dimension::frequency), "1.6 GHz");
  EXPECT_EQ(format_quantity(0, Dimension::time), "0 ps");
  EXPECT_EQ(format_quantity(256, Dimension::bytes), "256 B");
  for (const Dimension dimension : {Dimension::bytes, Dimension::bandwidth, Dimension::time, Dimension::frequency,
                                    Dimension::transfers, Dimension::energy, Dimension::power}) {
    for (const std::uint64_t value : {1ull, 7ull, 999ull, 1024ull, 4'999ull, 65'536ull, 1'000'001ull, 63'015'384'615ull,
                                      (1ull << 33) + 4096, ~0ull, ~0ull / 3}) {
      EXPECT_EQ(value_of(format_quantity(value, dimension), dimension), value);
    }
  }
}

}  // namespace
}  // namespace kernbench
