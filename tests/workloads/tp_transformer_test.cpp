#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;
using Args = std::vector<std::string>;

const std::string kSmallModel = small_model(3);
constexpr const char* kLearned = R"(layers: 2
width: 24
heads: 4
kv_heads: 4
head_dim: 6
mlp_width: 40
gated: false
activation: gelu
norm: layer
epsilon: 1e-5
vocabulary: 50
position: learned
positions: 40
biases: true
tied: true
)";

Args tiny(const Tool& tool, const Args& more, const std::string& text = kSmallModel) {
  return small_transformer(tool, more, text, "3");
}

std::int64_t whole_ps(const nlohmann::ordered_json& ns) { return std::llround(ns.get<double>() * 1000); }

/// Prefill and three decode steps of every rank against the host's model of the whole sequences: every kind of model,
/// scheduling and type, a context that was there before, layers alone, fewer ranks than SIPs, many rows.
TEST(TpTransformer, EveryRankAgreesWithTheHostsModel) {
  const Tool tool;
  const std::vector<std::pair<std::string, Args>> cases{
      {kSmallModel, {}},
      {kSmallModel, {"--scheduling", "rounds", "--tp", "2"}},
      {kSmallModel, {"--dtype", "f32", "--context", "6", "--tp", "1"}},
      {kSmallModel, {"--ends", "0", "--context", "9", "--prompt", "0"}},
      {kLearned, {"--dtype", "bf16", "--decode", "1", "--seed", "7"}},
      {kLearned, {"--dtype", "f32", "--ends", "0", "--tp", "2"}},
      {kSmallModel, {"--sequence-parallel", "--tp", "2"}},
      {kLearned, {"--sequence-parallel", "--ends", "0", "--decode", "0", "--prompt", "6", "--scheduling", "rounds"}},
      {kSmallModel, {"--overlap", "2"}},
      // 520 and 528 rows lie over the cubes.
      {kSmallModel, {"--batch", "10", "--prompt", "52", "--decode", "1", "--layers", "1", "--fidelity", "fast"}},
      {kSmallModel,
       {"--sequence-parallel", "--batch", "12", "--prompt", "44", "--decode", "1", "--layers", "1", "--fidelity",
        "fast"}}};
  for (const auto& [model, more] : cases) {
    const auto rows = rows_of(tool, tiny(tool, more, model));
    ASSERT_GE(rows.size(), 4u);
    EXPECT_EQ(rows[0]["phase"], "set-up");
    for (std::size_t i = 1; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["check"], "ok") << rows[i];
      EXPECT_GT(rows[i]["max_abs_err"].get<double>(), 0) << "compared, and rounded";
    }
  }
}

/// Places of shards are no PE numbers there: GEMMs that split k and attention, which send to PEs of their cube, know
/// both.
TEST(TpTransformer, EveryRankAgreesWithTheHostsModelWherePesAreMissing) {
  const Tool tool;
  std::ofstream(tool.file("small.yaml")) << kSmallModel;
  for (const char* missing : {"sip*.cube*.pe1", "sip*.cube1.pe1"}) {
    std::ofstream(tool.file("machine.yaml"))
        << "extends: minimal\nsystem: {sips: {count: 2}}\nsip: {cube_mesh: {w: 2, h: 1}}\ncube: {pes: 4}\n"
        << "overrides:\n  - {match: '" << missing << "', missing: true}\n";
    for (const char* prompt : {"6", "52"}) {
      const auto rows = rows_of(tool, {"run",        "tp_transformer",
                                       "--topology", "machine.yaml",
                                       "--model",    "small.yaml",
                                       "--layers",   "1",
                                       "--batch",    "10",
                                       "--prompt",   prompt,
                                       "--decode",   "1",
                                       "-w",         "0",
                                       "--page",     "4",
                                       "--fidelity", "fast"});
      ASSERT_GE(rows.size(), 4u);
      for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i]["check"], "ok") << missing << rows[i];
    }
  }
}

