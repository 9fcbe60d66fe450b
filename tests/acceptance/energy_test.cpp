#include <gtest/gtest.h>

#include <map>

#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {

TEST(Energy, OfARunIsTheSumOfItsComponentsAndTheirOperations) {
  const nlohmann::ordered_json json = run_json({"run", "all_reduce", "-b", "64K", "-e", "64K"});
  double all = 0;
  std::map<std::string, double> dynamic;
  for (const auto& row : json["energy"]) {
    double sum = 0;
    for (const auto& done : row["operations"]) {
      const double count = done["count"], each = done["pj_each"], pj = done["dynamic_pj"];
      EXPECT_NEAR(count * each, pj, 1e-9 * pj) << done;
      sum += pj;
    }
    const double pj = row["dynamic_pj"];
    EXPECT_NEAR(sum, pj, 1e-9 * pj) << row["component"];
    dynamic[row["component"]] = pj;
    all += pj + row["static_pj"].get<double>();
  }
  EXPECT_NEAR(json["energy_pj"].get<double>(), all, 1e-9 * all);
  // An all_reduce of the default machine uses everything but the SRAMs.
  for (const char* component : {"pe", "noc", "ucie", "inter_sip", "pcie", "hbm"})
    EXPECT_GT(dynamic[component], 0) << component;
  EXPECT_EQ(dynamic.count("sram"), 1U);
}

TEST(Energy, OfAGemmHasItsMacsAndTheBytesOfItsOperandsAndResult) {
  const nlohmann::ordered_json json = run_json({"run", "gemm_single_pe", "--m", "64", "--n", "64", "--k", "64"});
  const double runs = static_cast<double>(json["results"].size());  // each multiplies once
  std::map<std::string, nlohmann::ordered_json> done;
  for (const auto& row : json["energy"]) {
    for (const auto& operation : row["operations"]) done[operation["operation"]] = operation;
  }
  const auto& macs = done["pe.energy.mac_16bit"];
  EXPECT_EQ(macs["count"], runs * 64 * 64 * 64);
  EXPECT_EQ(macs["unit"], "MAC");
  EXPECT_DOUBLE_EQ(macs["pj_each"], 0.375);
  EXPECT_EQ(done["pe.energy.dma_byte"]["count"], runs * (2 * 64 * 64 + 64 * 64) * 2) << "two read, one written";
}

}  // namespace
}  // namespace kernbench
