#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime/pipeline/safetensors.h"
#include "runtime/tp/model.h"

namespace kernbench::pipeline {

/// An element of a whole weight, as tp::WeightPattern gives it.
using WeightElement = std::function<double(std::int64_t row, std::int64_t col)>;

/// A two-layer perceptron, split as runtime/tp does it: columns of the first matrix and rows of the second over `tp`
/// SIPs; with two pipeline stages the layers are on SIPs of their own.
struct MlpExport {
  std::int64_t batch = 1, in = 512, hidden = 2048, out = 512;
  DType dtype = DType::f16;
  Activation activation = Activation::gelu;
  bool bias = true;
  int tp = 1, pp = 1;                          ///< pp: 1 or 2
  std::string weights_file;                    ///< as the document names it
  WeightElement up, up_bias, down, down_bias;  ///< (in, hidden), (1, hidden), (hidden, out), (1, out)
};

/// Decoder layers of a language model, norms first, as tp::TransformerLayer has them: h = x + attention(norm(x)),
/// y = h + mlp(norm(h)), on `batch` prompts of `length` tokens with nothing before them. Heads and the MLP's columns
/// are split over `tp` SIPs, layers are dealt to `pp` stages, each on SIPs of its own.
struct TransformerExport : tp::Model {  // with as many layers as are exported
  std::int64_t batch = 1, length = 1;
  DType dtype = DType::f16;
  int tp = 1, pp = 1;
  std::string weights_file{};  ///< as the document names it
  /// By the names of tp::ModelWeights.
  std::function<WeightElement(const std::string& name)> weights{};
};

struct Exported {
  std::string document;  ///< JSON
  std::map<std::string, HostTensor> weights;
};

/// Throws std::invalid_argument if `tp` does not divide `hidden`, or on sizes below 1 or another `pp`.
Exported export_mlp(const MlpExport& model);

/// Throws std::invalid_argument if `tp` does not divide the heads and the MLP's columns, or is neither a divisor nor a
/// multiple of the key/value heads, if there are fewer layers than stages, or on sizes below 1.
Exported export_transformer(const TransformerExport& model);

}  // namespace kernbench::pipeline
