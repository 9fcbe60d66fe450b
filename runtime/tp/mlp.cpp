#include "runtime/tp/mlp.h"

#include <utility>

#include "runtime/tp/pass.h"
#include "runtime/tp/pointwise.h"

namespace kernbench::tp {

Mlp::Mlp(const ParallelState& state, std::int64_t width, std::int64_t hidden, MlpOptions options)
    : state_(state), options_(std::move(options)) {
  const auto linear = [&](const char* suffix, Activation activation) {
    LinearOptions made;
    made.name = options_.name + suffix;
    made.dtype = options_.dtype;
    made.bias = options_.bias;
    made.activation = activation;
    made.placement = options_.placement;
    made.placement.many_over_cubes = true;
    made.sequence_parallel = options_.sequence_parallel;
    return made;
  };
  up_.emplace(state_, width, hidden, linear(".up", options_.gated ? Activation::none : options_.activation));
  if (options_.gated) {
    LinearOptions gate = linear(".gate", options_.activation);
    gate.sequence_parallel = false;  // it reads what the other gathered
    gate_.emplace(state_, width, hidden, gate);
  }
  LinearOptions down = linear(".down", Activation::none);
  down.overlap_chunks = options_.overlap_chunks;
  down_.emplace(state_, hidden, width, down);
}

void Mlp::load_weights(const WeightPattern& up, const WeightPattern& gate, const WeightPattern& down) {
  up_->load_weight(up);
  if (gate_) gate_->load_weight(gate);
  down_->load_weight(down);
}

void Mlp::load_biases(const WeightPattern& up, const WeightPattern& gate, const WeightPattern& down) {
  up_->load_bias(up);
  if (gate_) gate_->load_bias(gate);
  down_->load_bias(down);
}

MlpTensors Mlp::place(std::int64_t rows) const {
  MlpTensors tensors;
  tensors.up = up_->place(rows);
  if (gate_) tensors.gate = gate_->place(rows);
  tensors.down = down_->place(rows);
  return tensors;
}

void Mlp::prepare(const Tensor& x, const MlpTensors& tensors) const {
  up_->prepare(x, tensors.up);
  if (gate_) gate_->prepare(options_.sequence_parallel ? tensors.up.gathered : x, tensors.gate);
  down_->prepare(tensors.up.output, tensors.down);
}

Tensor Mlp::forward(const Tensor& x) const {
  const int ranks = options_.sequence_parallel ? state_.tensor_model_parallel_world_size() : 1;
  return forward(x, place(x.shape().rows * ranks));
}

Tensor Mlp::forward(const Tensor& x, const MlpTensors& tensors) const {
  Pass pass(state_);
  const Tensor hidden = up_->forward(x, tensors.up);
  if (gate_) {
    const Tensor gate = gate_->forward(options_.sequence_parallel ? tensors.up.gathered : x, tensors.gate);
    pass.add(multiply(state_.context(), options_.name + ".product", hidden, gate));
  }
  Tensor output = down_->forward(hidden, tensors.down);
  pass.end();
  return output;
}

}  // namespace kernbench::tp
