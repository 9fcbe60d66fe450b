// Names of outputs: what their endings say, and what they may not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using RunWords = std::vector<std::string>;

const RunWords kSmallestRun{"run", "all_reduce", "-b", "1K", "-e", "1K", "-w", "0", "--topology", "minimal", "-q"};

RunWords extended(RunWords words, const RunWords& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(OutputFiles, EndingsOfAFormatSayItInLettersOfEitherCase) {
  const Tool tool;
  const std::string gzip = "\x1f\x8b";
  for (const auto& [option, file, head] : {std::tuple("--oplog", "o.SQLite", std::string("SQLite format 3")),
                                           {"--oplog", "o.sqlite3", "SQLite format 3"},
                                           {"--oplog", "o.DB", "SQLite format 3"},
                                           {"--oplog", "o.jsonl.GZ", gzip},
                                           {"--vcd", "w.VCD.gz", gzip},
                                           {"--trace", "t.json.Gz", gzip},
                                           {"--trace", "t.JSON", "{"}}) {
    const Outcome outcome = tool(extended(kSmallestRun, {option, file}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(read(tool.file(file)), StartsWith(head)) << file;
  }
}

TEST(OutputFiles, AnEndingOfAnotherFormatIsRefusedWithThoseThatThereAre) {
  const Tool tool;
  const Outcome all = tool(extended(kSmallestRun, {"--trace", "t.db", "--oplog", "o.sqlite.gz", "--json", "r.json.gz",
                                                   "--report", "p.html.gz", "--vcd", "w.fst.gz", "--stats", "s.csv"}));
  EXPECT_EQ(all.code, 2);
  EXPECT_EQ(all.err,
            "kernbench: error: --json is 'r.json.gz', and does not write '.json.gz'\n"
            "  hint: give a name that ends in .json\n"
            "kernbench: error: --report is 'p.html.gz', and does not write '.html.gz'\n"
            "  hint: give a name that ends in .html or .htm\n"
            "kernbench: error: --vcd is 'w.fst.gz', and does not write '.fst.gz'\n"
            "  hint: give a name that ends in .vcd, .vcd.gz or .fst\n"
            "kernbench: error: --oplog is 'o.sqlite.gz', and does not write '.sqlite.gz'\n"
            "  hint: give a name that ends in .jsonl, .jsonl.gz, .json, .json.gz, .sqlite, .sqlite3 or .db\n"
            "kernbench: error: --stats is 's.csv', and does not write '.csv'\n"
            "  hint: give a name that ends in .json or .json.gz\n"
            "kernbench: error: --trace is 't.db', and does not write '.db'\n"
            "  hint: give a name that ends in .json or .json.gz\n");
  EXPECT_TRUE(std::filesystem::is_empty(tool.folder().path()) || !std::filesystem::exists(tool.file("t.db")));

  ASSERT_EQ(tool(extended(kSmallestRun, {"--json", "r.json"})).code, 0);
  for (const RunWords& words :
       {RunWords{"report", "r.json", "-o", "r.html.gz"}, RunWords{"diff", "r.json", "r.json", "--html", "d.json.gz"},
        RunWords{"what-if", "r.json", "--keys", "cube.noc.clock", "--json", "w.json.gz"}}) {
    const Outcome refused = tool(words);
    EXPECT_EQ(refused.code, 2) << words.front();
    EXPECT_THAT(refused.err, HasSubstr(".gz', and does not write '.")) << words.front();
  }
}

TEST(OutputFiles, ANameThatSaysNoFormatIsTakenAsItIs) {
  const Tool tool;
  const Outcome outcome = tool(extended(
      kSmallestRun, {"--json", "result", "--trace", "tmp.Xa81", "--oplog", "/dev/null", "--stats", "run.stats.gz"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(read(tool.file("result")), StartsWith("{"));
  EXPECT_THAT(read(tool.file("tmp.Xa81")), StartsWith("{"));
}

TEST(OutputFiles, OfWhatIfAreNoFileThatItsRunReads) {
  const Tool tool;
  std::ofstream(tool.file("ccl.yaml")) << "algorithms:\n  ring: { module: kernbench.ccl.ring }\n";
  std::ofstream(tool.file("p.yaml")) << "cube: column_wise\npe: column_wise\n";
  ASSERT_EQ(tool(extended(kSmallestRun, {"--ccl", "ccl.yaml", "--placement", "p.yaml", "--json", "r.json"})).code, 0);
  for (const char* option : {"--json", "--html"}) {
    for (const char* file : {"ccl.yaml", "p.yaml"}) {
      const std::string before = read(tool.file(file));
      const Outcome refused = tool({"what-if", "r.json", "--keys", "cube.noc.clock", option, file});
      EXPECT_EQ(refused.code, 2) << refused.err;
      EXPECT_EQ(refused.err, "kernbench: error: an input and " + std::string(option) + " are both '" + file +
                                 "'\n  hint: give each a file of its own\n");
      EXPECT_EQ(read(tool.file(file)), before);
    }
  }
}

TEST(OutputFiles, OfPipelineCheckAndShowAreNoWeights) {
  const Tool tool;
  ASSERT_EQ(tool({"pipeline", "export", "--output", "mlp.json", "--in", "64", "--hidden", "64", "--out", "64"}).code,
            0);
  const std::string before = read(tool.file("mlp.safetensors"));
  for (const char* action : {"check", "show"}) {
    const Outcome refused = tool({"pipeline", action, "mlp.json", "--output", "mlp.safetensors"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err,
              "kernbench: error: an input and --output are both 'mlp.safetensors'\n"
              "  hint: give each a file of its own\n");
  }
  EXPECT_EQ(read(tool.file("mlp.safetensors")), before);
}

TEST(ResultFile, WithoutRowsIsNothingToLookAt) {
  const Tool tool;
  ASSERT_EQ(tool(extended(kSmallestRun, {"--json", "r.json"})).code, 0);
  Json result = Json::parse(read(tool.file("r.json")));
  result["results"] = Json::array();
  std::ofstream(tool.file("empty.json")) << result.dump();
  for (const RunWords& words : {RunWords{"report", "empty.json"}, RunWords{"what-if", "empty.json"},
                                RunWords{"diff", "empty.json", "r.json"}, RunWords{"diff", "r.json", "empty.json"}}) {
    const Outcome refused = tool(words);
    EXPECT_EQ(refused.code, 2) << words.front();
    EXPECT_EQ(refused.err,
              "kernbench: error: 'empty.json' has nothing to look at: 'results' is empty\n"
              "  hint: give the result of a run that has rows\n");
  }
  EXPECT_FALSE(std::filesystem::exists(tool.file("empty.html")));
  EXPECT_EQ(tool({"run", "--from", "empty.json", "-q"}).code, 0);
}

TEST(ResultFile, WithAnEditedMachineIsSaidToHaveTimesOfAnother) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "all_reduce", "-b", "1K", "-e", "1K", "-w", "0", "-q", "--json", "r.json"}).code, 0);
  Json result = Json::parse(read(tool.file("r.json")));
  ASSERT_TRUE(result["tuned"].is_string());
  result["config"]["system"]["links"]["latency"] = "300 ns";
  std::ofstream(tool.file("edited.json")) << result.dump();
  const Outcome refused = tool({"run", "--from", "edited.json"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "kernbench: error: 'tuned' in 'edited.json' is not what ships for the machine of its 'config'\n"
            "  hint: if 'config' was edited, leave it as it was and give --set KEY=VALUE; else run it with the version "
            "that wrote the file (" KERNBENCH_VERSION "; this is " KERNBENCH_VERSION
            "), or with --algorithm NAME and without --from\n");
  EXPECT_EQ(tool({"run", "--from", "r.json", "--set", "system.links.latency=300 ns", "-q"}).code, 0);
}

TEST(Sizes, ThatAreTooLargeAreRefusedWithTheLargest) {
  const Tool tool;
  for (const char* size : {"99999999T", "4194304T", "18446744073709551616"}) {
    const Outcome refused = tool({"run", "all_reduce", "-b", size});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, StartsWith("kernbench: error: -b is '" + std::string(size) +
                                        "'; give at most 4611686018427387903 bytes, or 4194303T\n"));
  }
}

}  // namespace
}  // namespace kernbench
