#include "sc_main/rigs/bare_mesh.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kernbench {
namespace {

TEST(BareMesh, LonePacketsTakeTheZeroLoadLatency) {
  BareMeshConfig config;
  config.cols = 3;
  config.rows = 5;
  config.packet_flits = 7;
  config.load = 0.002;
  config.warmup = 0;
  config.window = 400'000;
  const BareMeshResult result = run_bare_mesh(config);
  ASSERT_EQ(result.least_latency.size(), 7U);  // up to 2 + 4 links
  for (unsigned links = 0; links < 7; ++links) EXPECT_EQ(result.least_latency[links], 6 + 4 * links + 7 - 1) << links;
  EXPECT_NEAR(result.zero_load, 12 + 4 * 2.0 * (8.0 / 18 + 24.0 / 30), 1e-9);  // twice the mean of |a - b| / 2, 3 and 5
}

TEST(BareMesh, EveryMeasuredPacketArrives) {
  BareMeshConfig config;
  config.cols = config.rows = 4;
  config.load = 0.3;
  config.warmup = 500;
  config.window = 5'000;
  const BareMeshResult result = run_bare_mesh(config);
  EXPECT_EQ(result.arrived, result.measured);
  EXPECT_NEAR(result.offered, 0.3, 0.02);
  EXPECT_NEAR(result.accepted, result.offered, 0.01);
  EXPECT_GT(result.latency, result.zero_load);
  EXPECT_GE(result.latency, result.network_latency);
  EXPECT_LE(result.p50, result.p99);
}

TEST(BareMesh, OneVirtualChannelIdlesACycleBetweenPackets) {
  // Two nodes, each sends all it has to the other: L of L + 1 cycles carry flits.
  BareMeshConfig config;
  config.cols = 2;
  config.rows = 1;
  config.pattern = "neighbor";
  config.vcs = 1;
  config.vc_depth = 32;
  config.packet_flits = 4;
  config.load = 1;
  config.window = 10'000;
  config.drain = 0;
  const BareMeshResult result = run_bare_mesh(config);
  EXPECT_NEAR(result.accepted, 0.8, 0.001);
  EXPECT_EQ(result.cycles, config.warmup + config.window);
}

TEST(BareMesh, SeedsDecideTheTrafficAndNothingElseDoes) {
  BareMeshConfig config;
  config.cols = config.rows = 2;
  config.window = 2'000;
  // Side by side in one simulation.
  EventQueue queue;
  const BareMesh one("one", config, queue), same("same", config, queue);
  config.seed = 2;
  const BareMesh other("other", config, queue);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  queue.run_all();
  EXPECT_EQ(one.result().latency, same.result().latency);
  EXPECT_EQ(one.result().measured, same.result().measured);
  EXPECT_NE(one.result().latency, other.result().latency);
}

TEST(BareMesh, RefusesWhatCannotBeBuilt) {
  const auto refused = [](auto change) {
    BareMeshConfig config;
    change(config);
    EXPECT_THROW(check(config), std::invalid_argument);
  };
  refused([](BareMeshConfig& c) { c.load = 0; });
  refused([](BareMeshConfig& c) { c.load = 8.5; });  // more than a packet per cycle
  refused([](BareMeshConfig& c) { c.cols = 0; });
  refused([](BareMeshConfig& c) { c.packet_flits = 0; });
  refused([](BareMeshConfig& c) { c.packet_flits = 65; });
  refused([](BareMeshConfig& c) { c.vcs = 0; });
  refused([](BareMeshConfig& c) { c.vc_depth = 0; });
  refused([](BareMeshConfig& c) { c.window = 0; });
  refused([](BareMeshConfig& c) { c.pattern = "sideways"; });
  refused([](BareMeshConfig& c) { c.routing_delay = 40; });  // more than a router models
}

}  // namespace
}  // namespace kernbench
