#include "ccl/run/pe_to_pe.h"

#include <gtest/gtest.h>

#include <string>

#include "ccl/run/collective.h"
#include "ccl/select/registry.h"
#include "tests/ccl/collective_case.h"
#include "tests/ccl/lone_collective.h"

namespace kernbench::test {
namespace {

using TensorArg = LaunchMessage::TensorArg;
constexpr CollectiveOp kServed[] = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all,
                                    CollectiveOp::gather, CollectiveOp::scatter};

const DPPolicy kCut = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
const DPPolicy kOneCube = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise).pes(1);
const DPPolicy kOnePe = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise).pes(1).cubes(1);
const DPPolicy kCopied;

CollectiveCase little(CollectiveOp op, std::int64_t count) {
  CollectiveCase c;
  c.op = op;
  c.algorithm = "point_to_point";
  c.in = c.out = kCut;
  c.count = count;
  c.rows = false;
  c.root = 1;
  return c;
}

std::string case_name(const CollectiveCase& c) {
  return std::string(to_string(c.op)) + " scope " + to_string(c.scope) + (c.in_place ? " in place" : "") + " count " +
         std::to_string(c.count) + " slots " + std::to_string(c.queue.slots);
}

// Messages longer than a slot, several between the same PEs, one slot and many.
TEST(PeToPe, ServesEveryPlacementWithoutCopiesOnEveryTopology) {
  for (const MachineMap& map :
       {make_map(SipTopology::ring_1d, 2, 0, 0, 2, 2, 2), make_map(SipTopology::ring_1d, 5, 0, 0, 2, 1, 2),
        make_map(SipTopology::torus_2d, 6, 3, 2, 1, 2, 3), make_map(SipTopology::mesh_2d_no_wrap, 4, 2, 2, 2, 1, 2),
        make_map(SipTopology::switch_star, 3, 0, 0, 1, 1, 4),
        make_map(SipTopology::fully_connected, 4, 0, 0, 2, 2, 1)}) {
    for (const auto& [in, out] : {std::pair{kCut, kCut},
                                  {kCut, kOneCube},
                                  {kOneCube, kCut},
                                  {kOnePe, kCut},
                                  {kCut, kOnePe},
                                  {kOnePe, kOnePe}}) {
      for (const CollectiveOp op : kServed) {
        for (const std::int64_t count : {1, 7, 40}) {
          for (const std::uint16_t slots : {1, 4}) {
            CollectiveCase c = little(op, count);
            c.in = in;
            c.out = out;
            c.queue.slots = slots;
            EXPECT_EQ(run_collective(map, c), "") << map.sips << " SIPs, " << case_name(c);
          }
        }
      }
    }
  }
}

TEST(PeToPe, ServesTilesOfCubesAndPesThatNeedNotBeCombined) {
  const MachineMap map = make_map(SipTopology::ring_1d, 3, 0, 0, 2, 1, 2);
  for (const Scope scope : {Scope::cube, Scope::pe}) {
    for (const CollectiveOp op :
         {CollectiveOp::all_gather, CollectiveOp::all_to_all, CollectiveOp::gather, CollectiveOp::scatter}) {
      for (const std::int64_t count : {1, 5}) {
        CollectiveCase c = little(op, count);
        c.scope = scope;
        EXPECT_EQ(run_collective(map, c), "") << case_name(c);
      }
    }
  }
}

TEST(PeToPe, WorksInPlaceWhereNoBlockIsOverwrittenBeforeItIsSent) {
  const MachineMap map = make_map(SipTopology::fully_connected, 3, 0, 0, 2, 1, 2);
  for (const CollectiveOp op : kServed) {
    if (op == CollectiveOp::all_to_all) continue;
    for (const std::int64_t count : {1, 9, 40}) {
      CollectiveCase c = little(op, count);
      c.in_place = true;
      EXPECT_EQ(run_collective(map, c), "") << case_name(c);
    }
  }
  CollectiveCase c = little(CollectiveOp::all_to_all, 4);
  c.in_place = true;
  EXPECT_EQ(run_collective(map, c), "algorithm 'point_to_point' does not exchange blocks in place");
}

TEST(PeToPe, CombinesWithEveryReduceOp) {
  const MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 2, 1, 2);
  for (const ReduceOp reduce_op : {ReduceOp::sum, ReduceOp::max, ReduceOp::avg}) {
    CollectiveCase c = little(CollectiveOp::reduce_scatter, 11);
    c.reduce_op = reduce_op;
    EXPECT_EQ(run_collective(map, c), "") << to_string(reduce_op);
  }
}

// Many messages between the same PEs, and less TCM than all that a PE sends: what a round has loaded is given back.
TEST(PeToPe, ServesManyRounds) {
  const MachineMap map = make_map(SipTopology::ring_1d, 3, 0, 0, 2, 1, 2);
  for (const CollectiveOp op : kServed) {
    for (const std::uint16_t slots : {1, 2}) {
      CollectiveCase c = little(op, 4001);
      c.queue.slots = slots;
      EXPECT_EQ(run_collective(map, c), "") << case_name(c);
    }
  }
}

