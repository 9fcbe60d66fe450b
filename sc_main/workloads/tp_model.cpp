#include "sc_main/workloads/tp_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sc_main/workloads/given.h"
#include "sc_main/workloads/placement_option.h"
#include "sc_main/workloads/sizes.h"
#include "tlm/config/enum_names.h"
#include "tlm/config/nearest.h"

namespace kernbench {

namespace {
namespace po = boost::program_options;

double rounded(double value, DType dtype) {
  std::uint8_t raw[8] = {};
  store_element(raw, dtype, 0, value);
  return load_element(raw, dtype, 0);
}

constexpr int kActivations = 6;
}  // namespace

tp::WeightPattern weight_pattern(std::uint64_t seed, std::uint64_t stream, DType dtype, double scale) {
  const std::uint64_t base = splitmix64(splitmix64(seed) + stream);
  return [=](std::int64_t row, std::int64_t col) {
    const std::uint64_t random =
        splitmix64(splitmix64(base + static_cast<std::uint64_t>(row)) + static_cast<std::uint64_t>(col));
    return rounded((2 * static_cast<double>(random >> 11) * 0x1p-53 - 1) * scale, dtype);
  };
}

HostValues HostLayer::forward(const HostValues& x, std::int64_t rows, int ranks) const {
  const auto n = static_cast<std::size_t>(out);
  const DType sum_type = dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  // 2^-53: the host's own sum errs as well.
  const double roundings = static_cast<double>(in) * (unit_roundoff(sum_type) + 0x1p-53) +
                           (ranks > 1 ? 2.0 * ranks * unit_roundoff(dtype) : 0.0);
  HostValues y{std::vector<double>(static_cast<std::size_t>(rows) * n),
               std::vector<double>(static_cast<std::size_t>(rows) * n)};
  std::vector<double> weights(n), magnitude(y.value.size());
  for (std::int64_t k = 0; k < in; ++k) {
    for (std::int64_t c = 0; c < out; ++c) weights[static_cast<std::size_t>(c)] = weight(k, c);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r * in + k), first = static_cast<std::size_t>(r) * n;
      for (std::size_t c = 0; c < n; ++c) {
        const double product = x.value[at] * weights[c];
        y.value[first + c] += product;
        magnitude[first + c] += std::abs(product);
        y.error[first + c] += x.error[at] * std::abs(weights[c]);
      }
    }
  }
  for (std::size_t i = 0; i < y.value.size(); ++i) {
    constexpr double kSteepest = 1.13;  // gelu
    const double sum = bias ? y.value[i] + bias(0, static_cast<std::int64_t>(i % n)) : y.value[i];
    const double u = unit_roundoff(dtype), result = activate(activation, sum);
    const double error = y.error[i] + roundings * magnitude[i] + 2 * u * std::abs(sum);
    y.error[i] = kSteepest * error + 4 * u * std::abs(result) + smallest_subnormal(dtype);
    y.value[i] = rounded(result, dtype);
  }
  return y;
}

HostValues exact(std::vector<double> values) {
  HostValues out{std::move(values), {}};
  out.error.resize(out.value.size());
  return out;
}

void compare_layer(const std::vector<double>& got, const HostValues& expected, std::size_t first, DType dtype,
                   Comparison& into) {
  const double tolerance = 1e-2 * unit_roundoff(dtype) / unit_roundoff(DType::f16);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = expected.value.at(first + i);
    into.add(got[i], value, std::max(expected.error[first + i], tolerance * (1 + std::abs(value))));
  }
}

