#include "topology/plan/paths.h"

#include <gmock/gmock.h>

#include "tests/topology/machines.h"
#include "tlm/machine/names.h"

namespace kernbench::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
std::string unreachable(const F& f) {
  try {
    f();
  } catch (const Unreachable& error) {
    return error.what();
  }
  return "no error";
}

TEST(Graph, HasEveryComponentOnceAndOnlyCataloguedEdges) {
  const Plan plan(small_machine(2, 2, 1));
  const Graph graph(plan);
  std::set<std::string> names;
  for (const GraphNode& node : graph.nodes) EXPECT_TRUE(names.insert(node.name).second) << node.name;
  // Host; per SIP: crossbar, two CPUs' worth of endpoints, 2 UCIe and 1 link port; per cube 16 routers, 2 UCIe ports,
  // M_CPU, SRAM, 8 HBM ports and 8 PEs with their parts.
  const std::size_t cube = 16 + 2 + 1 + 1 + 8 + 8 * (1 + pe_parts().size());
  EXPECT_EQ(graph.nodes.size(), 1 + 2 * (1 + 2 + 2 + 1 + 2 * cube));
  for (const GraphEdge& edge : graph.edges) {
    EXPECT_LT(static_cast<int>(edge.kind), kEdgeKinds);
    if (edge.kind != EdgeKind::command) {
      EXPECT_NE(graph.edge(edge.to, edge.from), nullptr) << graph.nodes[edge.from].name;
    }
  }
}

TEST(Graph, EachHbmPortHangsOnExactlyOneRouter) {
  const Plan plan(small_machine(1, 2, 2));
  const Graph graph(plan);
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind != PartKind::hbm_port) continue;
    const auto [first, last] = graph.from(node);
    ASSERT_EQ(last - first, 1u);
    EXPECT_EQ(graph.edges[first].kind, EdgeKind::hbm_port);
    EXPECT_EQ(graph.nodes[graph.edges[first].to].kind, PartKind::router);
  }
}

TEST(Paths, OfADmaToItsOwnSliceIsOneRouterLong) {
  const Plan plan(small_machine(1, 1, 1));
  const Paths paths(plan);
  EXPECT_THAT(paths.find_path("sip0.cube0.pe0.dma_r", "sip0.cube0.hbm.pe0"),
              ElementsAre("sip0.cube0.pe0.dma_r", "sip0.cube0.pe0", "sip0.cube0.r0c1", "sip0.cube0.hbm.pe0"));
  EXPECT_THAT(paths.find_path("sip0.cube0.pe0.dma_r", "sip0.cube0.pe0.tcm"),
              ElementsAre("sip0.cube0.pe0.dma_r", "sip0.cube0.pe0.tcm"));
}

TEST(Paths, ToAnotherSipLeadsThroughTheIoChiplets) {
  const Plan plan(small_machine(2, 1, 1));
  const Paths paths(plan);
  const Path path = paths.find_memory_path({0, 0, 0}, PhysicalAddress::hbm({1, 0, 1}, 64));
  EXPECT_THAT(path.components,
              ElementsAre("sip0.cube0.pe0", "sip0.cube0.r0c1", "sip0.cube0.ucie_n", "sip0.io0.ucie0", "sip0.io0.xbar",
                          "sip0.io0.link0", "sip1.io0.link0", "sip1.io0.xbar", "sip1.io0.ucie0", "sip1.cube0.ucie_n",
                          "sip1.cube0.r0c3", "sip1.cube0.hbm.pe1"));
  EXPECT_THAT(path.edges, ElementsAre(EdgeKind::pe_local, EdgeKind::ucie, EdgeKind::ucie, EdgeKind::io, EdgeKind::io,
                                      EdgeKind::inter_sip, EdgeKind::io, EdgeKind::io, EdgeKind::ucie, EdgeKind::ucie,
                                      EdgeKind::hbm_port));
  EXPECT_EQ(path.distance, plan.map.packet_latency(plan.map.pe({0, 0, 0}), plan.map.hbm_port({1, 0, 1}), 0));
}

TEST(Paths, OfHostTransfersNeverLeadThroughTheIoCpu) {
  const Plan plan(small_machine(1, 1, 2));
  const Paths paths(plan);
  const auto way = paths.find_path("host", "sip0.cube1.hbm.pe0");
  EXPECT_EQ(way.front(), "host");
  EXPECT_EQ(way[1], "sip0.io0.pcie_ep");
  EXPECT_EQ(way[2], "sip0.io0.xbar");
  EXPECT_THAT(way, ::testing::Not(::testing::Contains("sip0.io0.io_cpu")));
}

