// Serving on the machine: what steps take, room of caches, and what is refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/support/files_with_texts.h"
#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

using ::testing::HasSubstr;

const std::string kServedModel = small_model(3);

std::string requests_file(const Tool& tool, const std::string& text) {
  const std::string path = tool.file("requests.csv");
  std::ofstream(path) << text;
  return path;
}

/// One SIP pair of the tiny machine; two requests whose prompts and steps are points of the grid: their times are those
/// of the passes of tp_transformer without --requests.
TEST(Serving, OnTheMachineTakesWhatItsStepsTake) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kServedModel;
  std::ofstream(tool.file("r.csv")) << "arrival,prompt,output\n0,8,2\n1,8,2\n";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run",        "tp_transformer",
                                       "--topology", "ring8",
                                       "--set",      "system.sips.count=2",
                                       "--set",      "sip.cube_mesh.w=2",
                                       "--set",      "sip.cube_mesh.h=1",
                                       "--set",      "cube.pes=2",
                                       "--set",      "cube.hbm.refresh=none",
                                       "--model",    "m.yaml",
                                       "--page",     "4",
                                       "--layers",   "3",
                                       "--data",     "off",
                                       "--fidelity", "fast"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rows_of(tool, arguments);
  };
  const auto served = run({"--requests", "r.csv", "--batch", "2"}).at(0);
  EXPECT_EQ(served["requests"], 2);
  EXPECT_EQ(served["output_tokens"], 4);
  EXPECT_EQ(served["steps"], 4) << "one second apart: they never meet";
  EXPECT_NEAR(served["time_ns"].get<double>(), 1e9, 1e7);
  const double to_first = served["ttft_ms"]["mean"].get<double>() * 1e6,
               per = served["tpot_ms"]["p99"].get<double>() * 1e6;
  EXPECT_EQ(served["ttft_ms"]["p50"], served["ttft_ms"]["p99"]) << "equal requests";
  // What it draws while it is idle, and what the steps of both requests add.
  const double idle_w = served["over_time"][5]["power_w"].get<double>(), time_ns = served["time_ns"].get<double>();
  const double worked_pj = served["energy_pj"].get<double>() - idle_w * time_ns * 1e3;
  EXPECT_GT(idle_w, 0);
  EXPECT_EQ(served["token_energy_pj"].get<double>(), served["energy_pj"].get<double>() / 4);
  double steps_pj = 0;
  std::map<std::string, double> busy_ns;
  for (const auto& row : run({"--prompt", "8", "--decode", "1", "-w", "0", "--replay", "off"})) {
    if (row["layer"] != "all") continue;
    const double took = row["time_ns"].get<double>();
    EXPECT_NEAR(row["phase"] == "prefill" ? to_first : per, took, 0.03 * took) << row["phase"];
    steps_pj += 2 * (row["energy_pj"].get<double>() - idle_w * took * 1e3);
    for (const auto& [part, share] : row["utilisation"].items()) busy_ns[part] += 2 * took * share.get<double>();
  }
  EXPECT_NEAR(worked_pj, steps_pj, 0.03 * steps_pj);
  EXPECT_EQ(busy_ns.size(), 5u);
  for (const auto& [part, busy] : busy_ns)
    EXPECT_NEAR(served["utilisation"][part].get<double>() * time_ns, busy, 0.05 * busy) << part;
  const auto schema = json_of(text_of(KERNBENCH_SOURCE_DIR "/sc_main/results.schema.json"));
  for (const auto& [key, described] : schema["definitions"]["serving"]["properties"].items())
    EXPECT_TRUE(served.contains(key)) << key << " is described and not there";
  EXPECT_EQ(served["over_time"].size(), 10u);
  // Request by request: whoever has these has the figures.
  ASSERT_EQ(served["served"].size(), served["requests"].get<std::size_t>());
  double firsts = 0, last = 0, tokens = 0;
  for (const auto& one : served["served"]) {
    firsts += one["first_token_ms"].get<double>() - one["arrival_ms"].get<double>();
    last = std::max(last, one["last_token_ms"].get<double>());
    tokens += one["output"].get<double>();
  }
  EXPECT_NEAR(served["ttft_ms"]["mean"].get<double>(), firsts / static_cast<double>(served["served"].size()), 1e-9);
  EXPECT_DOUBLE_EQ(served["time_ns"].get<double>(), last * 1e6);
  EXPECT_EQ(served["output_tokens"].get<double>(), tokens);
  const auto two = run({"--requests", "r.csv", "--batch", "2", "--tp", "1", "--dp", "2"}).at(0);
  EXPECT_NEAR(two["over_time"][5]["power_w"].get<double>(), idle_w, 1e-6 * idle_w) << "as many SIPs are there";
  EXPECT_GT(served["over_time"][0]["prefill_share"].get<double>(), 0);
  EXPECT_GT(served["over_time"][0]["utilisation"]["hbm"].get<double>(), 0);
  EXPECT_EQ(served["over_time"][5]["utilisation"]["hbm"].get<double>(), 0);
  EXPECT_EQ(served["over_time"][5]["prefill_share"].get<double>(), 0) << "idle";
  std::ofstream(tool.file("r.csv")) << "arrival,prompt,output\n0,8,1\n";
  EXPECT_TRUE(run({"--requests", "r.csv", "--batch", "2"}).at(0)["tpot_ms"]["mean"].is_null())
      << "between one token and the next, and there is one";
}

