#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/pipeline/graph_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {

struct OperationRow {
  const char *word, *target;
  Operation::Types types;
  const char* parameters;  // "self:t other:s alpha?:n"
};
constexpr auto kFloats = Operation::Types::floats, kNumbers = Operation::Types::numbers, kAll = Operation::Types::all;

/// source: names and order of parameters as in PyTorch 2's native_functions.yaml
constexpr OperationRow kOperationRows[] = {
    {"mm", "aten.mm.default", kFloats, "self:t mat2:t"},
    {"bmm", "aten.bmm.default", kFloats, "self:t mat2:t"},
    {"addmm", "aten.addmm.default", kFloats, "self:t mat1:t mat2:t beta?:n alpha?:n"},
    {"linear", "aten.linear.default", kFloats, "input:t weight:t bias?:o"},
    {"matmul", "aten.matmul.default", kFloats, "self:t other:t"},
    {"add", "aten.add.Tensor", kAll, "self:t other:s alpha?:n"},
    {"add", "aten.add.Scalar", kNumbers, "self:t other:s alpha?:n"},
    {"sub", "aten.sub.Tensor", kNumbers, "self:t other:s alpha?:n"},
    {"sub", "aten.sub.Scalar", kNumbers, "self:t other:s alpha?:n"},
    {"mul", "aten.mul.Tensor", kAll, "self:t other:s"},
    {"mul", "aten.mul.Scalar", kNumbers, "self:t other:s"},
    {"div", "aten.div.Tensor", kFloats, "self:t other:s"},
    {"div", "aten.div.Scalar", kFloats, "self:t other:s"},
    {"pow", "aten.pow.Tensor_Scalar", kFloats, "self:t exponent:s"},
    {"pow", "aten.pow.Tensor_Tensor", kFloats, "self:t exponent:s"},
    {"rsqrt", "aten.rsqrt.default", kFloats, "self:t"},
    {"sqrt", "aten.sqrt.default", kFloats, "self:t"},
    {"neg", "aten.neg.default", kNumbers, "self:t"},
    {"exp", "aten.exp.default", kFloats, "self:t"},
    {"relu", "aten.relu.default", kNumbers, "self:t"},
    {"gelu", "aten.gelu.default", kFloats, "self:t approximate?:x"},
    {"silu", "aten.silu.default", kFloats, "self:t"},
    {"sigmoid", "aten.sigmoid.default", kFloats, "self:t"},
    {"tanh", "aten.tanh.default", kFloats, "self:t"},
    {"softmax", "aten.softmax.int", kFloats, "self:t dim:i dtype?:d"},
    {"softmax", "aten._softmax.default", kFloats, "self:t dim:i half_to_float?:x"},
    {"layer_norm", "aten.layer_norm.default", kFloats,
     "input:t normalized_shape:v weight?:o bias?:o eps?:n cudnn_enable?:x"},
    {"rms_norm", "aten.rms_norm.default", kFloats, "input:t normalized_shape:v weight?:o eps?:m"},
    {"embedding", "aten.embedding.default", kAll, "weight:t indices:t padding_idx?:x scale_grad_by_freq?:x sparse?:x"},
    {"view", "aten.view.default", kAll, "self:t size:v"},
    {"view", "aten._unsafe_view.default", kAll, "self:t size:v"},
    {"reshape", "aten.reshape.default", kAll, "self:t shape:v"},
    {"unsqueeze", "aten.unsqueeze.default", kAll, "self:t dim:i"},
    {"squeeze", "aten.squeeze.dim", kAll, "self:t dim:i"},
    {"clone", "aten.clone.default", kAll, "self:t memory_format?:x"},
    {"transpose", "aten.transpose.int", kAll, "self:t dim0:i dim1:i"},
    {"t", "aten.t.default", kAll, "self:t"},
    {"permute", "aten.permute.default", kAll, "self:t dims:v"},
    {"expand", "aten.expand.default", kAll, "self:t size:v implicit?:x"},
    {"cat", "aten.cat.default", kAll, "tensors:l dim?:i"},
    {"split", "aten.split.Tensor", kAll, "self:t split_size:v dim?:i"},
    {"split", "aten.split_with_sizes.default", kAll, "self:t split_sizes:v dim?:i"},
    {"getitem", "operator.getitem", kAll, "list:t index:i"},
    {"slice", "aten.slice.Tensor", kAll, "self:t dim?:i start?:j end?:j step?:i"},
    {"select", "aten.select.int", kAll, "self:t dim:i index:i"},
    {"mean", "aten.mean.dim", kFloats, "self:t dim:v keepdim?:b dtype?:d"},
    {"sum", "aten.sum.dim_IntList", kAll, "self:t dim:v keepdim?:b dtype?:d"},
    {"amax", "aten.amax.default", kAll, "self:t dim:v keepdim?:b"},
    {"where", "aten.where.self", kAll, "condition:t self:s other:s"},
    {"cast", "aten.to.dtype", kAll, "self:t dtype:d non_blocking?:x copy?:x memory_format?:x"},
    {"cast", "aten._to_copy.default", kAll,
     "self:t dtype:d layout?:x device?:x pin_memory?:x non_blocking?:x memory_format?:x"},
    {"scaled_dot_product_attention", "aten.scaled_dot_product_attention.default", kFloats,
     "query:t key:t value:t attn_mask?:o dropout_p?:n is_causal?:b scale?:m enable_gqa?:b"},
};

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> kOperations = [] {
    std::vector<Operation> list;
    for (const OperationRow& row : kOperationRows) {
      Operation operation{row.word, row.target, row.types, {}};
      std::istringstream words(row.parameters);
      for (std::string word; words >> word;) {
        const std::size_t colon = word.find(':');
        const bool needed = word[colon - 1] != '?';
        operation.parameters.push_back({word.substr(0, needed ? colon : colon - 1), word[colon + 1], needed});
      }
      list.push_back(std::move(operation));
    }
    return list;
  }();
  return kOperations;
}

bool Operation::takes(DType dtype) const {
  return types == Types::all || is_float(dtype) || (types == Types::numbers && dtype != DType::boolean);
}

std::vector<std::string> covered_ops(TaskKind kind) {
  std::vector<std::string> names;
  for (const Operation& operation : operations()) {
    const std::string& name = kind == TaskKind::fx ? operation.target : operation.word;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

const Operation* find_operation(TaskKind kind, const std::string& name, const std::string& node, const Location& where,
                                GraphProblems& problems) {
  for (const Operation& operation : operations()) {
    if (name == (kind == TaskKind::fx ? operation.target : operation.word)) return &operation;
  }
  for (const char* word :
       {"c10d", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "recv"}) {
    if (name.find(word) == std::string::npos) continue;
    problems.add(where, fmt::format("node {}: {} communicates", quote(node), quote(name)),
                 "a compute supertask holds no communication: make it a supertask of its own");
    return nullptr;
  }
  // An overload that is not covered: the one that is.
  const std::vector<std::string> covered = covered_ops(kind);
  std::string hint = suggest(name, covered, "covered operations");
  if (const std::string base = name.substr(0, name.rfind('.'));
      kind == TaskKind::fx && base.find('.') != std::string::npos) {
    for (const std::string& other : covered) {
      if (other.compare(0, base.size() + 1, base + ".") == 0) hint = fmt::format("did you mean '{}'?", other);
    }
  }
  problems.add(where, fmt::format("node {}: operation {} is not covered", quote(node), quote(name)), hint);
  return nullptr;
}

}  // namespace kernbench::pipeline
