#include "ccl/import/msccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ccl/import/import.h"
#include "ccl/schedule/check.h"
#include "tests/ccl/collective_case.h"
#include "tests/ccl/msccl_step.h"
#include "tests/support/test_folder.h"
#include "tlm/config/problems.h"

namespace kernbench::test {
namespace {
using ::testing::HasSubstr;

const std::string kExamples = KERNBENCH_SOURCE_DIR "/docs/examples/schedules/";

MachineMap four() { return make_map(SipTopology::ring_1d, 4, 0, 0, 2, 1, 2); }

/// Two gpus that exchange their halves: `steps` of gpu 0, and of gpu 1.
std::string two(const std::string& coll, const std::string& attributes, const std::string& zero,
                const std::string& one) {
  return "<algo name=\"two\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"" + coll + "\" " + attributes +
         ">\n<gpu id=\"0\"><tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n" + zero +
         "</tb></gpu>\n<gpu id=\"1\"><tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">\n" + one + "</tb></gpu>\n</algo>\n";
}
std::string error_of(const std::string& text) {
  try {
    ccl::check(ccl::parse_msccl(text, "a.xml"));
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const ccl::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool right(const std::string& text) { return error_of(text) == "nothing was thrown"; }

TEST(Msccl, RingExampleReducesWhateverTheCount) {
  for (const std::int64_t count : {1, 3, 48, 201}) {
    CollectiveCase c;
    c.algorithm = kExamples + "ring4_all_reduce.xml";
    c.count = count;
    c.in_place = true;
    EXPECT_EQ(run_collective(four(), c), "") << count;
    c.in_place = false;
    EXPECT_EQ(run_collective(four(), c), "") << count;
  }
}

TEST(Msccl, AllGatherExampleWithTwoThreadBlocksThatWaitForEachOther) {
  for (const std::int64_t count : {1, 48, 201}) {
    CollectiveCase c;
    c.op = CollectiveOp::all_gather;
    c.algorithm = kExamples + "doubling4_all_gather.xml";
    c.count = count;
    EXPECT_EQ(run_collective(four(), c), "") << count;
    c.in_place = true;  // the file copies the own block to the output, where it lies already
    EXPECT_EQ(run_collective(four(), c), "") << count;
    c.rows = false;  // every block on PEs of its own
    c.in = c.out = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
    EXPECT_EQ(run_collective(four(), c), "") << count;
  }
}

TEST(Msccl, EveryStepTypeAndOperation) {
  // Reduce-scatter in place: what is received is added to the own chunk.
  EXPECT_TRUE(right(two("reducescatter", "inplace=\"1\"", step(0, "s", "i", 1, "i", 1) + step(1, "rrc", "i", 0, "i", 0),
                        step(0, "s", "i", 0, "i", 0) + step(1, "rrc", "i", 1, "i", 1))));
  // All-reduce: reduce to one and send the sum back, over scratch memory and a local reduction.
  EXPECT_TRUE(right(two("allreduce", "inplace=\"1\"",
                        step(0, "r", "s", 0, "s", 0, "cnt=\"2\"") + step(1, "re", "s", 0, "i", 0, "cnt=\"2\"") +
                            step(2, "s", "i", 0, "i", 0, "cnt=\"2\""),
                        step(0, "s", "i", 0, "i", 0, "cnt=\"2\"") + step(1, "r", "i", 0, "i", 0, "cnt=\"2\""))));
  // The same with a sum that is only passed on, and copied where it came from.
  EXPECT_TRUE(right(two("allreduce", "inplace=\"1\"",
                        step(0, "rrs", "i", 0, "i", 0, "cnt=\"2\"") + step(1, "r", "i", 0, "i", 0, "cnt=\"2\""),
                        step(0, "s", "i", 0, "i", 0, "cnt=\"2\"") + step(1, "rcs", "i", 0, "i", 0, "cnt=\"2\""))));
  EXPECT_TRUE(right(two("allreduce", "inplace=\"0\"", step(0, "rrcs", "i", 0, "o", 0, "cnt=\"2\""),
                        step(0, "s", "i", 0, "o", 0, "cnt=\"2\"") + step(1, "r", "i", 0, "o", 0, "cnt=\"2\""))));
  EXPECT_TRUE(right(two("alltoall", "inplace=\"0\"",
                        step(0, "cpy", "i", 0, "o", 0) + step(1, "s", "i", 1, "o", 0) + step(2, "r", "i", 0, "o", 1),
                        step(0, "cpy", "i", 1, "o", 1) + step(1, "s", "i", 0, "o", 1) + step(2, "r", "i", 0, "o", 0))));
  EXPECT_TRUE(right(two("broadcast", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, "cnt=\"2\""),
                        step(0, "r", "i", 0, "i", 0, "cnt=\"2\""))));
}

/// In place the own chunk of an all-to-all has no step: it is where it belongs.
TEST(Msccl, InPlaceAllToAllKeepsItsOwnChunk) {
  const TestFolder folder;
  const std::string file = folder.file("a2a.xml");
  std::ofstream(file) << two("alltoall", "inplace=\"1\"", step(0, "s", "i", 1, "s", 0) + step(1, "r", "i", 0, "i", 1),
                             step(0, "s", "i", 0, "s", 0) + step(1, "r", "i", 1, "i", 0));
  for (const std::int64_t count : {2, 48, 202}) {
    CollectiveCase c;
    c.op = CollectiveOp::all_to_all;
    c.algorithm = file;
    c.count = count;
    EXPECT_EQ(run_collective(make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2), c), "") << count;
  }
}

TEST(Msccl, ThreadBlocksComeInAnyOrderOfTheirIds) {
  const std::string first = step(0, "s", "i", 0, "i", 0, "cnt=\"2\""),
                    second = step(0, "r", "i", 0, "i", 0, "cnt=\"2\"");
  const auto of = [&](const std::string& id, const std::string& idle) {
    return "<algo name=\"a\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"broadcast\" inplace=\"1\">\n<gpu id=\"0\">"
           "<tb id=\"" +
           id + "\" send=\"1\" recv=\"-1\" chan=\"0\">\n" + first + "</tb><tb id=\"" + idle +
           "\" send=\"-1\" recv=\"-1\" chan=\"0\"></tb></gpu>\n<gpu id=\"1\"><tb id=\"0\" send=\"-1\" recv=\"0\" "
           "chan=\"0\">\n" +
           second + "</tb></gpu>\n</algo>\n";
  };
  EXPECT_TRUE(right(of("0", "1")));
  EXPECT_TRUE(right(of("1", "0")));
  EXPECT_THAT(error_of(of("1", "1")), HasSubstr("thread block 1 comes as number 0"));
}

void expect_each_gives_the_next(const std::string& file) {
  for (const std::int64_t count : {1, 3, 48, 201}) {
    for (const bool in_place : {false, true}) {  // in place what is still to be sent must not be overwritten
      CollectiveCase c;
      c.algorithm = file;
      c.count = count;
      c.in_place = in_place;
      c.custom = [](int rank, std::int64_t) { return rank == 0 ? std::vector<int>{} : std::vector<int>{rank - 1}; };
      EXPECT_EQ(run_collective(four(), c), "") << count;
    }
  }
}

TEST(Msccl, CustomFilesPutTheirDataWhereTheySayAndLeaveTheRest) {
  expect_each_gives_the_next(kExamples + "next4_custom.xml");
}

// As msccl-tools' alltonext: it may run in place, and tells its inputs from its outputs all the same.
TEST(Msccl, CustomFilesThatNameOutputsSendTheirInputsAndNotWhatHasCome) {
  std::ifstream example(kExamples + "next4_custom.xml");
  std::string text{std::istreambuf_iterator<char>(example), {}};
  text.replace(text.find("inplace=\"0\""), 11, "inplace=\"1\"");
  const TestFolder folder;
  std::ofstream(folder.file("a.xml")) << text;
  expect_each_gives_the_next(folder.file("a.xml"));
}

TEST(Msccl, CustomFilesMayAddAndInPlaceKeepWhatTheyDoNotTouch) {
  const TestFolder folder;
  std::ofstream(folder.file("adds.xml")) << two("custom", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, "cnt=\"2\""),
                                                step(0, "rrc", "i", 0, "i", 0, "cnt=\"2\""));
  for (const std::int64_t count : {1, 48}) {
    for (const bool in_place : {false, true}) {
      CollectiveCase c;
      c.algorithm = folder.file("adds.xml");
      c.count = count;
      c.in_place = in_place;
      c.custom = [](int rank, std::int64_t) { return rank == 1 ? std::vector<int>{0, 1} : std::vector<int>{0}; };
      EXPECT_EQ(run_collective(make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2), c), "") << count;
    }
  }
}

