#include "waves/op_log.h"

#include <gtest/gtest.h>

#include "tests/support/test_folder.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {

TEST(OpLog, WritesOneJsonObjectALine) {
  const TestFolder folder;
  const auto log = open_op_log(folder.file("ops.jsonl"));
  OpRecord record;
  record.start = 10;
  record.end = 25;
  record.component = "sip0.cube3.pe5.gemm";
  record.kind = "gemm";
  record.name = "gemm";
  record.kernel = "gemm_single_pe";
  record.op = 7;
  record.params = {{"m", "", 32}, {"dtype", "f16", 0}};
  log->op(record);
  log->op(record);
  log->finish();
  const std::string line =
      R"({"t_start":10,"t_end":25,"component":"sip0.cube3.pe5.gemm","op_kind":"gemm","op_name":"gemm","op":7,)"
      R"("kernel":"gemm_single_pe","params":{"m":32,"dtype":"f16"},"stage":""})"
      "\n";
  EXPECT_EQ(read(folder.file("ops.jsonl")), line + line);
}

TEST(OutputFile, AppearsUnderItsNameOnlyWhenCommitted) {
  const TestFolder folder;
  write_file(folder.file("result"), "old");
  {
    OutputFile file(folder.file("result"));
    file.write("half");
    EXPECT_EQ(read(folder.file("result")), "old");
  }
  EXPECT_EQ(read(folder.file("result")), "old");
  write_file(folder.file("result"), "new");
  EXPECT_EQ(read(folder.file("result")), "new");
  EXPECT_THROW(OutputFile(folder.path().string()), OutputError);
}

TEST(OutputFile, ThatFailedOnceFailsAgainWithTheSameText) {
  OutputFile file("/dev/full");
  const std::string more_than_a_buffer(1U << 20U, 'x');
  for (int i = 0; i < 2; ++i) EXPECT_THROW(file.write(more_than_a_buffer), OutputError);
  try {
    file.commit();
    FAIL() << "committed";
  } catch (const OutputError& error) {
    EXPECT_STREQ(error.what(), "cannot write '/dev/full': No space left on device");
  }
}

}  // namespace
}  // namespace kernbench
