#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"
#include "tests/report/browser.h"

namespace kernbench {
namespace {
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

/// Two runs that differ in the HBM's clock alone: a.json and b.json.
class Diff : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "--stats-in-json", "--json", "a.json", "-q"})
            .code,
        0);
    ASSERT_EQ(tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "--set", "cube.hbm.clock=800 MHz",
                    "--stats-in-json", "--json", "b.json", "-q"})
                  .code,
              0);
  }
  Json of(const std::string& name) const { return json_of(read(tool.file(name))); }
  Tool tool;
};

TEST_F(Diff, NamesTheKeyThatDiffersTheRatioOfEveryRowAndTheKernelsBehindIt) {
  const Outcome found = tool({"diff", "a.json", "b.json", "--json", "-"});
  ASSERT_EQ(found.code, 0) << found.err;
  const Json diff = json_of(found.out), a = of("a.json"), b = of("b.json");
  ASSERT_EQ(diff["config"].size(), 1U);
  EXPECT_EQ(diff["config"][0], (Json{{"key", "cube.hbm.clock"}, {"a", "1.6 GHz"}, {"b", "800 MHz"}}));
  ASSERT_EQ(diff["results"]["rows"].size(), a["results"].size());
  for (std::size_t i = 0; i < a["results"].size(); ++i) {
    const double before = a["results"][i]["time_ns"], after = b["results"][i]["time_ns"];
    EXPECT_DOUBLE_EQ(diff["results"]["rows"][i]["ratio"].get<double>(), after / before);
  }
  // What a layer takes longer its parts take longer, the parts added up.
  for (const Json& layer : diff["layers"]) {
    double parts = 0;
    for (const Json& part : layer["parts"]) parts += part["part"] == "hidden_ns" ? 0 : part["change_ns"].get<double>();
    EXPECT_NEAR(parts, layer["b_ns"].get<double>() - layer["a_ns"].get<double>(), 1e-6) << layer["layer"];
  }
  const Json& fc1 = diff["layers"][1];
  EXPECT_EQ(fc1["layer"], "tp_mlp, fc1");
  EXPECT_EQ(fc1["kernels"][0]["kernel"], "fc1");
  EXPECT_GT(fc1["kernels"][0]["change_ns"].get<double>(), 0) << "half the clock makes a kernel bound by HBM slower";
}

// Half the clock: the bursts of a channel take twice the time, its bytes are the same.
TEST_F(Diff, OfResourcesSaysWhichAreBusyForLonger) {
  const Outcome text = tool({"diff", "a.json", "b.json"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("cube.hbm.clock"));
  EXPECT_THAT(text.out,
              ::testing::ContainsRegex("# resources: [0-9]+ differ, the largest change of busy time first\n"));
  EXPECT_THAT(text.out, ::testing::ContainsRegex("  sip0.cube0.hbm.ch0 +hbm_channel  busy +[0-9.]+% -> +[0-9.]+%"));
  const Json diff = json_of(tool({"diff", "a.json", "b.json", "--json", "-"}).out);
  unsigned channels = 0;
  for (const Json& resource : diff["resources"]) {
    if (resource["kind"] != "hbm_channel") continue;
    ++channels;
    EXPECT_NEAR(resource["ratio"].get<double>(), 2, 1e-9) << resource;
    EXPECT_EQ(resource["a_bytes"], resource["b_bytes"]);
  }
  EXPECT_GT(channels, 0U);
  double last = std::numeric_limits<double>::infinity();
  for (const Json& resource : diff["resources"]) {
    const double change = std::abs(resource["change_ps"].get<double>());
    EXPECT_LE(change, last);
    last = change;
  }
}

TEST_F(Diff, OfAFileWithItselfIsNothing) {
  const Json diff = json_of(tool({"diff", "a.json", "a.json", "--json", "-"}).out);
  EXPECT_TRUE(diff["config"].empty());
  EXPECT_TRUE(diff["settings"].empty());
  EXPECT_EQ(diff["time"]["ratio"], 1.0);
  EXPECT_TRUE(diff["resources"].empty());
  for (const Json& row : diff["results"]["rows"]) EXPECT_TRUE(row["values"].empty()) << row;
}

TEST_F(Diff, RowsOfOneSideOnlyAreNamed) {
  Json b = of("b.json");
  b["results"].erase(1);
  std::ofstream(tool.file("b.json")) << b.dump();
  const Json diff = json_of(tool({"diff", "a.json", "b.json", "--json", "-"}).out);
  EXPECT_EQ(diff["results"]["only_a"], Json::array({"tp_mlp, fc1"}));
  EXPECT_TRUE(diff["results"]["only_b"].empty());
}

TEST_F(Diff, RefusesWhatIsNoResult) {
  std::ofstream(tool.file("bad.json")) << "{\"a\":";
  const Outcome broken = tool({"diff", "a.json", "bad.json"}), gone = tool({"diff", "a.json", "gone.json"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("'bad.json' is no JSON (byte "));
  EXPECT_EQ(gone.code, 7);
  EXPECT_THAT(gone.err, HasSubstr("cannot read 'gone.json': No such file or directory"));
  EXPECT_EQ(tool({"diff", "a.json"}).code, 2);
  Json other = of("b.json");
  other["energy"][0]["dynamic_pj"] = nullptr;
  std::ofstream(tool.file("other.json")) << other.dump();
  const Outcome type = tool({"diff", "a.json", "other.json"});
  EXPECT_EQ(type.code, 2);
  EXPECT_THAT(type.err, HasSubstr("'a.json' or 'other.json' holds a value of a type that 'kernbench run' does not"));
}

/// A result file is hours of work.
TEST_F(Diff, AndItsLikeWriteOverNoResultAndNoTwoOutputsIntoOneFile) {
  const std::string kept = read(tool.file("a.json"));
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"diff", "a.json", "b.json", "--html", "a.json"}, Words{"diff", "a.json", "b.json", "--json", "./b.json"},
        Words{"diff", "a.json", "b.json", "--json", "q", "--html", "q"}, Words{"report", "a.json", "-o", "a.json"},
        Words{"what-if", "a.json", "--keys", "system.links.latency", "--html", "a.json"},
        Words{"what-if", "a.json", "--keys", "system.links.latency", "--json", "q", "--html", "q"},
        Words{"run", "--from", "a.json", "--report", "a.json"},
        Words{"run", "p2p", "--vcd", "v.vcd", "--oplog", "v.states"}}) {
    const Outcome refused = tool(words);
    EXPECT_EQ(refused.code, 2) << refused.out;
    EXPECT_NE(refused.err.find(" are both "), std::string::npos) << refused.err;
  }
  EXPECT_EQ(read(tool.file("a.json")), kept);
}

