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
RunOutcome run_document(const std::string& text, const HostTensors& inputs, int sips, const PlanOptions& plan = {},
                        int requests = 1) {
  Problems problems, warnings;
  static Pipeline pipeline;  // the outcome names its supertasks
  pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
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
  settings.requests = requests;
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

/// Roundings of the machine beyond the reference's one: sums of up to 64 terms in f32, and of 16 bits its storing of
/// intermediate results.
double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 3.2e-2 : dtype == DType::f16 ? 4e-3 : 2e-5; }

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

/// Sizes of the tensors of the cases: batch, rows, columns, and columns of weights.
struct OpSizes {
  const char* name;
  std::int64_t b, l, c, n, m;
};
constexpr OpSizes kOpSizes[] = {{"Odd", 3, 5, 8, 7, 6}, {"Even", 2, 16, 32, 24, 8}, {"Thin", 1, 1, 16, 1, 2}};

class PipelineOps : public ::testing::TestWithParam<std::tuple<OpSizes, DType>> {};

/// Element by element against evaluate(), which knows nothing of machines: sizes that no number of PEs divides, that
/// all divide, and of one row.
TEST_P(PipelineOps, EveryOperationComputesWhatTheHostDoes) {
  const auto [sizes, f] = GetParam();
  const std::int64_t b = sizes.b, l = sizes.l, c = sizes.c, n = sizes.n, m = sizes.m;
  const auto s = [](std::int64_t size) { return std::to_string(size); };
  const std::map<std::string, TensorType> inputs = {{"x", {{b, l, c}, f}},
                                                    {"w", {{n, c}, f}},
                                                    {"m", {{c, m}, f}},
                                                    {"v", {{c}, f}},
                                                    {"b", {{n}, f}},
                                                    {"z", {{b, c, 4}, f}},
                                                    {"c", {{l, 1}, f}},
                                                    {"i", {{2, 3}, DType::i64}},
                                                    {"t", {{8, m}, f}},
                                                    {"k", {{b, l, c}, DType::boolean}},
                                                    {"s", {{}, f}},
                                                    {"n", {{4, 6}, DType::i32}},
                                                    {"q", {{b, l + 4, 4}, f}},
                                                    {"e", {{b, l + 6, 4}, f}},
                                                    {"u", {{l + 4, l + 6}, f}},
                                                    {"j", {{l + 4, l + 6}, DType::boolean}},
                                                    {"r", {{6, c}, f}},
                                                    {"o", {{b, l, n}, f}}};
  const std::string half = s(c / 2), rest = s(c - 3);
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> floats = {
      {"OUT = linear(x, w, b)", {b, l, n}},
      {"h = linear(x, w, b)\\nOUT = gelu(h)", {b, l, n}},
      {"h = linear(x, w, b)\\nd = relu(h)\\nOUT = add(d, o)", {b, l, n}},
      {"h = linear(x, w)\\nd = add(o, h)\\nOUT = sigmoid(d)", {b, l, n}},
      {"h = matmul(x, m)\\nOUT = silu(h)", {b, l, m}},
      {"OUT = bmm(x, z)", {b, l, 4}},
      {"OUT = matmul(x, v)", {b, l}},
      {"OUT = mm(r, m)", {6, m}},
      {"h = select(m, 0, 1)\\nOUT = addmm(h, r, m, beta=2, alpha=0.5)", {6, m}},
      {"OUT = add(x, v, alpha=0.5)", {b, l, c}},
      {"OUT = sub(x, c)", {b, l, c}},
      {"OUT = mul(x, s)", {b, l, c}},
      {"h = mul(x, x)\\nd = add(h, 3)\\nOUT = div(x, d)", {b, l, c}},
      {"OUT = mul(x, 2.5)", {b, l, c}},
      {"h = mul(x, x)\\nOUT = pow(h, 1.5)", {b, l, c}},
      {"OUT = pow(x, 3)", {b, l, c}},
      {"h = mul(x, x)\\nd = add(h, 1)\\nf = rsqrt(d)\\ng = sqrt(d)\\nOUT = mul(f, g)", {b, l, c}},
      {"OUT = relu(x)", {b, l, c}},
      {"OUT = gelu(x, tanh)", {b, l, c}},
      {"h = sigmoid(x)\\nd = tanh(x)\\nf = neg(h)\\ng = exp(f)\\nOUT = add(g, d)", {b, l, c}},
      {"OUT = softmax(x, -1)", {b, l, c}},
      {"OUT = softmax(x, 0)", {b, l, c}},
      {"OUT = layer_norm(x, [" + s(c) + "], v, v)", {b, l, c}},
      {"OUT = layer_norm(x, [" + s(l) + ", " + s(c) + "])", {b, l, c}},
      {"OUT = rms_norm(x, [" + s(c) + "], v, eps=0.01)", {b, l, c}},
      {"OUT = embedding(t, i)", {2, 3, m}},
      {"OUT = reshape(x, [" + s(b * l) + ", " + s(c) + "])", {b * l, c}},
      {"OUT = view(x, [2, " + s(b * l * c / 2) + "])", {2, b * l * c / 2}},
      {"h = matmul(x, m)\\nOUT = reshape(h, [" + s(m / 2) + ", " + s(b * l * 2) + "])", {m / 2, b * l * 2}},
      {"OUT = permute(x, [2, 0, 1])", {c, b, l}},
      {"OUT = transpose(x, 0, 1)", {l, b, c}},
      {"OUT = transpose(x, 0, 2)", {c, l, b}},
      {"OUT = expand(c, [2, " + s(l) + ", 6])", {2, l, 6}},
      {"OUT = cat([x, x], 1)", {b, 2 * l, c}},
      {"h = slice(x, 2, 0, 3)\\nOUT = cat([h, x], -1)", {b, l, c + 3}},
      {"h, d = split(x, [3, " + rest + "], 2)\\nOUT = cat([d, h], 2)", {b, l, c}},
      {"h, d = split(x, " + half + ", 2)\\nOUT = sub(d, h)", {b, l, c / 2}},
      {"OUT = slice(x, 2, 1, " + s(c) + ", 3)", {b, l, (c + 1) / 3}},
      {"OUT = select(x, 2, 5)", {b, l}},
      {"OUT = mean(x, [0, 2])", {l}},
      {"OUT = sum(x, 1, keepdim=true)", {b, 1, c}},
      {"OUT = amax(x, [-1])", {b, l}},
      {"OUT = mean(x, [])", {}},
      {"OUT = where(k, x, v)", {b, l, c}},
      {"OUT = scaled_dot_product_attention(q, e, e)", {b, l + 4, 4}},
      {"OUT = scaled_dot_product_attention(q, q, q, is_causal=true)", {b, l + 4, 4}},
      {"OUT = scaled_dot_product_attention(q, e, e, u, scale=0.25)", {b, l + 4, 4}},
      {"OUT = scaled_dot_product_attention(q, e, e, j)", {b, l + 4, 4}},
      {"h = matmul(x, m)\\nOUT = layer_norm(h, [" + s(m) + "])", {b, l, m}},
      {"h = unsqueeze(x, 1)\\nd = squeeze(h, 1)\\nf = clone(d)\\nOUT = t(r)", {c, 6}}};
  std::vector<OpCase> cases;
  for (const auto& [graph, shape] : floats) cases.push_back({graph.c_str(), shape, f});
  if (f == DType::f32) {
    cases.push_back({"h = cast(x, f16)\\nOUT = mul(h, 0.5)", {b, l, c}, DType::f16});
    cases.push_back({"h = cast(x, bf16)\\nOUT = cast(h, f32)", {b, l, c}, DType::f32});
    cases.push_back({"h = add(n, n)\\nOUT = mul(h, 3)", {4, 6}, DType::i32});
    cases.push_back({"OUT = amax(n, 1)", {4}, DType::i32});
    cases.push_back({"OUT = cast(k, f32)", {b, l, c}, DType::f32});
  }
  expect_cases(inputs, cases, "npu");
}