/// Stages in Megatron's order, data-parallel groups and micro-batches: every rank of the last stage against the host's
/// model of the whole sequences, as one rank is.
TEST(TpTransformer, StagesAndDataParallelGroupsGiveTheNumbersOfOneRank) {
  const Tool tool;
  const Args eight{"--set", "system.sips.count=8", "--tp", "2", "--dp", "2", "--pp", "2", "--dtype", "f32"};
  const std::vector<std::pair<std::string, Args>> cases{
      {kSmallModel, {"--batch", "4", "--context", "3"}},
      {kSmallModel, {"--batch", "2", "--ends", "0", "--scheduling", "rounds", "--decode", "1"}},
      {kLearned, {"--batch", "2", "--decode", "1"}}};
  for (const auto& [model, more] : cases) {
    Args arguments = eight;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto rows = rows_of(tool, tiny(tool, arguments, model));
    ASSERT_EQ(rows.size(), 3u) << "set-up, and all of each phase";
    for (std::size_t i = 1; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["check"], "ok") << rows[i];
      EXPECT_GT(rows[i]["max_abs_err"].get<double>(), 0);
      EXPECT_EQ(rows[i]["pp"], 2);
    }
  }
}

/// Four micro-batches of a sequence each on two stages take five turns where one after the other would take eight. A
/// turn is bound by latency and takes as long for one sequence.
TEST(TpTransformer, MicroBatchesAreInSeveralStagesAtOnce) {
  const Tool tool;
  const auto time = [&](const Args& more) {
    Args arguments{"--tp", "2", "--pp", "2", "--data", "off", "--ends", "0", "--decode", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rows_of(tool, tiny(tool, arguments)).back()["time_ns"].get<double>();
  };
  const double one = time({"--batch", "1"}), four = time({"--batch", "4", "--micro-batches", "4"});
  EXPECT_LT(four, 0.8 * 4 * one);
  EXPECT_GT(four, 1.5 * one);
}

TEST(TpTransformer, RowsOfEachPhaseAddUpAndHoldTheirBounds) {
  const Tool tool;
  for (const char* scheduling : {"concurrent", "rounds"}) {
    const auto rows = rows_of(tool, tiny(tool, {"--scheduling", scheduling}));
    std::map<std::string, std::vector<nlohmann::ordered_json>> phases;
    for (const auto& row : rows) phases[row["phase"]].push_back(row);
    ASSERT_EQ(phases.size(), 3u);
    EXPECT_GT(whole_ps(phases["set-up"][0]["mapping_ns"]), 0);
    for (const char* phase : {"prefill", "decode"}) {
      const auto& of_phase = phases[phase];
      const std::int64_t rounding = 8;  // ps: thirds of a decode step's parts
      ASSERT_EQ(of_phase.size(), 5u) << "embedding, two layers, logits, all";
      EXPECT_EQ(of_phase[1]["layer"], "layer0");
      EXPECT_EQ(of_phase[4]["layer"], "all");
      for (const char* column : {"time_ns", "launch_ns", "collective_ns", "waiting_ns", "kernel_ns"}) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < 4; ++i) sum += whole_ps(of_phase[i][column]);
        EXPECT_NEAR(sum, whole_ps(of_phase[4][column]), rounding) << phase << " " << column;
      }
      for (const auto& row : of_phase) {
        EXPECT_NEAR(whole_ps(row["launch_ns"]) + whole_ps(row["collective_ns"]) + whole_ps(row["waiting_ns"]),
                    whole_ps(row["time_ns"]), rounding)
            << row;
        EXPECT_GT(row["bound_share"].get<double>(), 0) << row;
        EXPECT_LE(row["bound_share"].get<double>(), 1) << row;
        for (const auto& kernel : row["kernels"])
          EXPECT_LE(whole_ps(kernel["bound_ns"]), whole_ps(kernel["kernel_ns"])) << kernel;
      }
      // Norms 2, QKV, rotary, scores, out, up, gate, product, down, residual; two all-reduces. Of a single token the
      // two caches lie on two PEs each, whose sums one launch more puts together.
      EXPECT_EQ(of_phase[1]["collectives"], 2);
      EXPECT_EQ(of_phase[1]["launches"], std::string(phase) == "prefill" ? 11 : 12);
      for (const auto& kernel : of_phase[1]["kernels"]) {
        if (kernel["name"] != "layer0.mlp.down") continue;
        EXPECT_EQ(kernel["k"], 12) << "48 rows over four ranks";
        EXPECT_EQ(kernel["m"], std::string(phase) == "prefill" ? 10 : 2);
        EXPECT_EQ(kernel["flops"], 2.0 * kernel["m"].get<double>() * 32 * 12);
      }
    }
    EXPECT_GT(phases["decode"][4]["tokens_per_s"].get<double>(), 0);
  }
}

