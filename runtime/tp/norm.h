#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/tp/linear.h"

namespace kernbench::tp {

/// rms: x / sqrt(mean(x^2) + epsilon) * weight. layer: (x - mean) / sqrt(variance + epsilon) * weight + bias.
enum class NormKind : std::uint8_t { rms, layer };

/// Operands of one launch of a norm: x and output (M, width), any placement each; weight (1, width).
struct NormOperands {
  Tensor x, weight;      ///< input; weight of the norm
  Tensor bias;           ///< (1, width), or an empty handle
  Tensor residual, sum;  ///< sum = x + residual is written, and normalised; or empty handles. `sum` lies as `output`
  Tensor output;         ///< written
  NormKind kind = NormKind::rms;  ///< which formula
  double epsilon = 1e-5;          ///< added to the mean square or the variance
};
/// Submits it and returns at once. REQUIRES: shapes and dtypes fit.
Handle normalise(Context& context, const std::string& name, const NormOperands& operands);

/// Options of a normalisation.
struct NormOptions {
  std::string name = "norm";      ///< of the layer
  NormKind kind = NormKind::rms;  ///< a LayerNorm has a bias, too
  DType dtype = DType::f16;       ///< of weights, input and output; computed in f32
  double epsilon = 1e-5;          ///< added to the mean square or the variance
  DPPolicy weight;                ///< copied everywhere
  /// Of what forward writes; nothing: as rows_for_gemm() has it.
  std::optional<DPPolicy> output;
};

/// Normalises each row, on every rank alike. One launch, one pass over the data: each PE reads the whole rows of which
/// it holds a part of the result. The weight begins as ones, a bias as zeros.
class Norm {
 public:
  /// Places the weights; takes the simulated time of their map messages. Throws std::invalid_argument on a width below
  /// 1, std::logic_error without a parallel state.
  Norm(const ParallelState& state, std::int64_t width, NormOptions options = {});

  void load_weight(const WeightPattern& whole);  ///< (1, width)
  void load_bias(const WeightPattern& whole);    ///< (1, width); std::logic_error if the kind has none

  /// x (M, width) -> (M, width). One launch; waits (pass.h). Throws std::invalid_argument on another shape or dtype.
  Tensor forward(const Tensor& x) const;
  Tensor place(std::int64_t rows) const;                      ///< what a pass over `rows` rows writes
  void forward(const Tensor& x, const Tensor& output) const;  ///< the same into it
  /// sum = x + residual, output = norm(sum) in the same pass. `sum` is of place() like `output`, and neither input.
  void forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& output) const;

  const Tensor& weight() const { return weight_; }  ///< (1, width)

 private:
  ParallelState state_;
  std::int64_t width_;
  NormOptions options_;
  Tensor weight_, bias_;
};

}  // namespace kernbench::tp