/// One sequence of 600 positions beside one of 2: steps take as long as those of two of 600, and read less.
TEST(Serving, ALongSequenceSetsTheTimeOfAStepAndItsMeanTheBytes) {
  const Tool tool;
  const auto served = [&](const char* second) {
    std::vector<std::string> arguments = small_transformer(
        tool, {"--data", "off", "--fidelity", "fast", "--requests", "requests.csv", "--set", "cube.hbm.refresh=none"},
        kServedModel, "");
    for (const char* option : {"--prompt", "--decode"}) {
      const auto at = std::find(arguments.begin(), arguments.end(), option);
      arguments.erase(at, at + 2);
    }
    requests_file(tool, std::string("arrival,prompt,output\n0,600,6\n0,") + second + ",6\n");
    return rows_of(tool, arguments).at(0);
  };
  const auto unequal = served("2"), equal = served("600");
  const auto decode_ms = [](const auto& row) {
    return row["served"][1]["last_token_ms"].template get<double>() -
           row["served"][1]["first_token_ms"].template get<double>();
  };
  EXPECT_NEAR(decode_ms(unequal), decode_ms(equal), 2e-3 * decode_ms(equal)) << "1 % less by the mean";
  const auto bytes = [](const auto& row) {
    return row["hbm_share"].template get<double>() * row["time_ns"].template get<double>();
  };
  EXPECT_LT(bytes(unequal), bytes(equal));
}

TEST(Serving, RefusesAllWrongOptionsInOnePass) {
  const Tool tool;
  const Outcome slow =
      tool({"run", "tp_transformer", "--model", "llama3-8b", "--topology", "ring8", "--data", "off", "--requests", "3",
            "--rate", "1e-9", "--most-requests", "2", "--weights", "w.safetensors"});
  EXPECT_EQ(slow.code, 2);
  EXPECT_EQ(slow.err,
            "kernbench: error: --requests 3 at --rate 1e-09 take 3e+09 s; give a rate at which they take 1000000 s at "
            "most\nkernbench: error: --most-requests is of --requests FILE; give --requests fewer\n"
            "kernbench: error: --weights are contents, and --requests computes nothing\n");
  const Outcome large = tool({"run", "tp_transformer", "--topology", "ring8", "--data", "off", "--requests", "10",
                              "--rate", "1000", "--prompt", "100000000"});
  EXPECT_EQ(large.err, "kernbench: error: --prompt is 100000000; give an integer from 1 to 1048576\n") << "once";
}

/// A default is not asked for.
TEST(Serving, RefusesOptionsThatItWouldIgnore) {
  const Tool tool;
  const auto error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run",        "tp_transformer", "--model", "llama3-8b",
                                       "--topology", "ring8",          "--data",  "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  const std::string sizes = "kernbench: error: --prompt and --decode are of --requests N with --lengths fixed; ";
  EXPECT_EQ(error({"--requests", "r.csv", "--decode", "1"}), sizes + "a file has its own: leave them out\n");
  EXPECT_EQ(error({"--requests", "3", "--rate", "1", "--lengths", "conversation", "--prompt", "128"}),
            sizes + "--lengths conversation has its own: leave them out\n");
  EXPECT_EQ(error({"--requests", "3", "--rate", "1", "-w", "1"}),
            "kernbench: error: -w and -n are of timed passes, and --requests has none: leave them out\n");
  EXPECT_THAT(error({"--requests", "r.csv"}), HasSubstr("r.csv: error: cannot be read")) << "nothing but that";
  EXPECT_THAT(error({"-w", "x"}), HasSubstr("--warmup is 'x'\n  hint: give an integer of at least 0"));
}