TEST(Paths, FollowCommandEdgesOnlyInTheViewOfEverything) {
  const Plan plan(small_machine(1, 1, 1));
  const Paths paths(plan);
  EXPECT_THAT(paths.find_path("sip0.io0.pcie_ep", "sip0.cube0.pe3.cpu", View::everything),
              ElementsAre("sip0.io0.pcie_ep", "sip0.io0.io_cpu", "sip0.cube0.m_cpu", "sip0.cube0.pe3.cpu"));
  EXPECT_GT(paths.find_path("sip0.io0.pcie_ep", "sip0.cube0.pe3.cpu", View::data).size(), 4u);
}

TEST(Paths, OfAnMCpusDmaReachMemoriesButNoPe) {
  const Plan plan(small_machine(1, 2, 1));
  const Paths paths(plan);
  EXPECT_EQ(paths.find_mcpu_dma_path({0, 0}, PhysicalAddress::hbm({0, 1, 3}, 0)).components.back(),
            "sip0.cube1.hbm.pe3");
  EXPECT_EQ(paths.find_mcpu_dma_path({0, 0}, PhysicalAddress::sram({0, 0}, 0)).components.back(), "sip0.cube0.sram");
  EXPECT_EQ(unreachable([&] {
              paths.find_mcpu_dma_path({0, 0}, PhysicalAddress::tcm({0, 0, 1}, 0));
            }),
            "no path from sip0.cube0.m_cpu to sip0.cube0.pe1 in view m_cpu_dma: it leaves out pe_local (cut: "
            "sip0.cube0.r0c3 -> "
            "sip0.cube0.pe1)");
}

TEST(Paths, TheLocalViewEndsAtTheCubesPorts) {
  const Plan plan(small_machine(1, 2, 1));
  const Paths paths(plan);
  EXPECT_EQ(paths.find_path("sip0.cube0.pe0", "sip0.cube0.hbm.pe7", View::pe_local).back(), "sip0.cube0.hbm.pe7");
  EXPECT_EQ(unreachable([&] { paths.find_path("sip0.cube0.pe1", "sip0.cube1.pe0", View::pe_local); }),
            "no path from sip0.cube0.pe1 to sip0.cube1.pe0 in view pe_local: it leaves out ucie (cut: sip0.cube0.r0c3 "
            "-> sip0.cube0.ucie_e)");
}

TEST(Paths, RefuseUnknownNamesAndAddresses) {
  const Plan plan(small_machine(1, 1, 1));
  const Paths paths(plan);
  EXPECT_THROW(paths.find_path("sip0.cube0.pe0", "sip0.cube1.pe0"), std::out_of_range);
  EXPECT_THROW(paths.resolve(PhysicalAddress::hbm({0, 1, 0}, 0)), std::out_of_range);
  EXPECT_THROW(paths.find_m_cpu({1, 0}), std::out_of_range);
  EXPECT_EQ(paths.find_all_pcie_eps().size(), 1u);
  EXPECT_THAT(unreachable([&] { paths.find_path("sip0.cube0.pe0", "sip0.io0.xbar"); }),
              HasSubstr("no path from sip0.cube0.pe0 to sip0.io0.xbar: packets are sent to endpoints only"));
}

// Every pair of endpoints: the path is one of edges of the graph (finish() checks), and as long as the models' own
// walk.
TEST(Paths, BetweenAllEndpointsAreEdgesOfTheGraph) {
  SystemSpec spec = grid_machine(SipTopology::torus_2d, 3, 2, 2, 1);
  spec.cube.pes = 1;
  const Plan plan(spec);
  const Paths paths(plan);
  for (std::uint32_t from = 0; from < plan.map.nodes.size(); ++from) {
    for (std::uint32_t to = 0; to < plan.map.nodes.size(); ++to) {
      if (from == to) continue;
      const Path path = paths.find_node_path(NodeId{from}, NodeId{to});
      EXPECT_EQ(path.components.front(), plan.map.name(NodeId{from}));
      EXPECT_EQ(path.components.back(), plan.map.name(NodeId{to}));
      EXPECT_EQ(path.edges.size() + 1, path.components.size());
    }
  }
}

}  // namespace
}  // namespace kernbench::topology