TEST(TpTransformer, TakesTheSameTimeWithoutDataAndChecksNothing) {
  const Tool tool;
  auto on = rows_of(tool, tiny(tool, {})), off = rows_of(tool, tiny(tool, {"--data", "off"}));
  ASSERT_EQ(on.size(), off.size());
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(off[i]["check"], "skipped");
      EXPECT_TRUE(off[i]["mismatches"].is_null());
    }
    for (const char* of_data : {"check", "mismatches", "max_abs_err"}) {
      on[i].erase(of_data);
      off[i].erase(of_data);
    }
    EXPECT_EQ(on[i], off[i]) << "row " << i;
  }
}

TEST(TpTransformer, RefusesWhatDoesNotDivideOrFitWithLayerDimensionAndNumbers) {
  const Tool tool;
  const Outcome ranks = tool(tiny(tool, {"--tp", "3"}));
  EXPECT_EQ(ranks.code, 2);
  EXPECT_EQ(
      ranks.err,
      "kernbench: error: model 'm.yaml', layer0.attention: heads is 8: give a multiple of the 3 SIPs that --tp "
      "makes share it\n"
      "kernbench: error: model 'm.yaml', layer0.attention: kv_heads is 4: give a multiple or a divisor of the 3 SIPs "
      "that --tp makes share it\n");
  const Outcome tokens = tool(tiny(tool, {"--sequence-parallel", "--prompt", "3"}));
  EXPECT_EQ(tokens.code, 2);
  EXPECT_EQ(tokens.err,
            "kernbench: error: a step of --prompt has 6 tokens: with --sequence-parallel give a multiple of --tp, 4\n"
            "kernbench: error: a step of --decode has 2 tokens: with --sequence-parallel give a multiple of --tp, 4\n");
  const Outcome both = tool(tiny(tool, {"--sequence-parallel", "--overlap", "2"}));
  EXPECT_EQ(both.err, "kernbench: error: --overlap is of all-reduces, and --sequence-parallel has none\n");
  const Outcome cache =
      tool(tiny(tool, {"--batch", "65536", "--context", "60000", "--data", "off", "--prompt", "0", "--decode", "1"}));
  EXPECT_EQ(cache.code, 5);
  EXPECT_THAT(cache.err, HasSubstr("model 'm.yaml' needs 251"))
      << "2 layers x 2 x 65536 x 60001 x 8 x 2 B, and weights";
  EXPECT_THAT(cache.err, HasSubstr("most of it, 251662434304 B, are KV caches"));
  // A stage has one layer's weights and caches, and of embedding and output matrix one: 36 rows of 32 in f16.
  const auto needs = [&](const Args& more) {
    Args arguments{"--data", "off", "--prompt", "0", "--decode", "1", "--context", "60000", "--tp", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rows_of(tool, tiny(tool, arguments)).at(0)["hbm_need_bytes"].get<std::int64_t>();
  };
  const std::int64_t activations = needs({"--layers", "1", "--ends", "0"}) * 2 - needs({"--ends", "0"});
  EXPECT_EQ(needs({"--pp", "2"}) - activations, (needs({}) - activations) / 2);
  const Outcome table = tool(tiny(tool, {"--prompt", "64"}, kLearned));
  EXPECT_THAT(table.err, HasSubstr("positions is 67: its table of learned positions has 40"));
  const Outcome sips = tool(tiny(tool, {"--tp", "5"}));
  EXPECT_EQ(sips.err, "kernbench: error: --tp is 5; the machine has 4 SIPs\n");
  const Outcome model = tool(tiny(tool, {}, "layers: 2\nwidht: 3\n"));
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("m.yaml:2:1: error: unknown key 'widht'"));
  const Outcome nothing = tool({"run", "tp_transformer", "--model", "llama3-9b"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("did you mean 'llama3-8b'?"));
}

/// Of ranks with like shares of the tokens one looks them up, though each has other tokens.
TEST(TpTransformer, LookingUpLikeSharesOfTheTokensIsSimulatedOnce) {
  const Tool tool;
  std::string text = kSmallModel;
  text.replace(text.find("vocabulary: "), std::string("vocabulary: ").size(), "vocabulary: 40");
  const auto replay = json_of(tool(tiny(tool,
                                        {"--data", "off", "--fidelity", "fast", "--decode", "0", "--layers", "1",
                                         "--prompt", "256", "--batch", "1", "--json", "-"},
                                        text))
                                  .out)["replay"];
  EXPECT_EQ(4 * replay["repeated_launches"].get<int>(), 3 * replay["launches"].get<int>())
      << "one of four ranks is simulated";
}

TEST(TpTransformer, SaysThatNothingIsRepeatedWhereSomebodyLooksCloser) {
  const Tool tool;
  const Args sizes{"--data", "off", "--fidelity", "fast", "--layers", "1"};
  EXPECT_THAT(tool(tiny(tool, sizes)).out, HasSubstr("\n# replay: "));
  const auto with = [&](const Args& more) {
    Args all = sizes;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Args closer = with({"--oplog", "o.jsonl"});
  for (const Args& looks : {closer, with({"--trace", "t.json"}), with({"--vcd", "w.vcd", "--wave-filter", "sip0.**"})})
    EXPECT_THAT(tool(tiny(tool, looks)).out, HasSubstr("\n# replay: off: what is looked at is simulated\n"));
  const Outcome refused = tool(tiny(tool, with({"--oplog", "o.jsonl", "--replay", "on"})));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--replay on with ops, or with waves or a trace of the whole run"));
  Args off = closer;
  off.insert(off.end(), {"--replay", "off"});
  EXPECT_THAT(tool(tiny(tool, off)).out, ::testing::Not(HasSubstr("# replay")));
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
  const auto result =
      json_of(tool(tiny(tool, {"--data", "off", "--ends", "0", "--decode", "4", "--layers", "2", "--json", "-"})).out);
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
  const auto result = json_of(tool(tiny(tool, {"--data", "off", "--decode", "0", "--layers", "2", "--json", "-"})).out);
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
    Args arguments = tiny(tool, {"--data", "off", "--decode", "8", "--fidelity", "fast", "--set",
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
    const double tolerance = part == std::string("links") ? 0.03 : 0.01;
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
    Args with = tiny(tool, sizes), without = with;
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
  const Outcome data = tool(tiny(tool, {"--replay", "on"}));
  EXPECT_EQ(data.code, 2);
  EXPECT_THAT(data.err, HasSubstr("--replay on needs --data off"));
}

/// Bytes that PEs and memories move are the same; times of queues and shared parts go by how occurrences came.
TEST(TpTransformer, WithReplayStatisticsAndCriticalPathAreThoseWithout) {
  const Tool tool;
  const auto run = [&](const char* replay) {
    return json_of(tool(tiny(tool, {"--data", "off", "--decode", "8", "--layers", "2", "--fidelity", "fast", "--set",
                                    "cube.hbm.refresh=none", "--replay", replay, "--stats-in-json", "--critical-path",
                                    "--explain", "--json", "-"}))
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

/// SIPs at the rim of a mesh and beside a broken link have other links, and are equal in all that a launch meets.
TEST(TpTransformer, WithReplayStatisticsAddUpWhereSipsHaveOtherLinks) {
  const Tool tool;
  std::ofstream(tool.file("broken.yaml")) << "extends: ring8\noverrides: [{link: [sip0, sip1]}]\n";
  for (const char* machine : {"mesh4x4", "broken.yaml"}) {
    const auto run = [&](const char* replay) {
      Args arguments = tiny(tool, {"--data", "off", "--decode", "6", "--fidelity", "fast", "--tp", "4", "--set",
                                   "cube.hbm.refresh=none", "--replay", replay, "--stats-in-json", "--json", "-"});
      std::replace(arguments.begin(), arguments.end(), std::string("ring8"), std::string(machine));
      std::replace(arguments.begin(), arguments.end(), std::string("system.sips.count=4"),
                   std::string("system.links.buffer_packets=64"));
      return json_of(tool(arguments).out)["statistics"];
    };
    const auto with = run("on"), without = run("off");
    std::map<std::string, double> bytes;  // over links between SIPs
    for (const auto& part : without["resources"]) {
      if (part["kind"] == "link") bytes[part["name"]] = part["bytes"];
    }
    for (const auto& part : with["resources"]) {
      if (part["kind"] != "link") continue;
      const std::string name = part["name"];
      ASSERT_EQ(bytes.count(name), 1u) << name << " of " << machine << " carries nothing";
      // What passes through a SIP whose own part has not begun, or has ended, is not in it: some less, never more.
      EXPECT_LE(part["bytes"].get<double>(), 1.02 * bytes[name]) << name;
      EXPECT_GE(part["bytes"].get<double>(), 0.6 * bytes[name]) << name;
    }
  }
}

/// Waves and a trace of some time: what runs then is simulated on every SIP, and what runs before is not.
TEST(TpTransformer, WithATraceOfSomeTimeReplayRepeatsWhatRunsOutsideOfIt) {
  const Tool tool;
  const auto run = [&](const Args& more) {
    Args all = tiny(tool, {"--data", "off", "--decode", "16", "--layers", "2", "--fidelity", "fast", "--set",
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

/// 16 PEs, 32 blocks of 8 tokens: PE p has blocks p and 31 - p. The four PEs of a cube share what they read: the keys
/// of the latest block of theirs, which are those of the others as well. Queries once, the result once; 2 B an element.
TEST(TpTransformer, AnAttentionReadsEachKeyOnceInEveryCube) {
  constexpr std::uint64_t kPes = 16, kPesOfCube = 4, kTokens = 8, kPrompt = 2 * kPes * kTokens, kHeads = 4, kDim = 16;
  const Tool tool;
  std::string model = small_model(1);
  for (const auto& [from, to] :
       {std::pair("width: 32", "width: 64"), std::pair("heads: 8", "heads: 4"), std::pair("kv_heads: 4", "kv_heads: 1"),
        std::pair("head_dim: 8", "head_dim: 16"), std::pair("positions: 64", "positions: 256")})
    model.replace(model.find(from), std::string(from).size(), to);
  std::ofstream(tool.file("m.yaml")) << model;
  const Outcome outcome = tool({"run",        "tp_transformer",
                                "--model",    "m.yaml",
                                "--topology", "ring8",
                                "--set",      "system.sips.count=1",
                                "--page",     "4",
                                "--ends",     "0",
                                "--prompt",   std::to_string(kPrompt),
                                "--decode",   "0",
                                "-w",         "0",
                                "--data",     "off",
                                "--explain",  "--json",
                                "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::uint64_t positions = 0;
  for (std::uint64_t pe = 0; pe < kPes; pe += kPesOfCube) positions += (2 * kPes - pe) * kTokens;
  const auto json = json_of(outcome.out);
  unsigned found = 0;
  for (const auto& launch : json["explain"]["launches"]) {
    if (launch["kernel"] != "attention.scores") continue;
    ++found;
    EXPECT_EQ(launch["bytes"]["hbm"].get<double>(), 2.0 * kDim * (2 * positions + 2 * kPrompt * kHeads));
  }
  EXPECT_EQ(found, 1U);
}

constexpr const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48,
  "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "num_hidden_layers": 2,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 1000.0,
  "rope_scaling": null, "tie_word_embeddings": false, "vocab_size": 70
})";

TEST(TpTransformer, ReadsConfigJsonAsTheModelThatItDescribes) {
  const Tool tool;
  const auto here = rows_of(tool, tiny(tool, {"--data", "off"}));
  const auto there = rows_of(tool, tiny(tool, {"--data", "off"}, kConfig));
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i]["time_ns"], there[i]["time_ns"]);

  std::string scaled = kConfig;
  scaled.replace(scaled.find("null"), 4, "{\"rope_type\": \"llama3\"}");
  const Outcome refused = tool(tiny(tool, {}, scaled.c_str()));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("m.yaml:7:19: error: rope_scaling is not supported"));

  const auto errors_without = [&](const std::string& key, const std::string& text) {
    std::string without = kConfig;
    const std::size_t begin = without.find("\"" + key + "\"");
    without.erase(begin, without.find(text, begin) + text.size() - begin);
    const Outcome outcome = tool(tiny(tool, {}, without));
    EXPECT_EQ(outcome.code, 2);
    std::size_t errors = 0;
    for (std::size_t at = 0; (at = outcome.err.find("error: ", at)) != std::string::npos; ++at) ++errors;
    EXPECT_EQ(errors, 1u) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(errors_without("model_type", "\"llama\","), HasSubstr("m.yaml:1:1: error: missing key 'model_type'"));
  EXPECT_THAT(errors_without("hidden_size", "32,"), HasSubstr("m.yaml:1:1: error: missing key 'hidden_size'"));
}

}  // namespace
}  // namespace kernbench
