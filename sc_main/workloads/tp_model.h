#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tp/linear.h"
#include "runtime/tp/model.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "tlm/kernel/activation.h"

namespace kernbench {

/// A weight of a model in numbers: a value for every (row, column) of the whole matrix, rounded to the dtype, the same
/// on every platform. Neighbours differ, so that a swapped row, column or shard shows.
///
/// stream  another weight of the same run
/// scale   values lie in [-scale, scale)
tp::WeightPattern weight_pattern(std::uint64_t seed, std::uint64_t stream, DType dtype, double scale);

/// Weights of a language model by their names (tp::ModelWeights), at scales that keep a layer's values around 1.
std::function<tp::WeightPattern(const std::string& name)> transformer_weights(const tp::Model& model, DType dtype,
                                                                              std::uint64_t seed);

/// Values that the host computed, and how far the machine's may lie from each.
struct HostValues {
  std::vector<double> value, error;
};

/// What a layer of a model computes on the host: sums in f64 of the operands as they stand in memory.
struct HostLayer {
  std::int64_t in = 0, out = 0;
  tp::WeightPattern weight;
  tp::WeightPattern bias;  ///< empty: none
  Activation activation = Activation::none;
  DType dtype = DType::f16;

  /// x: (rows, in) row-major; gives (rows, out), rounded to the dtype as the machine stores it.
  ///
  /// error  the operands' errors through the weights; k roundings of the type that sums are kept in and, where `ranks`
  ///        add their partial sums in the dtype, two each of the dtype, all relative to sum|x w|; then those of the
  ///        activation (its slope is at most 1.13) and of the store
  HostValues forward(const HostValues& x, std::int64_t rows, int ranks) const;
};

/// Operands that are exact.
HostValues exact(std::vector<double> values);

/// Compares elements [first, first + got.size()) of `expected`: within their error, or within 1e-2 (1 + |expected|) for
/// f16 (spec; for other dtypes in proportion to their roundoff).
void compare_layer(const std::vector<double>& got, const HostValues& expected, std::size_t first, DType dtype,
                   Comparison& into);

/// "gelu" and so on; "none". Throws std::invalid_argument naming `option`.
Activation parse_activation(const std::string& option, const std::string& text);

/// Options that tensor-parallel workloads share.
struct TpOptions {
  std::string dtype = "f16", algorithm;
  std::string weight, input, output, bias;  ///< placements
  int check = 1, warmup = 1, iterations = 1;
  bool passes_given = false;  ///< the command line says how many: warmup or iterations

  /// `packed`: weights and outputs by default as LinearPlacement::packed, otherwise as LinearPlacement::split.
  void add(boost::program_options::options_description& options, bool packed = false);
  /// Whatever the machine.
  void check_into(Refusals& refusals) const;
  // Both throw std::invalid_argument; placement() Refused, or ConfigError.
  DType type() const;
  tp::LinearPlacement placement() const;
  /// That they name.
  std::vector<std::string> files() const;
  /// Of the all-reduce; its queues are left to the program. Throws std::invalid_argument where ccl.yaml makes ranks
  /// PEs.
  ProcessGroupOptions group(Session& session) const;
  bool checks(const Session& session) const { return check == 1 && session.options().run.data; }
};

}  // namespace kernbench