/// A number of requests that is none is not the name of a file.
TEST(Serving, RefusesNumbersOfRequestsThatAreNone) {
  const Tool tool;
  for (const std::string count : {"10000000", "1000001", "99999999999999999999", "-5", "1e3", "0", "1.5"}) {
    const Outcome outcome = tool({"run", "tp_transformer", "--model", "llama3-8b", "--topology", "ring8", "--data",
                                  "off", "--requests=" + count, "--rate", "1"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "kernbench: error: --requests is " + count + "; give an integer from 1 to 1000000\n");
  }
}

/// Fewer places than stages would run more sequences than --batch says.
TEST(Serving, BatchIsAMultipleOfTheStages) {
  const Tool tool;
  for (const char* batch : {"1", "3"}) {
    const Outcome outcome = tool({"run", "tp_transformer", "--model", "llama3-8b", "--topology", "ring8", "--data",
                                  "off", "--requests", "3", "--rate", "1", "--pp", "2", "--batch", batch});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, std::string("kernbench: error: --batch is ") + batch +
                               ": give a multiple of the 2 stages that --pp makes share it\n");
  }
}

TEST(Serving, RefusesRequestsThatALearnedTableHasNoPositionsFor) {
  const Tool tool;
  std::string text = kServedModel;
  text.replace(text.find("position: rotary\nrope_theta: 1000"), 33, "position: learned");
  std::ofstream(tool.file("m.yaml")) << text;
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "run", "tp_transformer", "--topology", "ring8",  "--tp", "1",          "--model", "m.yaml",     "--layers",
        "1",   "--data",         "off",        "--rate", "10",   "--requests", "2",       "--fidelity", "fast"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_EQ(error({"--prompt", "60", "--decode", "6"}),
            "kernbench: error: request 1: 60 prompt and 6 output tokens take 65 positions: model 'm.yaml' has 64\n");
  EXPECT_THAT(error({"--lengths", "conversation"}), HasSubstr("error: request "))
      << "lengths of the trace need no others";
}

/// By line, whatever comes first: bad input is 2, want of device memory 5, as without requests.
TEST(Serving, RequestsThatCannotBeServedAreNamedByTheirLine) {
  const Tool tool;
  const auto error = [&](const std::string& model, const std::string& position, int code) {
    std::string text = model;
    text.replace(text.find("position: rotary\nrope_theta: 1000"), 33, position);
    std::ofstream(tool.file("m.yaml")) << text;
    const std::string file = requests_file(tool,
                                           "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                           "2023-11-16 18:00:03,9,0\n2023-11-16 18:00:02,600,1000000\n"
                                           "2023-11-16 18:00:01,4,4\n");
    const Outcome outcome =
        tool({"run", "tp_transformer", "--topology", "ring8", "--tp", "1", "--model", "m.yaml", "--layers", "3",
              "--data", "off", "--fidelity", "fast", "--requests", file, "--set", "cube.hbm.size=32MiB"});
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error(kServedModel, "position: learned", 2),
              HasSubstr("requests.csv:3:1: error: 600 prompt and 1000000 output tokens take 1000599 positions: model "
                        "'m.yaml' has 64"));
  EXPECT_THAT(
      error(kServedModel, "position: rotary\nrope_theta: 1000", 5),
      HasSubstr("requests.csv:3: the request needs 1000704 positions of KV caches, of which a replica has room"));
}

/// 64,512 B of weights, and 832 B of activations a token. Parts of the prompt leave the KV caches' want of room.
TEST(Serving, APromptThatTheMachineHasNoRoomForIsNamedByItsLine) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kServedModel;
  requests_file(tool, "arrival,prompt,output\n0,8,2\n0.1,300000,1\n");
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run",        "tp_transformer",
                                       "--topology", "ring8",
                                       "--set",      "sip.cube_mesh.w=2",
                                       "--set",      "sip.cube_mesh.h=1",
                                       "--set",      "cube.hbm.size=1MiB",
                                       "--model",    "m.yaml",
                                       "--tp",       "1",
                                       "--ends",     "0",
                                       "--data",     "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 5);
    return outcome.err;
  };
  const std::string needs =
      "with a prompt of 300000 tokens model 'm.yaml' needs 249664512 B of HBM on each SIP, which has 2097152 B; most "
      "of it, 249600000 B, are activations: use more SIPs (--tp) or parts of prompts (--scheduler chunked)\n";
  EXPECT_EQ(error({"--requests", "requests.csv"}), "kernbench: error: requests.csv:3: " + needs);
  EXPECT_EQ(error({"--requests", "2", "--rate", "1", "--prompt", "300000"}), "kernbench: error: request 1: " + needs);
  EXPECT_THAT(error({"--requests", "requests.csv", "--scheduler", "chunked", "--chunk", "16"}),
              HasSubstr("error: requests.csv:3: the request needs 3000"));
}