TEST(Msccl, CustomFilesThatMoveAChunkToAnotherPlaceAreRefused) {
  EXPECT_EQ(
      error_of(two("custom", "inplace=\"0\"", step(0, "s", "i", 1, "o", 0), step(0, "r", "i", 1, "o", 0))),
      "a.xml:6:1: error: chunk 0 of gpu 1's output gets part 1: here a custom file's chunks stay in their places\n"
      "  hint: its result would be wrong; nothing was run");
}

// Gpu 0 sends on channel 0 and then on channel 1; gpu 1 wants what comes on channel 1 first. With a queue for each that
// is right, so it is here, where the two share one.
TEST(Msccl, ChannelsOvertakeEachOther) {
  const std::string after = "cnt=\"1\" depid=\"0\" deps=\"0\"";
  const auto block = [](int id, const std::string& ends, const std::string& steps) {
    return "<tb id=\"" + std::to_string(id) + "\" " + ends + ">\n" + steps + "</tb>\n";
  };
  const auto file = [&](const std::string& coll, const std::string& kind, const std::string& zero,
                        const std::string& one) {
    return "<algo name=\"two\" nchunksperloop=\"2\" ngpus=\"2\" inplace=\"1\" coll=\"" + coll +
           "\">\n<gpu id=\"0\">\n" + block(0, "send=\"1\" recv=\"-1\" chan=\"0\"", step(0, "s", "i", 0, "i", 0)) +
           block(1, "send=\"1\" recv=\"-1\" chan=\"1\"", step(0, "s", "i", 1, "i", 1, after)) + zero +
           "</gpu>\n<gpu id=\"1\">\n" + block(0, "send=\"-1\" recv=\"0\" chan=\"1\"", step(0, kind, "i", 1, "i", 1)) +
           block(1, "send=\"-1\" recv=\"0\" chan=\"0\"", step(0, kind, "i", 0, "i", 0, after)) + one +
           "</gpu>\n</algo>\n";
  };
  EXPECT_EQ(error_of(file("broadcast", "r", "", "")), "nothing was thrown");
  const std::string back = step(0, "s", "i", 0, "i", 0, "cnt=\"2\" depid=\"1\" deps=\"0\"");
  const std::string sums =
      file("allreduce", "rrc", block(2, "send=\"-1\" recv=\"1\" chan=\"0\"", step(0, "r", "i", 0, "i", 0, "cnt=\"2\"")),
           block(2, "send=\"0\" recv=\"-1\" chan=\"0\"", back));
  EXPECT_EQ(error_of(sums), "nothing was thrown");
  const TestFolder folder;
  std::ofstream(folder.file("sums.xml")) << sums;
  for (const std::int64_t count : {1, 48, 201}) {
    CollectiveCase c;
    c.algorithm = folder.file("sums.xml");
    c.count = count;
    c.in_place = true;
    EXPECT_EQ(run_collective(make_map(SipTopology::ring_1d, 2, 0, 0, 2, 1, 2), c), "") << count;
  }
}

