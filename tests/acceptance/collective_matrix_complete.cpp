#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/acceptance/collective_matrix.h"
#include "tests/cli/tool_runner.h"

/// All legal rows, machine by machine: many rows in one process, through the plug-in collective_rows.cpp.
///
/// KERNBENCH_MATRIX_PART=I/N: rows I, I + N, ... of each machine; without it a part that ends within minutes, 0/1 for
/// all. KERNBENCH_MATRIX_OPTIONS: more options of the plug-in, such as "--most 1000 --groups overlapping --in-flight
/// 4".
namespace kernbench {
namespace {

std::string from_environment(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

class CompleteCollectiveMatrix : public ::testing::TestWithParam<matrix::Machine> {};
INSTANTIATE_TEST_SUITE_P(Acceptance, CompleteCollectiveMatrix, ::testing::ValuesIn(matrix::machines()),
                         [](const auto& info) { return matrix::name(info.param); });

TEST_P(CompleteCollectiveMatrix, IsRightInEveryElement) {
  const Tool tool;
  std::string command = quoted(KERNBENCH_BINARY);
  for (const std::string& word : matrix::rows_command(KERNBENCH_COLLECTIVE_ROWS, GetParam()))
    command += " " + quoted(word);
  command += " --part " + from_environment("KERNBENCH_MATRIX_PART", "0/1000") + " " +
             from_environment("KERNBENCH_MATRIX_OPTIONS", "");
  const Outcome outcome = tool.shell(command);
  EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.out << outcome.err;
}

}  // namespace
}  // namespace kernbench
