#include <gmock/gmock.h>

#include <set>

#include "tests/cli/schema_check.h"
#include "tests/compare/throttled.h"

namespace kernbench {
namespace {
using Json = nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Two SIPs of one cube with four PEs each: what a run of few milliseconds needs.
const std::vector<std::string> kSmall{
    "--topology",        "ring8",  "--set", "system.sips.count=2", "--set", "sip.cube_mesh.w=1", "--set",
    "sip.cube_mesh.h=1", "--data", "off"};

std::vector<std::string> small_all_reduce(const std::string& bytes, const std::vector<std::string>& more) {
  std::vector<std::string> run{"all_reduce", "-b", bytes, "-e", bytes};
  run.insert(run.end(), kSmall.begin(), kSmall.end());
  run.insert(run.end(), more.begin(), more.end());
  return run;
}

TEST(WhatIf, NamesSlowDispatchFirstAndItsSavingIsThatOfARunWithTheValue) {
  const Tool tool;
  const Throttled machine{"slow dispatch", small_all_reduce("4K", {"--set", "pe.cpu.dispatch=300 ns"}), "",
                          "pe.cpu.dispatch", ""};
  const Json found = what_if_of(tool, machine);
  ASSERT_FALSE(found.is_null());
  EXPECT_THAT(named_first(found), Contains(wanted(machine)));
  EXPECT_TRUE(found["same"].get<bool>());
  EXPECT_EQ(found["changes"][0]["to"], "150 ns");
  const Json whole = json_of(read(tool.file("tried.json")));
  EXPECT_EQ(schema_errors(whole), "");

  const std::string algorithm = whole["results"][0]["algorithm"];  // what-if holds it fast; auto might take another one
  ASSERT_EQ(tool({"run", "--from", "run.json", "--set", "pe.cpu.dispatch=150 ns", "--algorithm", algorithm, "--json",
                  "faster.json", "-q"})
                .code,
            0);
  const double before = whole["results"][0]["time_ns"],
               after = json_of(read(tool.file("faster.json")))["results"][0]["time_ns"];
  EXPECT_DOUBLE_EQ(found["changes"][0]["time_ns"].get<double>(), after);
  EXPECT_NEAR(found["changes"][0]["saved_ns"].get<double>(), before - after, 5e-4);  // whole picoseconds
  // Ranked by what they save, those that did not run last.
  double last = before;
  for (const Json& change : found["changes"]) {
    if (change["state"] != "ran") continue;
    EXPECT_LE(change["saved_ns"].get<double>(), last + 1e-9) << change["key"];
    last = change["saved_ns"];
  }
}

TEST(WhatIf, NamesFewSlotsFirst) {
  const Tool tool;
  const Throttled machine{"few slots", small_all_reduce("64K", {"--set", "pe.ipcq.slots=1"}), "", "pe.ipcq.slots", ""};
  const Json found = what_if_of(tool, machine);
  ASSERT_FALSE(found.is_null());
  EXPECT_THAT(named_first(found), Contains(wanted(machine)));
}

TEST(WhatIf, NamesTheOneSlowCubeFirst) {
  const Tool tool;
  const Throttled machine{"one slow cube",
                          {"all_reduce", "-b", "16K", "-e", "16K", "--topology", "machine.yaml", "--set",
                           "sip.cube_mesh.h=1", "--data", "off"},
                          "- match: sip1.cube1\n  cube: {noc: {clock: 50 MHz}}\n",
                          "cube.noc.clock",
                          "sip1.cube1"};
  write_machine(tool, machine);
  const Json found = what_if_of(tool, machine);
  ASSERT_FALSE(found.is_null());
  EXPECT_THAT(named_first(found), Contains(wanted(machine)));
}

TEST(WhatIf, TriesOnlyTheKeysThatAreAskedForAndTheirPairs) {
  const Tool tool;
  std::vector<std::string> run = small_all_reduce("16K", {"--json", "run.json", "-q"});
  run.insert(run.begin(), "run");
  ASSERT_EQ(tool(run).code, 0);
  const Outcome tried =
      tool({"what-if", "run.json", "--keys", "system.links.l*", "--keys", "cube.noc.clock", "--pairs", "--json", "-"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Json found = json_of(tried.out)["what_if"];
  std::set<std::string> keys;
  for (const Json& change : found["changes"]) keys.insert(change["key"]);
  EXPECT_EQ(keys, (std::set<std::string>{"cube.noc.clock", "system.links.lanes", "system.links.lane_rate",
                                         "system.links.latency"}));
  ASSERT_TRUE(found.contains("pairs"));
  ASSERT_FALSE(found["pairs"].empty());  // of those that save something: latency and clock
  EXPECT_EQ(found["pairs"][0]["state"], "ran");
}

TEST(WhatIf, ARunThatIsNotWhatItWasIsSaid) {
  const Tool tool;
  std::vector<std::string> run = small_all_reduce("4K", {"--json", "run.json", "-q"});
  run.insert(run.begin(), "run");
  ASSERT_EQ(tool(run).code, 0);
  Json file = json_of(read(tool.file("run.json")));
  file["results"][0]["time_ns"] = file["results"][0]["time_ns"].get<double>() + 1;
  std::ofstream(tool.file("run.json")) << file.dump();
  const Outcome tried = tool({"what-if", "run.json", "--keys", "cube.noc.clock"});
  EXPECT_EQ(tried.code, 0);
  EXPECT_THAT(tried.out, HasSubstr("# WARNING: the run itself takes"));
}

TEST(WhatIf, AValueThatNoMachineCanHaveIsNamedAndStopsNothing) {
  const Tool tool;
  // 11 rings of 256 * 4 KiB fit into the TCM of 16 MiB, rings of twice the size do not.
  std::vector<std::string> run = small_all_reduce("4K", {"--set", "pe.ipcq.slots=256", "--json", "run.json", "-q"});
  run.insert(run.begin(), "run");
  ASSERT_EQ(tool(run).code, 0);
  const Outcome tried =
      tool({"what-if", "run.json", "--keys", "pe.ipcq.slot_size", "--keys", "pe.cpu.dispatch", "--json", "-"});
  EXPECT_EQ(tried.code, 0) << tried.err;
  const Json found = json_of(tried.out)["what_if"];
  ASSERT_EQ(found["changes"].size(), 2U);
  EXPECT_EQ(found["changes"][0]["key"], "pe.cpu.dispatch");
  EXPECT_EQ(found["changes"][0]["state"], "ran");
  EXPECT_EQ(found["changes"][1]["state"], "refused");
  EXPECT_THAT(found["changes"][1]["error"].get<std::string>(), HasSubstr("pe.tcm.size is 16 MiB"));
}

TEST(WhatIf, HoldsTheMappingOfAGemm) {
  const Tool tool;
  const std::vector<std::string> run{"run",
                                     "gemm",
                                     "--topology",
                                     "ring8",
                                     "--m",
                                     "512",
                                     "--n",
                                     "512",
                                     "--k",
                                     "512",
                                     "--fidelity",
                                     "fast",
                                     "--data",
                                     "off",
                                     "-q",
                                     "--set",
                                     "system.sips.count=1",
                                     "--json",
                                     "run.json"};
  ASSERT_EQ(tool(run).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "cube.hbm.timing.t_cl", "--json", "-"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Json found = json_of(tried.out)["what_if"];
  EXPECT_THAT(found["options"], Contains("--mapping"));
  EXPECT_TRUE(found["same"].get<bool>());
  // Left to itself the planner takes another one, which is 45 % slower.
  EXPECT_LT(std::abs(found["changes"][0]["saved_fraction"].get<double>()), 0.05);
}

TEST(WhatIf, SaysWhereALayersGemmTakesAnotherMapping) {
  const Tool tool;
  ASSERT_EQ(
      tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "-w", "0", "-q", "--json", "run.json"}).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "pe.gemm.cols", "--json", "tried.json"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Json whole = json_of(read(tool.file("tried.json"))), change = whole["what_if"]["changes"][0];
  EXPECT_EQ(schema_errors(whole), "");
  ASSERT_TRUE(change.contains("mappings")) << change;
  EXPECT_THAT(change["mappings"][0].get<std::string>(), HasSubstr("fc2 stream:"));
  EXPECT_THAT(tried.out, HasSubstr("other tiles: fc2\n"));
}

TEST(WhatIf, AFailingRunIsNotedAndEndsWithItsExitCode) {
  const Tool tool;
  // Twice the launches at once share the TCM, and half of its share does not hold the tiles that are asked for: a legal
  // machine, no legal run.
  ASSERT_EQ(tool({"run", "gemm", "--topology", "minimal", "--m", "512", "--n", "512", "--k", "512", "--mapping",
                  "stream:128x512x256,rows=1,chains=1", "--set", "pe.tcm.size=4 MiB", "--data", "off", "--json",
                  "run.json", "-q"})
                .code,
            0);
  const Outcome tried =
      tool({"what-if", "run.json", "--keys", "pe.cpu.kernel_contexts", "--keys", "pe.gemm.clock", "--json", "-"});
  EXPECT_EQ(tried.code, 6) << tried.err;
  const Json found = json_of(tried.out)["what_if"];
  ASSERT_EQ(found["changes"].size(), 2U);
  EXPECT_EQ(found["changes"][0]["key"], "pe.gemm.clock");
  EXPECT_EQ(found["changes"][0]["state"], "ran");
  EXPECT_EQ(found["changes"][1]["state"], "failed");
  EXPECT_EQ(found["changes"][1]["exit_code"], 8);
}

TEST(WhatIf, RefusesWhatIsNoResult) {
  const Tool tool;
  EXPECT_EQ(tool({"what-if", "none.json"}).code, 7);
  std::ofstream(tool.file("text.json")) << "{\"command\": [\"sweep\"]}";
  const Outcome refused = tool({"what-if", "text.json"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("'text.json' is no result of 'kernbench run'"));
  EXPECT_EQ(tool({"what-if"}).code, 2);
}

TEST(WhatIf, OfARunStandsInItsResult) {
  const Tool tool;
  std::vector<std::string> run = small_all_reduce("4K", {"--what-if", "--json", "run.json"});
  run.insert(run.begin(), "run");
  const Outcome done = tool(run);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("# what if: time_ns of all_reduce, 4096 B"));
  const Json file = json_of(read(tool.file("run.json")));
  EXPECT_EQ(schema_errors(file), "");
  EXPECT_EQ(file["what_if"]["baseline_ns"], file["results"][0]["time_ns"]);
}

// Who waits behind packets that wait for something is named what those wait for. All ten machines: throttled_complete.
TEST(CriticalPathKeys, NameWhereBackPressureComesFrom) {
  unsigned tried = 0;
  for (const Throttled& machine : throttled_machines()) {
    if (machine.name != "slow UCIe side" && machine.name != "small link buffers" && machine.name != "a broken link")
      continue;
    const Tool tool;
    write_machine(tool, machine);
    EXPECT_EQ(named_instead(tool, machine), "") << machine.name;
    ++tried;
  }
  EXPECT_EQ(tried, 3U);
}

}  // namespace
}  // namespace kernbench