TEST(Msccl, WrongResultsAreRefused) {
  // Neither gets the sum of the other's chunk.
  const std::string hint = "\n  hint: its result would be wrong; nothing was run";
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", step(0, "s", "i", 1, "i", 1) + step(1, "rrc", "i", 0, "i", 0),
                         step(0, "s", "i", 0, "i", 0) + step(1, "rrc", "i", 1, "i", 1))),
            "a.xml:2:1: error: chunk 1 of gpu 0's output lacks gpu 1's contribution" + hint +
                "\na.xml:6:1: error: chunk 0 of gpu 1's output lacks gpu 0's contribution" + hint);
  // Chunks that land in each other's place; an own block that nobody copies.
  EXPECT_EQ(
      error_of(two("broadcast", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, "cnt=\"2\""),
                   step(0, "r", "i", 0, "i", 1) + step(1, "r", "i", 0, "i", 0))),
      "a.xml:6:1: error: chunk 1 of gpu 1's output gets part 0 of gpu 0's input and not part 1 of gpu 0's "
      "input" +
          hint +
          "\na.xml:7:1: error: chunk 0 of gpu 1's output gets part 1 of gpu 0's input and not part 0 of gpu 0's input" +
          hint);
  EXPECT_EQ(error_of(two("allgather", "", step(0, "s", "i", 0, "o", 0) + step(1, "r", "i", 0, "o", 1),
                         step(0, "s", "i", 0, "o", 1) + step(1, "r", "i", 0, "o", 0))),
            "a.xml:2:1: error: chunk 0 of gpu 0's output never gets a value" + hint +
                "\na.xml:6:1: error: chunk 1 of gpu 1's output never gets a value" + hint);
  EXPECT_EQ(
      error_of(two("allreduce", "inplace=\"1\"",
                   step(0, "s", "i", 0, "i", 0) + step(1, "rrc", "i", 0, "i", 0) + step(2, "s", "i", 0, "i", 0),
                   step(0, "s", "i", 0, "i", 0) + step(1, "rrc", "i", 0, "i", 0) + step(2, "rrc", "i", 0, "i", 0))),
      "a.xml:10:1: error: adds what some gpu has given twice");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0), step(0, "rrc", "i", 1, "i", 1))),
            "a.xml:6:1: error: adds part 0 of the data to part 1");
}

