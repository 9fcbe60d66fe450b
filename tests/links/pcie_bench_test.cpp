#include "sc_main/rigs/pcie_bench.h"

#include <gtest/gtest.h>

namespace kernbench {
namespace {

LinkPoint measure(const PcieConfig& config, std::uint64_t bytes, double load) {
  return measure_pcie_direction(config, {bytes, load, 1'000'000, 2});
}

TEST(PcieUnderLoad, TakesWhatIsOfferedAtTheLatencyOfAQueueWithOneServer) {
  const PcieConfig config;
  for (const double load : {0.2, 0.5, 0.8}) {
    const LinkPoint point = measure(config, 4096, load);
    EXPECT_NEAR(point.gbps / (load * pcie_capacity_gbps(config, 4096)), 1, 0.005) << load;
    EXPECT_NEAR(point.mean_ns / *pcie_loaded_ns(config, 4096, load), 1, 0.01) << load;
  }
}

TEST(PcieUnderLoad, FullRateIsThatOfItsTlps) {
  // 16 TLPs of 256 B and 24 B: 4480 B on the wire for 4096.
  const PcieConfig config;
  EXPECT_NEAR(measure(config, 4096, 1).gbps, 63.01538 * 4096 / 4480, 0.01);
}

TEST(PcieUnderLoad, FewerCreditsThanARoundTripHoldsBoundTheRate) {
  PcieConfig config;
  config.credits = 32;
  const double round_trip = 2 * 250 + 280 / 63.01538;
  EXPECT_NEAR(measure(config, 4096, 1).gbps, 32 * 256 / round_trip, 0.01);
  EXPECT_FALSE(pcie_loaded_ns(config, 4096, 0.5).has_value());
}

}  // namespace
}  // namespace kernbench
