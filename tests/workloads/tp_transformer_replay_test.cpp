// tp_transformer with replay and without, and what it says of the machine's work.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;
using Args = std::vector<std::string>;

Args three_layers(const Tool& tool, const Args& more) { return small_transformer(tool, more, small_model(3), "3"); }

TEST(TpTransformer, SaysThatNothingIsRepeatedWhereWavesShowTheWholeRun) {
  const Tool tool;
  const Args sizes{"--data", "off", "--fidelity", "fast", "--layers", "1"};
  EXPECT_THAT(tool(three_layers(tool, sizes)).out, HasSubstr("\n# replay: "));
  const auto with = [&](const Args& more) {
    Args all = sizes;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Args closer = with({"--vcd", "w.vcd", "--wave-filter", "sip0.**"});
  EXPECT_THAT(tool(three_layers(tool, closer)).out, HasSubstr("\n# replay: off: what is looked at is simulated\n"));
  const Outcome refused = tool(three_layers(tool, with({"--vcd", "w.vcd", "--replay", "on"})));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--replay on with waves of the whole run"));
  Args off = closer;
  off.insert(off.end(), {"--replay", "off"});
  EXPECT_THAT(tool(three_layers(tool, off)).out, ::testing::Not(HasSubstr("# replay")));
}

/// Ops of an op log: how many of each component, kind, kernel and parameters, addresses among them.
struct OpSums {
  std::map<std::string, std::uint64_t> sums;
  std::map<std::string, double> time;  ///< ps, of each kind of op
  std::set<std::uint64_t> ids;
  std::uint64_t number = 0, repeats = 0, twice = 0;  ///< twice: with an id that another one has
};
OpSums sums_of(const std::string& path) {
  OpSums ops;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto op = nlohmann::json::parse(line);
    const std::string kind = op["op_name"];
    ++ops.sums[op["component"].get<std::string>() + " " + kind + " " + op["kernel"].get<std::string>() + " " +
               op["params"].dump()];
    const std::uint64_t id = op["op"];
    if (op["stage"] == "" && id != 0) ops.twice += ops.ids.insert(id).second ? 0 : 1;
    ops.time[kind] += op["t_end"].get<double>() - op["t_start"].get<double>();
    ops.repeats += op.value("repeat", false) ? 1 : 0;
    ++ops.number;
  }
  return ops;
}

