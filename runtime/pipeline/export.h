#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime/pipeline/safetensors.h"
#include "tlm/kernel/tl.h"

namespace kernbench::pipeline {

/// A two-layer perceptron, split as runtime/tp does it: columns of the first matrix and rows of the second over `tp`
/// SIPs; with two pipeline stages the layers are on SIPs of their own.
struct MlpExport {
  std::int64_t batch = 1, in = 512, hidden = 2048, out = 512;
  DType dtype = DType::f16;
  Activation activation = Activation::gelu;
  bool bias = true;
  int tp = 1, pp = 1;        ///< pp: 1 or 2
  std::string weights_file;  ///< as the document names it
  using Element = std::function<double(std::int64_t row, std::int64_t col)>;
  Element up, up_bias, down, down_bias;  ///< (in, hidden), (1, hidden), (hidden, out), (1, out)
};

struct Exported {
  std::string document;  ///< JSON
  std::map<std::string, HostTensor> weights;
};

/// Throws std::invalid_argument if `tp` does not divide `hidden`, or on sizes below 1 or another `pp`.
Exported export_mlp(const MlpExport& model);

}  // namespace kernbench::pipeline
