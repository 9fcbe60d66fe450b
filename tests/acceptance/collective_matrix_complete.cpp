#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/acceptance/collective_matrix.h"
#include "tests/acceptance/run_json.h"

namespace kernbench {
namespace {

/// KERNBENCH_MATRIX_PART=I/N: rows I, I + N, ... of all legal ones; without it a part that ends within minutes.
struct Part {
  std::size_t index = 0, parts = 10'000;
};
Part part() {
  Part part;
  const char* const text = std::getenv("KERNBENCH_MATRIX_PART");
  if (text != nullptr) {
    EXPECT_EQ(std::sscanf(text, "%zu/%zu", &part.index, &part.parts), 2) << "give KERNBENCH_MATRIX_PART as 3/1000";
    EXPECT_LT(part.index, part.parts);
  }
  return part;
}

TEST(CompleteCollectiveMatrix, IsRightInEveryElement) {
  const Part own = part();
  std::size_t number = 0;
  matrix::for_each_row([&](const Row& row) {
    if (number++ % own.parts != own.index) return;
    const Tool tool;
    const std::vector<std::string> command = with(matrix::command(row), {"--json", "-"});
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 0) << matrix::name(row) << "\n" << outcome.err;
    if (outcome.code != 0) return;  // the next ones may fail for other reasons
    const auto json = nlohmann::ordered_json::parse(outcome.out, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << matrix::name(row);
    EXPECT_EQ(json["results"][0]["check"], "ok") << matrix::name(row);
  });
  RecordProperty("legal_rows", static_cast<int>(number));
}

}  // namespace
}  // namespace kernbench
