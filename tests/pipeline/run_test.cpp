#include "runtime/pipeline/run/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/pipeline/evaluate.h"
#include "runtime/pipeline/export.h"
#include "runtime/pipeline/run/slices.h"
#include "runtime/tp/linear.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::pipeline {
namespace {

using kernbench::testing::machine_of;
using kernbench::testing::MachineRun;

std::string type_text(const TensorType& type) {
  std::string text = "{shape: [";
  for (const std::int64_t size : type.shape) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "], dtype: " + document_type(type.dtype) + "}";
}

/// Deterministic values that differ between neighbours; floats in [-1, 1), indices of rows of a table of 8.
HostTensor values_of(const TensorType& type, std::uint64_t stream) {
  HostTensor tensor{type.shape, type.dtype,
                    std::vector<std::uint8_t>(static_cast<std::size_t>(type.count()) * size_of(type.dtype))};
  for (std::size_t i = 0; i < static_cast<std::size_t>(type.count()); ++i) {
    const std::uint64_t mixed = (i * 2654435761U + stream * 40503U) % 997;
    if (is_float(type.dtype)) {
      store_element(tensor.bytes.data(), type.dtype, i, static_cast<double>(mixed) / 499 - 1);
    } else {
      store_integer(tensor.bytes.data(), type.dtype, i,
                    static_cast<std::int64_t>(mixed % (type.dtype == DType::boolean ? 2 : 8)));
    }
  }
  return tensor;
}

/// All cases in one document: a supertask each.
std::string document_of(const std::map<std::string, TensorType>& inputs,
                        const std::vector<std::pair<std::string, TensorType>>& outputs,
                        const std::vector<std::string>& graphs, const char* device) {
  std::string text = std::string("name: cases\ndevices: {d: {kind: ") + device + ", idx: 0}}\ntensors:\n", tasks,
              slices[2], wholes[2], in, out;
  const auto boundary = [&](int side, const std::string& name, const TensorType& type, std::size_t idx) {
    std::string ranges;
    for (const std::int64_t size : type.shape)
      ranges += (ranges.empty() ? "" : ", ") + std::string("[0, ") + std::to_string(size) + "]";
    text += "  " + name + ": " + type_text(type) + "\n";
    wholes[side] += "      " + name + ": " + type_text(type).substr(0, type_text(type).size() - 1) +
                    ", idx: " + std::to_string(idx) + "}\n";
    slices[side] += "      " + name + ": {placements: [" + ranges + "], origin: " + name +
                    ", dtype: " + document_type(type.dtype) + ", device: d}\n";
    std::string& list = side == 0 ? in : out;
    list += (list.empty() ? "" : ", ") + name;
  };
  std::size_t idx = 0;
  for (const auto& [name, type] : inputs) boundary(0, name, type, idx++);
  for (std::size_t i = 0; i < outputs.size(); ++i) boundary(1, outputs[i].first, outputs[i].second, i);
  for (std::size_t i = 0; i < graphs.size(); ++i)
    tasks += "  t" + std::to_string(i) + ": {kind: dfg, device: d, inputs: [" + in + "], outputs: [" +
             outputs[i].first + "], data: \"" + graphs[i] + "\"}\n";
  return text + "supertasks:\n  in: {kind: input, inputs: [], outputs: [" + in + "]}\n" + tasks +
         "  out: {kind: output, inputs: [" + out + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" + wholes[0] +
         "    outputs:\n" + wholes[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" + slices[1];
}

/// A document on a machine, to the end.
RunOutcome run_document(const std::string& text, const HostTensors& inputs, int sips, const PlanOptions& plan = {}) {
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  MachineRun machine(machine_of(static_cast<std::uint16_t>(sips), 2, 2));
  CheckOptions check;
  check.folder = plan.folder;
  check.sips = sips;
  check.cubes = 2;
  check.pes = 2;
  const Checked checked = check_pipeline(pipeline, check, problems, warnings);
  problems.throw_if_any();
  RunSettings settings;
  settings.inputs = cut_inputs(pipeline, inputs);
  settings.group.install_at_once = false;
  machine.runtime.init_process_group(settings.group);
  PipelineRun run(pipeline, checked, make_slot_plans(pipeline, checked, plan), settings, sips);
  machine.runtime.spawn([&run](Context& context) { run.rank_program(context); }, std::tuple<>(), run.ranks());
  return std::move(run.outcome());
}

struct OpCase {
  const char* graph;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
};

/// Roundings of the machine beyond the reference's one: sums of up to 64 terms in f32, and of f16 its storing of
/// intermediate results.
double tolerance_of(DType dtype) { return dtype == DType::f16 ? 4e-3 : 2e-5; }

void expect_cases(const std::map<std::string, TensorType>& inputs, const std::vector<OpCase>& cases,
                  const char* device) {
  std::vector<std::pair<std::string, TensorType>> outputs;
  std::vector<std::string> graphs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "y" + std::to_string(i);
    outputs.emplace_back(name, TensorType{cases[i].shape, cases[i].dtype});
    std::string graph = cases[i].graph;
    for (std::size_t at; (at = graph.find("OUT")) != std::string::npos;) graph.replace(at, 3, name);
    graphs.push_back(graph);
  }
  HostTensors wholes;
  std::uint64_t stream = 0;
  for (const auto& [name, type] : inputs) wholes[name] = values_of(type, stream++);
  const std::string text = document_of(inputs, outputs, graphs, device);
  RunOutcome outcome = run_document(text, wholes, 1);
  Problems problems;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const SuperTask& task = *pipeline.supertask("t" + std::to_string(i));
    std::vector<HostTensor> operands;
    for (const Text& name : task.inputs.value) operands.push_back(wholes[name.value]);
    const HostTensor expected = evaluate(*build_graph(pipeline, task, problems), operands).front();
    const HostTensor& got = outcome.outputs[outputs[i].first];
    ASSERT_EQ(got.bytes.size(), expected.bytes.size()) << cases[i].graph;
    int wrong = 0;
    for (std::size_t e = 0; e < static_cast<std::size_t>(expected.count()); ++e) {
      const double want = load_element(expected.bytes.data(), expected.dtype, e),
                   have = load_element(got.bytes.data(), expected.dtype, e);
      const bool good =
          std::abs(have - want) <= (is_float(expected.dtype) ? tolerance_of(expected.dtype) * (1 + std::abs(want)) : 0);
      if (!good && ++wrong <= 3)
        ADD_FAILURE() << cases[i].graph << ", element " << e << ": " << have << ", not " << want;
    }
  }
}