TEST_F(Diff, AndItsLikeRefuseAResultOfOtherTypes) {
  auto result = json_of(read(tool.file("a.json")));
  const auto refused = [&](const std::string& key, const Json& value, const std::vector<std::string>& words) {
    auto changed = result;
    value.is_null() ? static_cast<void>(changed.erase(key)) : static_cast<void>(changed[key] = value);
    std::ofstream(tool.file("changed.json")) << changed;
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 2) << key << outcome.err;
  };
  const std::vector<std::string> report{"report", "changed.json"};
  refused("results", nullptr, {"what-if", "changed.json", "--keys", "system.links.latency"});
  refused("results", 5, report);
  refused("statistics", Json::array(), report);
  refused("statistics", {{"resources", {{{"name", 3}}}}}, report);
}

TEST_F(Diff, AndReportNameTheFileWhoseMachineIsWrong) {
  auto result = json_of(read(tool.file("a.json")));
  result["config"]["pe"]["gemm"]["dataflow"] = "-0";
  std::ofstream(tool.file("changed.json")) << result;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"report", "changed.json"}, {"what-if", "changed.json", "--keys", "pe.*"}}) {
    const Outcome outcome = tool(words);
    EXPECT_EQ(outcome.code, 2) << words.front();
    EXPECT_NE(outcome.err.find("changed.json"), std::string::npos) << outcome.err;
  }
}

TEST_F(Diff, SaysOfBothWhatTimesTheyAre) {
  const Outcome one = tool({"run", "all_reduce", "-b", "64", "-e", "64", "--topology", "minimal", "--set",
                            "system.sips.count=2", "--data", "off", "--json", "c.json"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(tool({"diff", "a.json", "c.json"}).out.find("; B is time_ns of all_reduce, 64 B"), std::string::npos);
  EXPECT_EQ(tool({"diff", "a.json", "b.json"}).out.find("; B is"), std::string::npos);
}

TEST_F(Diff, NamesTheKeyThatOnlyOneOfTheMachinesHas) {
  ASSERT_EQ(tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "--set",
                  "overrides=[{match: sip0.cube0, cube: {hbm: {clock: 800 MHz}}}]", "--json", "slow.json", "-q"})
                .code,
            0);
  const Json there = json_of(tool({"diff", "a.json", "slow.json", "--json", "-"}).out)["config"],
             gone = json_of(tool({"diff", "slow.json", "a.json", "--json", "-"}).out)["config"];
  const Json slow = there.back();
  EXPECT_EQ(slow, (Json{{"key", "overrides[sip0.cube0].cube.hbm.clock"}, {"a", nullptr}, {"b", "800 MHz"}}));
  EXPECT_EQ(gone.size(), there.size());
  EXPECT_TRUE(std::find(gone.begin(), gone.end(), Json{{"key", slow["key"]}, {"a", slow["b"]}, {"b", nullptr}}) !=
              gone.end())
      << gone;
}

TEST_F(Diff, PageHasTheSameInABrowser) {
  ASSERT_EQ(tool({"diff", "a.json", "b.json", "--html", "diff.html"}).code, 0);
  const Rendered page = render_in_browser(tool.folder(), read(tool.file("diff.html")));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("data-drawn=\"yes\""), std::string::npos);
  EXPECT_NE(page.dom.find("<td>cube.hbm.clock</td><td>1.6 GHz</td><td>800 MHz</td>"), std::string::npos);
  EXPECT_EQ(count_of(page.dom, "class=\"b\""), 4U);  // set-up, two layers, their sum
}

}  // namespace
}  // namespace kernbench
