#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "sc_main/workloads/serve/schedule.h"
#include "sc_main/workloads/serve/steps.h"
#include "tests/workloads/tool_json.h"
#include "tlm/config/problems.h"

namespace kernbench {
namespace {

using serve::Cost;
using serve::Request;
using serve::Step;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kServedModel = R"(layers: 3
width: 32
heads: 8
kv_heads: 4
head_dim: 8
mlp_width: 48
gated: true
activation: silu
norm: rms
epsilon: 1e-5
vocabulary: 70
position: rotary
rope_theta: 1000
positions: 64
biases: false
tied: false
)";

std::string written(const Tool& tool, const std::string& text) {
  const std::string path = tool.file("requests.csv");
  std::ofstream(path) << text;
  return path;
}

/// A prompt takes 10 ps a token, a decode step 100 and one more for each sequence.
Cost simple_cost(const Step& step) {
  return {step.prefill ? 10 * step.positions : 100 + static_cast<double>(step.batch)};
}

/// Three requests, two places: the third waits for the first, though its prompt would fit.
TEST(Serving, IsFirstComeFirstServedPrefillBeforeDecode) {
  const std::vector<Request> requests{{0, 10, 3}, {150, 20, 3}, {160, 1, 1}};
  const serve::Schedule schedule = serve::serve(requests, {2, 1000}, simple_cost);
  // 0: prompt 1, to 100. To 201 a step of one. The second has come: its prompt, to 401. A step of two, to 503, is the
  // first's last. Then the third's prompt, to 513, all of it; a step of one, to 614, is the second's last.
  ASSERT_EQ(schedule.served.size(), 3u);
  EXPECT_EQ(schedule.served[0].first, 100u);
  EXPECT_EQ(schedule.served[0].last, 503u);
  EXPECT_EQ(schedule.served[1].first, 401u);
  EXPECT_EQ(schedule.served[1].last, 614u);
  EXPECT_EQ(schedule.served[2].first, 513u);
  EXPECT_EQ(schedule.served[2].last, 513u);
  EXPECT_EQ(schedule.end, 614u);
  ASSERT_EQ(schedule.steps.size(), 6u);
  EXPECT_EQ(schedule.steps[2].waiting, 1) << "the third, while the second's prompt is computed";
  EXPECT_EQ(schedule.steps[3].step.batch, 2);
  EXPECT_EQ(schedule.steps[3].step.positions, 15.5) << "11 of the first, 20 of the second";
}

/// 14 positions: the second and the third need 8 each beside the first's 6; the fourth comes late.
TEST(Serving, WaitsForRoomInTheCachesAndForArrivals) {
  const std::vector<Request> requests{{0, 4, 2}, {0, 7, 1}, {0, 4, 4}, {5000, 1, 1}};
  const serve::Schedule schedule = serve::serve(requests, {8, 14}, simple_cost);
  EXPECT_EQ(schedule.served[0].first, 40u);
  EXPECT_EQ(schedule.served[1].last, 110u);
  EXPECT_EQ(schedule.served[2].first, 150u) << "the second's 8 positions are free again";
  EXPECT_EQ(schedule.served[0].last, 252u);
  EXPECT_EQ(schedule.served[3].first, 5010u) << "the machine was idle";
  EXPECT_THROW(serve::check_room({{0, 10, 5}}, {8, 14}), std::invalid_argument);
}

TEST(Serving, CostsBetweenSimulatedStepsAreLinear) {
  using Point = std::pair<std::int64_t, std::int64_t>;
  std::vector<Point> asked;
  serve::StepCosts costs([&](const serve::StepKind& kind) {
    asked.emplace_back(kind.batch, kind.positions);
    return Cost{1000.0 + 3.0 * static_cast<double>(kind.batch) * static_cast<double>(kind.positions), 0,
                static_cast<double>(kind.positions)};
  });
  EXPECT_EQ(costs.of({true, 1, 96}).time, 1000) << "a point: prompts are batch 0";
  EXPECT_EQ(costs.of({false, 5, 20}).time, 1000 + 3 * 5 * 20) << "bilinear: exact for a product";
  EXPECT_EQ(costs.of({false, 5, 20}).bytes, 20);
  EXPECT_EQ(costs.simulated(), 5u);
  EXPECT_THAT(asked, ElementsAre(Point(0, 96), Point(4, 16), Point(4, 24), Point(6, 16), Point(6, 24)));
  EXPECT_EQ(costs.of({false, 1, 1}).time, 1003);
  EXPECT_EQ(costs.of({false, 3, 3}).time, 1027);
}

TEST(Serving, ReadsTheTracesColumnsAsTheyAre) {
  const Tool tool;
  const auto azure = serve::read_requests(written(tool,
                                                  "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                                  "2023-11-16 18:17:03.9799600,4808,10\r\n"
                                                  "2023-11-16 18:17:04.0319600,110,0\n"
                                                  "2023-11-17 00:00:00.0000000,12,1"));
  ASSERT_EQ(azure.size(), 2u) << "one generates nothing";
  EXPECT_EQ(azure[0].arrival, 0u);
  EXPECT_EQ(azure[0].prompt, 4808);
  EXPECT_EQ(azure[0].output, 10);
  EXPECT_EQ(azure[1].arrival, Ps{20'576'020'040'000'000}) << "5 h 42 min 56.02004 s";
  const auto own = serve::read_requests(written(tool, "output,prompt,arrival,who\n3,4,2.5,a\n1,2,1,b\n"), 1);
  ASSERT_EQ(own.size(), 1u) << "in order of arrival";
  EXPECT_EQ(own[0].prompt, 2);
}

TEST(Serving, RefusesBrokenFilesWithTheirPlace) {
  const Tool tool;
  const auto error = [&](const std::string& text) -> std::string {
    const std::string path = written(tool, text);
    try {
      serve::read_requests(path);
    } catch (const ConfigError& problem) {
      return std::string(problem.what()).substr(path.size());
    }
    return "nothing";
  };
  EXPECT_THAT(error("arrival,prompt\n1,2\n"), HasSubstr(":1:1: error: there is no column 'output'"));
  EXPECT_THAT(error("arrival,prompt,output\n1,2\n"), HasSubstr(":2:1: error: has 2 fields, the header line 3"));
  EXPECT_THAT(error("arrival,prompt,output\n1,2,3\n1,x,3\n"), HasSubstr(":3:3: error: prompt is 'x'"));
  EXPECT_THAT(error("arrival,prompt,output\n-1,2,3\n"), HasSubstr(":2:1: error: arrival is '-1'"));
  EXPECT_THAT(error("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03,1,1\n"),
              HasSubstr(":2:1: error: TIMESTAMP is '2023-13-16 18:17:03'"));
  EXPECT_THAT(error("arrival,prompt,output\n"), HasSubstr("has no requests"));
  EXPECT_THAT(error(""), HasSubstr("has no header line"));
}

/// Poisson: the mean distance of many is 1 / rate, to three standard errors; and their deviation is as large.
TEST(Serving, ArrivalsByChanceHaveTheirRate) {
  const auto requests = serve::make_requests(50, 10'000, 3, 5, 2);
  ASSERT_EQ(requests.size(), 10'000u);
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    const double gap = static_cast<double>(requests[i].arrival - requests[i - 1].arrival) / 1e12;
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / 9999;
  EXPECT_NEAR(mean, 0.02, 3 * 0.02 / 100);
  EXPECT_NEAR(std::sqrt(squares / 9999 - mean * mean), 0.02, 0.002);
  EXPECT_EQ(serve::make_requests(50, 10, 3, 5, 2)[9].arrival, requests[9].arrival);
  EXPECT_NE(serve::make_requests(50, 10, 4, 5, 2)[9].arrival, requests[9].arrival);
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
  for (const auto& row : run({"--prompt", "8", "--decode", "1", "-w", "0", "--replay", "off"})) {
    if (row["layer"] != "all") continue;
    const double took = row["time_ns"].get<double>();
    EXPECT_NEAR(row["phase"] == "prefill" ? to_first : per, took, 0.03 * took) << row["phase"];
  }
  EXPECT_EQ(served["over_time"].size(), 10u);
  EXPECT_GT(served["over_time"][0]["prefill_share"].get<double>(), 0);
  EXPECT_EQ(served["over_time"][5]["prefill_share"].get<double>(), 0) << "idle";
}

}  // namespace
}  // namespace kernbench
