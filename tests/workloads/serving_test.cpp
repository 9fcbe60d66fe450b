#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "sc_main/workloads/serve/schedule.h"
#include "sc_main/workloads/serve/steps.h"
#include "tests/cli/tool_runner.h"
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

}  // namespace
}  // namespace kernbench
