#include <gtest/gtest.h>

#include "ccl/contract/schedule.h"
#include "ccl/select/registry.h"
#include "tests/ccl/collective_case.h"

namespace kernbench::test {
namespace {

constexpr CollectiveOp kOps[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                 CollectiveOp::reduce,     CollectiveOp::broadcast,  CollectiveOp::all_to_all,
                                 CollectiveOp::gather,     CollectiveOp::scatter,    CollectiveOp::send_recv};

const DPPolicy kSharded = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
const DPPolicy kReplicated;
const DPPolicy kMixed = DPPolicy().pe(PeSplit::column_wise);
const DPPolicy kMixedInCube = DPPolicy().cube(CubeSplit::column_wise);

std::string name(const CollectiveCase& c) {
  return std::string(to_string(c.op)) + " scope " + to_string(c.scope) + " in " + to_string(c.in.cube()) + "/" +
         to_string(c.in.pe()) + " out " + to_string(c.out.cube()) + "/" + to_string(c.out.pe()) +
         (c.in_place ? " in place" : "") + (c.rows ? "" : " flat") + " count " + std::to_string(c.count);
}

// Every operation, every placement of input and output, sharded evenly and not.
TEST(Collective, ScopeSipServesEveryOperationOnEveryPlacement) {
  const MachineMap map = make_map(SipTopology::ring_1d, 3, 0, 0, 2, 2, 2);
  for (const CollectiveOp op : kOps) {
    for (const DPPolicy& in : {kSharded, kReplicated, kMixed, kMixedInCube}) {
      for (const DPPolicy& out : {kSharded, kReplicated, kMixed, kMixedInCube}) {
        for (const std::int64_t count : {1, 7, 200}) {
          for (const bool rows : {true, false}) {
            CollectiveCase c;
            c.op = op;
            c.in = in;
            c.out = out;
            c.count = count;
            c.rows = rows;
            c.root = 1;
            EXPECT_EQ(run_collective(map, c), "") << name(c);
          }
        }
      }
    }
  }
}

// The links of its SIP have to carry what a rank receives, but for what its rings can hold before the launch.
TEST(Collective, TheLeastTimeOfALaunchIsThatOfItsLinksForMostThatItReceives) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 2, 1, 2);
  for (const char* algorithm : {"direct", "ring", "halving_doubling", "double_binary_tree", "hierarchical", "flood"}) {
    for (const CollectiveOp op : kOps) {
      for (const Scope scope : {Scope::sip, Scope::cube}) {
        CollectiveCase c;
        c.op = op;
        c.scope = scope;
        c.algorithm = algorithm;
        c.count = 4001;
        c.least_share = 0.8;  // of these little data: the borders of rounds count as not received
        c.in = c.out = kSharded;
        const auto offered = ccl::Registry().load(algorithm).algorithm;
        if ((offered->operations & ccl::bit(op)) == 0 || (offered->scopes & ccl::bit(scope)) == 0) continue;
        EXPECT_EQ(run_collective(map, c), "") << algorithm << " " << name(c);
      }
    }
  }
}

TEST(Collective, ScopeSipInPlace) {
  const MachineMap map = make_map(SipTopology::ring_1d, 3, 0, 0, 2, 2, 2);
  for (const CollectiveOp op : kOps) {
    if (op == CollectiveOp::send_recv) continue;
    for (const DPPolicy& placed : {kSharded, kReplicated, kMixed, kMixedInCube}) {
      for (const std::int64_t count : {1, 7, 200}) {
        CollectiveCase c;
        c.op = op;
        c.in = c.out = placed;
        c.count = count;
        c.root = 2;
        c.in_place = true;
        EXPECT_EQ(run_collective(map, c), "") << name(c);
      }
    }
  }
}

// Copies are contributions of their own: each cube's, each PE's.
TEST(Collective, ScopesCubeAndPeServeEveryOperationOnEveryPlacement) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 2, 2);
  for (const CollectiveOp op : kOps) {
    for (const Scope scope : {Scope::cube, Scope::pe}) {
      for (const DPPolicy& placed : {kSharded, kReplicated, kMixed, kMixedInCube}) {
        for (const std::int64_t count : {8, 200}) {
          CollectiveCase c;
          c.op = op;
          c.scope = scope;
          c.in = c.out = placed;
          c.count = count;
          c.rows = false;
          c.root = 1;
          EXPECT_EQ(run_collective(map, c), "") << name(c);
        }
      }
    }
  }
}

TEST(Collective, GathersOfTilesIntoAnyPlacement) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2);
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::gather, CollectiveOp::scatter}) {
    for (const Scope scope : {Scope::cube, Scope::pe}) {
      for (const DPPolicy& tiles : {kSharded, kReplicated}) {
        for (const DPPolicy& whole : {kSharded, kReplicated, kMixed}) {
          CollectiveCase c;
          c.op = op;
          c.scope = scope;
          c.in = op == CollectiveOp::scatter ? whole : tiles;
          c.out = op == CollectiveOp::scatter ? tiles : whole;
          c.count = 24;
          c.rows = false;
          EXPECT_EQ(run_collective(map, c), "") << name(c);
        }
      }
    }
  }
}

