#include "tests/acceptance/collective_matrix.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/acceptance/run_json.h"

/// Every pair of operation, type, reduce op, ranks, machine, scope, placement, size, place of the output and scheduling
/// through the tool, each element on every rank and copy compared. The complete product runs on demand: label slow,
/// KERNBENCH_MATRIX_PART=I/N for the I-th of N parts of it.
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
  const auto json = nlohmann::ordered_json::parse(outcome.out, nullptr, false);
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
#ifdef __SANITIZE_ADDRESS__
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

}  // namespace
}  // namespace kernbench