/// Each op of each PE, whether its launch was simulated or repeated. What looks up tokens does one thing more or less
/// (LaunchOptions::work).
TEST(TpTransformer, WithReplayTheOpLogIsAsCompleteAsWithout) {
  const Tool tool;
  const auto log = [&](const char* replay) {
    const std::string file = std::string("o_") + replay + ".jsonl";
    const Outcome outcome = tool(three_layers(
        tool, {"--data", "off", "--fidelity", "fast", "--decode", "4", "--oplog", file, "--replay", replay}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    OpSums ops = sums_of(tool.file(file));
    for (auto sum = ops.sums.begin(); sum != ops.sums.end();)
      sum = sum->first.find(" embedding") != std::string::npos ? ops.sums.erase(sum) : std::next(sum);
    return ops;
  };
  const OpSums with = log("on"), without = log("off");
  EXPECT_EQ(with.sums, without.sums);
  EXPECT_EQ(without.repeats, 0U);
  EXPECT_GT(with.repeats, with.number / 3);
  EXPECT_EQ(with.twice, 0U);
  for (const auto& [kind, time] : without.time) EXPECT_NEAR(with.time.at(kind), time, 0.05 * time) << kind;
}

/// Slices of a SIP by kind and name, and arrows; levels and states, of which some become one, are left out.
TEST(TpTransformer, WithReplayTheTraceHasTheOpsKernelsAndArrowsOfARunWithout) {
  const Tool tool;
  std::uint64_t repeats = 0;
  const auto slices = [&](const char* replay) {
    const std::string file = std::string("t_") + replay + ".json";
    const Outcome outcome =
        tool(three_layers(tool, {"--data", "off", "--fidelity", "fast", "--decode", "4", "--trace-filter",
                                 "sip1.cube0.**", "--trace", file, "--replay", replay}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::ifstream stream(tool.file(file));
    const nlohmann::ordered_json trace = nlohmann::ordered_json::parse(stream);
    EXPECT_EQ(schema_errors(trace, "trace.schema.json"), "");
    std::map<std::string, std::uint64_t> counts;
    for (const auto& event : trace["traceEvents"]) {
      const std::string kind = event["ph"], category = event.value("cat", "");
      if (kind != "X" && kind != "s" && kind != "f") continue;
      const auto args = event.value("args", nlohmann::ordered_json::object());
      repeats += args.value("repeat", false) ? 1 : 0;
      if (category == "state" || category == "stall" || args.value("kernel", "") == "embedding") continue;
      ++counts[kind + " " + category + " " + event["name"].get<std::string>()];
    }
    return counts;
  };
  const auto without = slices("off");
  EXPECT_EQ(repeats, 0U);
  const auto with = slices("on");
  EXPECT_GT(repeats, 0U);
  EXPECT_EQ(with, without);
}

/// Sums of a run: time and energy of prompt and decode steps.
struct InAll {
  double time_ns = 0, energy_pj = 0;
  nlohmann::ordered_json utilisation;
};
InAll in_all(const nlohmann::ordered_json& result) {
  for (const auto& row : result["results"]) {
    if (!row.contains("request")) continue;
    const auto& request = row["request"];
    return {request["time_ns"], request["energy_pj"], request["utilisation"]};
  }
  ADD_FAILURE() << "no row says what the request takes";
  return {};
}

/// The MACs of arrays are those of the matrices, and what attention multiplies; HBM moves all weights in each step.
TEST(TpTransformer, UtilisationIsWorkDividedByWhatTheMachineDoesInItsTime) {
  const Tool tool;
  const auto result = json_of(
      tool(three_layers(tool, {"--data", "off", "--ends", "0", "--decode", "4", "--layers", "2", "--json", "-"})).out);
  EXPECT_EQ(schema_errors(result), "");
  const double pes = 4 * 2 * 2, cells = 32 * 32, clock = 1.6e9;
  const double width = 32, heads = 8 * 8, kv = 4 * 8, mlp = 48, weights = width * (2 * heads + 2 * kv + 3 * mlp);
  const double rows = 2 * (5 + 4), attention = 2 * 2 * heads * (5 * 5 + 6 + 7 + 8 + 9);  // batch 2
  const InAll all = in_all(result);
  const double macs = all.utilisation["gemm"].get<double>() * pes * cells * clock * all.time_ns * 1e-9;
  EXPECT_GE(macs, 2 * rows * weights * 0.99) << "a layer's matrices";
  EXPECT_LE(macs, 2 * (rows * weights + 4 * attention)) << "with attention in whole tiles";
  std::map<std::string, double> of_layers, of_all;  // energy, by phase
  for (const auto& row : result["results"]) {
    if (!row.contains("energy_pj")) continue;
    (row["layer"] == "all" ? of_all : of_layers)[row["phase"]] += row["energy_pj"].get<double>();
    EXPECT_GT(row["utilisation"]["gemm"].get<double>(), 0) << row["layer"];
  }
  for (const auto& [phase, energy] : of_all) EXPECT_NEAR(of_layers[phase], energy, 0.02 * energy) << phase;
  for (const auto& row : result["results"]) {
    if (row["layer"] != "all") continue;
    const double steps = row["steps"].get<double>();
    const double bytes = row["utilisation"]["hbm"].get<double>() * pes * 102.4e9 * row["time_ns"].get<double>() * 1e-9;
    EXPECT_GE(bytes, 2 * 2 * weights) << row["phase"] << ": two layers of two bytes each";
    EXPECT_GT(row["utilisation"]["noc"].get<double>(), 0) << steps;
    EXPECT_GT(row["utilisation"]["ucie"].get<double>(), 0);
    EXPECT_GT(row["utilisation"]["links"].get<double>(), 0);
  }
}

TEST(TpTransformer, ThePartsOfAModelHaveTheWorkThatIsTheirs) {
  const Tool tool;
  const auto result =
      json_of(tool(three_layers(tool, {"--data", "off", "--decode", "0", "--layers", "2", "--json", "-"})).out);
  std::map<std::string, double> products_ns;  // that the arrays would take at their peak
  for (const auto& row : result["results"]) {
    if (row.contains("utilisation"))
      products_ns[row["layer"]] = row["utilisation"]["gemm"].get<double>() * row["time_ns"].get<double>();
  }
  EXPECT_EQ(products_ns["embedding"], 0) << "it looks up";
  EXPECT_GT(products_ns["logits"], 0);
  EXPECT_NEAR(products_ns["layer0"], products_ns["layer1"], 0.02 * products_ns["layer1"]);
  EXPECT_NEAR(products_ns["layer0"] + products_ns["layer1"] + products_ns["logits"], products_ns["all"],
              0.02 * products_ns["all"]);
}

/// One SIP has a slower cube: it is simulated for itself, and all wait for it.
TEST(TpTransformer, WithReplayASlowerCubeOfOneSipTakesItsOwnTime) {
  const Tool tool;
  std::ofstream(tool.file("slow.yaml"))
      << "extends: ring8\noverrides: [{match: sip1.cube1, pe: {cpu: {dispatch: 40 ns}}}]\n";
  const auto run = [&](const char* machine, const char* replay) {
    Args arguments = three_layers(tool, {"--data", "off", "--decode", "8", "--fidelity", "fast", "--set",
                                         "cube.hbm.refresh=none", "--replay", replay, "--json", "-"});
    std::replace(arguments.begin(), arguments.end(), std::string("ring8"), std::string(machine));
    return in_all(json_of(tool(arguments).out));
  };
  const InAll equal = run("ring8", "off"), slower = run("slow.yaml", "off"), replayed = run("slow.yaml", "8");
  EXPECT_GT(slower.time_ns, 1.1 * equal.time_ns);
  EXPECT_NEAR(replayed.time_ns, slower.time_ns, 0.005 * slower.time_ns);
  EXPECT_NEAR(replayed.energy_pj, slower.energy_pj, 0.01 * slower.energy_pj);
  for (const char* part : {"gemm", "hbm", "noc", "ucie", "links"}) {
    const double simulated = slower.utilisation[part];
    // What others send over a SIP's links before its own part of a collective begins is not in what that part counts.
    const double tolerance = part == std::string("links") ? 0.001 : 0.01;
    EXPECT_NEAR(replayed.utilisation[part].get<double>(), simulated, tolerance * simulated) << part;
  }
}

/// Whole models: with replay about the same time, and the result says how much was repeated.
/// Without refreshes: steps of 27 us meet one more or less of them by chance, which is 1 %.
TEST(TpTransformer, WithReplayTakesTheTimeThatItTakesWithout) {
  const Tool tool;
  for (const char* grade : {"fast", "accurate"}) {
    const Args sizes{"--data", "off",        "--decode", "8",     "--layers",
                     "2",      "--fidelity", grade,      "--set", "cube.hbm.refresh=none"};
    Args with = three_layers(tool, sizes), without = with;
    with.insert(with.end(), {"--replay", "8", "--json", "-"});
    without.insert(without.end(), {"--replay", "off", "--json", "-"});
    const auto replayed = json_of(tool(with).out), simulated = json_of(tool(without).out);
    EXPECT_EQ(schema_errors(replayed), "");
    EXPECT_FALSE(simulated.contains("replay"));
    EXPECT_GT(replayed["replay"]["repeated_launches"].get<int>(), replayed["replay"]["launches"].get<int>() / 2);
    double sum[2] = {0, 0};
    for (const auto& row : replayed["results"]) {
      if (row["layer"] == "all") sum[0] += row["time_ns"].get<double>() * row["steps"].get<double>();
    }
    for (const auto& row : simulated["results"]) {
      if (row["layer"] == "all") sum[1] += row["time_ns"].get<double>() * row["steps"].get<double>();
    }
    EXPECT_NEAR(sum[0], sum[1], 0.005 * sum[1]) << grade;
  }
  const Outcome data = tool(three_layers(tool, {"--replay", "on"}));
  EXPECT_EQ(data.code, 2);
  EXPECT_THAT(data.err, HasSubstr("--replay on needs --data off"));
}

/// Bytes that PEs and memories move are the same; times of queues and shared parts go by how occurrences came.
TEST(TpTransformer, WithReplayStatisticsAndCriticalPathAreThoseWithout) {
  const Tool tool;
  const auto run = [&](const char* replay) {
    return json_of(tool(three_layers(tool, {"--data", "off", "--decode", "8", "--layers", "2", "--fidelity", "fast",
                                            "--set", "cube.hbm.refresh=none", "--replay", replay, "--stats-in-json",
                                            "--stats-detail", "--critical-path", "--explain", "--json", "-"}))
                       .out);
  };
  const auto with = run("on"), without = run("off");
  ASSERT_GT(with["replay"]["repeated_launches"].get<int>(), with["replay"]["launches"].get<int>() / 2);
  const auto &some = with["statistics"], &all = without["statistics"];
  EXPECT_TRUE(some["repeats"].get<bool>());
  EXPECT_FALSE(all.contains("repeats"));
  EXPECT_EQ(some["resources"].size(), all["resources"].size()) << "also of SIPs of which nothing was simulated";
  for (const auto& [kind, total] : all["totals"].items()) {
    const auto& got = some["totals"][kind];
    const double bytes = total["bytes"], busy = total["busy_ps"];
    // What others still send through a SIP whose own part has not begun, or has ended, is not in that part.
    const bool shared = kind == "ucie" || kind == "link" || kind == "router_port";
    const double whole = 0.5 * total["used"].get<double>();  // bytes, of each resource
    EXPECT_NEAR(got["bytes"].get<double>(), bytes, shared ? 0.08 * bytes : whole) << kind;
    EXPECT_NEAR(got["busy_ps"].get<double>(), busy, 0.08 * busy) << kind;
    EXPECT_EQ(got["used"], total["used"]) << kind;
  }
  std::map<std::string, double> of_time;
  for (const auto& part : without["critical_path"]["kinds"]) of_time[part["spent"]] = part["time_ps"];
  for (const auto& part : with["critical_path"]["kinds"]) of_time[part["spent"]] -= part["time_ps"].get<double>();
  for (const auto& [spent, off] : of_time)
    EXPECT_LT(std::abs(off), 0.02 * without["sim_time_ps"].get<double>()) << spent;
  std::map<std::string, nlohmann::ordered_json> launches;
  for (const auto& row : without["explain"]["launches"]) launches[row["kernel"]] = row;
  for (const auto& row : with["explain"]["launches"]) {
    const auto& simulated = launches.at(row["kernel"]);
    EXPECT_EQ(row["launches"], simulated["launches"]) << row["kernel"];
    for (const char* key : {"pes", "time_ns", "flops"}) {
      const double value = simulated[key];
      EXPECT_NEAR(row[key].get<double>(), value, 0.03 * value) << row["kernel"] << ' ' << key;
    }
    for (const auto& [space, bytes] : simulated["bytes"].items())
      EXPECT_NEAR(row["bytes"][space].get<double>(), bytes.get<double>(), 0.03 * bytes.get<double>()) << row["kernel"];
  }
}

/// What passes over each link between SIPs.
std::map<std::string, double> link_bytes(const nlohmann::ordered_json& statistics) {
  std::map<std::string, double> bytes;
  for (const auto& part : statistics["resources"]) {
    if (part["kind"] == "link") bytes[part["name"]] = part["bytes"];
  }
  return bytes;
}

/// A stage waits in `recv` for the one before it, whose SIPs are at all_reduces meanwhile: what these send is theirs.
TEST(TpTransformer, WithReplayLinksCarryAllThatPipelineStagesSend) {
  const Tool tool;
  const auto run = [&](const char* replay) {
    const Args options{
        "--data", "off", "--fidelity", "fast", "--layers",        "4",         "--batch", "1",
        "--tp",   "2",   "--pp",       "2",    "--replay",        replay,      "--set",   "cube.hbm.refresh=none",
        "--ends", "0",   "--prompt",   "0",    "--stats-in-json", "--context", "16",      "--json",
        "-"};
    return json_of(tool(small_transformer(tool, options, small_model(4), "8")).out);
  };
  const auto with = run("on"), without = run("off");
  ASSERT_GT(with["replay"]["repeated_collectives"].get<int>(), 0);
  EXPECT_EQ(link_bytes(with["statistics"]), link_bytes(without["statistics"]));
}

/// SIPs at the rim of a mesh and beside a broken link have other links, and are equal in all that a launch meets.
TEST(TpTransformer, WithReplayStatisticsAddUpWhereSipsHaveOtherLinks) {
  const Tool tool;
  std::ofstream(tool.file("broken.yaml")) << "extends: ring8\noverrides: [{link: [sip0, sip1]}]\n";
  for (const char* machine : {"mesh4x4", "broken.yaml"}) {
    const auto run = [&](const char* replay) {
      Args arguments =
          three_layers(tool, {"--data", "off", "--decode", "6", "--fidelity", "fast", "--tp", "4", "--set",
                              "cube.hbm.refresh=none", "--replay", replay, "--stats-in-json", "--json", "-"});
      std::replace(arguments.begin(), arguments.end(), std::string("ring8"), std::string(machine));
      std::replace(arguments.begin(), arguments.end(), std::string("system.sips.count=4"),
                   std::string("system.links.buffer_packets=64"));
      return json_of(tool(arguments).out)["statistics"];
    };
    const auto with = run("on"), without = run("off");
    const std::map<std::string, double> all = link_bytes(without);
    for (const auto& [name, bytes] : link_bytes(with)) {
      ASSERT_EQ(all.count(name), 1u) << name << " of " << machine << " carries nothing";
      // Credits that are still under way when the last member has ended are in it: 0.8 % of a wire of 28 KB at most.
      EXPECT_LE(bytes, 1.01 * all.at(name)) << name;
      EXPECT_GE(bytes, 0.995 * all.at(name)) << name;
    }
  }
}

/// Waves and a trace of some time: what runs then is simulated on every SIP, and what runs before is not.
TEST(TpTransformer, WithATraceOfSomeTimeReplayRepeatsWhatRunsOutsideOfIt) {
  const Tool tool;
  const auto run = [&](const Args& more) {
    Args all = three_layers(tool, {"--data", "off", "--decode", "16", "--layers", "2", "--fidelity", "fast", "--set",
                                   "cube.hbm.refresh=none"});
    all.insert(all.end(), more.begin(), more.end());
    return tool(all);
  };
  const auto whole = json_of(run({"--json", "-"}).out);
  const double end_us = whole["sim_time_ps"].get<double>() * 1e-6;
  const std::string window = std::to_string(0.8 * end_us) + "us.." + std::to_string(0.9 * end_us) + "us";
  const auto looked = json_of(run({"--trace", "t.json", "--trace-window", window, "--json", "-"}).out);
  EXPECT_LT(looked["replay"]["repeated_launches"], whole["replay"]["repeated_launches"]);
  EXPECT_GT(looked["replay"]["repeated_launches"].get<int>(), looked["replay"]["launches"].get<int>() / 3);
  const auto trace = json_of(read(tool.file("t.json")));
  std::map<int, std::string> processes;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name")
      processes[event["pid"]] = event["args"]["name"].get<std::string>().substr(0, 4);
  }
  std::map<std::string, int> slices;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++slices[processes.at(event["pid"])];
  }
  for (const char* sip : {"sip1", "sip2", "sip3"})
    EXPECT_NEAR(slices[sip], slices["sip0"], 0.1 * slices["sip0"]) << "equal SIPs do as much in that time: " << sip;
  EXPECT_GT(slices["sip0"], 1'000);
}

}  // namespace
}  // namespace kernbench