TEST(PeToPe, RefusesCopiesAndSumsOfCubes) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2);
  CollectiveCase copies = little(CollectiveOp::all_gather, 4);
  copies.out = kCopied;
  EXPECT_EQ(run_collective(map, copies), "algorithm 'point_to_point' is for data without copies");
  CollectiveCase sums = little(CollectiveOp::reduce_scatter, 4);
  sums.scope = Scope::cube;
  EXPECT_EQ(run_collective(map, sums),
            "algorithm 'point_to_point' is for data that cubes or PEs of a rank need not combine");
}

/// A row of f32 over the PEs of one cube, `each` elements on each.
TensorArg pe_row(int pes, std::int64_t each, Va base) {
  TensorArg tensor{base, {}, {1, pes * each}};
  for (int pe = 0; pe < pes; ++pe) {
    tensor.shards.push_back({{0, 0, static_cast<std::uint16_t>(pe)},
                             static_cast<std::uint64_t>(pe * each * 4),
                             static_cast<std::uint64_t>(each * 4),
                             1,
                             each,
                             0,
                             pe * each});
  }
  return tensor;
}

ccl::CallTensors gather_of(std::int64_t each, CollectiveOp op = CollectiveOp::all_gather) {
  CollectiveCall call;
  call.op = op;
  call.dtype = DType::f32;
  return {call, pe_row(4, each, 0x1000), pe_row(4, 2 * each, 0x80000), 2};
}

std::shared_ptr<ccl::GroupQueues> queues_of(const MachineMap& map, ccl::RingNumbers& rings) {
  return std::make_shared<ccl::GroupQueues>(map, ccl::Group{0, {0, 1}, {}}, rings);
}

std::size_t rows_of(const ccl::Collective& collective) {
  return collective.neighbours(0).size() + collective.neighbours(1).size();
}

constexpr std::size_t kLines = 2 * 2 * 3;  // rows of what every algorithm has inside a SIP: a line of four PEs

// PE i of rank 0 sends to PE i / 2 of rank 1, PE i of rank 1 to PE 2 + i / 2 of rank 0: eight ways, of which 0-0, 1-0,
// 2-1, 3-1 and 2-0, 2-1, 3-2, 3-3 have 2-1 in common.
TEST(PeToPe, QueuesJoinOnlyPesThatSendToEachOther) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 1, 4);
  ccl::RingNumbers rings;
  const ccl::CallTensors tensors = gather_of(1);
  const LoneCollective collective(ccl::Registry().load("point_to_point"), queues_of(map, rings), Scope::sip, tensors);
  EXPECT_EQ(rows_of(collective), kLines + 2u * 7u);
  EXPECT_TRUE(collective.has_queues_for(tensors));
  EXPECT_TRUE(collective.has_queues_for(gather_of(3)));  // larger, but between the same PEs
}

TEST(PeToPe, ACallBetweenOtherPesAddsWhatIsMissing) {
  const MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 1, 4);
  ccl::RingNumbers rings;
  const auto queues = queues_of(map, rings);
  const ccl::CallTensors first = gather_of(1), second = gather_of(1, CollectiveOp::gather);
  const LoneCollective to_root(ccl::Registry().load("point_to_point"), queues, Scope::sip, second);
  EXPECT_EQ(rows_of(to_root), kLines + 2u * 4u);  // of rank 1 to rank 0
  EXPECT_FALSE(to_root.has_queues_for(first));
  const LoneCollective to_all(ccl::Registry().load("point_to_point"), queues, Scope::sip, first);
  EXPECT_EQ(rows_of(to_all), 2u * 3u);
  EXPECT_TRUE(to_all.has_queues_for(first) && to_all.has_queues_for(second));
}

TEST(PeToPe, QueuesThatDoNotFitAreAnErrorAndLeaveNothingBehind) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 1, 4);
  map.tcm.bytes = 6 * ccl::QueueShape().ring_bytes();
  ccl::RingNumbers rings;
  const auto queues = queues_of(map, rings);
  const ccl::CallTensors tensors = gather_of(1);
  try {
    LoneCollective(ccl::Registry().load("point_to_point"), queues, Scope::sip, tensors);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ccl::Error& error) {
    EXPECT_STREQ(
        error.what(),
        "sip0.cube0.pe2: 4 IPCQ rings of 4 x 4096 B need 65536 B of half of TCM, which has 49152 B; use fewer slots "
        "or smaller ones");
  }
  EXPECT_EQ(rings.used({0, 0, 0}), 0);
  const LoneCollective direct(ccl::Registry().load("direct"), queues, Scope::sip);
  EXPECT_EQ(rows_of(direct), kLines + 2u * 4u);
}

}  // namespace
}  // namespace kernbench::test