std::function<tp::WeightPattern(const std::string&)> transformer_weights(const tp::Model& model, DType dtype,
                                                                         std::uint64_t seed) {
  return [=](const std::string& name) -> tp::WeightPattern {
    std::uint64_t stream = 0;
    for (const char c : name) stream = splitmix64(stream + static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    if (ends_with(name, ".bias")) return weight_pattern(seed, stream, dtype, 0.25);
    if (ends_with(name, "norm")) {
      const tp::WeightPattern around = weight_pattern(seed, stream, dtype, 0.25);
      // A multiple of 2^-6 from 0.75 to 1.25: exact in every type.
      return [=](std::int64_t row, std::int64_t col) { return 1 + std::round(around(row, col) * 64) / 64; };
    }
    if (name == "embedding" || name == "positions") return weight_pattern(seed, stream, dtype, 1);
    const std::int64_t in = ends_with(name, ".out")    ? model.heads * model.head_dim
                            : ends_with(name, ".down") ? model.mlp_width
                                                       : model.width;
    return weight_pattern(seed, stream, dtype, std::sqrt(3 / static_cast<double>(in)));
  };
}

Activation parse_activation(const std::string& option, const std::string& text) {
  return parse_name<Activation>(option, text, kActivations);
}

void TpOptions::add(po::options_description& options, bool packed) {
  const std::string split = packed ? "cube=column_wise,pe=row_wise" : "cube=column_wise,pe=column_wise",
                    copy = "cube=replicate,pe=replicate";
  auto add = options.add_options();
  add("dtype,d", po::value(&dtype)->default_value("f16"), "f16, bf16, f32 or f64");
  add("algorithm", po::value(&algorithm),
      "of the all-reduce: entry of ccl.yaml, or auto (default: that of ccl.yaml, or auto)");
  add("weight-placement", po::value(&weight)->default_value(split),
      "inside each SIP: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N], or a YAML file with cube, pe, num_cubes, num_pes");
  add("output-placement", po::value(&output)->default_value(split), "likewise");
  add("input-placement", po::value(&input)->default_value(copy), "likewise");
  add("bias-placement", po::value(&bias)->default_value(copy), "likewise");
  add("warmup,w", value_if_given(&warmup, &passes_given)->default_value(1), "passes before those that are timed");
  add("iters,n", value_if_given(&iterations, &passes_given)->default_value(1), "timed passes; times are their mean");
  add("check,c", po::value(&check)->default_value(1)->implicit_value(1),
      "compare every element on every rank with the host: 0 or 1");
}

void TpOptions::check_into(Refusals& refusals) const {
  refusals.from([this] { type(); });
  refusals.check_integer("-w", warmup, 0, kMostIterations);
  refusals.check_integer("-n", iterations, 1, kMostIterations);
  refusals.check_flag("-c", check);
  refusals.from([this] { placement(); });
}

DType TpOptions::type() const {
  const std::optional<DType> type = dtype_named(dtype);
  for (const DType usable : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    if (type == usable) return usable;
  }
  throw std::invalid_argument(fmt::format("--dtype is {}; give f16, bf16, f32 or f64", quote(dtype)));
}

std::vector<std::string> TpOptions::files() const { return named_files({weight, output, input, bias}, {algorithm}); }

ProcessGroupOptions TpOptions::group(Session& session) const {
  ProcessGroupOptions options;
  options.algorithm = algorithm;
  options.ccl_file = session.options().ccl_file;
  options.install_at_once = false;
  const int ranks = session.runtime().world_size(options), sips = session.map().sips;
  if (ranks != sips) {
    throw std::invalid_argument(fmt::format(
        "--ccl gives a world_size of {}; a tensor-parallel rank is a SIP, of which there are {}", ranks, sips));
  }
  return options;
}

tp::LinearPlacement TpOptions::placement() const {
  tp::LinearPlacement placement;
  Refusals refusals;
  refusals.from([&] { placement.weight = parse_placement("--weight-placement", weight); });
  refusals.from([&] { placement.output = parse_placement("--output-placement", output); });
  refusals.from([&] { placement.input = parse_placement("--input-placement", input); });
  refusals.from([&] { placement.bias = parse_placement("--bias-placement", bias); });
  refusals.throw_if_any();
  return placement;
}

}  // namespace kernbench