/// Element by element against evaluate(), which knows nothing of machines; shapes that no number of PEs divides.
TEST(PipelineOps, EveryOperationComputesWhatTheHostDoes) {
  const std::map<std::string, TensorType> inputs = {
      {"x", {{3, 5, 8}, DType::f32}},     {"w", {{7, 8}, DType::f32}},     {"m", {{8, 6}, DType::f32}},
      {"v", {{8}, DType::f32}},           {"b", {{7}, DType::f32}},        {"z", {{3, 8, 4}, DType::f32}},
      {"c", {{5, 1}, DType::f32}},        {"i", {{2, 3}, DType::i64}},     {"t", {{8, 10}, DType::f32}},
      {"k", {{3, 5, 8}, DType::boolean}}, {"s", {{}, DType::f32}},         {"n", {{4, 6}, DType::i32}},
      {"q", {{2, 9, 4}, DType::f32}},     {"e", {{2, 11, 4}, DType::f32}}, {"r", {{6, 8}, DType::f32}}};
  expect_cases(inputs,
               {{"OUT = linear(x, w, b)", {3, 5, 7}},
                {"a = linear(x, w, b)\\nOUT = gelu(a)", {3, 5, 7}},
                {"a = matmul(x, m)\\nOUT = silu(a)", {3, 5, 6}},
                {"OUT = bmm(x, z)", {3, 5, 4}},
                {"OUT = matmul(x, v)", {3, 5}},
                {"OUT = mm(r, m)", {6, 6}},
                {"a = select(m, 0, 1)\\nOUT = addmm(a, r, m, beta=2, alpha=0.5)", {6, 6}},
                {"OUT = add(x, v, alpha=0.5)", {3, 5, 8}},
                {"OUT = sub(x, c)", {3, 5, 8}},
                {"OUT = mul(x, s)", {3, 5, 8}},
                {"a = mul(x, x)\\nd = add(a, 3)\\nOUT = div(x, d)", {3, 5, 8}},
                {"OUT = mul(x, 2.5)", {3, 5, 8}},
                {"a = mul(x, x)\\nOUT = pow(a, 1.5)", {3, 5, 8}},
                {"OUT = pow(x, 3)", {3, 5, 8}},
                {"a = mul(x, x)\\nd = add(a, 1)\\nf = rsqrt(d)\\ng = sqrt(d)\\nOUT = mul(f, g)", {3, 5, 8}},
                {"OUT = relu(x)", {3, 5, 8}},
                {"OUT = gelu(x, tanh)", {3, 5, 8}},
                {"a = sigmoid(x)\\nd = tanh(x)\\nf = neg(a)\\ng = exp(f)\\nOUT = add(g, d)", {3, 5, 8}},
                {"OUT = softmax(x, -1)", {3, 5, 8}},
                {"OUT = softmax(x, 0)", {3, 5, 8}},
                {"OUT = layer_norm(x, [8], v, v)", {3, 5, 8}},
                {"OUT = layer_norm(x, [5, 8])", {3, 5, 8}},
                {"OUT = rms_norm(x, [8], v, eps=0.01)", {3, 5, 8}},
                {"OUT = embedding(t, i)", {2, 3, 10}},
                {"OUT = reshape(x, [15, 8])", {15, 8}},
                {"OUT = view(x, [4, 30])", {4, 30}},
                {"a = matmul(x, m)\\nOUT = reshape(a, [9, 10])", {9, 10}},
                {"OUT = permute(x, [2, 0, 1])", {8, 3, 5}},
                {"OUT = transpose(x, 0, 1)", {5, 3, 8}},
                {"OUT = transpose(x, 0, 2)", {8, 5, 3}},
                {"OUT = expand(c, [2, 5, 6])", {2, 5, 6}},
                {"OUT = cat([x, x], 1)", {3, 10, 8}},
                {"a = slice(x, 2, 0, 3)\\nOUT = cat([a, x], -1)", {3, 5, 11}},
                {"a, d, f = split(x, 3, 2)\\nOUT = cat([f, a], 2)", {3, 5, 5}},
                {"OUT = slice(x, 1, 0, 5, 2)", {3, 3, 8}},
                {"OUT = slice(x, 2, 1, 8, 3)", {3, 5, 3}},
                {"OUT = select(x, 2, 5)", {3, 5}},
                {"OUT = mean(x, [0, 2])", {5}},
                {"OUT = sum(x, 1, keepdim=true)", {3, 1, 8}},
                {"OUT = amax(x, [-1])", {3, 5}},
                {"OUT = mean(x, [])", {}},
                {"OUT = where(k, x, v)", {3, 5, 8}},
                {"a = cast(x, f16)\\nOUT = mul(a, 0.5)", {3, 5, 8}, DType::f16},
                {"a = add(n, n)\\nOUT = mul(a, 3)", {4, 6}, DType::i32},
                {"OUT = amax(n, 1)", {4}, DType::i32},
                {"OUT = scaled_dot_product_attention(q, e, e)", {2, 9, 4}},
                {"OUT = scaled_dot_product_attention(q, q, q, is_causal=true)", {2, 9, 4}},
                {"a = matmul(x, m)\\nOUT = layer_norm(a, [6])", {3, 5, 6}},
                {"a = unsqueeze(x, 1)\\nd = squeeze(a, 1)\\nf = clone(d)\\nOUT = t(r)", {8, 6}}},
               "npu");
}

