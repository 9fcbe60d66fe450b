#include "topology/plan/throttles.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> found(const std::vector<std::string>& sets) {
  std::map<std::string, std::string> hints;
  for (const Throttle& throttle : throttles(Plan(resolve("ring8", sets).spec))) {
    EXPECT_TRUE(hints.emplace(throttle.key, throttle.hint).second) << throttle.key << " twice: " << throttle.text;
  }
  return hints;
}

// Eight SIPs behind a switch of 448 GB/s: the rest of the machine is made for 128.
const std::vector<std::string> kFastSwitch{"system.sips.topology=switch", "system.links.lane_rate=112 GT/s"};

TEST(Throttles, AFastLinkAsksForRoomAndForPorts) {
  const auto hints = found(kFastSwitch);
  ASSERT_EQ(hints.size(), 3U);
  // 448 GB/s over 400 ns there and 600 ns back, and 5 ns in between: 1,757 packets and the one that is sent.
  EXPECT_EQ(hints.at("system.links.buffer_packets"), "give at least 1758");
  EXPECT_EQ(hints.at("system.links.switch.clock"), "give at least 9.8 GHz, or larger flits");
  EXPECT_EQ(hints.at("sip.io.crossbar.clock"), "give at least 7 GHz, or larger flits");
}

TEST(Throttles, NothingIsSaidOfAMachineThatHasWhatWasAskedFor) {
  auto sets = kFastSwitch;
  for (const char* set :
       {"system.links.buffer_packets=1758", "system.links.switch.clock=9.8 GHz", "sip.io.crossbar.clock=7 GHz"})
    sets.emplace_back(set);
  EXPECT_TRUE(found(sets).empty());
  sets.back() = "sip.io.crossbar.flit_size=128 B";
  EXPECT_TRUE(found(sets).empty());
}

// Inputs of a switch hold packets for all its ports: at the links' own rate some wait for others (docs/links.md).
TEST(Throttles, ASwitchOfMoreThanFourSipsAsksForPortsFasterThanItsLinks) {
  auto sets = kFastSwitch;
  for (const char* set : {"system.links.buffer_packets=1758", "sip.io.crossbar.clock=7 GHz",
                          "system.links.switch.clock=9.79 GHz", "system.sips.count=5"})
    sets.emplace_back(set);
  EXPECT_EQ(found(sets).count("system.links.switch.clock"), 1U);
  sets.back() = "system.sips.count=4";
  EXPECT_TRUE(found(sets).empty());
}

TEST(Throttles, EveryKindIsFoundOnceAtItsKey) {
  const auto one = [](const std::string& set, const char* key) {
    const auto hints = found({set});
    EXPECT_EQ(hints.size(), 1U) << set;
    EXPECT_EQ(hints.count(key), 1U) << set;
  };
  one("system.links.buffer_packets=400", "system.links.buffer_packets");
  one("cube.ucie.buffer_packets=20", "cube.ucie.buffer_packets");
  one("sip.io.ucie.buffer_packets=20", "sip.io.ucie.buffer_packets");
  one("sip.io.ucie.lane_rate=8 GT/s", "sip.io.ucie.lane_rate");
  one("cube.ucie.width=half", "cube.ucie.lane_rate");
  one("cube.noc.clock=1 GHz", "cube.noc.clock");
  one("sip.io.pcie.credits=50", "sip.io.pcie.credits");
  one("sip.io.pcie.outstanding=1", "sip.io.pcie.outstanding");
  one("pe.dma.outstanding=1", "pe.dma.outstanding");
}

TEST(Throttles, QueuesOfHbmThatHoldLessThanTwoUnitsAreTold) {
  // A unit of 256 B is eight bursts of 32 B.
  EXPECT_TRUE(found({"cube.hbm.queue_depth=16"}).empty());
  EXPECT_EQ(found({"cube.hbm.queue_depth=15"}).at("cube.hbm.queue_depth"), "give at least 16, or a shorter interleave");
}

