#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <map>

#include "tests/topology/machines.h"
#include "tlm/machine/names.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::topology {
namespace {

/// Stands for the host: something must be bound to every PCIe endpoint.
struct FakeHost : sc_core::sc_module {
  explicit FakeHost(Machine& machine) : sc_module("test_host") {
    for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) {
      sockets.push_back(std::make_unique<tlm_utils::simple_initiator_socket<FakeHost>>());
      sockets.back()->bind(machine.host_socket(sip));
    }
  }
  std::vector<std::unique_ptr<tlm_utils::simple_initiator_socket<FakeHost>>> sockets;
};

/// Binds completely, has every component under its name, and does nothing when nothing is asked of it.
void expect_idle_machine(const SystemSpec& spec) {
  const Plan plan(spec);
  Machine machine(plan, RunOptions{}, nullptr);
  const FakeHost host(machine);
  sc_core::sc_start();
  EXPECT_EQ(machine.dispatcher().executed(), 0u);
  EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::SC_ZERO_TIME);
  EXPECT_EQ(machine.pool().outstanding(), 0u);

  for (std::uint32_t network = 0; network < plan.networks.size(); ++network) {
    for (std::uint16_t router = 0; router < plan.networks[network].routers(); ++router) {
      EXPECT_EQ(plan.router_name(network, router), machine.router(network, router).name());
    }
  }
  for (std::uint32_t end = 0; end < plan.ends.size(); ++end)
    EXPECT_EQ(plan.end_name(end), machine.link_port(end).name());
  for (std::uint32_t node = 0; node < plan.map.nodes.size(); ++node) {
    const std::string name = plan.map.name(NodeId{node});
    EXPECT_EQ(names::network_interface(name), machine.network_interface(NodeId{node}).name());
    if (plan.map.nodes[node].kind != NodeKind::hbm_port) {
      EXPECT_NE(sc_core::sc_find_object(name.c_str()), nullptr) << name;
    }
  }
}

TEST(Elaborate, Minimal) { expect_idle_machine(resolve("minimal").spec); }
TEST(Elaborate, Default) { expect_idle_machine(resolve("default").spec); }
TEST(Elaborate, Ring8) { expect_idle_machine(resolve("ring8").spec); }
TEST(Elaborate, Torus4x4) { expect_idle_machine(resolve("torus4x4").spec); }
TEST(Elaborate, Torus8x8) { expect_idle_machine(resolve("torus8x8").spec); }
TEST(Elaborate, Mesh4x4) { expect_idle_machine(resolve("mesh4x4").spec); }
TEST(Elaborate, Fc8) { expect_idle_machine(resolve("fc8").spec); }
TEST(Elaborate, KernbenchPy) { expect_idle_machine(resolve("kernbench-py").spec); }

TEST(Elaborate, SwitchWithSeveralLinksAndMissingPe) {
  SystemSpec spec = small_machine(3, 2, 1);
  spec.topology = SipTopology::switch_star;
  spec.links.links_per_neighbour = 2;
  spec.missing_pes = {{1, 0, 5}};
  expect_idle_machine(spec);
}

TEST(Elaborate, FullyConnectedWithBrokenLinks) {
  SystemSpec spec = small_machine(4, 2, 2);
  spec.topology = SipTopology::fully_connected;
  spec.broken_sip_links = {{0, 3}};
  spec.broken_cube_links = {{CubeCoord{2, 2}, 3}};
  expect_idle_machine(spec);
}

// A round trip between a cube and the IO chiplet takes 201 ns, and one of them has room for 8 packets. What leaves the
// other waits for that room, whichever it is.
TEST(Trains, AreShortWhereTheRoomOfTheFarEndDoesNotCoverTheRoundTrip) {
  constexpr Fidelity kFast = Fidelity::all(Grade::fast);
  const auto longest = [&](const char* here, const char* there) {
    const std::string small = std::string(here) + ".ucie.", large = std::string(there) + ".ucie.";
    const Plan plan(resolve("default", {small + "latency_per_side=0.5 ns", large + "latency_per_side=100 ns",
                                        small + "buffer_packets=8", large + "buffer_packets=400"})
                        .spec);
    return longest_packet(plan, kFast);
  };
  EXPECT_EQ(longest_packet(Plan(resolve("default").spec), kFast), kMaxTrainBytes);
  EXPECT_EQ(longest_packet(Plan(resolve("default").spec), Fidelity::all(Grade::accurate)), kMaxPacketBytes);
  EXPECT_EQ(longest("cube", "sip.io"), 4 * kMaxPacketBytes);  // two trains in 8 places
  EXPECT_EQ(longest("sip.io", "cube"), 4 * kMaxPacketBytes);
}

