#include <gtest/gtest.h>

#include <fstream>

#include "sc_main/explore/sweep/remote_plan.h"
#include "sc_main/run/exit_code.h"
#include "tests/support/test_folder.h"
#include "tlm/config/json_text.h"

namespace kernbench::sweep {
namespace {

std::vector<std::unique_ptr<Task>> tasks_of(const std::vector<std::string>& keys) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const std::string& key : keys) {
    tasks.push_back(std::make_unique<Task>());
    tasks.back()->identity.key = key;
  }
  return tasks;
}

std::string line(const std::string& key, Status status = Status::ok) {
  Record record;
  record.key = key;
  record.status = status;
  return record.json().dump();
}

struct Merged {
  explicit Merged(const std::vector<std::string>& keys)
      : tasks(tasks_of(keys)),
        merge(tasks, [this](const Task&, const Record& r) { done.push_back(r.key + " " + to_string(r.status)); }) {}
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<std::string> done;
  Merge merge;
};

TEST(Merge, TakesEachPointOnceInWhateverOrderAndHoweverOften) {
  Merged m({"a", "b", "c"});
  for (const char* key : {"c", "a", "c", "a", "b", "b"}) m.merge.add(line(key));
  EXPECT_EQ(m.done, (std::vector<std::string>{"c ok", "a ok", "b ok"}));
  EXPECT_TRUE(m.merge.complete());
}

TEST(Merge, LeavesOutWhatIsCutShortUnknownOrLost) {
  Merged m({"a", "b"});
  m.merge.add(line("a").substr(0, 20));
  m.merge.add(line("a", Status::lost));
  m.merge.add(line("somebody else's"));
  m.merge.add("");
  m.merge.add("[1, 2]");
  EXPECT_TRUE(m.done.empty());
  ASSERT_EQ(m.merge.missing().size(), 2U);
  m.merge.add(line("b", Status::failed));
  EXPECT_EQ(m.done, (std::vector<std::string>{"b failed"}));
  EXPECT_EQ(m.merge.missing().front()->identity.key, "a");
}

TEST(Merge, WhatIsGivenUpIsLost) {
  Merged m({"a", "b"});
  m.merge.add(line("b"));
  m.merge.give_up("three arrays");
  EXPECT_EQ(m.done, (std::vector<std::string>{"b ok", "a lost"}));
  EXPECT_TRUE(m.merge.complete());
}

TEST(Merge, WhatIsGivenUpKeepsWhyAWorkerLostIt) {
  const auto tasks = tasks_of({"a", "b"});
  std::vector<std::string> errors;
  Merge merge(tasks, [&](const Task&, const Record& record) { errors.push_back(record.error); });
  merge.add(refused_record("a", static_cast<int>(ExitCode::environment), "no such file").json().dump());
  merge.give_up("three arrays");
  EXPECT_EQ(errors, (std::vector<std::string>{"three arrays: no such file", "three arrays"}));
}

TEST(Record, OnlyWhatAComputerLackedOrAUserEndedIsLost) {
  for (const ExitCode code : {ExitCode::environment, ExitCode::interrupted})
    EXPECT_EQ(refused_record("a", static_cast<int>(code), "").status, Status::lost);
  for (const ExitCode code : {ExitCode::check_failed, ExitCode::bad_input, ExitCode::limit, ExitCode::internal})
    EXPECT_EQ(refused_record("a", static_cast<int>(code), "").status, Status::failed);
  EXPECT_EQ(status_of_exit(0), Status::ok);
}

TEST(Shards, DealNeighboursToDifferentWorkers) {
  const auto tasks = tasks_of({"a", "b", "c", "d", "e"});
  std::vector<Task*> all;
  for (const auto& task : tasks) all.push_back(task.get());
  const auto shards = shards_of(all, 2);
  ASSERT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards[0], (std::vector<Task*>{all[0], all[2], all[4]}));
  EXPECT_EQ(shards[1], (std::vector<Task*>{all[1], all[3]}));
  EXPECT_EQ(shards_of(all, 9).size(), 5U);
}

/// Else its result would stand under the key of a point that it is not.
TEST(Worker, LosesAPointWhoseFilesAreOthersThere) {
  const TestFolder folder;
  const std::string ring = folder.file("ring.xml"), plan = folder.file("plan.json"), results = folder.file("r.jsonl");
  std::ofstream(ring) << read(KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml");
  const SweepFile file =
      read_sweep("workload: all_reduce\ntopology: ring8\nset: {system.sips.count: 4}\noptions: {schedule: '" + ring +
                     "'}\naxes: {b: [4096]}\n",
                 "sweep.yaml");
  PointMaker maker(file);
  const auto task = make_task(file, maker, points(file, maker).front());
  ASSERT_EQ(task->refusal, "");
  std::ofstream(plan) << json_text(plan_of_tasks({task.get()}, {})) << "\n";
  std::ofstream(ring, std::ios::app) << "<!-- of today -->\n";
  run_worker(plan, results, 1, false);
  const auto answer = nlohmann::json::parse(read(results));
  EXPECT_EQ(answer["error"], "a file that the point names is another one here");
  EXPECT_EQ(answer["key"], task->identity.key);
  EXPECT_EQ(answer["exit_code"], 7);
  EXPECT_EQ(answer["status"], "lost");
}

TEST(Worker, FailsAPointWhoseValuesAreBad) {
  const TestFolder folder;
  const std::string plan = folder.file("plan.json"), results = folder.file("r.jsonl");
  const SweepFile file = read_sweep("workload: gemm_single_pe\ntopology: minimal\naxes: {m: [1]}\n", "sweep.yaml");
  PointMaker maker(file);
  const auto task = make_task(file, maker, points(file, maker).front());
  task->arguments = {"gemm_single_pe", "--m=0"};
  std::ofstream(plan) << json_text(plan_of_tasks({task.get()}, {})) << "\n";
  run_worker(plan, results, 1, false);
  const auto answer = nlohmann::json::parse(read(results));
  EXPECT_EQ(answer["error"], "--m is 0; give an integer from 1 to 1048576");
  EXPECT_EQ(answer["exit_code"], 2);
  EXPECT_EQ(answer["status"], "failed");
}

}  // namespace
}  // namespace kernbench::sweep