INSTANTIATE_TEST_SUITE_P(Shapes, PipelineOps,
                         ::testing::Combine(::testing::ValuesIn(kOpSizes),
                                            ::testing::Values(DType::f32, DType::f16, DType::bf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + to_string(std::get<1>(info.param));
                         });

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

/// A chain over slots that are parts of SIPs and machines: y = gelu(x w) on one slot, relu(y + 1) on the next one.
std::string chain_of(const std::vector<std::string>& devices) {
  std::string text = "name: chain\ndevices:\n", tensors = "tensors:\n  w: {shape: [16, 24], dtype: f32}\n", tasks, out;
  for (std::size_t i = 0; i < devices.size(); ++i) text += "  d" + std::to_string(i) + ": {" + devices[i] + "}\n";
  std::string at = "x";
  tensors += "  x: {shape: [8, 16], dtype: f32}\n";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    tensors += "  y" + n + ": {shape: [8, 24], dtype: f32}\n";
    tasks += "  t" + n + ": {kind: dfg, device: d" + n + ", inputs: [" + (i == 0 ? "x, w" : at) + "], outputs: [y" + n +
             "], data: \"" +
             (i == 0 ? "a = matmul(x, w)\\ny0 = gelu(a)" : "a = add(" + at + ", 1)\\ny" + n + " = relu(a)") + "\"}\n";
    at = "y" + n;
    if (i + 1 == devices.size()) break;
    tensors += "  r" + next + ": {shape: [8, 24], dtype: f32}\n";
    const std::string group = "group: g" + n + ", metadata: {}";
    tasks += "  s" + n + ": {kind: send, device: d" + n + ", inputs: [y" + n + "], outputs: [], device_idx: 0, " +
             group + "}\n  r" + n + ": {kind: recv, device: d" + next + ", inputs: [], outputs: [r" + next +
             "], device_idx: 1, " + group + "}\n";
    at = "r" + next;
  }
  const std::string last = "d" + std::to_string(devices.size() - 1);
  return text + tensors + "supertasks:\n  in: {kind: input, inputs: [], outputs: [x, w]}\n" + tasks +
         "  out: {kind: output, inputs: [" + at + "], outputs: []}\n" +
         "metadata:\n  tensors:\n    inputs: {x: {shape: [8, 16], dtype: f32, idx: 0}, w: {shape: [16, 24], dtype: "
         "f32, "
         "idx: 1}}\n    outputs: {" +
         at +
         ": {shape: [8, 24], dtype: f32, idx: 0}}\n  tensor_slices:\n    inputs:\n"
         "      x: {placements: [[0, 8], [0, 16]], origin: x, dtype: f32, device: d0}\n"
         "      w: {placements: [[0, 16], [0, 24]], origin: w, dtype: f32, device: d0}\n    outputs:\n      " +
         at + ": {placements: [[0, 8], [0, 24]], origin: " + at + ", dtype: f32, device: " + last + "}\n";
}

