/// The GEMM engine against closed forms, written here from the array's description alone (docs/pe.md), not from the
/// model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sc_main/rigs/bare_gemm.h"
#include "sc_main/validate/validate.h"

namespace kernbench::validate {

namespace {

constexpr double kGemmLimit = 0.01;  // spec: closed forms
constexpr double kClockHz = 1.6e9;   // set for every case
constexpr double kPsPerCycle = 1e12 / kClockHz;

struct Array {
  double rows, cols;
  bool weights_stay;
};

/// Cycles that a cell needs per multiply-accumulate: twice the f16 rate for 8 bits, a quarter of it for 32, an eighth
/// for 64, as every case is configured.
double cycles_per_mac(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return 0.5;
    case 2:
      return 1;
    case 4:
      return 4;
    default:
      return 8;
  }
}

/// Blocks pass one after the other; each streams its vectors into the edge of the array. While one block streams, the
/// next one's weights enter or the last one's results leave, a row per cycle. The first operand needs rows + cols - 2
/// cycles to the far corner.
double expected_cycles(const Array& array, double m, double n, double k, DType dtype) {
  const double per_mac = cycles_per_mac(dtype);
  const double depth = array.weights_stay ? std::floor(array.rows / std::min(per_mac, 1.0)) : array.rows;
  const double blocks = std::ceil((array.weights_stay ? k : m) / depth) * std::ceil(n / array.cols);
  const double stream =
      array.weights_stay ? m * std::max(per_mac, 1.0) : std::ceil(k * std::min(per_mac, 1.0)) * std::max(per_mac, 1.0);
  const double between = std::max(stream, array.rows);
  const double in_or_out = array.rows;  // the first block's weights, or the last one's results
  return in_or_out + (blocks - 1) * between + stream + (array.rows + array.cols - 2);
}

struct Shape3 {
  std::int64_t m, n, k;
};

std::vector<std::string> array_sets(const Array& array) {
  return {fmt::format("pe.gemm.rows={}", array.rows),
          fmt::format("pe.gemm.cols={}", array.cols),
          "pe.gemm.clock=1.6 GHz",
          fmt::format("pe.gemm.dataflow={}", array.weights_stay ? "weight_stationary" : "output_stationary"),
          "pe.gemm.f8_rate=2",
          "pe.gemm.f16_rate=1",
          "pe.gemm.f32_cycles=4",
          "pe.tcm.size=64 MiB"};
}

Group group(const std::string& name, const Array& array, bool composite, const std::vector<Shape3>& shapes,
            const std::vector<DType>& dtypes, const std::string& unjudged = "") {
  Group group;
  group.name = name;
  std::vector<std::pair<std::string, double>> expected;
  for (const Shape3& shape : shapes) {
    for (const DType dtype : dtypes) {
      const BareGemm gemm{shape.m, shape.n, shape.k, dtype, composite, array_sets(array)};
      expected.emplace_back(fmt::format("{}/{}x{}x{}_{}", name, shape.m, shape.n, shape.k, to_string(dtype)),
                            expected_cycles(array, static_cast<double>(shape.m), static_cast<double>(shape.n),
                                            static_cast<double>(shape.k), dtype));
      group.runs.push_back([gemm] { return Figures{static_cast<double>(run_bare_gemm(gemm)) / kPsPerCycle}; });
    }
  }
  group.verdict = [expected, unjudged](const std::vector<Figures>& figures) {
    Judged judged;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, cycles] = expected[i];
      judged.cases.push_back(unjudged.empty()
                                 ? judge(name, "array_cycles", cycles, figures[i].at(0), kGemmLimit)
                                 : report(name, "array_cycles", cycles, figures[i].at(0), kGemmLimit, unjudged));
    }
    return judged;
  };
  return group;
}

}  // namespace

std::vector<Group> gemm_groups(const Request& request) {
  const Array square{32, 32, false}, wide{16, 64, false}, weights{32, 32, true};
  const std::vector<DType> all = {DType::f8e4m3, DType::bf16, DType::f16, DType::i8, DType::f32, DType::f64};
  const std::vector<DType> few = {DType::f16, DType::f32};
  const std::vector<Shape3> shapes = {{32, 32, 128},  {33, 32, 128},   {1, 1024, 1024}, {64, 64, 16},
                                      {128, 96, 777}, {256, 256, 256}, {500, 130, 384}};
  const std::vector<Shape3> one = {{128, 96, 777}};
  // A composite is one product to the array when its operands come in time: f32 and f64, which need a quarter or less
  // of the bytes per cycle, depths and widths that fill whole blocks, and a result that is written in whole rows.
  const std::vector<Shape3> streamed = {{512, 128, 256}, {256, 128, 1024}, {128, 128, 512}};
  const std::vector<Shape3> scattered = {{256, 256, 512}, {128, 384, 1024}};
  std::vector<Group> groups;
  groups.push_back(group("dot_output_stationary_32x32", square, false, request.sample ? one : shapes, all));
  groups.push_back(group("dot_weight_stationary_32x32", weights, false, request.sample ? one : shapes, all));
  groups.push_back(group("dot_output_stationary_16x64", wide, false, request.sample ? one : shapes, few));
  groups.push_back(group("composite_output_stationary_32x32", square, true,
                         request.sample ? std::vector<Shape3>{streamed[0]} : streamed, {DType::f32, DType::f64}));
  if (!request.sample) {
    groups.push_back(group("composite_narrow_tiles_32x32", square, true, scattered, {DType::f32, DType::f64},
                           "its stores are parts of rows, which meet its loads on some of the HBM's channels"));
  }
  return groups;
}

}  // namespace kernbench::validate
