#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "sc_main/workloads/serve/schedule.h"
#include "sc_main/workloads/serve/steps.h"
#include "tests/support/files_with_texts.h"
#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"
#include "tlm/config/problems.h"

namespace kernbench {
namespace {

using serve::Chunk;
using serve::Cost;
using serve::Part;
using serve::Request;
using serve::Step;
using serve::StepCost;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kServedModel = small_model(3);

std::string written(const Tool& tool, const std::string& text) {
  const std::string path = tool.file("requests.csv");
  std::ofstream(path) << text;
  return path;
}

/// A prompt takes 10 ps a token, a decode step 100 and one more for each sequence.
StepCost simple_cost(const Step& step) {
  StepCost cost;
  cost.layers.time = 10 * static_cast<double>(step.prompt_tokens());
  if (step.batch > 0) cost.layers.time += 100 + static_cast<double>(step.batch);
  return cost;
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
  EXPECT_EQ(schedule.steps[3].step.fullest, 20) << "each has PEs of its own";
}

/// In pages of 4 on two PEs each takes 8 or 16 of 23 positions: the second waits for the first.
TEST(Serving, RequestsTakeWholePagesOnAllTheirPes) {
  serve::Limits limits{8, 23};
  limits.granule = 8;
  EXPECT_EQ(limits.taken_by({0, 5, 3}), 8);
  const serve::Schedule schedule = serve::serve({{0, 8, 1}, {0, 4, 4}}, limits, simple_cost);
  EXPECT_EQ(schedule.served[0].last, 80u);
  EXPECT_EQ(schedule.served[1].first, 120u);
  limits.positions = 15;
  EXPECT_EQ(serve::without_room({{0, 8, 1}}, limits), 0u);
}

/// As tp::CacheLayout deals sequences to PEs.
TEST(Serving, TimeOfDecodeGoesByTheFullestPe) {
  serve::Limits limits;
  limits.pes = 4;
  EXPECT_EQ(limits.fullest({100, 8000, 100}), 8000) << "the longest";
  EXPECT_EQ(limits.fullest({10, 20, 30, 40, 50}), 30) << "the first PE has 10 and 50, others one: of two each 30";
  EXPECT_EQ(limits.fullest({10, 20, 90, 40, 50}), 45) << "one long sequence is as two of half its length";
  EXPECT_EQ(limits.fullest({70, 70, 70, 70, 70, 70, 70, 70}), 70);
  limits.heads = 2;
  EXPECT_EQ(limits.fullest({10, 20, 30, 40}), 30) << "PEs 0 and 1 have heads of 10 and 30, PEs 2 and 3 of 20 and 40";
  EXPECT_EQ(limits.fullest({}), 0);
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
  EXPECT_EQ(serve::without_room({{0, 7, 8}, {0, 10, 6}}, {8, 14}), 1u) << "the longest";
  EXPECT_EQ(serve::without_room({{0, 7, 7}}, {8, 14}), std::nullopt);
}

/// Four tokens a step: each running sequence's, then prompts, in parts.
TEST(Serving, ChunksFillUpWhatDecodeLeavesOfAStep) {
  const std::vector<Request> requests{{0, 6, 3}, {10, 3, 2}, {11, 1, 1}};
  const serve::Schedule schedule = serve::serve(requests, {2, 1000, 4}, simple_cost);
  // 0: 4 of 6, to 40. The other 2 and 2 of the second's 3, to 80: the first's first token. Its second beside the last
  // of the second's, to 80 + 10 + 101 = 191: that one's first. One more of each, to 293, the last of both. Then the
  // third.
  ASSERT_EQ(schedule.steps.size(), 5u);
  EXPECT_EQ(schedule.steps[1].step.prompts.size(), 2u);
  EXPECT_EQ(schedule.steps[1].step.prompts[0].past, 4);
  EXPECT_EQ(schedule.steps[2].step.batch, 1);
  EXPECT_EQ(schedule.steps[2].step.prompts.front().past, 2);
  EXPECT_EQ(schedule.steps[2].waiting, 1) << "no place for the third";
  EXPECT_EQ(schedule.served[0].first, 80u);
  EXPECT_EQ(schedule.served[1].first, 191u);
  EXPECT_EQ(schedule.served[0].last, 293u);
  EXPECT_EQ(schedule.served[1].last, 293u);
  EXPECT_EQ(schedule.served[2].first, 303u);
}

/// Whatever the scheduler, replicas and stages: every token of a prompt is taken once, in order, every token is given
/// once, no step is above its limit, and nobody runs beside more than there are places for.
TEST(Serving, TakesAndGivesEveryTokenOnce) {
  std::vector<Request> requests = serve::make_requests(5e8, 300, 7, 1, 1);  // 2,000 ps apart
  serve::give_conversation_lengths(requests, 7);
  std::int64_t prompt = 0, output = 0;
  for (const Request& request : requests) {
    prompt += request.prompt;
    output += request.output;
  }
  for (const std::int64_t chunk : {0, 96}) {
    for (const auto& [replicas, stages] : {std::pair(1, 1), std::pair(3, 1), std::pair(1, 4), std::pair(2, 2)}) {
      const serve::Limits limits{8, 12'000, chunk, replicas, stages};
      const serve::Schedule schedule = serve::serve(requests, limits, simple_cost);
      std::int64_t taken = 0, given = 0, ends = 0, most_held = 0;
      struct Admitted {
        std::int64_t replica, taken;
      };
      std::vector<Admitted> admitted;  // requests, in their order: nobody overtakes
      for (const serve::Taken& one : schedule.steps) {
        EXPECT_LE(one.step.batch, 8 / stages);
        EXPECT_TRUE(chunk == 0 || one.step.tokens() <= chunk);
        taken += one.step.prompt_tokens();
        given += one.step.batch + one.step.ends;
        ends += one.step.ends;
        std::int64_t ended = 0;
        for (const Chunk& part : one.step.prompts) {
          std::size_t i = 0;
          if (part.past == 0) {
            i = admitted.size();
            admitted.push_back({one.replica, 0});
          }
          // Of an earlier one: so many tokens of it are taken, and there are as many more.
          for (; i < admitted.size(); ++i) {
            if (admitted[i].replica == one.replica && admitted[i].taken == part.past &&
                requests[i].prompt - part.past >= part.tokens)
              break;
          }
          ASSERT_LT(i, admitted.size()) << part.tokens << " tokens behind " << part.past << " of no request";
          admitted[i].taken += part.tokens;
          if (admitted[i].taken == requests[i].prompt) ++ended;
        }
        EXPECT_EQ(one.step.ends, ended);
        std::int64_t held = 0, runs = 0;
        for (std::size_t i = 0; i < admitted.size(); ++i) {
          if (admitted[i].replica != one.replica || schedule.served[i].last <= one.begin) continue;
          held += requests[i].prompt + requests[i].output;
          ++runs;
        }
        EXPECT_LE(held, limits.positions);
        EXPECT_LE(runs, 8);
        most_held = std::max(most_held, held);
      }
      for (std::size_t i = 0; i < admitted.size(); ++i) EXPECT_EQ(admitted[i].taken, requests[i].prompt);
      EXPECT_GT(most_held, limits.positions * 3 / 4) << "the room matters";
      EXPECT_EQ(taken, prompt) << chunk << " " << replicas << " " << stages;
      EXPECT_EQ(given, output);
      EXPECT_EQ(ends, 300);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_GT(schedule.served[i].first, requests[i].arrival);
        EXPECT_GE(schedule.served[i].last, schedule.served[i].first + (requests[i].output > 1 ? 1 : 0));
      }
    }
  }
}

/// Two replicas: the second request does not wait for the first. One queue: the third goes to whoever is done first.
TEST(Serving, ReplicasServeOneQueue) {
  const std::vector<Request> requests{{0, 10, 1}, {1, 30, 1}, {2, 5, 1}};
  const serve::Schedule schedule = serve::serve(requests, {1, 1000, 0, 2}, simple_cost);
  EXPECT_EQ(schedule.served[0].last, 100u);
  EXPECT_EQ(schedule.served[1].last, 301u);
  EXPECT_EQ(schedule.served[2].last, 150u);
  EXPECT_EQ(schedule.steps[2].replica, 0);
}

/// Two stages of 50 each, 7 between them: the second prompt is in the first stage while the first is in the second.
TEST(Serving, StagesWorkOnSeveralFlowsAtOnce) {
  const auto cost = [](const Step&) {
    StepCost cost;
    cost.layers.time = 80;
    cost.embedding.time = 10;
    cost.logits.time = 20;
    cost.send.time = 7;
    return cost;
  };
  const serve::Schedule schedule = serve::serve({{0, 5, 2}, {0, 5, 1}}, {2, 1000, 0, 1, 2}, cost);
  EXPECT_EQ(schedule.served[0].first, 117u) << "10 + 40, 7, 40 + 20";
  EXPECT_EQ(schedule.served[1].first, 177u) << "behind it in the second stage, which is the longer one";
  EXPECT_EQ(schedule.served[0].last, 237u) << "first stage 117 to 167, second from 177, when it is free";
}

TEST(Serving, CostsBetweenSimulatedPartsAreLinear) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dense, decode, prompts;
  const auto measure = [&](const Part& part) -> Cost {
    const auto size = static_cast<double>(part.size), past = static_cast<double>(part.past);
    const std::pair at(part.size, part.past);
    if (part.kind == Part::Kind::dense) return dense.push_back(at), Cost{1000 + 5 * size, size, 0};
    if (part.kind == Part::Kind::decode) return decode.push_back(at), Cost{3 * size * past, 0, past};
    if (part.kind == Part::Kind::prompt) return prompts.push_back(at), Cost{7 * size + size * (size + past), 0, 0};
    return {part.kind == Part::Kind::logits ? 10 * size : 1, 0, 0};
  };
  serve::StepCosts costs({700, 3000, true, false}, measure);
  const auto close = [](double got, double expected) { EXPECT_NEAR(got, expected, 1e-9 * expected); };
  Step step{{{600, 0}}, 0, 0, 0, 1};
  close(costs.of(step).layers.time, 1000 + 5 * 600 + 7 * 600 + 600 * 600);
  EXPECT_EQ(costs.of(step).logits.time, 10);
  EXPECT_THAT(dense, ElementsAre(std::pair(512, 0), std::pair(700, 0))) << "no more than can come";
  EXPECT_THAT(prompts, ElementsAre(std::pair(512, 0), std::pair(700, 0)));
  step = {{}, 5, 100, 100, 0};
  close(costs.of(step).all().time, 1025 + 3 * 5 * 100 + 1 + 50);
  EXPECT_THAT(decode, ElementsAre(std::pair(4, 64), std::pair(4, 128), std::pair(6, 64), std::pair(6, 128)));
  step = {{{96, 40}}, 2, 20, 20, 0};
  close(costs.of(step).layers.time, 1000 + 5 * 98 + 7 * 96 + 96 * 136 + 3 * 2 * 20);
  EXPECT_EQ(costs.of(step).logits.time, 20);
  const std::size_t before = costs.simulated();
  close(costs.exactly(step).layers.time, costs.of(step).layers.time);
  EXPECT_EQ(costs.simulated(), before) << "as it is, and kept apart";

