#include <gtest/gtest.h>

#include "sc_main/explore/sweep/remote_plan.h"

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

}  // namespace
}  // namespace kernbench::sweep
