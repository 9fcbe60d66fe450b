#include "tests/acceptance/collective_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/acceptance/run_json.h"

/// Every pair of operation, type, reduce op, ranks, machine, scope, placement, size, place of the output and scheduling
/// through the tool, each element on every rank and copy compared. The complete product runs on demand:
/// collective_matrix_complete.cpp.
namespace kernbench {
namespace {

/// The tool's answer to a row; the text of what is wrong, or nothing.
void expect_right(const Row& row) {
  SCOPED_TRACE(matrix::name(row));
  const Tool tool;
  const std::vector<std::string> command = with(matrix::command(row), {"--json", "-"});
  const Outcome outcome = tool(command);
  std::string line = "kernbench";
  for (const std::string& word : command) line += " " + quoted(word);
  ASSERT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
  const auto json = json_of(outcome.out);
  ASSERT_FALSE(json.is_discarded()) << line;
  ASSERT_EQ(json["results"].size(), 1u) << line;
  EXPECT_EQ(json["results"][0]["check"], "ok") << line;
  EXPECT_EQ(json["results"][0]["mismatches"], 0) << line;
}

std::vector<Row> pairwise() { return covering_array(matrix::values(), matrix::legal); }

TEST(CoveringArray, HoldsEveryPairThatALegalRowCanHold) {
  const std::vector<Row> rows = pairwise();
  EXPECT_EQ(missing_pairs(matrix::values(), matrix::legal, rows), 0u);
  for (const Row& row : rows) EXPECT_TRUE(matrix::legal(row)) << matrix::name(row);
  EXPECT_EQ(rows, pairwise()) << "the same each time";
  std::vector<Row> fewer(rows.begin() + 1, rows.end());
  EXPECT_GT(missing_pairs(matrix::values(), matrix::legal, fewer), 0u) << "no row is there for nothing";
}

/// One test per part, so that they share the processors.
class CollectiveMatrix : public ::testing::TestWithParam<std::size_t> {
 public:
  static constexpr std::size_t kParts = 16;
#ifdef KERNBENCH_SANITIZED
  static constexpr double kMostWork = 100'000;  // elements of all ranks: a sanitizer's build runs the short ones
#else
  static constexpr double kMostWork = 1e12;
#endif
};
INSTANTIATE_TEST_SUITE_P(Acceptance, CollectiveMatrix, ::testing::Range<std::size_t>(0, CollectiveMatrix::kParts));

TEST_P(CollectiveMatrix, IsRightInEveryElement) {
  const std::vector<Row> rows = pairwise();
  for (std::size_t i = GetParam(); i < rows.size(); i += kParts) {
    if (matrix::work(rows[i]) <= kMostWork) expect_right(rows[i]);
  }
}

/// Rows of one machine in one process, on groups of its ranks, several at once.
struct Together {
  matrix::Machine machine;
  const char *groups, *in_flight, *part;
};
void PrintTo(const Together& rows, std::ostream* out) { *out << matrix::name(rows.machine) << ", " << rows.groups; }
class CollectiveRows : public ::testing::TestWithParam<Together> {
 public:
  static Outcome run(const Together& rows, const std::vector<std::string>& more = {}) {
    const Tool tool;
    return tool(
        with(with(matrix::rows_command(KERNBENCH_COLLECTIVE_ROWS, rows.machine),
                  {"--most", "1000", "--part", rows.part, "--groups", rows.groups, "--in-flight", rows.in_flight}),
             more));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Acceptance, CollectiveRows,
    ::testing::Values(Together{{8, "torus_2d", SchedulingKind::rounds}, "overlapping", "4", "0/127"},
                      Together{{5, "ring_1d", SchedulingKind::concurrent}, "alternate", "3", "1/127"},
                      Together{{4, "mesh_2d_no_wrap", SchedulingKind::concurrent}, "overlapping", "5", "2/127"},
                      Together{{3, "fully_connected", SchedulingKind::rounds}, "whole", "4", "3/127"},
                      Together{{5, "one_cube", SchedulingKind::concurrent}, "overlapping", "2", "4/127"},
                      Together{{8, "one_pe", SchedulingKind::concurrent}, "alternate", "6", "5/127"},
                      Together{{16, "switch", SchedulingKind::concurrent}, "overlapping", "2", "6/997"}),
    [](const auto& info) { return matrix::name(info.param.machine) + "_" + info.param.groups; });

TEST_P(CollectiveRows, OfGroupsAndInFlightAreRightInEveryElement) {
  const Outcome outcome = run(GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(CollectiveRowsCheck, TellsAWrongBit) {
  const Outcome outcome =
      CollectiveRows::run({{3, "ring_1d", SchedulingKind::concurrent}, "whole", "1", "0/999"}, {"--spoil", "3"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("^row 3 [a-z0-9_]+ of 3 ranks: [0-9]+ elements wrong, by up to "));
}

}  // namespace
}  // namespace kernbench
