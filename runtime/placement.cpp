#include "runtime/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace kernbench {

namespace {
constexpr std::array kCubeSplitNames = {"replicate", "column_wise", "row_wise"};
constexpr std::array kPeSplitNames = {"replicate", "column_wise", "row_wise", "tiled_column_major", "tiled_row_major"};
constexpr int kMaxSip = 4095;  // of a physical address

void check(const char* argument, std::int64_t value, std::int64_t lowest, std::int64_t highest) {
  if (value < lowest || value > highest) {
    throw std::invalid_argument(fmt::format("{} is {}: give {} to {}", argument, value, lowest, highest));
  }
}

template <class Split, std::size_t N>
void check_split(const char* argument, Split split, const std::array<const char*, N>&) {
  const auto value = static_cast<std::underlying_type_t<Split>>(split);
  check(argument, value, 0, static_cast<std::int64_t>(N) - 1);
}

/// Part i of `length` cut into `n`: the first `length % n` parts are one longer.
struct Span {
  std::int64_t begin = 0, length = 0;
};
Span part_of(std::int64_t begin, std::int64_t length, int n, int i) {
  const std::int64_t base = length / n, remainder = length % n;
  return {begin + i * base + std::min<std::int64_t>(i, remainder), base + (i < remainder ? 1 : 0)};
}

Region columns_of(const Region& region, int n, int i) {
  const Span span = part_of(region.col, region.cols, n, i);
  return {region.row, span.begin, region.rows, span.length};
}

Region rows_of(const Region& region, int n, int i) {
  const Span span = part_of(region.row, region.rows, n, i);
  return {span.begin, region.col, span.length, region.cols};
}

std::uint64_t bytes_of(const Region& region, int itemsize) {
  return static_cast<std::uint64_t>(region.rows) * static_cast<std::uint64_t>(region.cols) *
         static_cast<std::uint64_t>(itemsize);
}

int grid_rows(int n) {
  int rows = 1;
  for (int d = 1; d * d <= n; ++d) {
    if (n % d == 0) rows = d;
  }
  return rows;
}

Region cube_part(CubeSplit split, const Region& whole, int n, int i) {
  switch (split) {
    case CubeSplit::column_wise:
      return columns_of(whole, n, i);
    case CubeSplit::row_wise:
      return rows_of(whole, n, i);
    default:
      return whole;
  }
}

Region pe_part(PeSplit split, const Region& part, int n, int i) {
  const int down = grid_rows(n), across = n / down;
  switch (split) {
    case PeSplit::column_wise:
      return columns_of(part, n, i);
    case PeSplit::row_wise:
      return rows_of(part, n, i);
    case PeSplit::tiled_column_major:
      return columns_of(rows_of(part, down, i % down), across, i / down);
    case PeSplit::tiled_row_major:
      return columns_of(rows_of(part, down, i / across), across, i % across);
    default:
      return part;
  }
}
}  // namespace

const char* to_string(CubeSplit split) { return kCubeSplitNames.at(static_cast<std::size_t>(split)); }
const char* to_string(PeSplit split) { return kPeSplitNames.at(static_cast<std::size_t>(split)); }

DPPolicy DPPolicy::cube(CubeSplit split) const {
  DPPolicy policy = *this;
  policy.cube_ = split;
  return policy;
}
DPPolicy DPPolicy::pe(PeSplit split) const {
  DPPolicy policy = *this;
  policy.pe_ = split;
  return policy;
}
DPPolicy DPPolicy::pes(std::optional<int> first) const {
  DPPolicy policy = *this;
  policy.num_pes_ = first;
  return policy;
}
DPPolicy DPPolicy::cubes(std::optional<int> first) const {
  DPPolicy policy = *this;
  policy.num_cubes_ = first;
  return policy;
}

std::string to_string(const DPPolicy& policy) {
  std::string text = fmt::format("cube={},pe={}", to_string(policy.cube()), to_string(policy.pe()));
  if (const auto cubes = policy.num_cubes()) text += fmt::format(",cubes={}", *cubes);
  if (const auto pes = policy.num_pes()) text += fmt::format(",pes={}", *pes);
  return text;
}

Shape fold_shape(const std::vector<std::int64_t>& dimensions) {
  if (dimensions.empty()) throw std::invalid_argument("a shape needs at least one dimension");
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  Shape shape{1, dimensions.back()};
  check("the last dimension", shape.cols, 1, kLargest);
  for (std::size_t i = 0; i + 1 < dimensions.size(); ++i) {
    check(fmt::format("dimension {}", i).c_str(), dimensions[i], 1, kLargest / shape.cols / shape.rows);
    shape.rows *= dimensions[i];
  }
  return shape;
}

std::vector<LocalShard> resolve_pe_split(PeSplit split, const Region& part, int itemsize, NumPes pes) {
  const int num_pe = static_cast<int>(pes);
  std::vector<LocalShard> shards;
  shards.reserve(static_cast<std::size_t>(num_pe));
  std::uint64_t offset = 0;
  for (int pe = 0; pe < num_pe; ++pe) {
    const Region region = pe_part(split, part, num_pe, pe);
    const std::uint64_t bytes = bytes_of(region, itemsize);
    shards.push_back({pe, offset, bytes, region});
    if (split != PeSplit::replicate) offset += bytes;
  }
  return shards;
}

std::vector<ShardSpec> resolve_dp_policy(const DPPolicy& policy, Shape shape, int itemsize, NumPes all_pes,
                                         NumCubes all_cubes, SipNumber target_sip) {
  const int num_pe = static_cast<int>(all_pes), num_cubes = static_cast<int>(all_cubes);
  const int sip = static_cast<int>(target_sip);
  constexpr int kMaxUnits = 256;  // of a physical address
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  check_split("policy.cube", policy.cube(), kCubeSplitNames);
  check_split("policy.pe", policy.pe(), kPeSplitNames);
  check("num_pe", num_pe, 1, kMaxUnits);
  check("num_cubes", num_cubes, 1, kMaxUnits);
  check("target_sip", sip, 0, kMaxSip);
  check("itemsize", itemsize, 1, 8);
  check("rows", shape.rows, 1, kLargest);
  check("cols", shape.cols, 1, kLargest / itemsize / shape.rows);
  const int pes = policy.num_pes().value_or(num_pe), cubes = policy.num_cubes().value_or(num_cubes);
  check("policy.num_pes", pes, 1, num_pe);
  check("policy.num_cubes", cubes, 1, num_cubes);

  std::vector<ShardSpec> shards;
  shards.reserve(static_cast<std::size_t>(cubes) * static_cast<std::size_t>(pes));
  std::uint64_t cube_offset = 0;
  for (int cube = 0; cube < cubes; ++cube) {
    const Region part = cube_part(policy.cube(), {0, 0, shape.rows, shape.cols}, cubes, cube);
    for (const LocalShard& local : resolve_pe_split(policy.pe(), part, itemsize, NumPes{pes})) {
      shards.push_back({sip, cube, local.local_pe, cube_offset + local.offset_bytes, local.nbytes, local.region});
    }
    if (policy.cube() != CubeSplit::replicate) cube_offset += bytes_of(part, itemsize);
  }
  return shards;
}

}  // namespace kernbench
