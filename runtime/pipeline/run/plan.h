#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/check.h"
#include "runtime/pipeline/run/kernels.h"
#include "runtime/pipeline/run/self_attention.h"
#include "runtime/tp/gemm.h"

/// What a pipeline does on the machine, worked out beforehand: which tensors each slot places and which kernels and
/// collectives each supertask is.
namespace kernbench::pipeline {

/// A tensor of the runtime to be: a constant has contents.
struct Buffer {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  DPPolicy policy;
  std::shared_ptr<const HostTensor> contents;
  std::size_t tensor = 0;  ///< of a constant or an input: its place in the document's list, of several the first
  bool linear() const;     ///< elements lie one after the other in virtual memory
};

/// What a buffer's two dimensions are; a single element is 1 x 1.
inline Shape fold_of(const std::vector<std::int64_t>& shape) { return shape.empty() ? Shape{1, 1} : fold_shape(shape); }

/// A value of a graph: a buffer's elements in the order of a shape, or a constant that has no place yet.
struct Value {
  int buffer = -1;
  TensorType type;
  std::shared_ptr<const HostTensor> constant;
  std::size_t tensor = 0;  ///< of a constant: as that of Buffer
};

/// Sizes of a decoder layer's self-attention.
struct SelfAttentionCall {
  std::int64_t batch = 1, length = 1, heads = 1, kv_heads = 1, head_dim = 1;
  DType dtype = DType::f16;
};

/// One launch (of a look-up: as many as its indices need).
struct Step {
  enum class Kind : std::uint8_t {
    gemm,
    move,
    point,
    rows,
    norm,  ///< of runtime/tp: x, weight, bias, then what is added to x beforehand; the sum is second_out
    product,
    attention,
    self_attention,  ///< of runtime/tp: projection, rotary table
    look_up
  } kind = Kind::move;
  std::string name;
  std::vector<int> in;  ///< buffers; -1: none
  int out = -1, second_out = -1;
  Activation activation = Activation::none;
  MoveCall move;
  PointCall point;
  RowCall row;
  ProductCall product;
  AttentionCall attention;
  SelfAttentionCall self_attention;
};

/// One supertask on its slot.
struct TaskPlan {
  const SuperTask* task = nullptr;
  std::vector<Step> before, after;  ///< of a computation: all before; of an exchange: what rearranges its blocks
  int in = -1, out = -1;            ///< buffers of an exchange
  bool columns = false;             ///< of an all_gather: blocks stand side by side
};

/// A slot and all that it does, in order.
struct SlotPlan {
  const Device* device = nullptr;
  std::vector<Buffer> buffers;
  std::map<std::string, Value> values;  ///< by tensor of the pipeline
  std::vector<TaskPlan> tasks;
  std::map<std::pair<const HostTensor*, std::string>, int> placed;        ///< constants, by contents and placement
  std::map<const HostTensor*, std::shared_ptr<const HostTensor>> turned;  ///< transposed copies of constants
  /// Tables of both, by cosines and sines.
  std::map<std::pair<const HostTensor*, const HostTensor*>, std::shared_ptr<const HostTensor>> rotary;
};

struct PlanOptions {
  std::string folder;
  /// Placements that the user asks for, by tensor of the pipeline.
  std::map<std::string, DPPolicy> placements;
  /// Of weights and results of GEMMs. Nothing: as the layers of runtime/tp are placed, those of a language model
  /// (LinearPlacement::packed()) where the document has self-attention, otherwise a perceptron's (split()).
  std::optional<DPPolicy> gemm;
  bool document_order = false;  ///< slots work in the order of the document
};

/// Plans of all slots of the document, in its order; of a cpu slot the tasks only. Throws ConfigError on
/// tensors of more dimensions than are run.
std::vector<SlotPlan> make_slot_plans(const Pipeline& pipeline, const Checked& checked, const PlanOptions& options);

/// The part of the stored tensor that a constant is.
HostTensor load_constant(const TensorInfo& tensor, const PlanOptions& options, WeightFiles& files);

/// Turns graphs into steps on one slot.
class Lowering {
 public:
  explicit Lowering(SlotPlan& slot, const PlanOptions& options) : slot_(slot), options_(options) {}