TEST(Msccl, ErrorsHaveAPlace) {
  const std::string good = step(0, "s", "i", 0, "i", 0), other = step(0, "r", "i", 0, "i", 0);
  EXPECT_EQ(error_of("<algo"), "a.xml:1:5: error: no XML: Error parsing start element tag");
  EXPECT_EQ(error_of("<algorithm/>"),
            "a.xml:1:1: error: 'algorithm' is no 'algo'\n  hint: give an MSCCL algorithm file");
  EXPECT_EQ(error_of(two("allreduced", "", good, other)),
            "a.xml:1:1: error: coll of 'algo' is 'allreduced'\n  hint: did you mean 'allreduce'?");
  EXPECT_EQ(
      error_of(two("allreduce", "inplace=\"1\"", step(0, "unknown", "i", 0, "i", 0), other)),
      "a.xml:3:1: error: type of 'step' is 'unknown'\n  hint: served are: cpy, nop, r, rcs, re, rrc, rrcs, rrs, s");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", step(0, "s", "i", 2, "i", 0), other)),
            "a.xml:3:1: error: chunk 2 of a buffer of 2");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", step(1, "s", "i", 0, "i", 0), other)),
            "a.xml:3:1: error: step 1 comes as number 0\n  hint: number them from 0 on");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, "cnt=\"1\" depid=\"3\" deps=\"0\""),
                         other)),
            "a.xml:3:1: error: depends on step 0 of thread block 3, which does not exist");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", good, other + step(1, "r", "i", 1, "i", 1))),
            "a.xml:7:1: error: waits for ever: for a message of gpu 0");
  EXPECT_EQ(error_of(two("allreduce", "inplace=\"1\"", good, "")),
            "a.xml:3:1: error: gpu 1 does not receive this message of gpu 0");
}

/// Each gpu sends all that it has before it takes anything: room for as many messages, in both directions.
std::string all_at_once(int chunks) {
  const auto gpu = [chunks](int id) {
    const int own = chunks * id, others = chunks - own;
    std::string steps;
    int number = 0;
    for (const auto& [type, first] : {std::pair("s", others), {"rrc", own}, {"s", own}, {"r", others}}) {
      for (int i = 0; i < chunks; ++i) steps += step(number++, type, "i", first + i, "i", first + i);
    }
    return "<gpu id=\"" + std::to_string(id) + "\"><tb id=\"0\" send=\"" + std::to_string(1 - id) + "\" recv=\"" +
           std::to_string(1 - id) + "\" chan=\"0\">\n" + steps + "</tb><dialect/></gpu>\n";
  };
  return "<algo name=\"a\" ngpus=\"2\" nchunksperloop=\"" + std::to_string(2 * chunks) +
         "\" coll=\"allreduce\" inplace=\"1\">\n" + gpu(0) + gpu(1) + "</algo>";
}

TEST(Msccl, MoreSlotsThanThereMayBeAreNoWaitForEver) {
  EXPECT_EQ(error_of(all_at_once(4097)),
            "a.xml:4099:1: error: needs queues of more than 4096 slots, the most\n"
            "  hint: receive before more is sent, or send fewer messages of more chunks");
}

TEST(Msccl, QueuesGetAsManySlotsAsTheFileNeeds) {
  for (const int chunks : {5, 100, 4096}) {
    const ccl::Schedule schedule = ccl::parse_msccl(all_at_once(chunks), "a.xml");
    ASSERT_EQ(schedule.links.size(), 1u);
    EXPECT_EQ(schedule.links[0].slots, chunks);
    EXPECT_NO_THROW(ccl::check(schedule));
    EXPECT_THROW(ccl::check(schedule, chunks - 1), ccl::Error) << "a machine with fewer";
  }
}