TEST(Throttles, ATcmSlowerThanItsSliceIsTold) {
  EXPECT_TRUE(found({"pe.tcm.bandwidth=102.4 GB/s"}).empty());
  const auto hints = found({"pe.tcm.bandwidth=102.3 GB/s"});
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_EQ(hints.at("pe.tcm.bandwidth"), "give at least 102.4 GB/s");
}

// 819.2 GB/s of a slice come through a port of 256 GB/s.
TEST(Throttles, ReadsUnderWayCoverWhatThePortBrings) {
  EXPECT_TRUE(found({"cube.hbm.burst_size=256 B", "cube.hbm.interleave=256 B"}).empty());
}

TEST(Throttles, DataBusesOfHbmThatWaitForCommandsAreTold) {
  auto hints = found({"cube.hbm.timing.t_ccd_s=4", "cube.hbm.timing.t_ccd_l=4"});
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_EQ(hints.at("cube.hbm.timing.t_ccd_s"), "give a t_ccd_s of at most 2");
  hints = found({"cube.hbm.pseudo_channels=4", "cube.hbm.channels=8"});
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_EQ(hints.at("cube.hbm.pseudo_channels"), "give at most 2 pseudo channels to a channel, and more channels");
}

// A place of ring8's routers is free again after 2 x allocation + switch + link + credit = 6 cycles, of a crossbar,
// which only sources feed, after 1 + link + credit.
TEST(Throttles, BuffersBelowTheCreditLoopAreFoundOnBothSidesOfIt) {
  const NocConfig noc = resolve("ring8").spec.cube.noc;
  const std::uint32_t loop = 2 * noc.sw_alloc_delay + noc.switch_delay + noc.link_delay + noc.credit_delay;
  const auto cube = found({"cube.noc.vc_depth=" + std::to_string(loop - 1)});
  ASSERT_EQ(cube.size(), 1U);
  EXPECT_EQ(cube.at("cube.noc.vc_depth"), "give at least " + std::to_string(loop));
  EXPECT_TRUE(found({"cube.noc.vc_depth=" + std::to_string(loop)}).empty());
  const NocConfig crossbar = resolve("ring8").spec.sip.io.crossbar;
  const std::uint32_t source = 1 + crossbar.link_delay + crossbar.credit_delay;
  EXPECT_TRUE(found({"sip.io.crossbar.vc_depth=" + std::to_string(source)}).empty());
  EXPECT_EQ(found({"sip.io.crossbar.vc_depth=" + std::to_string(source - 1)}).count("sip.io.crossbar.vc_depth"), 1U);
}

TEST(Throttles, ACubeThatAnOverrideChangesIsNamed) {
  const std::string text = "extends: ring8\noverrides:\n  - {match: sip0.cube3, cube: {noc: {clock: 1 GHz}}}\n";
  const Resolved resolved = resolve_text(text, "machine.yaml");
  const auto all = throttles(Plan(resolved.spec));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(resolved.place_of(all[0].key).str(), "machine.yaml:3:31");
  EXPECT_THAT(all[0].text, HasSubstr("cube.noc.clock of sip0.cube3 is 1 GHz"));
}

// Of any PE, whatever the others have: 64 B are there every 0.625 ns at 102.4 GB/s.
TEST(Throttles, APeThatAnOverrideChangesIsNamedWithItsOwnBursts) {
  const auto of = [](std::uint64_t outstanding) {
    const std::string pe = fmt::format("{{dma: {{burst_size: 64 B, outstanding: {}}}}}", outstanding);
    const std::string text = "extends: ring8\noverrides:\n  - {match: sip0.cube3.pe1, pe: " + pe + "}\n";
    return throttles(Plan(resolve_text(text, "machine.yaml").spec));
  };
  const auto some = of(40);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].key, "overrides.sip0.cube3.pe1");
  EXPECT_THAT(some[0].text, HasSubstr("pe.dma.outstanding of sip0.cube3.pe1 is 40, less than 102.4 GB/s"));
  const std::uint64_t wanted = std::stoull(some[0].hint.substr(std::string("give at least ").size()));
  EXPECT_TRUE(of(wanted).empty());
  EXPECT_EQ(of(wanted - 1).size(), 1U);
}

}  // namespace
}  // namespace kernbench::topology