  void lower(const SuperTask& task, const Graph& graph, std::vector<Step>& steps);

  // For exchanges, too.
  int add_buffer(const std::string& name, const TensorType& type, const DPPolicy& policy);
  /// A buffer with the value's elements: any placement; linear; of exactly this shape. Appends copies where needed.
  int placed(const Value& value, const DPPolicy& policy_of_constant, std::vector<Step>& steps);
  int linear(const Value& value, std::vector<Step>& steps);
  int shaped(const Value& value, Shape shape, const DPPolicy& policy_of_constant, std::vector<Step>& steps);
  /// A new buffer of `type` that holds the elements of linear `from` at these strides.
  int moved(const std::string& name, int from, const std::vector<std::int64_t>& dims,
            const std::vector<std::int64_t>& strides, std::int64_t offset, const TensorType& type,
            std::vector<Step>& steps);
  const Buffer& buffer(int number) const { return slot_.buffers[static_cast<std::size_t>(number)]; }

  DPPolicy split() const { return *options_.gemm; }  ///< what GEMMs read and write
  static DPPolicy dense();                           ///< whole rows on each PE

 private:
  struct Fused {
    std::size_t last = 0;               ///< node whose value the GEMM makes
    std::vector<std::size_t> absorbed;  ///< nodes that it stands for
    std::optional<std::size_t> bias, residual;
    Activation activation = Activation::none;
  };
  void lower_node(std::size_t number);
  bool fold(std::size_t number);
  Fused fuse(std::size_t number) const;
  bool adds_residual(std::size_t sum, std::size_t other, std::size_t number) const;
  std::optional<std::size_t> only_reader(std::size_t number) const;
  TensorType final_type(std::size_t number) const;
  void lower_matmul(std::size_t number);
  void lower_batches(std::size_t number);
  void lower_points(std::size_t number);
  void lower_reduce(std::size_t number);
  void lower_rows(std::size_t number);
  void lower_cat(std::size_t number);
  void lower_attention(std::size_t number);
  // Layers of language models (lower_layers.cpp).
  void find_layers();
  bool lower_self_attention(std::size_t number);
  bool is_layer_norm(std::size_t number) const;
  int norm_factor(std::size_t number, bool has, std::size_t input);
  void lower_norm(std::size_t number);
  bool lower_sum_and_norm(std::size_t number);
  Value expanded(const Value& value, const std::vector<std::int64_t>& shape);
  /// dims of the node's first input with `last` behind all others, rearranged if they are not there already.
  int rows_last(std::size_t number, const std::vector<std::int64_t>& last);
  static Step& add_step(std::vector<Step>& steps, Step::Kind kind, std::string name, std::vector<int> in, int out);
  Step& add_step(Step::Kind kind, std::size_t number, std::vector<int> in, int out);
  /// A buffer for the node's value. `anywhere`: its kernel serves every placement, so that the user's may be had at
  /// once.
  int result(std::size_t number, const DPPolicy& policy, bool anywhere = false);
  void place_outputs();
  Value& value_of(std::size_t node) { return values_[node]; }

  SlotPlan& slot_;
  const PlanOptions& options_;
  const SuperTask* task_ = nullptr;
  const Graph* graph_ = nullptr;
  std::vector<Step>* steps_ = nullptr;
  std::vector<Value> values_;
  std::vector<bool> done_;
  struct SelfAttention {
    SelfAttentionMatch match;
    Value table;  ///< a constant, or nothing
  };
  std::map<std::size_t, SelfAttention> attentions_;  // by the node of their result
};

}  // namespace kernbench::pipeline