TEST(Msccl, WhatStandsBesideElementsIsRefused) {
  const std::string good = step(0, "s", "i", 0, "i", 0), other = step(0, "r", "i", 0, "i", 0);
  const std::string whole = two("broadcast", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, "cnt=\"2\""),
                                step(0, "r", "i", 0, "i", 0, "cnt=\"2\""));
  EXPECT_TRUE(right("<?xml version=\"1.0\"?>\n<!-- a -->\n" + whole + "<!-- b -->\n"));
  EXPECT_EQ(error_of(whole + whole),
            "a.xml:9:1: error: 'algo' after the end of 'algo'\n  hint: give one 'algo' in a file");
  EXPECT_EQ(error_of(whole + "\n more"), "a.xml:10:2: error: text that belongs to no element\n  hint: remove it");
  EXPECT_EQ(error_of(two("allreduce", "", "steps:\n" + good, other)),
            "a.xml:3:1: error: text that belongs to no element\n  hint: remove it");
  EXPECT_EQ(error_of(two("allreduce", "", "<step s=\"0\" type=\"nop\"><step/></step>\n", other)),
            "a.xml:3:24: error: 'step' inside of 'step'\n  hint: remove it");
  EXPECT_EQ(error_of("<!-- nothing -->"),
            "a.xml:1:1: error: no XML: there is no element\n  hint: give an MSCCL algorithm file");
}

TEST(Msccl, AStepCannotWaitForItselfOrALaterOneOfItsThreadBlock) {
  const auto waiting_for = [](int other) {
    const std::string depends = "depid=\"0\" deps=\"" + std::to_string(other) + "\"";
    return error_of(
        two("broadcast", "inplace=\"1\"",
            step(0, "s", "i", 0, "i", 0) + step(1, "s", "i", 1, "i", 1, depends) + step(2, "nop", "i", 0, "i", 0),
            step(0, "r", "i", 0, "i", 0, "cnt=\"2\"")));
  };
  EXPECT_EQ(waiting_for(0), "nothing was thrown");
  EXPECT_EQ(waiting_for(1),
            "a.xml:4:1: error: step 1 depends on step 1 of its own thread block, which is not before it\n"
            "  hint: steps of a thread block run one after the other");
  EXPECT_THAT(waiting_for(2), HasSubstr("a.xml:4:1: error: step 1 depends on step 2 of its own"));
}

TEST(Msccl, OnePassFindsAllProblemsAndNothingThatFollowsFromThem) {
  EXPECT_EQ(error_of(two("allreduced", "inplace=\"2\"", step(0, "sent", "i", 0, "i", 0) + step(1, "s", "x", -2, "i", 0),
                         step(0, "r", "i", 0, "i", 0))),
            "a.xml:1:1: error: coll of 'algo' is 'allreduced'\n  hint: did you mean 'allreduce'?\n"
            "a.xml:1:1: error: inplace of 'algo' is '2'\n  hint: give an integer from 0 to 1\n"
            "a.xml:3:1: error: type of 'step' is 'sent'\n  hint: served are: cpy, nop, r, rcs, re, rrc, rrcs, rrs, s\n"
            "a.xml:4:1: error: srcbuf of 'step' is 'x'\n  hint: did you mean 'i'?\n"
            "a.xml:4:1: error: srcoff of 'step' is '-2'\n  hint: give an integer from -1 to 65536");
}

TEST(Msccl, MisspeltAttributesAreRefusedWhereTheyStand) {
  const std::string other = step(0, "r", "i", 0, "i", 0);
  const auto of_step = [&](const std::string& more) {
    return error_of(two("allreduce", "inplace=\"1\"", step(0, "s", "i", 0, "i", 0, more), other));
  };
  EXPECT_EQ(error_of("<!-- a\n  comment -->\n  <algo ngpus=\"1\" coll=\"allreduce\"\n  nchunks=\"2\"/>"),
            "a.xml:4:3: error: unknown attribute 'nchunks' of 'algo'\n  hint: did you mean 'nchunksperloop'?");
  EXPECT_EQ(error_of(two("allreduce", "in-place=\"1\"", "", "")),
            "a.xml:1:64: error: unknown attribute 'in-place' of 'algo'\n  hint: did you mean 'inplace'?");
  // Entities in a value before it are longer than what they stand for.
  EXPECT_EQ(of_step("cnt=\"&#49;\" depids=\"0\""),
            "a.xml:3:78: error: unknown attribute 'depids' of 'step'\n  hint: did you mean 'depid'?");
  EXPECT_EQ(of_step("cnt=\"1\" cnt=\"2\""),
            "a.xml:3:74: error: attribute 'cnt' of 'step' stands here twice\n  hint: remove one of them");
  EXPECT_EQ(
      error_of("<algo nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\">\n<gpu id=\"0\" in_chunks=\"1\"/></algo>"),
      "a.xml:2:13: error: unknown attribute 'in_chunks' of 'gpu'\n  hint: did you mean 'i_chunks'?");
  EXPECT_EQ(error_of("<algo nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\">\n<gpu id=\"0\">\n"
                     "  <tb id=\"0\" send=\"-1\" recve=\"-1\"/></gpu></algo>"),
            "a.xml:3:24: error: unknown attribute 'recve' of 'tb'\n  hint: did you mean 'recv'?");
  // One that is near no name hides nothing.
  EXPECT_EQ(error_of("<algo ngpus=\"1\" coll=\"allreduce\" nthreadblocks=\"1\"/>"),
            "a.xml:1:1: error: 'algo' has no 'nchunksperloop'");
}

