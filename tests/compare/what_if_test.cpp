#include <gmock/gmock.h>

#include <set>

#include "tests/cli/schema_check.h"
#include "tests/compare/throttled.h"
#include "tests/workloads/small_transformer.h"

namespace kernbench {
namespace {
using Json = nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Two SIPs of one cube with four PEs each: what a run of few milliseconds needs.
const std::vector<std::string> kSmall{
    "--topology",        "ring8",  "--set", "system.sips.count=2", "--set", "sip.cube_mesh.w=1", "--set",
    "sip.cube_mesh.h=1", "--data", "off"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

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

/// A UCIe link is trained to the lower rate of its two ends.
TEST(WhatIf, TriesBothEndsOfALinkTogetherWhereNeitherAloneHelps) {
  const Tool tool;
  const Throttled ends{
      "both ends slow",
      small_all_reduce("16K", {"--set", "cube.ucie.lane_rate=250 MT/s", "--set", "sip.io.ucie.lane_rate=250 MT/s"}), "",
      "sip.io.ucie.lane_rate + cube.ucie.lane_rate", ""};
  const Json found = what_if_of(tool, ends);
  ASSERT_FALSE(found.is_null());
  EXPECT_THAT(named_first(found), Contains(ends.key));
  for (const Json& change : found["changes"]) {
    if (change["key"] != "cube.ucie.lane_rate" && change["key"] != "sip.io.ucie.lane_rate") continue;
    EXPECT_LT(change["saved_ns"].get<double>(), found["changes"][0]["saved_ns"].get<double>() / 2) << change;
  }
  EXPECT_EQ(schema_errors(json_of(read(tool.file("tried.json")))), "");
}

TEST(WhatIf, TriesBothEndsOfALinkBetweenTwoCubesThatDiffer) {
  const Tool tool;
  const Throttled cubes{"two slow cubes",
                        {"all_reduce", "-b", "16K", "-e", "16K", "--topology", "machine.yaml", "--set",
                         "sip.cube_mesh.h=1", "--data", "off"},
                        "- match: sip0.cube0\n  cube: {ucie: {lane_rate: 200 MT/s}}\n"
                        "- match: sip0.cube1\n  cube: {ucie: {lane_rate: 220 MT/s}}\n",
                        "",
                        ""};
  write_machine(tool, cubes);
  ASSERT_EQ(tool(with({"run"}, with(cubes.run, {"--json", "run.json", "-q"}))).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "cube.ucie.lane_rate", "--json", "-"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(named_first(json_of(tried.out)["what_if"]),
              Contains("cube.ucie.lane_rate of sip0.cube0 + cube.ucie.lane_rate of sip0.cube1"));
}

/// Nothing is left out without a word: a line for each value that cannot be, and for each reason.
TEST(WhatIf, SaysWhatItDidNotTryAndWhy) {
  const Tool tool;
  ASSERT_EQ(tool(with({"run"}, small_all_reduce("4K", {"--json", "run.json", "-q"}))).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "cube.ucie.*", "--keys", "cube.sram.*"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out, HasSubstr("\n# refused, no legal machine: cube.ucie.connections "));
  EXPECT_THAT(tried.out, HasSubstr("\n# not tried one by one, since nothing changes with all at once: "));
  EXPECT_THAT(tried.out, HasSubstr(" keys of cube.sram"));
  EXPECT_THAT(tried.out, HasSubstr("\n# not tried, there is nothing better: cube.ucie.bit_errors"));
  EXPECT_THAT(tried.out, HasSubstr("\n# not tried, neither way is better: policies, shapes, sizes that programs see, "
                                   "energy\n"));
}

TEST(WhatIf, WarnsOfTheMachineAsTheRunDoes) {
  const Tool tool;
  const Outcome run = tool(
      with({"run"}, small_all_reduce("4K", {"--set", "system.links.buffer_packets=2", "--json", "run.json", "-q"})));
  ASSERT_THAT(run.err, HasSubstr("warning: system.links.buffer_packets is 2, less than "));
  const Outcome tried = tool({"what-if", "run.json", "--keys", "cube.noc.clock"});
  EXPECT_THAT(tried.err, HasSubstr(" warning: system.links.buffer_packets is 2, less than "));
  EXPECT_THAT(tried.err, ::testing::StartsWith("run.json:"));
}

/// What a change shifts may meet another refresh.
TEST(WhatIf, ASavingThatARefreshMayMakeOrHideIsMarked) {
  const Tool tool;
  const auto tried = [&](const std::vector<std::string>& more) {
    EXPECT_EQ(tool(with({"run"}, small_all_reduce("64K", with(more, {"--json", "run.json", "-q"})))).code, 0);
    const Outcome outcome = tool(
        {"what-if", "run.json", "--keys", "cube.hbm.timing.*", "--keys", "system.links.latency", "--json", "t.json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::pair(json_of(read(tool.file("t.json")))["what_if"], outcome.out);
  };
  const auto [found, text] = tried({});
  const double chance = found["refreshes"]["chance_ns"];
  EXPECT_DOUBLE_EQ(chance, 350);  // t_rfc_ab, 560 cycles at 1.6 GHz: less than an interval is timed
  bool below = false;
  for (const Json& change : found["changes"]) {
    const double saved = change["saved_ns"].is_number() ? std::abs(change["saved_ns"].get<double>()) : 0;
    below |= saved > 0 && saved < chance;
  }
  EXPECT_TRUE(below);
  EXPECT_THAT(text, HasSubstr("%? "));
  EXPECT_THAT(text, HasSubstr("# ? of less than 0.350 us: where refreshes of the memories fall may make or hide it; "));

  const auto [calm, plain] = tried({"--set", "cube.hbm.refresh=none"});
  EXPECT_TRUE(calm["refreshes"].is_null());
  EXPECT_THAT(plain, ::testing::Not(HasSubstr("%? ")));
}

TEST(WhatIf, NamesTheKeyThatSavesMoreThanItsWholePart) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "-q", "--json", "run.json"}).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "pe.math.*", "--json", "t.json"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  const Json found = json_of(read(tool.file("t.json")))["what_if"], part = found["parts"][0],
             best = found["changes"][0];
  ASSERT_LT(part["saved_ns"].get<double>(), best["saved_ns"].get<double>());
  EXPECT_EQ(part["less_than"], best["key"]);
  EXPECT_THAT(tried.out, HasSubstr("  " + best["key"].get<std::string>() + " alone saves more: the others cost time"));
  // Ranks count keys that change the time.
  std::size_t rank = 0;
  for (const Json& change : found["changes"]) {
    if (change["saved_ns"] == 0) {
      EXPECT_TRUE(change["rank"].is_null());
    } else {
      EXPECT_LE(change["rank"].get<std::size_t>(), ++rank);
    }
  }
}

/// A model's rows have each GEMM in its layer and in the sum of all layers.
TEST(WhatIf, CountsAModelsGemmOnce) {
  const Tool tool;
  const std::string model =  // wide enough for a wider array to be given other tiles
      "layers: 2\nwidth: 256\nheads: 8\nkv_heads: 4\nhead_dim: 32\nmlp_width: 512\ngated: true\nactivation: silu\n"
      "norm: rms\nepsilon: 1e-5\nvocabulary: 70\nposition: rotary\nrope_theta: 1000\npositions: 64\nbiases: false\n"
      "tied: false\n";
  const std::vector<std::string> run = small_transformer(tool, {"--data", "off"}, model, "1");
  ASSERT_EQ(tool(with(run, {"--json", "run.json", "-q"})).code, 0);
  const Outcome tried = tool({"what-if", "run.json", "--keys", "pe.gemm.cols", "--json", "-"});
  ASSERT_EQ(tried.code, 0) << tried.err;
  bool changed = false;
  const Json found = json_of(tried.out)["what_if"];
  for (const Json& change : found["changes"]) {
    for (const Json& mapping : change.value("mappings", Json::array())) {
      changed = true;
      EXPECT_THAT(mapping.get<std::string>(), ::testing::Not(HasSubstr(" layer")));
    }
  }
  EXPECT_TRUE(changed);
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
