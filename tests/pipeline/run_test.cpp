#include "runtime/pipeline/run/run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/pipeline/host_run.h"
#include "tests/pipeline/run_case.h"

namespace kernbench::pipeline {
namespace {

struct ExchangeCase {
  std::string kind, metadata, input;
  std::vector<std::int64_t> shape;  ///< of the result
};

/// Exchanges of every kind along every dimension of a tensor of three, of `n` members, and what needs no dimension of a
/// single element.
std::vector<ExchangeCase> exchange_cases(const std::vector<std::int64_t>& shape, std::int64_t n, DType dtype) {
  std::vector<std::string> ops{"sum", "max", "min"};
  if (is_float(dtype)) ops.emplace_back("avg");
  std::vector<ExchangeCase> cases;
  for (const char* input : {"x", "z"}) {
    const std::vector<std::int64_t> whole = *input == 'x' ? shape : std::vector<std::int64_t>();
    cases.push_back({"broadcast", "{src: d1}", input, whole});
    cases.push_back({"reduce", "{reduce_op: sum, dst: d1}", input, whole});
    for (const std::string& op : ops) cases.push_back({"all_reduce", "{reduce_op: " + op + "}", input, whole});
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const std::string at = std::to_string(dim);
    std::vector<std::int64_t> more = shape, less = shape;
    more[dim] *= n;
    less[dim] /= n;
    cases.push_back({"all_gather", "{dim: " + at + "}", "x", more});
    for (const std::string& op : ops)
      cases.push_back({"reduce_scatter", "{reduce_op: " + op + ", dim: " + at + "}", "x", less});
    for (std::size_t to = 0; to < shape.size(); ++to) {
      std::vector<std::int64_t> turned = less;
      turned[to] *= n;
      cases.push_back({"all_to_all", "{src_dim: " + at + ", dst_dim: " + std::to_string(to) + "}", "x", turned});
    }
  }
  return cases;
}

/// A document with all cases; member i is slot di and brings xi or zi. `inputs`: of the slots, by name.
std::string exchanges_of(const std::vector<std::string>& devices, const std::vector<std::int64_t>& shape, DType dtype,
                         std::map<std::string, TensorType>& inputs) {
  std::string text = "name: exchanges\ndevices:\n", tensors = "tensors:\n", tasks, slices[2], wholes[2], lists[2];
  std::size_t counts[2] = {};
  const auto boundary = [&](int side, const std::string& name, const TensorType& type, std::size_t slot) {
    std::string ranges;
    for (const std::int64_t size : type.shape)
      ranges += (ranges.empty() ? "[0, " : ", [0, ") + std::to_string(size) + "]";
    tensors += "  " + name + ": " + type_text(type) + "\n";
    wholes[side] += "      " + name + ": " + type_text(type).substr(0, type_text(type).size() - 1) +
                    ", idx: " + std::to_string(counts[side]++) + "}\n";
    slices[side] += "      " + name + ": {placements: [" + ranges + "], origin: " + name +
                    ", dtype: " + document_type(dtype) + ", device: d" + std::to_string(slot) + "}\n";
    lists[side] += (lists[side].empty() ? "" : ", ") + name;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += "  d" + std::to_string(i) + ": {" + devices[i] + "}\n";
    inputs["x" + std::to_string(i)] = {shape, dtype};
    inputs["z" + std::to_string(i)] = {{}, dtype};
    boundary(0, "x" + std::to_string(i), {shape, dtype}, i);
    boundary(0, "z" + std::to_string(i), {{}, dtype}, i);
  }
  const auto cases = exchange_cases(shape, static_cast<std::int64_t>(devices.size()), dtype);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::string number = std::to_string(i), out = "y" + std::to_string(c) + "_" + number;
      const bool brings = cases[c].kind != "broadcast" || i == 1, gets = cases[c].kind != "reduce" || i == 1;
      if (gets) boundary(1, out, {cases[c].shape, dtype}, i);
      tasks += "  t" + out + ": {kind: " + cases[c].kind + ", device: d" + number + ", inputs: [" +
               (brings ? cases[c].input + number : "") + "], outputs: [" + (gets ? out : "") + "], group: g" +
               std::to_string(c) + ", device_idx: " + number + ", metadata: " + cases[c].metadata + "}\n";
    }
  }
  return text + tensors + "supertasks:\n  in: {kind: input, inputs: [], outputs: [" + lists[0] + "]}\n" + tasks +
         "  out: {kind: output, inputs: [" + lists[1] + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" +
         wholes[0] + "    outputs:\n" + wholes[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" +
         slices[1];
}

struct Members {
  const char* name;
  std::vector<std::string> devices;
  DType dtype = DType::f32;
};

class PipelineExchanges : public ::testing::TestWithParam<Members> {};

/// Every kind of exchange between SIPs, and among parts of one, gives what the host puts together, in the second
/// request as in the first.
TEST_P(PipelineExchanges, PiecesStandInOrderAlongEveryDimension) {
  const auto& [title, devices, dtype] = GetParam();
  std::map<std::string, TensorType> types;
  const std::string text = exchanges_of(devices, {4, 8, 12}, dtype, types);
  HostTensors inputs;
  for (const auto& [name, type] : types) {
    HostTensor& tensor = inputs[name] = values_of(type, inputs.size() + 1);
    // Integers of the whole range of their type: sums wrap, and of i64 the last bits are none that a double holds.
    for (std::size_t e = 0; !is_float(dtype) && e < static_cast<std::size_t>(type.count()); ++e)
      store_integer(tensor.bytes.data(), dtype, e,
                    static_cast<std::int64_t>((e * 2654435761U + inputs.size()) * 0x9E3779B97F4A7C15U));
  }
  const RunOutcome outcome = run_document(text, inputs, 2, {}, 2);
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  const Checked checked = check_pipeline(pipeline, {"", 2, 2, 2}, problems, warnings);
  const auto expected = run_on_host(pipeline, checked, inputs, "");
  EXPECT_GT(outcome.outputs.size(), 40U);
  for (const auto& [name, got] : outcome.outputs) {
    const HostTensor& want = expected.at(name);
    ASSERT_EQ(got.shape, want.shape) << name;
    int wrong = 0;
    for (std::size_t e = 0; e < static_cast<std::size_t>(want.count()); ++e) {
      const double a = load_element(got.bytes.data(), dtype, e), b = load_element(want.bytes.data(), dtype, e);
      const bool same = is_float(dtype)
                            ? std::abs(a - b) <= 1e-6
                            : load_integer(got.bytes.data(), dtype, e) == load_integer(want.bytes.data(), dtype, e);
      if (!same && ++wrong == 1)
        ADD_FAILURE() << title << ": " << supertask(pipeline, "t" + name).group.value << " " << name << ", element "
                      << e << ": " << a << ", not " << b;
    }
  }
}

const std::vector<std::string> kSips{"kind: npu, idx: 1", "kind: npu, idx: 0"};
const std::vector<std::string> kHalves{"kind: npu, idx: 0, cubes: [1, 2]", "kind: npu, idx: 0, cubes: [0, 1]"};
const std::vector<std::string> kPes{
    "kind: npu, idx: 0, cubes: [0, 1], pes: [0, 1]", "kind: npu, idx: 0, cubes: [0, 1], pes: [1, 2]",
    "kind: npu, idx: 0, cubes: [1, 2], pes: [0, 1]", "kind: npu, idx: 0, cubes: [1, 2], pes: [1, 2]"};

INSTANTIATE_TEST_SUITE_P(Members, PipelineExchanges,
                         ::testing::Values(Members{"Sips", kSips}, Members{"SipsOfIntegers", kSips, DType::i32},
                                           Members{"SipsOfLongIntegers", kSips, DType::i64},
                                           Members{"PesOfOneSipOfLongIntegers", kPes, DType::i64},
                                           Members{"CubesOfOneSip", kHalves}, Members{"PesOfOneSip", kPes},
                                           Members{"CubesOfOneSipOfIntegers", kHalves, DType::i32}),
                         [](const auto& info) { return info.param.name; });

/// An all-reduce of one tensor of each of two slots. `on_a` stands behind it on the first slot and may read a's part;
/// `part_of_b` is what the second slot brings.
std::string all_reduce_document(const std::string& on_a, const std::string& part_of_b) {
  const std::string type = "{shape: [2, 4], dtype: f32", part = "{placements: [[0, 2], [0, 4]], origin: ";
  std::string tensors, wholes[2], slices[2];
  for (const char* name : {"xa", "xb", "ha", "hb", "sa", "sb", "ya", "yb"})
    tensors += std::string("  ") + name + ": " + type + "}\n";
  const auto boundary = [&](int side, const std::string& name, const char* slot, const char* idx) {
    wholes[side] += "      " + name + ": " + type + ", idx: " + idx + "}\n";
    slices[side] += "      " + name + ": " + part + name + ", dtype: f32, device: " + slot + "}\n";
  };
  boundary(0, "xa", "a", "0");
  boundary(0, "xb", "b", "1");
  boundary(1, "ya", "a", "0");
  boundary(1, "yb", "b", "1");
  const std::string reduces = ", group: g, metadata: {reduce_op: sum}, ";
  return "name: p\ndevices: {a: {kind: npu, idx: 0}, b: {kind: npu, idx: 1}}\ntensors:\n" + tensors +
         "supertasks:\n  in: {kind: input, inputs: [], outputs: [xa, xb]}\n"
         "  ca: {kind: dfg, device: a, inputs: [xa], outputs: [ha], data: \"ha = relu(xa)\"}\n"
         "  cb: {kind: dfg, device: b, inputs: [xb], outputs: [hb], data: \"hb = relu(xb)\"}\n"
         "  ra: {kind: all_reduce, device: a, inputs: [ha], outputs: [sa]" +
         reduces + "device_idx: 0}\n  rb: {kind: all_reduce, device: b, inputs: [" + part_of_b + "], outputs: [sb]" +
         reduces +
         "device_idx: 1}\n  la: {kind: dfg, device: a, inputs: [sa, ha], outputs: [ya], data: \"ya = " + on_a +
         "\"}\n  lb: {kind: dfg, device: b, inputs: [sb], outputs: [yb], data: \"yb = relu(sb)\"}\n"
         "  out: {kind: output, inputs: [ya, yb], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" +
         wholes[0] + "    outputs:\n" + wholes[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" +
         slices[1];
}

class PipelineAllReduce : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(PipelineAllReduce, IsInPlaceOnAllSlotsOrOnNone) {
  const std::string text = all_reduce_document(GetParam().first, GetParam().second);
  const TensorType type{{2, 4}, DType::f32};
  const HostTensors inputs{{"xa", values_of(type, 1)}, {"xb", values_of(type, 2)}};
  const RunOutcome outcome = run_document(text, inputs, 2);
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  const Checked checked = check_pipeline(pipeline, {"", 2, 2, 2}, problems, warnings);
  const auto expected = run_on_host(pipeline, checked, inputs, "");
  EXPECT_EQ(outcome.outputs.at("ya").bytes, expected.at("ya").bytes);
  EXPECT_EQ(outcome.outputs.at("yb").bytes, expected.at("yb").bytes);
}

INSTANTIATE_TEST_SUITE_P(Parts, PipelineAllReduce,
                         ::testing::Values(std::pair("add(sa, ha)", "hb"),   // one slot still reads its part
                                           std::pair("add(sa, sa)", "xb"),   // one part is the pipeline's input
                                           std::pair("add(sa, ha)", "xb"),   // neither may go
                                           std::pair("add(sa, sa)", "hb")),  // both may
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

}  // namespace
}  // namespace kernbench::pipeline