/// 2 MiB less 64,512 B of weights, 13,312 B of activations and 64 B of a table for each of 4,600 positions; 384 B a
/// position. A pass over as many is refused for the same.
TEST(Serving, RoomIsWhatWeightsTablesAndActivationsLeave) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kServedModel;
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run",        "tp_transformer",
                                       "--topology", "ring8",
                                       "--set",      "sip.cube_mesh.w=2",
                                       "--set",      "sip.cube_mesh.h=1",
                                       "--set",      "cube.pes=2",
                                       "--set",      "cube.hbm.size=1MiB",
                                       "--model",    "m.yaml",
                                       "--page",     "4",
                                       "--tp",       "1",
                                       "--ends",     "0",
                                       "--prompt",   "16",
                                       "--data",     "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 5);
    return outcome.err;
  };
  EXPECT_THAT(error({"--requests", "1", "--rate", "1", "--decode", "4584"}),
              HasSubstr("request 1 needs 4600 positions of KV caches, of which a replica has room for 4492 beside"));
  EXPECT_THAT(error({"--context", "4583", "--decode", "1"}),
              HasSubstr("needs 2138624 B of HBM on each SIP, which has"));
}

/// 25 MB of weights in 40 MiB of HBM: the model that parts are measured on makes room for the one that a whole step is
/// compared on.
TEST(Serving, ComparesStepsOfAModelThatFitsIntoTheMemoryOnce) {
  const Tool tool;
  std::string text = kServedModel;
  const auto change = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  change("layers: 3", "layers: 2");
  change("width: 32", "width: 256");
  change("mlp_width: 48", "mlp_width: 8192");
  std::ofstream(tool.file("m.yaml")) << text;
  const auto served = rows_of(tool, {"run",        "tp_transformer",
                                     "--topology", "ring8",
                                     "--set",      "system.sips.count=1",
                                     "--set",      "sip.cube_mesh.w=2",
                                     "--set",      "sip.cube_mesh.h=1",
                                     "--set",      "cube.pes=2",
                                     "--set",      "cube.hbm.size=20MiB",
                                     "--model",    "m.yaml",
                                     "--page",     "4",
                                     "--data",     "off",
                                     "--fidelity", "fast",
                                     "--requests", "2",
                                     "--rate",     "10",
                                     "--prompt",   "8",
                                     "--decode",   "2",
                                     "--ends",     "0",
                                     "--batch",    "1"});
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0]["compared_steps"], 4);
}

/// Chunks, replicas and stages on the machine: as many tokens, each step's cost as its parts', compared with steps that
/// are simulated as they are.
TEST(Serving, ChunksReplicasAndStagesAreServedOnTheMachine) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << kServedModel;
  const auto run = [&](std::vector<std::string> more, const char* tp = "2") {
    std::vector<std::string> arguments{"run",        "tp_transformer",
                                       "--topology", "ring8",
                                       "--set",      "system.sips.count=4",
                                       "--set",      "sip.cube_mesh.w=2",
                                       "--set",      "sip.cube_mesh.h=1",
                                       "--set",      "cube.pes=2",
                                       "--model",    "m.yaml",
                                       "--page",     "4",
                                       "--layers",   "2",
                                       "--tp",       tp,
                                       "--data",     "off",
                                       "--fidelity", "fast",
                                       "--requests", "6",
                                       "--rate",     "20000",
                                       "--prompt",   "13",
                                       "--decode",   "4",
                                       "--batch",    "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rows_of(tool, arguments).at(0);
  };
  const auto one = run({"--scheduler", "chunked", "--chunk", "8"});
  EXPECT_EQ(one["output_tokens"], 24);
  EXPECT_GT(one["mixed_share"].get<double>(), 0);
  EXPECT_LT(one["largest_difference"].get<double>(), 0.1);
  const auto whole = run({}), two = run({"--dp", "2"});
  EXPECT_EQ(two["dp"], 2);
  EXPECT_LT(two["ttft_ms"]["mean"].get<double>(), whole["ttft_ms"]["mean"].get<double>()) << "two serve the queue";
  const auto staged = run({"--pp", "2"});
  EXPECT_EQ(staged["pp"], 2);
  EXPECT_LT(staged["largest_difference"].get<double>(), 0.1);
  const auto alone = run({}, "1"), sending = run({"--pp", "2"}, "1");
  EXPECT_EQ(alone["utilisation"]["links"], 0);
  EXPECT_GT(sending["utilisation"]["links"].get<double>(), 0) << "activations go from stage to stage";
  EXPECT_GE(staged["cache_positions"].get<std::int64_t>(), 2 * one["cache_positions"].get<std::int64_t>());
}

}  // namespace
}  // namespace kernbench