TEST(Msccl, AttributesOfMscclThatDoNotMatterHereAreRead) {
  EXPECT_TRUE(right(
      two("broadcast",
          "inplace=\"1\" outofplace=\"1\" proto=\"LL\" nchannels=\"1\" redop=\"nop\" minBytes=\"0\" maxBytes=\"9\"",
          step(0, "s", "i", 0, "i", 0, "cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\""),
          step(0, "r", "i", 0, "i", 0, "cnt=\"2\""))));
}

TEST(Msccl, SaysWhyAFileCannotBeRead) {
  const TestFolder folder;
  const auto error_of_file = [](const std::string& file) {
    try {
      ccl::read_msccl(file);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string nowhere = folder.file("nowhere.xml"), empty = folder.file("empty.xml");
  EXPECT_EQ(error_of_file(nowhere), nowhere + ": error: cannot be read: No such file or directory");
  EXPECT_EQ(error_of_file(folder.path().string()),
            folder.path().string() + ": error: is a directory\n  hint: give an MSCCL algorithm file");
  std::ofstream{empty};
  EXPECT_EQ(error_of_file(empty), empty + ": error: the file is empty\n  hint: give an MSCCL algorithm file");
}

/// An algorithm that moves nothing, of as many chunks as a file may have: following them takes seconds.
std::string idle(int gpus, int chunks) {
  std::string text = "<algo name=\"idle\" nchunksperloop=\"" + std::to_string(chunks) + "\" ngpus=\"" +
                     std::to_string(gpus) + "\" coll=\"allreduce\">\n";
  for (int gpu = 0; gpu < gpus; ++gpu) text += "<gpu id=\"" + std::to_string(gpu) + "\"/>\n";
  return text + "</algo>\n";
}

TEST(Msccl, AFileForOtherRanksIsToldSoBeforeItsChunksAreFollowed) {
  const ccl::Schedule head = ccl::parse_msccl(idle(64, 65'536), "a.xml", 4);
  EXPECT_EQ(head.nodes, 64);
  EXPECT_EQ(head.algorithm, "idle");
  EXPECT_TRUE(head.blocks.empty()) << "nobody has followed them";
  EXPECT_FALSE(ccl::read_msccl(kExamples + "ring4_all_reduce.xml", 4).blocks.empty());
}

/// Each step has its place in the file; counting lines anew for each took ten minutes of 10 MB.
TEST(Msccl, AFileTakesTimeByItsLength) {
  std::string steps;
  for (int s = 0; s < 60'000; ++s) steps += "<step s=\"" + std::to_string(s) + "\" type=\"nop\"/>\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of(two("allreduce", "inplace=\"1\"", steps, "")),
              HasSubstr("a.xml:60004:1: error: chunk 0 of gpu 1"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Msccl, MoreChunksThanTheHostCanFollowAreRefused) {
  EXPECT_EQ(error_of(idle(1024, 65'536)),
            "a.xml:1:1: error: 1024 gpus of 65536 chunks have 67108864 chunks\n  hint: give at most 4194304");
}

TEST(Msccl, IsForItsOwnNumberOfRanksOnly) {
  CollectiveCase c;
  c.algorithm = kExamples + "ring4_all_reduce.xml";
  EXPECT_EQ(run_collective(make_map(SipTopology::ring_1d, 5, 0, 0, 1, 1, 1), c),
            "schedule 'ring_4' is for 4 ranks, not for 5");
}

}  // namespace
}  // namespace kernbench::test
