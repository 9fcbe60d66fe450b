#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/test_body.h"
#include "tests/topology/machines.h"
#include "tests/topology/probe_rig.h"

// Commands are packets like others: their bytes take the wires.
namespace kernbench::topology {
namespace {

/// Bytes of packets that began to cross each socket from `from` on, and before `to`.
std::map<std::string, std::uint64_t> bytes_between(const Recorder& recorder, Ps from, Ps to) {
  std::map<std::string, std::uint64_t> sums;
  for (const auto& [socket, crossings] : recorder.sockets) {
    for (const Crossing& crossing : crossings) {
      if (crossing.head >= from && crossing.head < to) sums[socket] += crossing.bytes;
    }
  }
  return sums;
}

class CommandProbe : public ::testing::TestWithParam<Grade> {};

// From the host's endpoint to IO_CPU, the cube's M_CPU and the PE: over routers, ports and wires, and nowhere else.
TEST_P(CommandProbe, ArgumentsOfALaunchCrossEverySocketOnTheirWayInFullLength) {
  const Plan plan(small_machine(2, 2, 1));
  RunOptions options;
  options.fidelity = Fidelity::all(GetParam());
  TappedMachine tapped(plan, options);
  Recorder& recorder = tapped.recorder;
  Machine& machine = tapped.machine;
  Host& host = tapped.host;
  const PeCoord pe{0, 1, 5};
  constexpr std::uint64_t kMore = 3000;
  constexpr Ps kSecond = 200'000'000;  // long after the end of the first
  LaunchMessage longer = launch_of("probe", {pe}, [](Tl&) {});
  longer.arguments.resize(longer.arguments.size() + kMore);
  host.at(1, 0, launch_of("probe", {pe}, [](Tl&) {}));
  host.at(kSecond, 0, std::move(longer));
  sc_core::sc_start();
  host.expect_no_faults();

  std::set<std::string> way;
  const auto add_way = [&](NodeId from, NodeId to) {
    way.insert(machine.network_interface(from).to_router.name());
    for (const RouterStep& step : walk(plan, from, to)) {
      way.insert(machine.router(step.network, step.router).out[step.out_port]->name());
      if (step.end == kNoEnd) continue;
      way.insert(machine.link_port(step.end).wire_out[step.connection]->name());
      way.insert(machine.link_port(plan.ends[step.end].peer).to_network[step.connection]->name());
    }
  };
  add_way(plan.map.pcie_ep(0), plan.map.io_cpu(0));
  add_way(plan.map.io_cpu(0), plan.map.m_cpu({0, 1}));
  add_way(plan.map.m_cpu({0, 1}), plan.map.pe(pe));
  std::map<std::string, std::uint64_t> first = bytes_between(recorder, 0, kSecond);
  std::set<std::string> more;
  for (const auto& [socket, bytes] : bytes_between(recorder, kSecond, kNever)) {
    if (bytes == first[socket]) continue;
    more.insert(socket);
    EXPECT_EQ(bytes, first[socket] + kMore) << socket;
  }
  EXPECT_EQ(more, way);
  EXPECT_GT(way.size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(Grades, CommandProbe, ::testing::Values(Grade::accurate, Grade::fast),
                         [](const auto& info) { return to_string(info.param); });

}  // namespace
}  // namespace kernbench::topology