/// The chain on any slots computes what it computes on the host.
RunOutcome expect_chain(const std::vector<std::string>& devices, int sips, int requests) {
  const HostTensors wholes{{"x", values_of({{8, 16}, DType::f32}, 1)}, {"w", values_of({{16, 24}, DType::f32}, 2)}};
  RunOutcome outcome = run_document(chain_of(devices), wholes, sips, {}, requests);
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < devices.size(); ++i) hosts.push_back("kind: cpu, idx: " + std::to_string(i));
  Problems problems;
  const Pipeline on_host = read_pipeline(parse_config(chain_of(hosts), "h.yaml"), {}, problems);
  HostTensor value =
      evaluate(*build_graph(on_host, *on_host.supertask("t0"), problems), {wholes.at("x"), wholes.at("w")}).front();
  for (std::size_t i = 1; i < devices.size(); ++i)
    value = evaluate(*build_graph(on_host, *on_host.supertask("t" + std::to_string(i)), problems), {value}).front();
  EXPECT_EQ(outcome.outputs.size(), 1U);
  const HostTensor& got = outcome.outputs.begin()->second;
  for (std::size_t e = 0; e < static_cast<std::size_t>(value.count()); ++e)
    EXPECT_NEAR(load_element(got.bytes.data(), DType::f32, e), load_element(value.bytes.data(), DType::f32, e), 2e-5)
        << "element " << e;
  return outcome;
}

/// The time of one supertask of the last request.
TaskTime time_of(const RunOutcome& outcome, const std::string& task) {
  for (const auto& slot : outcome.slots) {
    for (const TaskTime& time : slot) {
      if (time.task->name == task) return time;
    }
  }
  ADD_FAILURE() << task << " has no time";
  return {};
}

/// Cubes, PEs of a cube, and slots on another SIP with the same part: every way for a tensor from slot to slot.
TEST(PipelineParts, SlotsOfPartsOfASipComputeAndPassOn) {
  expect_chain({"kind: npu, idx: 0, cubes: [0, 1]", "kind: npu, idx: 0, cubes: [1, 2], pes: [0, 1]",
                "kind: npu, idx: 1, cubes: [1, 2], pes: [0, 1]", "kind: npu, idx: 1, cubes: [1, 2], pes: [1, 2]"},
               2, 2);
}

/// Two slots of one SIP: while the second one works on a request, the first one is at the next.
TEST(PipelineParts, SlotsOfOneSipWorkAtOnce) {
  const RunOutcome outcome =
      expect_chain({"kind: npu, idx: 0, cubes: [0, 1]", "kind: npu, idx: 0, cubes: [1, 2]"}, 1, 6);
  const Ps alone = outcome.requests.back().second - outcome.requests.back().first;
  EXPECT_LT(outcome.passes.front(), 5 * alone) << "six requests one after the other take six times as long";
  EXPECT_GE(time_of(outcome, "t1").begin, time_of(outcome, "t0").end) << "the second slot waits for the first one";
}

/// SIPs are dealt to machines in order: of four, machine 1 has the second two.
TEST(PipelineParts, SlotsOfSeveralMachinesAreTheirSips) {
  expect_chain({"kind: npu, idx: 0", "kind: npu, idx: 1, machine: 1", "kind: cpu, idx: 0, machine: 1"}, 4, 1);
}

}  // namespace
}  // namespace kernbench::pipeline