  // Time by the fullest PE, all else by the mean.
  step = {{}, 4, 100, 900, 0};
  close(costs.of(step).layers.time, 1020 + 3 * 4 * 900);
  close(costs.of(step).layers.bytes, 100);

  // On 8 PEs 9 to 16 sequences are up to two on each: 8 would be half as many.
  decode.clear();
  serve::StepCosts laid({700, 3000, true, false, 8}, measure);
  step = {{}, 9, 64, 64, 0};
  laid.of(step);
  step = {{}, 11, 64, 64, 0};
  laid.of(step);
  EXPECT_THAT(decode, ElementsAre(std::pair(9, 64), std::pair(12, 64)));
  decode.clear();
  step = {{}, 3, 64, 64, 0};
  laid.of(step);
  EXPECT_THAT(decode, ElementsAre(std::pair(3, 64))) << "two PEs each";

  // 512 is so near 513 that it would cost as much and say nothing.
  dense.clear();
  serve::StepCosts near({513, 3000, true, false}, measure);
  for (const double tokens : {500.0, 512.0, 513.0}) {
    step = {{{static_cast<std::int64_t>(tokens), 0}}, 0, 0, 0, 1};
    close(near.of(step).layers.time, 1000 + 5 * tokens + 7 * tokens + tokens * tokens);
  }
  EXPECT_THAT(dense, ElementsAre(std::pair(256, 0), std::pair(513, 0)));
}

/// Means of the groups that the lengths are made of, to three standard errors.
TEST(Serving, ConversationsHaveTheLengthsOfTheTrace) {
  std::vector<Request> requests(20'000);
  serve::give_conversation_lengths(requests, 1);
  double prompt = 0, output = 0;
  for (const Request& request : requests) {
    prompt += static_cast<double>(request.prompt);
    output += static_cast<double>(request.output);
  }
  EXPECT_NEAR(prompt / 20'000, 986, 3 * 950 / std::sqrt(20'000.0));
  EXPECT_NEAR(output / 20'000, 262, 3 * 150 / std::sqrt(20'000.0));
}