// docs/noc.md (Rules): a place of a router's buffer is free again after 2 x allocation + switch + link + credit cycles,
// one of a crossbar, which only sources feed, after 1 + link + credit. With fewer places a flow has gaps between its
// flits, which neither hop commit nor trains know.
TEST(FidelityThatHolds, FastNetworksAndTrainsNeedBuffersThatCoverTheWayOfACredit) {
  constexpr Fidelity kFast = Fidelity::all(Grade::fast);
  const SystemSpec spec = resolve("default").spec;
  const auto loop = [](const NocConfig& noc) { return noc.link_delay + noc.credit_delay; };
  const NocConfig &mesh = spec.cube.noc, &crossbar = spec.sip.io.crossbar;
  const std::map<std::string, std::uint32_t> least{
      {"cube.noc.vc_depth=", 2 * mesh.sw_alloc_delay + mesh.switch_delay + loop(mesh)},
      {"sip.io.crossbar.vc_depth=", 1 + loop(crossbar)}};
  for (const auto& [key, depth] : least) {
    const Plan enough(resolve("default", {key + std::to_string(depth)}).spec);
    EXPECT_EQ(fidelity_that_holds(enough, kFast), kFast) << key << depth;
    const Plan shorter(resolve("default", {key + std::to_string(depth - 1)}).spec);
    const Fidelity holds = fidelity_that_holds(shorter, kFast);
    EXPECT_EQ(to_string(holds), "noc=accurate,hbm=fast") << key << depth - 1;
    EXPECT_EQ(longest_packet(shorter, holds), kMaxPacketBytes);
    EXPECT_EQ(fidelity_that_holds(shorter, Fidelity()), Fidelity());
    Fidelity by_name = kFast;
    by_name.noc_by_name = true;
    EXPECT_EQ(fidelity_that_holds(shorter, by_name), kFast) << "who asks by name gets it";
  }
}

// A unit of 256 B is eight bursts: 16 places are two units.
TEST(Trains, NeedQueuesOfHbmThatHoldTwoUnits) {
  constexpr Fidelity kFast = Fidelity::all(Grade::fast);
  EXPECT_EQ(longest_packet(Plan(resolve("default", {"cube.hbm.queue_depth=16"}).spec), kFast), kMaxTrainBytes);
  EXPECT_EQ(longest_packet(Plan(resolve("default", {"cube.hbm.queue_depth=15"}).spec), kFast), kMaxPacketBytes);
  EXPECT_EQ(longest_packet(Plan(resolve("default", {"cube.hbm.interleave=1 KiB"}).spec), kFast), kMaxPacketBytes);
}

/// The host's back door: what is written over one endpoint is read over another.
TEST(Elaborate, DebugAccessReachesEveryMemory) {
  const Plan plan(small_machine(2, 1, 1));
  Machine machine(plan, RunOptions{}, nullptr);
  FakeHost host(machine);
  sc_core::sc_start();
  const PeCoord far{1, 0, 6};
  for (const PhysicalAddress& address : {PhysicalAddress::hbm(far, 4096), PhysicalAddress::tcm(far, 256),
                                         PhysicalAddress::sram({1, 0}, 64), PhysicalAddress::hbm({0, 0, 0}, 0)}) {
    std::uint64_t written = address.encode(), read = 0;
    tlm::tlm_generic_payload payload;
    payload.set_address(address.encode());
    payload.set_data_length(sizeof written);
    payload.set_streaming_width(sizeof written);
    payload.set_write();
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&written));
    EXPECT_EQ((*host.sockets[0])->transport_dbg(payload), sizeof written) << address.str();
    payload.set_read();
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&read));
    EXPECT_EQ((*host.sockets[1])->transport_dbg(payload), sizeof read) << address.str();
    EXPECT_EQ(read, written) << address.str();
  }
}

}  // namespace
}  // namespace kernbench::topology
