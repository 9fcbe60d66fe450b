#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/document.h"

namespace kernbench::pipeline {

/// Shape and type of a value; [] is a single element.
struct TensorType {
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  std::int64_t count() const;
  std::string str() const;  ///< "f16[2, 3]"
  friend bool operator==(const TensorType& a, const TensorType& b) { return a.shape == b.shape && a.dtype == b.dtype; }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
};
TensorType type_of(const TensorInfo& tensor);  ///< REQUIRES: shape and dtype are given

/// What a graph computes once names are resolved and types are known: few operations, each with one result.
enum class Op : std::uint8_t {
  input,    ///< of the supertask, by `number_of`
  view,     ///< same elements in order, another shape
  strided,  ///< element (i, j, ...) is element offset + i strides[0] + j strides[1] + ... of the input
  cat,      ///< along dims[0]
  cast,     ///< to the result's type
  unary,
  binary,     ///< of two inputs, broadcast, or of one and `number`
  where,      ///< mask, a, b, broadcast
  reduce,     ///< over dims
  softmax,    ///< along dims[0]
  norm,       ///< over the last dims[0] dimensions: input, then weight and bias if there are any
  matmul,     ///< batches broadcast; b transposed: its last two dimensions change places
  embedding,  ///< table, indices
  attention   ///< queries, keys, values, then a mask if there is one
};
enum class Unary : std::uint8_t { relu, gelu, gelu_tanh, silu, sigmoid, tanh, rsqrt, sqrt, neg, exp };
enum class Binary : std::uint8_t { add, sub, mul, div, pow };
enum class Reduction : std::uint8_t { sum, mean, amax };

struct Node {
  std::string name;  ///< in the document
  Op op = Op::input;
  std::vector<std::size_t> inputs;  ///< nodes before this one
  TensorType type;
  std::size_t number_of = 0;
  std::vector<std::int64_t> dims, strides;
  std::int64_t offset = 0;
  Unary unary = Unary::relu;
  Binary binary = Binary::add;
  Reduction reduction = Reduction::sum;
  double number = 0;                                       ///< of binary with one input
  double epsilon = 0;                                      ///< of norm
  double scale = 0;                                        ///< of attention
  bool rms = false, has_weight = false, has_bias = false;  ///< of norm
  bool transposed = false;                                 ///< of matmul: b
  bool causal = false, has_mask = false;                   ///< of attention
};

/// What one compute supertask does: nodes in order, each behind those that it reads.
struct Graph {
  std::vector<Node> nodes;
  std::vector<std::size_t> outputs;          ///< nodes, in the order of the supertask's outputs
  std::size_t uses(std::size_t node) const;  ///< how often it is read, as an output, too
};

/// Collects what is wrong inside a serialised graph: each problem stands at the document's `data`, and says where in
/// the inner document it is.
class GraphProblems {
 public:
  GraphProblems(Problems& problems, Location where, std::string path)
      : problems_(problems), where_(std::move(where)), path_(std::move(path)) {}
  void add(const Location& inner, const std::string& text, const std::string& hint = {});
  std::size_t count() const { return count_; }

 private:
  Problems& problems_;
  const Location where_;
  const std::string path_;
  std::size_t count_ = 0;
};

/// Parses the supertask's graph, resolves its names and infers every type. Reports all that is wrong; nothing if there
/// is anything. REQUIRES: a compute supertask with data, whose inputs and outputs are known tensors of known types.
std::optional<Graph> build_graph(const Pipeline& pipeline, const SuperTask& task, Problems& problems);

/// Names of the covered operations, as FX targets ("aten.mm.default") or dfg words ("mm").
std::vector<std::string> covered_ops(TaskKind kind);

}  // namespace kernbench::pipeline