TEST(Serving, ReadsTheTracesColumnsAsTheyAre) {
  const Tool tool;
  const auto azure = serve::read_requests(written(tool,
                                                  "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                                  "2023-11-16 18:17:03.9799600,4808,10\r\n"
                                                  "2023-11-16 18:17:04.0319600,110,0\n"
                                                  "2023-11-17 00:00:00.0000000,12,1"));
  EXPECT_EQ(azure.left_out, 1u) << "it generates nothing";
  ASSERT_EQ(azure.list.size(), 2u);
  EXPECT_EQ(azure.list[0].arrival, 0u);
  EXPECT_EQ(azure.list[0].prompt, 4808);
  EXPECT_EQ(azure.list[0].output, 10);
  EXPECT_EQ(azure.list[1].arrival, Ps{20'576'020'040'000'000}) << "5 h 42 min 56.02004 s";
  const auto own = serve::read_requests(written(tool, "output,prompt,arrival,who\n3,4,2.5,a\n1,2,1,b\n"), 1);
  ASSERT_EQ(own.list.size(), 1u) << "in order of arrival";
  EXPECT_EQ(own.list[0].prompt, 2);
  EXPECT_EQ(own.list[0].line, 3u);
}

TEST(Serving, FieldsMayHaveBlanksAroundThemAndQuotes) {
  const Tool tool;
  const auto read = serve::read_requests(
      written(tool, "\"arrival\", prompt ,\t\"output\",\"who, \"\"and\"\" why\"\r\n 1 , 5, \"7\" ,\"a, b\"\r\n"));
  ASSERT_EQ(read.list.size(), 1u);
  EXPECT_EQ(read.list[0].prompt, 5);
  EXPECT_EQ(read.list[0].output, 7);
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
  const std::string give =
      "give TIMESTAMP,ContextTokens,GeneratedTokens as the Azure LLM inference traces, or arrival,prompt,output";
  EXPECT_EQ(error("arrival,prompt\n1,2\n"),
            ":1:1: error: there is no column 'output'; there are 'arrival, prompt'\n  hint: " + give);
  EXPECT_EQ(error("TIMESTAMP,ContextToken,Generated\n1,2,3\n").substr(0, 130),
            ":1:1: error: there is no column 'ContextTokens'; there are 'TIMESTAMP, ContextToken, Generated'\n"
            "  hint: is it 'ContextToken'? give");
  EXPECT_THAT(error("TIMESTAMP,ContextToken,Generated\n1,2,3\n"), HasSubstr("there is no column 'GeneratedTokens'"));
  EXPECT_THAT(error("arrival,prompt,output\n1, x,3\n"), HasSubstr(":2:4: error: prompt is 'x'"));
  EXPECT_THAT(error("arrival,prompt,output\n1,2\n"), HasSubstr(":2:1: error: has 2 fields, the header line 3"));
  EXPECT_THAT(error("arrival,prompt,output\n1,2,3\n1,x,3\n"), HasSubstr(":3:3: error: prompt is 'x'"));
  EXPECT_THAT(error("arrival,prompt,output\n-1,2,3\n"), HasSubstr(":2:1: error: arrival is '-1'"));
  EXPECT_THAT(error("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-29 18:17:03,1,1\n"), HasSubstr("TIMESTAMP is"));
  EXPECT_THAT(error("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03,1,1\n"),
              HasSubstr(":2:1: error: TIMESTAMP is '2023-13-16 18:17:03'"));
  EXPECT_THAT(error("arrival,prompt,output,prompt\n1,2,3,4\n"),
              HasSubstr(":1:23: error: column 'prompt' is there twice"));
  EXPECT_THAT(error("arrival,prompt,output\n"), HasSubstr("has no requests"));
  EXPECT_THAT(error(""), HasSubstr("has no header line"));
  try {
    serve::read_requests(tool.folder().path().string());
    ADD_FAILURE() << "a folder has no requests";
  } catch (const ConfigError& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("cannot be read: Is a directory"));
  }
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
    written(tool, std::string("arrival,prompt,output\n0,600,6\n0,") + second + ",6\n");
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
    const std::string file = written(tool,
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
