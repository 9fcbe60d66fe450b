#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using nlohmann::json;

/// 6 x 4 x 2 machines of one PE; the time of a small GEMM on them, and what they cost.
constexpr const char* kFile = R"(workload: gemm
topology: minimal
set: {system.sips.count: 1}
options: {m: 32, n: 32, k: 32, data: "off", fidelity: fast}
axes:
  pe.gemm.rows: [4, 8, 12, 16, 24, 32]
  cube.noc.clock: [1 GHz, 2 GHz, 3 GHz, 4 GHz]
  cube.hbm.page_policy: [open, closed]
constraints:
  - cube.noc.clock < 4 * GHz || pe.gemm.rows > 4
objectives:
  - {name: time_ns, goal: minimize}
  - {name: cost, goal: minimize, value: pe.gemm.rows + cube.noc.clock / GHz}
search: {points: 20, population: 8}
)";

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// The `front` and `generations` of a search, and what it says of points.
struct Searched {
  Outcome outcome;
  json result;
};
Searched search(const Tool& tool, const std::vector<std::string>& options = {}) {
  write(tool.file("space.yaml"), kFile);
  std::vector<std::string> arguments{"search", "space.yaml", "--json", "found.json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  Searched out{tool(arguments), {}};
  if (out.outcome.code == 0) out.result = json::parse(read(tool.file("found.json")));
  return out;
}

TEST(SearchCommand, PrintsGenerationsAndFrontAndNamesTheReport) {
  const Tool tool;
  const Searched found = search(tool);
  ASSERT_EQ(found.outcome.code, 0) << found.outcome.err;
  EXPECT_NE(found.outcome.out.find("# search of space: nsga2, seed 1, population 8, at most 20 of 48 points"),
            std::string::npos)
      << found.outcome.out;
  EXPECT_NE(found.outcome.out.find("# Pareto front: "), std::string::npos);
  EXPECT_NE(found.outcome.err.find("kernbench report space.sqlite --sweep space/nsga2-1"), std::string::npos)
      << found.outcome.err;
  EXPECT_EQ(found.result.at("generations").back().at("evaluated"), 20);
  for (const json& point : found.result.at("front")) {
    EXPECT_GT(point.at("objectives").at("time_ns").get<double>(), 0);
    EXPECT_EQ(point.at("coordinates").size(), 3U);
  }
}

TEST(SearchCommand, TakesTheSameWayAgainAtNoCost) {
  const Tool tool;
  const Searched first = search(tool), again = search(tool);
  ASSERT_EQ(again.outcome.code, 0) << again.outcome.err;
  EXPECT_EQ(first.result, again.result);
  EXPECT_EQ(first.outcome.out, again.outcome.out);
  EXPECT_NE(again.outcome.err.find("20 points, 20 of them from the store"), std::string::npos) << again.outcome.err;
}

TEST(SearchCommand, DoesTheSameOnAnyNumberOfProcessesAndAnyStore) {
  const Tool tool;
  const Searched one = search(tool, {"--jobs", "1"});
  ASSERT_EQ(tool({"sweep", "space.yaml", "--store", "grid.sqlite"}).code, 0);
  const Searched cached = search(tool, {"--jobs", "2", "--store", "grid.sqlite"});
  ASSERT_EQ(cached.outcome.code, 0) << cached.outcome.err;
  EXPECT_EQ(one.result, cached.result);
  EXPECT_NE(cached.outcome.err.find("20 points, 20 of them from the store"), std::string::npos) << cached.outcome.err;
}

TEST(SearchCommand, OptionsWinOverTheFile) {
  const Tool tool;
  const Searched found = search(tool, {"--algorithm", "moead", "--points", "12", "--seed", "9", "--population", "12"});
  ASSERT_EQ(found.outcome.code, 0) << found.outcome.err;
  EXPECT_EQ(found.result.at("algorithm"), "moead");
  EXPECT_EQ(found.result.at("seed"), 9);
  EXPECT_EQ(found.result.at("generations").back().at("evaluated"), 12);
}

TEST(SearchCommand, JsonAloneOnStandardOutput) {
  const Tool tool;
  write(tool.file("space.yaml"), kFile);
  const Outcome outcome = tool({"search", "space.yaml", "--json", "-", "--points", "10"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("name"), "space");
}

TEST(SearchCommand, BadSectionsAreLocated) {
  const Tool tool;
  std::string text = kFile;
  text.replace(text.find("search:"), std::string::npos,
               "search:\n  algorithm: nsga3\n  population: 10\n  pints: 20\n  reference: {time_ns: fast}\n");
  write(tool.file("space.yaml"), text);
  const Outcome outcome = tool({"search", "space.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "space.yaml:15:14: error: search.algorithm is 'nsga3'\n"
            "  hint: did you mean 'nsga2'? valid values: nsga2, nspso, moead, random\n"
            "space.yaml:16:15: error: search.population is '10'\n"
            "  hint: give a multiple of 4\n"
            "space.yaml:17:3: error: unknown key 'pints' in 'search'\n"
            "  hint: did you mean 'points'?\n"
            "space.yaml:18:14: error: missing key 'cost' in 'search.reference'\n"
            "  hint: give one number for each objective\n"
            "space.yaml:18:24: error: search.reference.time_ns is 'fast'\n"
            "  hint: give a number in the objective's unit\n");
}

TEST(SearchCommand, OneObjectiveIsTooFew) {
  const Tool tool;
  std::string text = kFile;
  text.erase(text.find("  - {name: cost"), std::string("  - {name: cost, goal: minimize, value: pe.gemm.rows + "
                                                       "cube.noc.clock / GHz}\n")
                                               .size());
  write(tool.file("space.yaml"), text);
  const Outcome outcome = tool({"search", "space.yaml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "space.yaml:12:5: error: a search needs at least two objectives\n"
            "  hint: add another below 'objectives'\n");
}

TEST(SearchCommand, RefusesOptionsWithTheirReason) {
  const Tool tool;
  write(tool.file("space.yaml"), kFile);
  EXPECT_EQ(tool({"search"}).err, "kernbench: error: no sweep file given\n  hint: see 'kernbench search --help'\n");
  EXPECT_EQ(tool({"search", "space.yaml", "--algorithm", "nsga"}).err,
            "kernbench: error: --algorithm is 'nsga'\n  hint: did you mean 'nsga2'?\n");
  EXPECT_EQ(tool({"search", "space.yaml", "--population", "6"}).err,
            "kernbench: error: --population is '6'\n  hint: give a multiple of 4, at least 8\n");
}

TEST(ReportCommand, DrawsSweepAndSearchOfAStore) {
  const Tool tool;
  ASSERT_EQ(search(tool).outcome.code, 0);
  ASSERT_EQ(tool({"sweep", "space.yaml"}).code, 0);
  const Outcome outcome = tool({"report", "space.sqlite", "-o", "report.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("kernbench: wrote report.html: 46 points, ", 0), 0U) << outcome.err;
  const std::string page = read(tool.file("report.html"));
  EXPECT_NE(page.find("\"searches\":[{\"algorithm\":\"nsga2\",\"seed\":1,\"generations\":[{\"number\":0"),
            std::string::npos);
  EXPECT_NE(page.find("<span class=\"figure\">46</span><span class=\"what\">points</span>"), std::string::npos);
  EXPECT_NE(page.find("kernbench run gemm"), std::string::npos);
  ASSERT_EQ(tool({"report", "space.sqlite", "-o", "again.html"}).code, 0);
  EXPECT_EQ(page, read(tool.file("again.html")));
}

TEST(ReportCommand, ChoosesAmongSeveral) {
  const Tool tool;
  ASSERT_EQ(search(tool).outcome.code, 0);
  ASSERT_EQ(search(tool, {"--seed", "2"}).outcome.code, 0);
  const Outcome several = tool({"report", "space.sqlite"});
  EXPECT_EQ(several.code, 2);
  EXPECT_EQ(several.err,
            "kernbench: error: 'space.sqlite' holds 2 sweeps\n"
            "  hint: choose one with --sweep: space/nsga2-1, space/nsga2-2\n");
  const Outcome one = tool({"report", "space.sqlite", "--sweep", "space/nsga2-2"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_NE(read(tool.file("space.html")).find("<h1>space/nsga2-2</h1>"), std::string::npos);
}

TEST(ReportCommand, SaysWhatItTakesOfAFileThatIsNeither) {
  const Tool tool;
  write(tool.file("text.sqlite"), "this is no database, but long enough to look like the head of one, at least a bit");
  const std::string hint =
      "\n  hint: give a result of 'kernbench run --json', or a store of 'kernbench sweep' or 'search'\n";
  const Outcome none = tool({"report"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.err, "kernbench: error: no file given" + hint);
  const Outcome missing = tool({"report", "missing.sqlite"});
  EXPECT_EQ(missing.code, 7);
  EXPECT_EQ(missing.err, "kernbench: error: cannot read 'missing.sqlite': No such file or directory" + hint);
  const Outcome folder = tool({"report", "."});
  EXPECT_EQ(folder.code, 7);
  EXPECT_EQ(folder.err, "kernbench: error: cannot read '.': Is a directory" + hint);
  write(tool.file("empty"), "");
  write(tool.file("list"), "[]");
  for (const std::string file : {"text.sqlite", "empty", "list"}) {
    const Outcome other = tool({"report", file});
    EXPECT_EQ(other.code, 2);
    EXPECT_EQ(other.err, "kernbench: error: '" + file + "' is no result of a run, and no store of a sweep" + hint);
  }
}

}  // namespace
}  // namespace kernbench