// Cubes that hide their data behind one address: all get what the root asks for (docs/collective_algorithms.md, Lanes).
TEST(Collective, GathersOfCopiesThatContributeRunOnOneTree) {
  const MachineMap map = make_map(SipTopology::switch_star, 3, 0, 0, 2, 1, 2);
  for (const int root : {0, 2}) {
    CollectiveCase c;
    c.op = CollectiveOp::gather;
    c.scope = Scope::cube;
    c.algorithm = "one_tree";
    c.in = kReplicated;
    c.out = kMixed;
    c.count = 24;
    c.rows = false;
    c.root = root;
    EXPECT_EQ(run_collective(map, c), "") << root;
  }
}

struct Machine {
  const char* name;
  SipTopology topology;
  int sips, w, h;
};
constexpr Machine kMachines[] = {{"one", SipTopology::ring_1d, 1, 0, 0},
                                 {"pair", SipTopology::ring_1d, 2, 0, 0},
                                 {"ring 4", SipTopology::ring_1d, 4, 0, 0},
                                 {"ring 5", SipTopology::ring_1d, 5, 0, 0},
                                 {"torus 3 x 2", SipTopology::torus_2d, 6, 3, 2},
                                 {"torus 3 x 3", SipTopology::torus_2d, 9, 3, 3},
                                 {"mesh 3 x 2", SipTopology::mesh_2d_no_wrap, 6, 3, 2},
                                 {"mesh 4 x 1", SipTopology::mesh_2d_no_wrap, 4, 4, 1},
                                 {"switch 4", SipTopology::switch_star, 4, 0, 0},
                                 {"fully connected 4", SipTopology::fully_connected, 4, 0, 0}};

// Whatever an algorithm says that it serves is right, in the strictest order, with four slots and with three.
void all_of_what_it_serves(const std::string& algorithm, Scope scope, int cubes, std::int64_t count) {
  const auto loaded = ccl::Registry().load(algorithm);
  const ccl::Algorithm& descriptor = *loaded.algorithm;
  if (!(descriptor.scopes & ccl::bit(scope))) return;
  for (const Machine& machine : kMachines) {
    const std::int32_t kind = descriptor.topo_name_to_kind(to_string(machine.topology));
    if (!(descriptor.topologies & ccl::topology_bit(kind))) continue;
    const MachineMap map = make_map(machine.topology, machine.sips, machine.w, machine.h, cubes, 1, 2);
    for (const CollectiveOp op : kOps) {
      if (!(descriptor.operations & ccl::bit(op))) continue;
      if (descriptor.pe_to_pe && op == CollectiveOp::reduce_scatter && scope != Scope::sip) continue;  // says why not
      for (const std::uint16_t slots : {4, 3}) {
        CollectiveCase c;
        c.op = op;
        c.scope = scope;
        c.algorithm = algorithm;
        c.in = c.out = kSharded;
        c.in_place = descriptor.kind() == ccl::AlgorithmKind::kernel;
        c.count = count;
        c.rows = scope == Scope::sip;
        c.root = machine.sips - 1;
        c.queue.slots = slots;
        EXPECT_EQ(run_collective(map, c), "") << machine.name << " " << name(c) << " slots " << slots;
      }
    }
  }
}

// Blocks that end within a PE's part, several rounds of messages, one slot and many, copies that contribute.
TEST(Funnel, BundlesServeEveryPlacement) {
  const DPPolicy one_pe = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise).pes(1);
  for (const MachineMap& map :
       {make_map(SipTopology::torus_2d, 6, 3, 2, 2, 2, 3), make_map(SipTopology::mesh_2d_no_wrap, 6, 2, 3, 3, 1, 2),
        make_map(SipTopology::fully_connected, 3, 0, 0, 2, 2, 1)}) {
    for (const auto& [in, out] :
         {std::pair{kSharded, kSharded}, {kSharded, kMixedInCube}, {kMixedInCube, kSharded}, {one_pe, kSharded}}) {
      for (const Scope scope : {Scope::sip, Scope::cube}) {
        for (const std::int64_t count : {1, 7, 30}) {
          for (const std::uint16_t slots : {1, 2, 8}) {
            CollectiveCase c;
            c.op = CollectiveOp::reduce_scatter;
            c.scope = scope;
            c.algorithm = "funnel";
            c.in = in;
            c.out = out;
            c.count = count;
            c.rows = false;
            c.queue.slots = slots;
            EXPECT_EQ(run_collective(map, c), "") << name(c) << " slots " << slots;
          }
        }
      }
    }
  }
}

class EveryAlgorithm : public testing::TestWithParam<std::string> {};

TEST_P(EveryAlgorithm, ServesScopeSipAsItSays) {
  for (const std::int64_t count : {3, 500}) all_of_what_it_serves(GetParam(), Scope::sip, 1, count);
}
TEST_P(EveryAlgorithm, ServesScopeCubeAsItSays) { all_of_what_it_serves(GetParam(), Scope::cube, 2, 400); }

INSTANTIATE_TEST_SUITE_P(Builtin, EveryAlgorithm, testing::ValuesIn(ccl::builtin_algorithms()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kernbench::test
