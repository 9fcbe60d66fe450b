// `run --explain`: what the launches of every workload did, and what they wait for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"
#include "tests/workloads/small_transformer.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json explained(const Tool& tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--explain", "--json", "-"});
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  Json json = Json::parse(outcome.out);
  EXPECT_EQ(schema_errors(json), "");
  return json;
}

std::vector<std::string> extended(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// "pe.gemm.cols" is a key of the machine.
bool is_key(const Json& config, const std::string& key) {
  std::string pointer = "/" + key;
  for (char& c : pointer) c = c == '.' ? '/' : c;
  return config.contains(Json::json_pointer(pointer));
}

TEST(Explain, OfAGemmIsWhatItsRowSays) {
  const Tool tool;
  const Json json = explained(tool, {"gemm", "--m", "128", "--n", "192", "--k", "256", "--topology", "minimal"});
  const Json& row = json["results"][0];
  ASSERT_EQ(json["explain"]["launches"].size(), 1U);
  const Json& launch = json["explain"]["launches"][0];
  const double flops = 2.0 * 128 * 192 * 256;
  EXPECT_EQ(launch["launches"], 1);
  EXPECT_EQ(launch["pes"], row["pes"]);
  EXPECT_DOUBLE_EQ(launch["time_ns"].get<double>(), row["time_ns"].get<double>());
  EXPECT_DOUBLE_EQ(launch["flops"].get<double>(), flops);
  EXPECT_NEAR(launch["array_of_peak"].get<double>(), row["fraction_of_peak"].get<double>(), 1e-9);
  EXPECT_NEAR(launch["array_busy"].get<double>(), row["utilisation"]["gemm"].get<double>(), 1e-9);
  EXPECT_NEAR(launch["bound_share"].get<double>(), row["bound_share"].get<double>(), 1e-9);
  EXPECT_EQ(launch["bytes"]["hbm"].get<double>(), row["dma_bytes"].get<double>());
  EXPECT_EQ(launch["least_bytes"].get<double>(), 2.0 * (128 * 256 + 256 * 192 + 128 * 192)) << "each element once";
  EXPECT_NEAR(launch["flop_per_byte"].get<double>(), flops / row["dma_bytes"].get<double>(), 1e-9);
}

TEST(Explain, TheBoundOfAGemmIsItsParts) {
  const Tool tool;
  const auto row_of = [&](const char* mapping) {
    return explained(tool, {"gemm", "--m", "16", "--n", "2048", "--k", "1024", "--topology", "default", "--operands",
                            "packed-row", "--mapping", mapping, "--data", "off", "--fidelity", "fast"})["results"][0];
  };
  const Json split = row_of("split"), stream = row_of("stream");
  for (const Json& row : {split, stream}) {
    const Json& bound = row["explain"]["bound"];
    EXPECT_NEAR(
        row["bound_ns"].get<double>(),
        std::max(bound["array_ns"].get<double>(), bound["hbm_ns"].get<double>()) + bound["latency_ns"].get<double>(),
        1e-3);
  }
  EXPECT_GT(split["explain"]["bound"]["first_operands_ns"], 200) << "six hops from a corner of the SIP";
  EXPECT_GT(split["explain"]["bound"]["partial_sums_ns"], 0);
  EXPECT_EQ(stream["explain"]["bound"]["first_operands_ns"], 0);
  EXPECT_EQ(stream["explain"]["bound"]["partial_sums_ns"], 0);
}

/// Reads overlap, and their records come by their ends.
TEST(Explain, EnginesAreAsBusyAsTheStatisticsSay) {
  const Tool tool;
  const Json json = explained(tool, {"tp_mlp", "--topology", "minimal", "--data", "off", "--stats-in-json"});
  double explained_ns = 0, counted_ns = 0;
  for (const Json& launch : json["explain"]["launches"])  // of every launch the reader is the busier side
    explained_ns += launch["dma_busy"].get<double>() * launch["time_ns"].get<double>() * launch["pes"].get<double>() *
                    launch["launches"].get<double>();
  for (const Json& resource : json["statistics"]["resources"]) {
    if (resource["name"] == "sip0.cube0.pe0.dma_r") counted_ns = resource["busy_ps"].get<double>() / 1e3;
  }
  EXPECT_GT(counted_ns, 0);
  EXPECT_NEAR(explained_ns, counted_ns, 1e-6 * counted_ns);
}

TEST(Explain, SaysOfEveryWorkloadWhatItsLaunchesWaitFor) {
  const std::vector<std::vector<std::string>> runs{
      {"all_reduce", "-b", "4K", "-e", "4K", "-w", "0", "--topology", "ring8", "--set", "system.sips.count=2", "--set",
       "sip.cube_mesh.w=1", "--set", "sip.cube_mesh.h=1"},
      {"stream", "--bytes", "4K", "--topology", "minimal"},
      {"gemm_single_pe", "--topology", "minimal"},
      {"va_offset_verify", "--topology", "minimal"},
      {"qkv", "--topology", "minimal", "--data", "off", "-w", "0"},
      {"p2p", "--topology", "ring8", "-b", "4K", "-e", "4K"},
      {"probe", "--topology", "minimal"},
      {"pipeline", "--file", KERNBENCH_SOURCE_DIR "/docs/examples/pipeline/all_kinds.yaml", "--topology", "ring8",
       "--set", "system.sips.count=2"},
      {"chakra", "--workload-configuration", KERNBENCH_SOURCE_DIR "/docs/examples/chakra/training_step", "--topology",
       "ring8", "--set", "system.sips.count=4"},
      {"tp_mlp", "--topology", "minimal", "--data", "off", "-w", "0"}};
  for (const std::vector<std::string>& run : runs) {
    const Tool tool;
    const Json json = explained(tool, run);
    const Json& launches = json["explain"]["launches"];
    EXPECT_FALSE(launches.empty()) << run[0];
    for (const Json& launch : launches) {
      double sum = 0;
      ASSERT_FALSE(launch["binds"].empty()) << run[0];
      for (const Json& one : launch["binds"]) {
        sum += one["share"].get<double>();
        for (const Json& key : one["keys"])
          EXPECT_TRUE(is_key(json["config"], key.get<std::string>())) << key << " of " << one["spent"];
      }
      EXPECT_LE(sum, 1 + 1e-9);
      EXPECT_GE(sum, 0.5) << run[0] << ": " << launch["kernel"] << " mostly waits for what is named";
      if (launch["least_bytes"].is_number()) {
        EXPECT_GE(launch["bytes"].value("hbm", 0.0), launch["least_bytes"].get<double>()) << launch["kernel"];
      }
    }
  }
}

TEST(Explain, OfATransformerHasEveryKernelOfItsLayersWithTheirLeastBytes) {
  const Tool tool;
  std::vector<std::string> run = small_transformer(tool, {"--data", "off", "--layers", "1"}, small_model(1), "1");
  run.erase(run.begin());
  std::set<std::string> kernels;
  const Json json = explained(tool, run);
  for (const Json& launch : json["explain"]["launches"]) {
    kernels.insert(launch["kernel"]);
    EXPECT_FALSE(launch["binds"].empty()) << launch["kernel"];
    if (launch["bound_share"].is_number()) {
      EXPECT_GT(launch["least_bytes"].get<double>(), 0) << launch["kernel"];
      EXPECT_LE(launch["bound_share"].get<double>(), 1) << launch["kernel"];
    }
  }
  for (const char* kernel : {"attention.qkv", "attention.scores", "attention.out", "mlp.up", "mlp.down", "output"})
    EXPECT_EQ(kernels.count(kernel), 1U) << kernel;
}

/// What is repeated is the mean of what was simulated: in the time and in the share alike.
TEST(Explain, TheShareOfTheBoundIsThatOfTheTimeWithReplayToo) {
  const Tool tool;
  std::vector<std::string> run = small_transformer(
      tool, {"--data", "off", "--layers", "2", "--fidelity", "fast", "--replay", "on"}, small_model(2), "1");
  run.erase(run.begin());
  const Json json = explained(tool, run);
  ASSERT_GT(json["replay"]["repeated_launches"].get<int>(), 0);
  for (const Json& launch : json["explain"]["launches"]) {
    if (!launch["bound_share"].is_number()) continue;
    EXPECT_DOUBLE_EQ(launch["bound_share"].get<double>(),
                     launch["bound_ns"].get<double>() / launch["time_ns"].get<double>())
        << launch["kernel"];
  }
}

/// They do masked scores too, which the kernel's result does not need.
TEST(Explain, FlopOfTheArraysAreNamedAsSuch) {
  const Tool tool;
  std::vector<std::string> run = small_transformer(tool, {"--data", "off", "--layers", "1"}, small_model(1), "1");
  const Outcome outcome = tool(extended(run, {"--explain", "--json", "r.json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(" array FLOP/B array TFLOP/s "));
  const Json json = Json::parse(read(tool.file("r.json")));
  double done = 0, needed = 0;
  for (const Json& launch : json["explain"]["launches"])
    done += launch["kernel"] == "attention.scores" ? launch["flops"].get<double>() : 0;
  for (const Json& kernel : json["results"].back()["kernels"])
    needed +=
        kernel["name"] == "attention.scores" ? kernel["flops"].get<double>() / kernel["launches"].get<double>() : 0;
  EXPECT_GT(needed, 0);
  EXPECT_GE(done, needed);
}

/// Uniform traffic on k x k routers asks a link in the middle of a row for k / 4 flits a cycle and node.
TEST(Explain, OfBareTrafficSaysWhatItsLatencyIsAndWhereItsLimit) {
  const Tool tool;
  const Outcome outcome =
      tool({"run", "noc_traffic", "--cols", "4", "--rows", "4", "--load", "0.1", "--flits", "1", "--explain"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("of an empty mesh (2.50 links, 1 flits)"));
  EXPECT_THAT(outcome.out,
              HasSubstr("the busiest link is asked for 10% of its cycles, for all of them at load 1.000\n"));
  EXPECT_THAT(outcome.out, HasSubstr("# no kernel was launched: --explain has no launches to list\n"));
  const Outcome hot = tool(
      {"run", "noc_traffic", "--cols", "4", "--rows", "4", "--load", "0.02", "--pattern", "hotspot(5)", "--explain"});
  EXPECT_THAT(hot.out,
              HasSubstr("busiest node's way out is asked for 32% of its cycles, for all of them at load 0.062"));
}

TEST(Explain, OfLinksSaysWhatLimitsTheirRateAndWhatTheirLatencyIs) {
  const Tool tool;
  const auto limit = [&](const std::string& key, const char* by) {
    const Outcome outcome = tool({"run", "link", "--kind", "inter_sip", "--topology", "ring8", "-b", "256", "-e", "256",
                                  "--loads", "0", "-n", "10", "--explain", "--set", key});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::string kind, bytes, wire, network, credits, least;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (line.rfind("#       256", 0) == 0) words >> kind >> bytes >> wire >> network >> credits >> least;
    }
    EXPECT_EQ(least, by) << outcome.out;
  };
  limit("system.links.bandwidth=1GB/s", "wire");
  limit("system.links.buffer_packets=2", "credits");
  limit("sip.io.crossbar.clock=100MHz", "network");
}

TEST(Explain, NamesTheKeyThatIsThrottled) {
  const std::vector<std::string> small{"all_reduce",
                                       "-w",
                                       "0",
                                       "--topology",
                                       "ring8",
                                       "--set",
                                       "system.sips.count=2",
                                       "--set",
                                       "sip.cube_mesh.w=1",
                                       "--set",
                                       "sip.cube_mesh.h=1",
                                       "--data",
                                       "off"};
  struct Case {
    const char *bytes, *set, *key;
  };
  for (const Case& c : {Case{"4K", "pe.cpu.dispatch=300 ns", "pe.cpu.dispatch"},
                        Case{"64K", "system.links.bandwidth=4 GB/s", "system.links.bandwidth"},
                        Case{"4K", "system.links.latency=20 us", "system.links.latency"},
                        Case{"64K", "pe.ipcq.slots=1", "pe.ipcq.slots"}}) {
    const Tool tool;
    std::vector<std::string> run = small;
    run.insert(run.end(), {"-b", c.bytes, "-e", c.bytes, "--set", c.set});
    const Json json = explained(tool, run);
    const Json& keys = json["explain"]["launches"][0]["binds"][0]["keys"];
    EXPECT_NE(std::find(keys.begin(), keys.end(), c.key), keys.end()) << c.key << ", not " << keys;
  }
}

}  // namespace
}  // namespace kernbench
