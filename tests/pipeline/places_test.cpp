#include <gtest/gtest.h>

#include "runtime/pipeline/run/plan.h"

namespace kernbench::pipeline {
namespace {

struct Task {
  std::string inputs, output, data;
};

constexpr const char* kTensor = "{shape: [16, 16], dtype: f16}";
constexpr const char* kSlice = "{placements: [[0, 16], [0, 16]], origin: ";

/// The plan of one slot: tensors in this order, of which x is the input; supertasks one after the other.
SlotPlan plan_of(const std::vector<std::string>& tensors, const std::vector<Task>& tasks,
                 const std::vector<std::string>& outputs) {
  std::string text = "name: p\ndevices: {d: {kind: npu, idx: 0}}\ntensors:\n";
  for (const std::string& name : tensors) text += "  " + name + ": " + kTensor + "\n";
  text += "supertasks:\n  in: {kind: input, inputs: [], outputs: [x]}\n";
  for (const Task& task : tasks)
    text += "  make_" + task.output + ": {kind: dfg, device: d, inputs: [" + task.inputs + "], outputs: [" +
            task.output + "], data: \"" + task.data + "\"}\n";
  std::string list, wholes, slices;
  for (const std::string& name : outputs) {
    list += (list.empty() ? "" : ", ") + name;
    wholes += "      " + name + ": {shape: [16, 16], dtype: f16, idx: " + std::to_string(list.size() / 3) + "}\n";
    slices += "      " + name + ": " + kSlice + name + ", dtype: f16, device: d}\n";
  }
  text += "  out: {kind: output, inputs: [" + list + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" +
          "      x: {shape: [16, 16], dtype: f16, idx: 0}\n    outputs:\n" + wholes +
          "  tensor_slices:\n    inputs:\n      x: " + kSlice + "x, dtype: f16, device: d}\n    outputs:\n" + slices;
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  const Checked checked = check_pipeline(pipeline, {"", 1, 2, 2}, problems, warnings);
  EXPECT_EQ(problems.str() + warnings.str(), "") << text;
  return make_slot_plans(pipeline, checked, {}).front();
}

/// OUT = tanh(softmax(IN)): the soft max reads all of a row before it writes one.
Task layer(const std::string& in, const std::string& out) {
  return {in, out, "h = softmax(" + in + ", -1)\\n" + out + " = tanh(h)"};
}

TEST(PipelinePlaces, AnElementwiseResultTakesThePlaceOfItsFirstOperandThatNobodyElseReads) {
  const SlotPlan plan = plan_of({"x", "a", "b", "y"},
                                {layer("x", "a"),                  // in place of the soft max
                                 {"a, x", "b", "b = add(a, x)"},   // of a supertask before
                                 {"b, x", "y", "y = add(x, b)"}},  // not of an input
                                {"y"});
  EXPECT_EQ(plan.values.at("a").buffer, plan.values.at("b").buffer);
  EXPECT_NE(plan.values.at("x").buffer, plan.values.at("y").buffer);
  EXPECT_NE(plan.values.at("b").buffer, plan.values.at("y").buffer);
  EXPECT_EQ(plan.buffers.size(), 3U);
  const SlotPlan read = plan_of(
      {"x", "a", "b", "y"}, {layer("x", "a"), {"a, x", "b", "b = add(a, x)"}, {"b, a", "y", "y = mul(b, a)"}}, {"y"});
  EXPECT_NE(read.values.at("a").buffer, read.values.at("b").buffer);
  EXPECT_EQ(read.values.at("b").buffer, read.values.at("y").buffer);
}

TEST(PipelinePlaces, SupertasksThatAreAlikeShareTensorsThatNobodyReadsAnyMore) {
  const std::vector<std::string> tensors{"x", "a", "b", "c", "y"};
  const auto place = [](const SlotPlan& plan, const char* name) { return plan.values.at(name).buffer; };
  const std::vector<Task> chain{layer("x", "a"), layer("a", "b"), layer("b", "c"), layer("c", "y")};
  const SlotPlan plan = plan_of(tensors, chain, {"y"});
  EXPECT_EQ(plan.buffers.size(), 3U);
  EXPECT_NE(place(plan, "a"), place(plan, "b"));  // one is read while the other is written
  EXPECT_EQ(place(plan, "a"), place(plan, "c"));
  EXPECT_EQ(place(plan, "b"), place(plan, "y"));
  EXPECT_NE(place(plan, "x"), place(plan, "c"));  // every pass reads the input

  const SlotPlan output = plan_of(tensors, chain, {"a", "y"});
  EXPECT_NE(place(output, "a"), place(output, "c"));
  EXPECT_EQ(place(output, "b"), place(output, "y"));

  // What is read later keeps its place.
  const SlotPlan later =
      plan_of(tensors, {layer("x", "a"), layer("a", "b"), layer("b", "c"), {"c, a", "y", "y = add(c, a)"}}, {"y"});
  EXPECT_NE(place(later, "a"), place(later, "c"));
}

TEST(PipelinePlaces, MemoryHasTheOrderInWhichTheDocumentListsTensors) {
  const std::vector<Task> chain{layer("x", "a"), layer("a", "y")};
  const auto order = [&](const std::vector<std::string>& tensors) {
    const SlotPlan plan = plan_of(tensors, chain, {"y"});
    return std::vector<int>{plan.values.at("x").buffer, plan.values.at("a").buffer, plan.values.at("y").buffer};
  };
  EXPECT_EQ(order({"x", "a", "y"}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(order({"y", "a", "x"}), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(order({"a", "x", "y"}), (std::vector<int>{1, 0, 2}));
}

}  // namespace
}  // namespace kernbench::pipeline
