#include "sc_main/validate/table.h"

#include <gtest/gtest.h>

#include "tests/support/test_folder.h"
#include "tlm/config/problems.h"

namespace kernbench::validate {
namespace {

class TableTest : public ::testing::Test {
 protected:
  Table table(const std::string& text) const {
    std::ofstream(folder_.file("t.csv")) << text;
    return Table(folder_.file("t.csv"));
  }
  /// What is thrown, without the folder.
  template <class F>
  std::string error(const F& f) const {
    try {
      f();
    } catch (const ConfigError& caught) {
      const std::string text = caught.what();
      return text.substr(text.rfind('/', text.find("t.csv")) + 1);
    }
    return "nothing thrown";
  }
  const TestFolder folder_;
};

constexpr const char* kGood =
    "# topology=mesh k=4 n=2 (16 nodes) traffic=hotspot({{0,3},{2,1}})  -- explained\n"
    "# packet_size=8 flits; num_vcs=1\n"
    "load,latency,state\n0.1,25.5,stable\n0.2,,saturated\n";

TEST_F(TableTest, ReadsRowsByColumnName) {
  const Table read = table(kGood);
  EXPECT_EQ(read.name(), "t");
  EXPECT_EQ(read.rows(), 2U);
  EXPECT_EQ(read.number(0, "latency"), 25.5);
  EXPECT_EQ(read.text(1, "state"), "saturated");
  EXPECT_TRUE(read.empty(1, "latency"));
  EXPECT_TRUE(read.has("load"));
  EXPECT_FALSE(read.has("lo"));
}

TEST_F(TableTest, ReadsParametersOfCommentLinesAsWholeWords) {
  const Table read = table(kGood);
  EXPECT_EQ(integer(read.parameter("k")), 4U);
  EXPECT_EQ(read.parameter("traffic").text, "hotspot({{0,3},{2,1}})");
  EXPECT_EQ(integer(read.parameter("packet_size")), 8U);
  EXPECT_FALSE(read.find_parameter("size"));
}

TEST_F(TableTest, LocatesWhatIsWrong) {
  EXPECT_EQ(error([&] { table("a,b\n1,2\n1\n"); }), "t.csv:3:1: error: 1 fields in this row, 2 columns in the header");
  EXPECT_EQ(error([&] { table("# only this\n"); }), "t.csv: error: no line of column names in this table");
  EXPECT_EQ(error([&] { table("a,b\n"); }), "t.csv:1:1: error: no rows in this table");
  EXPECT_EQ(error([&] { static_cast<void>(table(kGood).number(1, "latency")); }),
            "t.csv:5:5: error: 'latency' is ''\n  hint: give a number");
  EXPECT_EQ(error([&] { static_cast<void>(table(kGood).number(0, "state")); }),
            "t.csv:4:10: error: 'state' is 'stable'\n  hint: give a number");
  EXPECT_EQ(error([&] {
              table(kGood).require({"load", "latencies"});
            }),
            "t.csv:3:1: error: missing column 'latencies'\n  hint: is 'latency' meant to be it?");
  EXPECT_EQ(error([&] { integer(table(kGood).parameter("traffic")); }),
            "t.csv:1:36: error: 'traffic' is 'hotspot({{0,3},{2,1}})'\n  hint: give an integer of at least 0");
  EXPECT_EQ(
      error([&] { static_cast<void>(table(kGood).parameter("seed")); }),
      "t.csv:1:1: error: no 'seed=' in the comment lines of this table\n  hint: the lines that start with # state "
      "every parameter");
}

TEST_F(TableTest, RefusesWhatIsNoFileAndNoFolder) {
  EXPECT_EQ(error([&] { Table("t.csv"); }), "t.csv: error: cannot be read: No such file or directory");
  EXPECT_THROW(csv_files(folder_.file("none")), ConfigError);
  EXPECT_THROW(csv_files(folder_.path()), ConfigError);  // no CSV in it
}

}  // namespace
}  // namespace kernbench::validate
