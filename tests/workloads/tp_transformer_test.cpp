#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "sc_main/workloads/tp_transformer.h"
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

/// Gathered before they are normalised, rows lie in columns of few bytes on all PEs: 60 times as long.
TEST(TpTransformer, SequenceParallelLogitsTakeNoLongerToGatherThanALayer) {
  const Tool tool;
  double layer = 0, logits = 0;
  for (const auto& row : rows_of(tool, tiny(tool, {"--sequence-parallel", "--prompt", "64", "--decode", "0", "--data",
                                                   "off", "--fidelity", "fast", "--layers", "1"}))) {
    if (row["layer"] == "layer0") layer = row["collective_ns"];
    if (row["layer"] == "logits") logits = row["collective_ns"];
  }
  EXPECT_GT(logits, 0);
  EXPECT_LT(logits, layer / 2) << "one of four";
}

/// Prefill and three decode steps of every rank against the host's model of the whole sequences: every kind of model,
/// scheduling and type, a context that was there before, layers alone, fewer ranks than SIPs, many rows.
TEST(TpTransformer, EveryRankAgreesWithTheHostsModel) {
  const Tool tool;
  const std::vector<std::pair<std::string, Args>> cases{
      {kSmallModel, {}},
      {kSmallModel, {"--scheduling", "rounds", "--tp", "2"}},
      {kSmallModel, {"--dtype", "f32", "--context", "6", "--tp", "1"}},
      {kSmallModel, {"--ends", "0", "--context", "9", "--prompt", "0"}},
      {kSmallModel, {"--dtype", "f64", "--context", "9"}},
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

TEST(TpTransformer, StagesReadNothingThatNobodyWrote) {
  const Tool tool;
  const Outcome outcome = tool(tiny(tool, {"--tp", "2", "--pp", "2", "--debug"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("kernbench/unwritten"), std::string::npos) << outcome.err;
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

TEST(TpTransformer, MicroBatchesAreTheLeastNumberFromTheStagesToTwiceThatOrElseTheLargestBelow) {
  // sequences, stages, micro-batches
  for (const auto& [sequences, stages, parts] :
       {std::tuple(4, 1, 1), std::tuple(8, 2, 2), std::tuple(3, 2, 3), std::tuple(6, 4, 6), std::tuple(1, 4, 1),
        std::tuple(3, 4, 3), std::tuple(31, 2, 1), std::tuple(22, 4, 2), std::tuple(1 << 16, 1 << 16, 1 << 16)}) {
    EXPECT_EQ(default_micro_batches(sequences, stages), parts) << sequences << " in " << stages << " stages";
  }
  const Tool tool;
  const auto rows =
      rows_of(tool, tiny(tool, {"--tp", "2", "--pp", "2", "--batch", "3", "--data", "off", "--decode", "0"}));
  EXPECT_EQ(rows.back()["micro_batches"], 3);
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

/// Results are read in the last pass: a pass more would double what one pass costs.
TEST(TpTransformer, ThatIsCheckedTakesNoTimeAndEnergyMore) {
  const Tool tool;
  for (const char* stages : {"1", "2"}) {
    nlohmann::ordered_json runs[2];
    for (const int check : {0, 1}) {
      std::vector<std::string> arguments =
          tiny(tool, {"--pp", stages, "--tp", "2", "--check", std::to_string(check), "--json", "-"});
      runs[check] = json_of(tool(arguments).out);
      EXPECT_EQ(runs[check]["results"][1]["check"], check == 1 ? "ok" : "skipped");
    }
    EXPECT_EQ(runs[0]["sim_time_ps"], runs[1]["sim_time_ps"]) << stages;
    EXPECT_EQ(runs[0]["energy"], runs[1]["energy"]) << stages;
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
    const auto set_up = rows_of(tool, tiny(tool, arguments)).at(0);
    EXPECT_GE(set_up["hbm_used_bytes"].get<std::int64_t>(), set_up["hbm_need_bytes"].get<std::int64_t>());
    return set_up["hbm_need_bytes"].get<std::int64_t>();
  };
  const std::int64_t activations = needs({"--layers", "1", "--ends", "0"}) * 2 - needs({"--ends", "0"});
  EXPECT_EQ(needs({"--pp", "2"}) - activations, (needs({}) - activations) / 2);
  const Outcome table = tool(tiny(tool, {"--prompt", "64"}, kLearned));
  EXPECT_THAT(table.err,
              HasSubstr("--context, --prompt and --decode are 67 positions: model 'm.yaml' has a table of learned "
                        "positions of 40: give 40 at most"));
  const Outcome layers = tool(tiny(tool, {"--layers", "30"}));
  EXPECT_EQ(layers.err, "kernbench: error: --layers is 30; model 'm.yaml' has 3\n");
  EXPECT_EQ(tool(tiny(tool, {"--layers", "-1"})).err,
            "kernbench: error: --layers is -1; give an integer from 0 to 65536\n");
  const Outcome many = tool(tiny(tool, {"--batch", "65536", "--prompt", "1048576", "--data", "off"}));
  EXPECT_EQ(many.code, 5) << "at once: tokens would take 550 GB";
  const Outcome sips = tool(tiny(tool, {"--tp", "5"}));
  EXPECT_EQ(sips.err, "kernbench: error: --tp is 5; the machine has 4 SIPs\n");
  const Outcome model = tool(tiny(tool, {}, "layers: 2\nwidht: 3\n"));
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.err, HasSubstr("m.yaml:2:1: error: unknown key 'widht'"));
  const Outcome nothing = tool({"run", "tp_transformer", "--model", "llama3-9b"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("did you mean 'llama3-8b'?"));
}

TEST(TpTransformer, WhatDoesNotFitIsToldTheRemedyOfWhatMostOfItIs) {
  const Tool tool;
  std::string wide = kSmallModel, wordy = kSmallModel;
  wide.replace(wide.find("mlp_width: 48"), 13, "mlp_width: 1000000");
  wordy.replace(wordy.find("vocabulary: 70"), 14, "vocabulary: 1000000");
  const std::vector<std::tuple<std::string, Args, std::string>> cases{
      {wide, {}, "weights of the layers: use more SIPs (--tp, --pp) or fewer layers"},
      {wordy, {}, "embedding and output matrix: use more SIPs (--tp, --pp), or leave both out (--ends 0)"},
      {wordy,
       {"--tp", "2", "--pp", "2"},
       "embedding or output matrix: use more SIPs (--tp), or leave both out (--ends 0)"},
      {kSmallModel,
       {"--context", "1000000"},
       "KV caches: use more SIPs (--tp, --dp, --pp), fewer layers, a smaller --batch or a shorter context (--context, "
       "--prompt, --decode)"},
      {kSmallModel,
       {"--context", "1000000", "--batch", "1", "--layers", "1"},
       "rotary tables: use a shorter context (--context, --prompt, --decode)"},
      {kSmallModel,
       {"--prompt", "100000"},
       "activations: use more SIPs (--tp, --dp), a shorter --prompt or a smaller --batch"}};
  for (const auto& [text, more, remedy] : cases) {
    Args arguments = more;
    arguments.insert(arguments.end(), {"--data", "off", "--set", "cube.hbm.size=1MiB"});
    const Outcome outcome = tool(tiny(tool, arguments, text));
    EXPECT_EQ(outcome.code, 5);
    EXPECT_THAT(outcome.err, HasSubstr(" B, are " + remedy + "\n"));
  }
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

  const auto error_with = [&](const std::string& key, const std::string& text, const std::string& other) {
    std::string changed = kConfig;
    const std::size_t begin = changed.find("\"" + key + "\"");
    changed.replace(begin, changed.find(text, begin) + text.size() - begin, other);
    const Outcome outcome = tool(tiny(tool, {}, changed));
    EXPECT_EQ(outcome.code, 2);
    std::size_t errors = 0;
    for (std::size_t at = 0; (at = outcome.err.find("error: ", at)) != std::string::npos; ++at) ++errors;
    EXPECT_EQ(errors, 1u) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error_with("model_type", "\"llama\",", ""), HasSubstr("m.yaml:1:1: error: missing key 'model_type'"));
  EXPECT_THAT(error_with("hidden_size", "32,", ""), HasSubstr("m.yaml:1:1: error: missing key 'hidden_size'"));
  EXPECT_THAT(error_with("num_attention_heads", "\"head_dim\": 8,", "\"num_attention_heads\": \"x\","),
              HasSubstr("error: num_attention_heads is 'x'"));
  EXPECT_THAT(error_with("rms_norm_eps", "1e-05", "\"rms_norm_eps\": \"1e-05\""),
              HasSubstr("error: rms_norm_eps is not a number above 0"));
  EXPECT_THAT(error_with("rope_scaling", "null", "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}"),
              HasSubstr("error: rope_scaling.rope_type is 'yarn'\n  hint: valid values: default, linear, llama3"));
  EXPECT_THAT(error_with("rope_scaling", "null", "\"rope_scaling\": {\"rope_type\": \"linear\"}"),
              HasSubstr("m.yaml:7:19: error: missing key 'rope_scaling.factor'"));
  EXPECT_THAT(
      error_with("rope_scaling", "null", "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, \"facto\": 2}"),
      HasSubstr("error: unknown key 'facto' in 'rope_scaling'\n  hint: did you mean 'factor'?"));
}

/// Llama 3.1's scaling, in the words of either version of transformers: no time depends on it, and the numbers are
/// those of a host that turns heads so.
TEST(TpTransformer, ReadsScaledRotaryPositionsAsTheyAre) {
  const Tool tool;
  const char* const scaling =
      R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 32)";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kConfig;
    return text.replace(text.find(from), from.size(), to);
  };
  const auto plain = rows_of(tool, tiny(tool, {}, kConfig));
  for (const std::string& text : {with("\"rope_scaling\": null", fmt::format("\"rope_scaling\": {{{}}}", scaling)),
                                  with("\"rope_theta\": 1000.0,\n  \"rope_scaling\": null",
                                       fmt::format("\"rope_parameters\": {{\"rope_theta\": 1000.0, {}}}", scaling))}) {
    const auto rows = rows_of(tool, tiny(tool, {}, text));
    ASSERT_EQ(rows.size(), plain.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i]["time_ns"], plain[i]["time_ns"]);
    EXPECT_EQ(rows.back()["check"], "ok");
  }
}

TEST(TpTransformer, SeesAllPositionsOfASlidingWindowOrIsRefused) {
  const Tool tool;
  std::string text = kConfig;
  text.replace(text.find("\"rope_scaling\": null"), 20, "\"sliding_window\": 8");
  const auto run = [&](const char* prompt) {
    return tool(tiny(tool, {"--data", "off", "--prompt", prompt, "--decode", "2"}, text));
  };
  EXPECT_EQ(run("6").code, 0);
  const Outcome beyond = run("7");
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--context, --prompt and --decode are 9 positions: model 'm.yaml' has a sliding "
                                    "window of 8: give 8 at most"));
}

/// A vocabulary of one: its logit may be a sum of 200 products that cancels, and is no measure of their roundings.
TEST(TpTransformer, TheOnlyLogitMayBeASumThatCancels) {
  const Tool tool;
  std::ofstream(tool.file("one.yaml"))
      << "layers: 1\nwidth: 200\nheads: 10\nkv_heads: 2\nhead_dim: 8\nmlp_width: 4\ngated: false\n"
         "activation: relu\nnorm: layer\nepsilon: 1e-5\nvocabulary: 1\nposition: rotary\npositions: 4096\n"
         "biases: false\ntied: false\nrope_theta: 10\n";
  const Outcome outcome = tool(
      {"run",        "tp_transformer", "--model", "one.yaml", "--prompt", "5",   "--decode",   "2",    "--tp",   "1",
       "--topology", "minimal",        "-w",      "0",        "--dtype",  "f32", "--fidelity", "fast", "--seed", "11"});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
}

}  // namespace
}  // namespace kernbench
