#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/pipeline/run/plan.h"
#include "runtime/tp/attention_kernels.h"

namespace kernbench::pipeline {

/// A slot's self-attentions on the kernels of runtime/tp, and the tensors of theirs that no plan names: those that
/// tp::SelfAttention places, in its order.
class SelfAttentions {
 public:
  explicit SelfAttentions(Context& context) : context_(context) {}

  /// Room for keys and values: each self-attention has its own.
  void place_cache(const Step& step, const std::string& name);
  /// Before the result of a self-attention, by its buffer: room for queries in the order in which they are read.
  /// Self-attentions with one result share it. Other buffers need nothing.
  void place_queries(int buffer);
  /// Behind it: for what PEs work out of parts of one head.
  void place_partial(int buffer, const Tensor& result);

  void prepare(const Step& step);  ///< installs the queues of its launches
  /// qkv: the projection; table: rotary, or an empty handle. Submits the launches, in order, and returns them.
  std::vector<Handle> attend(const Step& step, const Tensor& qkv, const Tensor& table);

 private:
  Context& context_;
  std::map<const Step*, tp::KvCache> caches_;
  std::map<int, const Step*> first_;               // by the buffer of the result
  std::map<int, tp::AttentionOperands> operands_;  // likewise
};

}  // namespace kernbench::pipeline
