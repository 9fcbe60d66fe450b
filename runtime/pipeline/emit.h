#pragma once
#include <string>
#include <vector>

#include "runtime/pipeline/dims.h"
#include "runtime/pipeline/graph.h"

namespace kernbench::pipeline {

/// Why an operation does not fit its operands.
struct EmitError {
  std::string text, hint;
};

/// Appends nodes to a graph, with the types of their results. All throw EmitError.
class Emitter {
 public:
  using Id = std::size_t;
  using Sizes = std::vector<std::int64_t>;

  explicit Emitter(Graph& graph) : graph_(graph) {}
  std::string name;  ///< of the nodes that follow

  const TensorType& type(Id id) const { return graph_.nodes[id].type; }
  std::int64_t rank(Id id) const { return static_cast<std::int64_t>(type(id).shape.size()); }
  /// -1 is the last one.
  std::int64_t dim(Id x, std::int64_t dim, const char* what = "dim") const;

  Id input(std::size_t number, const TensorType& type);
  Id view(Id x, Sizes shape);  ///< one size may be -1: what is left
  Id strided(Id x, Sizes shape, Sizes strides, std::int64_t offset);
  Id permute(Id x, const Sizes& dims);
  Id transpose(Id x, std::int64_t dim0, std::int64_t dim1);
  Id expand(Id x, const Sizes& size);  ///< -1: as it is
  Id slice(Id x, std::int64_t dim, std::int64_t begin, std::int64_t end, std::int64_t step);
  Id select(Id x, std::int64_t dim, std::int64_t index);
  Id cat(const std::vector<Id>& parts, std::int64_t dim);
  Id cast(Id x, DType dtype);
  Id unary(Id x, Unary op);
  Id binary(Id a, Id b, Binary op);
  Id with_number(Id a, double number, Binary op);  ///< the same of a tensor and a number
  Id where(Id mask, Id a, Id b);
  Id reduce(Id x, Sizes dims, bool keep, Reduction reduction);  ///< no dims: over all
  Id softmax(Id x, std::int64_t dim);
  Id norm(Id x, const Sizes& shape, const Id* weight, const Id* bias, double epsilon, bool rms);
  Id matmul(Id a, Id b, bool transposed);
  Id embedding(Id table, Id indices);
  Id attention(Id q, Id k, Id v, const Id* mask, bool causal, double scale);

  /// Parts of a split, along `dim`.
  Sizes split_sizes(Id x, const Sizes& sizes, bool one_size, std::int64_t dim) const;

 private:
  Id add(Node node);
  void need_float(Id x, const char* what) const;
  void need_same_type(Id a, Id b) const;

  Graph& graph_;
};

/// The common shape that both are broadcast to; nothing if there is none.
std::optional<std::vector<std::int64_t>> broadcast(const std::vector<std::int64_t>& a,
                                                   const std::vector<std::int64_t>& b);

}  // namespace kernbench::pipeline
