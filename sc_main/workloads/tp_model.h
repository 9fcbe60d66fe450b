#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tp/linear.h"
#include "sc_main/workloads/numerics.h"
#include "sc_main/workloads/workload.h"

namespace kernbench {

/// A weight of a model in numbers: a value for every (row, column) of the whole matrix, rounded to the dtype, the same
/// on every platform. Neighbours differ, so that a swapped row, column or shard shows.
///
/// stream  another weight of the same run
/// scale   values lie in [-scale, scale)
tp::WeightPattern weight_pattern(std::uint64_t seed, std::uint64_t stream, DType dtype, double scale);

/// What a layer of a model computes on the host: sums in f64 of the operands as they stand in memory.
struct HostLayer {
  std::int64_t in = 0, out = 0;
  tp::WeightPattern weight;
  tp::WeightPattern bias;  ///< empty: none
  Activation activation = Activation::none;
  DType dtype = DType::f16;

  /// x: (rows, in) row-major; gives (rows, out), rounded to the dtype as the machine stores it.
  std::vector<double> forward(const std::vector<double>& x, std::int64_t rows) const;
};

/// Relative and absolute tolerance of a layer's output: 1e-2 for f16 (spec, tensor_parallel.md), for the others in
/// proportion to their roundoff.
double layer_tolerance(DType dtype);

/// Compares element by element: |got - expected| <= t (1 + |expected|).
void compare_layer(const std::vector<double>& got, const std::vector<double>& expected, DType dtype, Comparison& into);

/// "gelu" and so on; "none". Throws std::invalid_argument naming `option`.
Activation parse_activation(const std::string& option, const std::string& text);
const char* to_string(Activation activation);

/// Options that tensor-parallel workloads share.
struct TpOptions {
  std::string dtype = "f16", algorithm = "auto";
  std::string weight, input, output, bias;  ///< placements
  int check = 1;

  void add(boost::program_options::options_description& options);
  /// Throws std::invalid_argument.
  DType type() const;
  tp::LinearPlacement placement() const;
  bool checks(const Session& session) const { return check == 1 && session.options().run.data; }
};

}  // namespace kernbench