/// Exchanges of two SIPs, written as what they are on the host: `x0` and `x1` are the members' tensors.
struct ExchangeCase {
  std::string kind, metadata;
  std::vector<std::int64_t> shape;  ///< of the result
  std::string graph[2];             ///< of each member
};

std::string sliced(const std::string& name, const std::string& from, int dim, int part, std::int64_t size) {
  return name + " = slice(" + from + ", " + std::to_string(dim) + ", " + std::to_string(part * size / 2) + ", " +
         std::to_string((part + 1) * size / 2) + ")\\n";
}

/// Every dimension of a tensor of three, against the same pieces put together on the host.
TEST(PipelineExchanges, PiecesStandInOrderAlongEveryDimension) {
  const std::vector<std::int64_t> shape{2, 4, 6};
  std::vector<ExchangeCase> cases;
  for (int dim = 0; dim < 3; ++dim) {
    const std::string at = std::to_string(dim);
    std::vector<std::int64_t> more = shape, less = shape;
    more[static_cast<std::size_t>(dim)] *= 2;
    less[static_cast<std::size_t>(dim)] /= 2;
    ExchangeCase gather{"all_gather", "{dim: " + at + "}", more, {}},
        scatter{"reduce_scatter", "{reduce_op: sum, dim: " + at + "}", less, {}};
    for (int r = 0; r < 2; ++r) {
      gather.graph[r] = "y = cat([x0, x1], " + at + ")";
      scatter.graph[r] = "a = add(x0, x1)\\n" + sliced("y", "a", dim, r, shape[static_cast<std::size_t>(dim)]);
    }
    cases.push_back(gather);
    cases.push_back(scatter);
    for (int to = 0; to < 3; ++to) {
      std::vector<std::int64_t> turned = less;
      turned[static_cast<std::size_t>(to)] *= 2;
      ExchangeCase all{"all_to_all", "{src_dim: " + at + ", dst_dim: " + std::to_string(to) + "}", turned, {}};
      for (int r = 0; r < 2; ++r)
        all.graph[r] = sliced("a", "x0", dim, r, shape[static_cast<std::size_t>(dim)]) +
                       sliced("b", "x1", dim, r, shape[static_cast<std::size_t>(dim)]) + "y = cat([a, b], " +
                       std::to_string(to) + ")";
      cases.push_back(all);
    }
  }
  cases.push_back(
      {"all_reduce",
       "{reduce_op: max}",
       shape,
       {"a = sub(x0, x1)\\nb = relu(a)\\ny = add(b, x1)", "a = sub(x0, x1)\\nb = relu(a)\\ny = add(b, x1)"}});
  const TensorType type{shape, DType::f32};
  const HostTensors wholes{{"x0", values_of(type, 1)}, {"x1", values_of(type, 2)}};
  std::string text = "name: p\ndevices: {d0: {kind: npu, idx: 0}, d1: {kind: npu, idx: 1}}\ntensors:\n", tasks,
              slices[2], whole[2], out;
  const auto boundary = [&](int side, const std::string& name, const TensorType& of, int slot, std::size_t idx) {
    std::string ranges;
    for (const std::int64_t size : of.shape)
      ranges += (ranges.empty() ? "[0, " : ", [0, ") + std::to_string(size) + "]";
    text += "  " + name + ": " + type_text(of) + "\n";
    whole[side] += "      " + name + ": " + type_text(of).substr(0, type_text(of).size() - 1) +
                   ", idx: " + std::to_string(idx) + "}\n";
    slices[side] += "      " + name + ": {placements: [" + ranges + "], origin: " + name + ", dtype: f32, device: d" +
                    std::to_string(slot) + "}\n";
  };
  boundary(0, "x0", type, 0, 0);
  boundary(0, "x1", type, 1, 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (int r = 0; r < 2; ++r) {
      const std::string name = "y" + std::to_string(i) + "_" + std::to_string(r), number = std::to_string(r);
      boundary(1, name, {cases[i].shape, DType::f32}, r, 2 * i + static_cast<std::size_t>(r));
      out += (out.empty() ? "" : ", ") + name;
      tasks += "  t" + name + ": {kind: " + cases[i].kind + ", device: d" + number + ", inputs: [x" + number +
               "], outputs: [" + name + "], group: g" + std::to_string(i) + ", device_idx: " + number +
               ", metadata: " + cases[i].metadata + "}\n";
    }
  }
  text += "supertasks:\n  in: {kind: input, inputs: [], outputs: [x0, x1]}\n" + tasks +
          "  out: {kind: output, inputs: [" + out + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" + whole[0] +
          "    outputs:\n" + whole[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" + slices[1];
  RunOutcome outcome = run_document(text, wholes, 2);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (int r = 0; r < 2; ++r) {
      const std::string reference =
          document_of({{"x0", type}, {"x1", type}}, {{"y", {cases[i].shape, DType::f32}}}, {cases[i].graph[r]}, "cpu");
      Problems problems;
      const Pipeline on_host = read_pipeline(parse_config(reference, "h.yaml"), {}, problems);
      const auto graph = build_graph(on_host, *on_host.supertask("t0"), problems);
      ASSERT_EQ(problems.str(), "");
      const HostTensor expected = evaluate(*graph, {wholes.at("x0"), wholes.at("x1")}).front();
      const HostTensor& got = outcome.outputs["y" + std::to_string(i) + "_" + std::to_string(r)];
      int wrong = 0;
      for (std::size_t e = 0; e < static_cast<std::size_t>(expected.count()); ++e) {
        const double want = load_element(expected.bytes.data(), DType::f32, e),
                     have = load_element(got.bytes.data(), DType::f32, e);
        if (std::abs(have - want) > 1e-6 && ++wrong == 1)
          ADD_FAILURE() << cases[i].kind << " " << cases[i].metadata << " on " << r << ", element " << e << ": " << have
                        << ", not " << want;
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::pipeline
