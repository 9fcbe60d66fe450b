#include <gtest/gtest.h>

#include <cmath>

#include "runtime/pipeline/evaluate.h"
#include "tests/pipeline/run_case.h"

namespace kernbench::pipeline {
namespace {

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
    const SuperTask& task = supertask(pipeline, "t" + std::to_string(i));
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

/// Launches of each graph of x [8, 16] on a SIP, by kind.
std::vector<std::vector<Step::Kind>> launches_of(const std::vector<std::string>& graphs) {
  const TensorType square{{16, 16}, DType::f16}, type{{8, 16}, DType::f16};
  std::vector<std::pair<std::string, TensorType>> outputs;
  for (std::size_t i = 0; i < graphs.size(); ++i) outputs.emplace_back("y" + std::to_string(i), type);
  const std::string text =
      document_of({{"x", type}, {"w", square}, {"b", {{16}, DType::f16}}, {"o", type}}, outputs, graphs, "npu");
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p.yaml"), {}, problems);
  const Checked checked = check_pipeline(pipeline, {"", 1, 2, 2}, problems, warnings);
  EXPECT_EQ(problems.str(), "");
  const std::vector<SlotPlan> plans = make_slot_plans(pipeline, checked, {});
  std::vector<std::vector<Step::Kind>> made;
  for (const TaskPlan& task : plans.front().tasks) {
    made.emplace_back();
    for (const Step& step : task.before) made.back().push_back(step.kind);
  }
  return made;
}

/// Of the weight, an input here, each product makes a placed copy first: a launch of its own before those that count.
TEST(PipelineFusing, BiasActivationAndResidualAreTheEpilogueOfAProduct) {
  using Kind = Step::Kind;
  const auto launches = launches_of({
      "h = linear(x, w, b)\\nd = gelu(h)\\ny0 = add(d, o)",            // all in one
      "h = matmul(x, w)\\ny1 = add(o, h)",                             // on either side
      "h = linear(x, w, b)\\nd = add(h, o)\\ny2 = relu(d)",            // an activation behind a residual is another one
      "h = matmul(x, w)\\nd = add(h, o)\\ny3 = add(d, o)",             // a single residual
      "h = matmul(x, w)\\nd = matmul(o, w)\\ny4 = add(h, d)",          // what an earlier product made
      "h = matmul(x, w)\\nd = add(h, o)\\ny5 = rms_norm(d, [16], b)",  // a sum that a norm reads is the norm's
      "h = matmul(x, w)\\nd = add(h, o)\\ny6 = mul(d, h)",             // somebody else reads the product
      "h = matmul(x, w)\\nd = softmax(o, -1)\\ny7 = add(h, d)",        // lies otherwise, and comes later
  });
  const std::vector<std::vector<Kind>> ends{{Kind::gemm},
                                            {Kind::gemm},
                                            {Kind::gemm, Kind::point},
                                            {Kind::gemm, Kind::point},
                                            {Kind::gemm, Kind::gemm},
                                            {Kind::gemm, Kind::norm},
                                            {Kind::gemm, Kind::point, Kind::point},
                                            {Kind::gemm, Kind::rows, Kind::point}};
  ASSERT_EQ(launches.size(), ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::vector<Kind> kept;
    for (const Kind kind : launches[i]) {
      if (kind != Kind::move) kept.push_back(kind);
    }
    EXPECT_EQ(kept, ends[i]) << "graph " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PipelineOps,
                         ::testing::Combine(::testing::ValuesIn(kOpSizes),
                                            ::testing::Values(DType::f32, DType::f16, DType::bf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace kernbench::pipeline
