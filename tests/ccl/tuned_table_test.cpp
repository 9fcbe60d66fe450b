#include "ccl/select/tuned_table.h"

#include <gmock/gmock.h>

#include "ccl/import/entry.h"
#include "tests/ccl/registry_text.h"
#include "tlm/config/embedded_text.h"
#include "tlm/config/problems.h"

namespace kernbench::test {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TunedTable, TextReadsBackAsItWas) {
  ccl::TunedTable table;
  table.add({"here", CollectiveOp::all_gather, Scope::cube, {8, 64}, {{"a", {1, 2}}, {"b", {0, 5}}}});
  const ccl::Registry registry = registry_of(
      "algorithms: { a: { module: kernbench.ccl.ring_allreduce }, b: { module: kernbench.ccl.ring } }\ntuned:\n" +
      table.yaml());
  EXPECT_EQ(registry.tuned().yaml(), table.yaml());
  const ccl::TunedTable::Row* row = registry.tuned().find("here", CollectiveOp::all_gather, Scope::cube);
  ASSERT_NE(row, nullptr);
  EXPECT_FALSE(ccl::TunedTable::ns(*row, "b", 8));
  EXPECT_EQ(ccl::TunedTable::ns(*row, "b", 64).value(), 5);
}

TEST(TunedTable, WhatShipsBelongsToOneMachineAndNamesBuiltInAlgorithms) {
  EXPECT_TRUE(ccl::TunedTable::shipped("nowhere").empty());
  const std::vector<std::string> known = ccl::builtin_algorithms();
  for (const EmbeddedText* times = ccl::kShippedTimes; times->name != nullptr; ++times) {
    SCOPED_TRACE(times->name);
    const std::string text = times->text, mark = "machine: ";
    const std::size_t begin = text.find(mark) + mark.size();
    const std::string machine = text.substr(begin, text.find('\n', begin) - begin);
    const ccl::TunedTable& table = ccl::TunedTable::shipped(machine);
    for (const CollectiveOp op :
         {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}) {
      const ccl::TunedTable::Row* row = table.find(machine, op, Scope::sip);
      ASSERT_NE(row, nullptr) << to_string(op);
      EXPECT_GE(row->bytes.size(), 2U);
      for (const auto& [name, ns] : row->ns) EXPECT_THAT(known, ::testing::Contains(name));
    }
  }
}

TEST(TunedTable, ErrorsHaveAPlace) {
  const std::string head = "algorithms: { a: { module: kernbench.ccl.ring_allreduce } }\ntuned:\n";
  const auto error_of = [&](const std::string& rest) {
    try {
      registry_of(head + rest);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(error_of("  - {machine: m, op: all_reduce, scope: sip, bytes: [1, 2], time_ns: {a: [1]}}\n"),
              HasSubstr(":3:74: error: 1 times for 2 sizes\n  hint: give one time for each of tuned.bytes"));
  const std::string wrong = error_of("  - {machine: m, op: all_reduce, scope: sip, bytes: [-1], time_ns: {a: [x]}}\n");
  EXPECT_THAT(wrong, HasSubstr("tuned.bytes is '-1'"));
  EXPECT_THAT(wrong, HasSubstr("tuned.time_ns.a is 'x'"));
  EXPECT_THAT(wrong, Not(HasSubstr(" times for "))) << "follows from what is wrong anyhow";
  const std::string none =
      error_of("  - {machine: m, op: all_reduce, scope: sip, bytes: 5, time_ns: {a: 1, b: [1, 2]}}\n");
  EXPECT_THAT(none, HasSubstr("tuned.bytes is '5', not a list"));
  EXPECT_THAT(none, Not(HasSubstr(" times for ")));
  EXPECT_THAT(error_of("  - {machine: m, op: all_reduce, scope: sip, bytes: [2, 2], time_ns: {a: [1, 1]}}\n"),
              HasSubstr(":3:53: error: tuned.bytes do not rise"));
  const std::string row = "  - {machine: m, op: all_reduce, scope: sip, bytes: [1], time_ns: {a: [1]}}\n";
  EXPECT_THAT(error_of(row + row), HasSubstr(":4:15: error: a second row of all_reduce, scope sip, on this machine\n"
                                             "  hint: give all sizes in one row, or remove one of them"));
  EXPECT_THAT(error_of("  - {machine: m, op: allreduce, scope: sip, bytes: [2], time_ns: {a: [1]}}\n"),
              HasSubstr("did you mean 'all_reduce'?"));
  EXPECT_THAT(error_of("  - {machine: m, op: all_reduce, bytes: [2], time_ns: {a: [1]}}\n"),
              HasSubstr(":3:5: error: a tuned entry has no 'scope'"));
}

}  // namespace
}  // namespace kernbench::test
