#include "runtime/tp/gemm_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "runtime/tp/own_shard.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {

std::uint64_t parts(std::int64_t whole, std::int64_t part) {
  return static_cast<std::uint64_t>((whole + part - 1) / part);
}

/// MACs that a cell of the array does in so many cycles.
struct CellRate {
  std::uint64_t cycles = 1, at_once = 1;
};
CellRate cell_rate(const PeEngines& engines, DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return {1, engines.f8_rate};
    case 2:
      return {1, engines.f16_rate};
    case 4:
      return {engines.f32_cycles, 1};
    default:
      return {2 * std::uint64_t{engines.f32_cycles}, 1};
  }
}

/// Cycles in which a product keeps the edge of the array busy (docs/pe.md), its fill and drain apart.
std::uint64_t array_cycles(const PeEngines& engines, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  const CellRate rate = cell_rate(engines, dtype);
  const auto down = static_cast<std::int64_t>(engines.gemm_rows), across = static_cast<std::int64_t>(engines.gemm_cols);
  const auto at_once = static_cast<std::int64_t>(rate.at_once);
  const std::uint64_t columns = parts(n, across);
  if (engines.weights_stay) {
    return parts(k, down * at_once) * columns *
           std::max<std::uint64_t>(static_cast<std::uint64_t>(m) * rate.cycles, engines.gemm_rows);
  }
  return parts(m, down) * columns * std::max<std::uint64_t>(parts(k, at_once) * rate.cycles, engines.gemm_rows);
}

Ps cycles_at(std::uint64_t cycles, std::uint64_t hertz) { return Clock(hertz).at(cycles); }

PeCoord owner_of(const ShardSpec& shard) {
  return {static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
          static_cast<std::uint16_t>(shard.pe)};
}

/// Bytes that one PE reads of an operand, by how far away they lie.
struct Reads {
  double own = 0, cube = 0, far = 0;
  double all() const { return own + cube + far; }
};

std::int64_t common(std::int64_t a, std::int64_t a_length, std::int64_t b, std::int64_t b_length) {
  return std::max<std::int64_t>(0, std::min(a + a_length, b + b_length) - std::max(a, b));
}

/// Each block from the copy that the PE sees: its own, one in its cube, any.
Reads reads_of(const Tensor& tensor, const Region& need, PeCoord pe) {
  struct Block {
    double bytes = 0;
    int distance = 2;
  };
  std::map<std::uint64_t, Block> blocks;
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    const std::int64_t elements = common(shard.region.row, shard.region.rows, need.row, need.rows) *
                                  common(shard.region.col, shard.region.cols, need.col, need.cols);
    if (elements == 0) continue;
    const PeCoord owner = owner_of(shard);
    Block& block = blocks[shard.offset_bytes];
    block.bytes = static_cast<double>(elements) * static_cast<double>(size_of(tensor.dtype()));
    block.distance = std::min(block.distance, owner.cube != pe.cube ? 2 : owner.pe != pe.pe ? 1 : 0);
  }
  Reads reads;
  for (const auto& [offset, block] : blocks) {
    (block.distance == 0 ? reads.own : block.distance == 1 ? reads.cube : reads.far) += block.bytes;
  }
  return reads;
}

std::set<PeCoord> holders(const Tensor& tensor) {
  std::set<PeCoord> found;
  for (const ShardSpec& shard : tensor.shards()) {
    if (!shard.region.empty()) found.insert(owner_of(shard));
  }
  return found;
}

/// What the estimates look at: the busiest PE, and where its operands lie.
class Problem {
 public:
  Problem(const MachineMap& map, const GemmOperands& operands)
      : map(map),
        m(operands.a.shape().rows),
        n(operands.b.shape().cols),
        k(operands.a.shape().cols),
        dtype(operands.c.dtype()),
        item(static_cast<double>(size_of(dtype))) {
    for (const ShardSpec& shard : operands.c.shards()) {
      if (shard.region.empty()) continue;
      workers.insert(owner_of(shard));
      if (shard.region.rows * shard.region.cols > part.rows * part.cols) {
        part = shard.region;
        pe = owner_of(shard);
      }
      by_cube_[shard.cube].push_back(shard);
    }
    rates = map.rates(pe);
    a = reads_of(operands.a, {part.row, 0, part.rows, k}, pe);
    b = reads_of(operands.b, {0, part.col, k, part.cols}, pe);
    a_holders = holders(operands.a);
    b_holders = holders(operands.b);
    const TensorView a_view(0, geometry_of(operands.a)), b_view(0, geometry_of(operands.b));
    a_view.col_cuts(0, k, a_cuts);
    b_view.row_cuts(0, k, b_cuts);
    b_view.col_cuts(part.col, part.col + part.cols, columns);
    for (const LinkBundle& link : map.cube_links) {
      if (link.sip != pe.sip || link.a == kIoChiplet || link.b == kIoChiplet) continue;
      const auto half = [&](std::uint16_t cube) { return cube % map.cube_w < map.cube_w / 2; };
      if (half(link.a) != half(link.b)) cut_rate += static_cast<double>(link.capacity.bytes_per_second());
    }
  }

  /// Every cube's workers make parts with the same rows and are the same PEs: what passing on asks for.
  std::uint64_t common_pes() const {
    std::uint64_t common = 0;
    for (const auto& [cube, shards] : by_cube_) {
      std::uint64_t mask = 0;
      for (const ShardSpec& shard : shards) {
        if (shard.pe >= 64 || shard.region.row != shards.front().region.row ||
            shard.region.rows != shards.front().region.rows) {
          return 0;
        }
        mask |= std::uint64_t{1} << shard.pe;
      }
      if (common != 0 && mask != common) return 0;
      common = mask;
    }
    return common;
  }
  std::size_t pes_of_cube() const { return by_cube_.empty() ? 1 : by_cube_.begin()->second.size(); }

  const MachineMap& map;
  std::int64_t m, n, k;
  DType dtype;
  double item;
  std::set<PeCoord> workers, a_holders, b_holders;
  Region part{0, 0, 0, 0};  // of the busiest PE
  PeCoord pe;
  PeRates rates;
  Reads a, b;
  std::vector<std::int64_t> a_cuts, b_cuts, columns;
  double cut_rate = 0;  // bytes per second, one way
  Ps farthest = 0;      // one access of the farthest part of a

 private:
  std::map<int, std::vector<ShardSpec>> by_cube_;
};

/// Share of its peak that a slice gives to long reads.   measured: validate hbm, streams with refresh, 0.93 to 0.96
constexpr double kStreamShare = 0.93;

Ps time_of(double bytes, Rate rate) {
  return static_cast<Ps>(bytes / static_cast<double>(rate.bytes_per_second()) * 1e12);
}

/// One access of an open row of the own slice, there and back.
Ps access(const Problem& p) {
  const NodeId pe = p.map.pe(p.pe), port = p.map.hbm_port(p.pe);
  const PeEngines& e = p.rates.engines;
  constexpr std::uint32_t kHeader = 16, kBurst = 256;  // bytes of a request; of an answer
  Ps way = 0;
  if (p.map.packet_latency) way = p.map.packet_latency(pe, port, kHeader) + p.map.packet_latency(port, pe, kBurst);
  return e.dma_setup + way + e.hbm_hit;
}

/// The same of the farthest slice that holds a part of a.
Ps farthest_access(const Problem& p) {
  Ps longest = access(p);
  if (!p.map.packet_latency || p.a.far == 0) return longest;
  constexpr std::uint32_t kHeader = 16, kBurst = 256;  // bytes of a request; of an answer
  const NodeId pe = p.map.pe(p.pe);
  for (const PeCoord holder : p.a_holders) {
    const NodeId port = p.map.hbm_port(holder);
    const Ps way = p.map.packet_latency(pe, port, kHeader) + p.map.packet_latency(port, pe, kBurst);
    longest = std::max(longest, p.rates.engines.dma_setup + way + p.rates.engines.hbm_hit);
  }
  return longest;
}

Ps fill_and_drain(const PeEngines& e) {
  return cycles_at(std::uint64_t{e.gemm_rows} + e.gemm_cols - 2 + e.gemm_rows, e.gemm_hz);
}

/// Rows of a that are short pieces of wide rows fall on few channels and open rows for little.   measured on `default`
double strided_share(double piece_bytes, bool dense) {
  constexpr double kLong = 1024;
  return dense ? 1 : std::min(1.0, piece_bytes / kLong);
}

GemmEstimate estimate(const Problem& p, const GemmMapping& mapping, std::uint64_t kept_bytes) {
  const PeEngines& e = p.rates.engines;
  const bool passed = mapping.kind == GemmMapping::Kind::passed, vector = mapping.kind == GemmMapping::Kind::vector;
  const std::int64_t rows = p.part.rows, cols = p.part.cols;
  const std::int64_t tile_n = passed ? cols : std::min(mapping.tile_n, cols);
  const std::int64_t tile_m = std::min(mapping.tile_m, rows);
  const std::int64_t group = std::min(rows, tile_m * mapping.row_blocks);
  const double groups = static_cast<double>(parts(rows, group)), passes = static_cast<double>(parts(cols, tile_n));
  std::vector<std::int64_t> cuts = p.b_cuts;
  cuts.insert(cuts.end(), p.a_cuts.begin(), p.a_cuts.end());
  const std::vector<Piece> steps = pieces(0, p.k, cuts, mapping.tile_k);
  const auto blocks = static_cast<double>(parts(group, tile_m)) * static_cast<double>(p.columns.size() + 1);

  GemmEstimate out;
  double ops = 0;
  const auto k_steps = static_cast<double>(steps.size());
  if (vector) {
    const auto lanes = static_cast<std::uint64_t>(size_of(p.dtype) > 4 ? e.math_lanes / 2 : e.math_lanes);
    std::uint64_t cycles = 0;
    for (const Piece& step : steps) {
      const std::uint64_t pass = parts(step.length * cols, static_cast<std::int64_t>(lanes)) + e.math_fill;
      cycles += pass * static_cast<std::uint64_t>(groups) +
                static_cast<std::uint64_t>(rows) * (2 * pass + 8 + 3 * (e.math_fill + 1));
    }
    out.array = cycles_at(cycles, e.math_hz);
    ops = k_steps * (groups * 2 + 5 * static_cast<double>(rows)) + 3 * static_cast<double>(rows);
  } else {
    // A product that goes on with sums waits for them: fill, drain and their way back in, unless others run meanwhile.
    const std::uint64_t round = std::uint64_t{3} * e.gemm_rows + e.gemm_cols;
    double cycles = 0;
    for (const Piece& step : steps) {
      const auto one = static_cast<double>(
          array_cycles(e, p.dtype, tile_m, cols / static_cast<std::int64_t>(p.columns.size() + 1), step.length));
      const double busy = static_cast<double>(array_cycles(e, p.dtype, tile_m, cols, step.length)) *
                          static_cast<double>(parts(rows, tile_m));
      const double alone = (one + static_cast<double>(round)) / (blocks * mapping.chains) / one;
      cycles += busy * std::max(1.0, alone);
    }
    out.array = cycles_at(static_cast<std::uint64_t>(cycles), e.gemm_hz);
    ops =
        k_steps * (static_cast<double>(parts(rows, tile_m)) * static_cast<double>(p.columns.size() + 1) * 2 + groups) +
        6 * static_cast<double>(parts(rows, tile_m));
    if (passed) ops += k_steps * groups * 2;
  }
  out.dispatch = static_cast<Ps>(ops) * e.dispatch;

  const auto workers = static_cast<double>(p.workers.size());
  const bool kept =
      vector || groups < 2 || static_cast<double>(tile_n * p.k) * p.item <= static_cast<double>(kept_bytes);
  const double b_times = kept && !vector ? 1 : groups;
  const double sharing = passed ? static_cast<double>(p.pes_of_cube()) : 1;
  const double a_bytes = p.a.all() * passes / sharing, b_bytes = p.b.all() * b_times;
  const double piece = static_cast<double>(steps.front().length) * p.item;
  const bool dense = p.a_cuts.empty() ? steps.front().length == p.k || rows == 1 : true;
  const double a_slice = a_bytes * workers / static_cast<double>(p.a_holders.size()) / strided_share(piece, dense);
  const double b_slice = b_bytes * workers / static_cast<double>(p.b_holders.size());
  out.memory = static_cast<Ps>(static_cast<double>(time_of(a_slice + b_slice, p.rates.hbm_slice)) / kStreamShare);
  out.port = time_of((passed ? p.a.all() : a_bytes) + b_bytes, p.rates.port);
  if (passed) {
    // A round is a fetch from afar and messages to all of the cube; measured on `default`, rounds hardly overlap.
    const double rounds = groups * static_cast<double>(parts(static_cast<std::int64_t>(steps.size()),
                                                             static_cast<std::int64_t>(p.pes_of_cube())));
    const double message = static_cast<double>(group * steps.front().length) * p.item;
    out.port = std::max(
        out.port, static_cast<Ps>(rounds * static_cast<double>(p.farthest + time_of(message, p.rates.hbm_slice))));
  }
  if (p.cut_rate > 0) {
    const double far = p.a.far * passes / sharing + p.b.far * b_times;
    out.cut = static_cast<Ps>(workers / 2 * far / 2 / p.cut_rate * 1e12);
  }
  const double first = p.item * static_cast<double>(steps.front().length) *
                       (static_cast<double>(cols) + static_cast<double>(vector   ? rows
                                                                        : passed ? group
                                                                                 : tile_m));
  const Ps way = access(p);
  out.latency =
      e.dispatch * 4 + way * (passed ? 3 : 2) + time_of(first, p.rates.hbm_slice) + fill_and_drain(e) +
      cycles_at(parts(tile_m * cols, e.math_lanes) * (2 + static_cast<std::uint64_t>(mapping.chains)) + 3 * e.math_fill,
                e.math_hz) +
      time_of(static_cast<double>(tile_m * cols) * p.item, p.rates.hbm_slice);
  out.time = out.latency + std::max({out.array, out.memory, out.port, out.cut, out.dispatch});
  return out;
}

/// Tiles that fit, of one kind.
std::vector<GemmMapping> candidates(const Problem& p, GemmMapping::Kind kind, std::uint64_t room) {
  std::vector<GemmMapping> list;
  const std::int64_t rows = p.part.rows, cols = p.part.cols;
  const auto bytes = [&](const GemmMapping& t, std::uint64_t kept) {
    const double wide = static_cast<double>(size_of(compute_type(p.dtype)));
    const auto tk = static_cast<double>(std::min(t.tile_k, p.k)), tm = static_cast<double>(std::min(t.tile_m, rows));
    const auto tn = static_cast<double>(t.tile_n);
    const double group = tm * t.row_blocks;
    if (t.kind == GemmMapping::Kind::vector) return 4 * tk * tn * (p.item + 2 * wide) + group * tn * wide;
    const double x = t.kind == GemmMapping::Kind::passed ? 3.5 * group * static_cast<double>(p.pes_of_cube()) : 4 * tm;
    return static_cast<double>(kept) + 4 * tk * tn * p.item + x * tk * p.item + 3 * group * tn * wide * t.chains;
  };
  const bool vector = kind == GemmMapping::Kind::vector;
  for (const std::int64_t tile_k : {64, 128, 256, 512, 1024, 2048, 4096}) {
    if (tile_k > 64 && tile_k / 2 >= p.k) break;
    for (const std::int64_t tile_m : {32, 64, 128}) {
      if (tile_m > 32 && (tile_m / 2 >= rows || vector)) break;
      for (const std::int32_t row_blocks : {1, 2, 4, 8}) {
        if (row_blocks > 1 && tile_m * row_blocks / 2 >= rows) break;
        for (const std::int32_t chains : {1, 2, 4}) {
          if (vector && chains > 1) break;
          GemmMapping t{kind, std::min(tile_m, rows), cols, std::min(tile_k, p.k), row_blocks, chains};
          const auto kept = [&] {
            const bool once = kind == GemmMapping::Kind::stream && tile_m * row_blocks >= rows;
            return vector || once ? 0 : static_cast<std::uint64_t>(static_cast<double>(t.tile_n * p.k) * p.item);
          };
          while (t.tile_n > 1 && bytes(t, kept()) > static_cast<double>(room)) t.tile_n = (t.tile_n + 1) / 2;
          if (kind == GemmMapping::Kind::passed && t.tile_n < cols) continue;  // every part of a is passed on once
          if (t.tile_n < cols && t.tile_n < 32 && t.tile_n * 4 < cols) continue;
          list.push_back(t);
        }
      }
    }
  }
  if (list.empty() && kind != GemmMapping::Kind::passed) {  // the least that there is
    list.push_back({kind, std::min<std::int64_t>(rows, 32), std::min<std::int64_t>(cols, 32),
                    std::min<std::int64_t>(p.k, 64), 1, 1});
  }
  return list;
}

GemmBound bound_of(const Problem& p, const GemmOperands& operands) {
  const PeEngines& e = p.rates.engines;
  std::set<PeCoord> all;
  for (const Tensor& tensor : {operands.a, operands.b, operands.c}) {
    const std::set<PeCoord> some = holders(tensor);
    all.insert(some.begin(), some.end());
  }
  const auto pes = static_cast<std::int64_t>(all.size());
  // Without padding is less than any split; with it, splits of m and n over up to all PEs, k over the rest.
  std::uint64_t least = ~std::uint64_t{0};
  const auto blocks_m = static_cast<std::int64_t>(parts(p.m, 1)), blocks_n = static_cast<std::int64_t>(parts(p.n, 1));
  for (std::int64_t over_m = 1; over_m <= std::min(pes, blocks_m); ++over_m) {
    for (std::int64_t over_n = 1; over_n <= std::min(pes / over_m, blocks_n); ++over_n) {
      const std::int64_t over_k = std::min(pes / (over_m * over_n), p.k);
      const CellRate rate = cell_rate(e, p.dtype);
      const auto down = static_cast<std::int64_t>(e.gemm_rows), across = static_cast<std::int64_t>(e.gemm_cols);
      const auto m = static_cast<std::int64_t>(parts(p.m, over_m)), n = static_cast<std::int64_t>(parts(p.n, over_n));
      const auto k = static_cast<std::int64_t>(parts(p.k, over_k));
      const auto at_once = static_cast<std::int64_t>(rate.at_once);
      const std::uint64_t cycles =
          e.weights_stay ? parts(k, down * at_once) * parts(n, across) * static_cast<std::uint64_t>(m) * rate.cycles
                         : parts(m, down) * parts(n, across) * parts(k, at_once) * rate.cycles;
      least = std::min(least, cycles);
    }
  }
  GemmBound bound;
  bound.array = cycles_at(least, e.gemm_hz);
  const auto lanes = static_cast<double>(e.math_lanes) * static_cast<double>(pes);
  const double macs = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  bound.array = std::min(bound.array, static_cast<Ps>(2 * macs / lanes / static_cast<double>(e.math_hz) * 1e12));

  double bytes = 0;
  for (const Tensor& tensor : {operands.a, operands.b, operands.c}) {
    const double own = static_cast<double>(tensor.shape().count()) * p.item;
    bytes += own;
    const auto slices = static_cast<double>(holders(tensor).size());
    bound.memory = std::max(bound.memory, time_of(own / slices, p.rates.hbm_slice));
  }
  bound.memory = std::max(bound.memory, time_of(bytes / static_cast<double>(pes), p.rates.hbm_slice));
  Ps back = 0;
  if (p.map.packet_latency) {
    constexpr std::uint32_t kPacket = 16;  // bytes: the least that crosses the network
    const NodeId pe = p.map.pe(p.pe), port = p.map.hbm_port(p.pe);
    back = p.map.packet_latency(pe, port, kPacket) + p.map.packet_latency(port, pe, kPacket);
  }
  const Ps least_fill = std::min(fill_and_drain(e), cycles_at(2 * std::uint64_t{e.math_fill}, e.math_hz));
  bound.latency = e.dispatch + access(p) + least_fill + back;
  bound.time = std::max(bound.array, bound.memory) + bound.latency;
  return bound;
}

void check_operands(const std::string& name, const GemmOperands& operands) {
  if (!operands.a || !operands.b || !operands.c) {
    throw std::invalid_argument(fmt::format("gemm '{}': an operand is an empty handle", name));
  }
  const Shape a = operands.a.shape(), b = operands.b.shape(), c = operands.c.shape();
  if (a.cols != b.rows || c.rows != a.rows || c.cols != b.cols) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': {} times {} does not give {}", name, a.str(), b.str(), c.str()));
  }
  if (operands.bias && operands.bias.shape() != Shape{1, c.cols}) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': the bias is {}, not {}", name, operands.bias.shape().str(), Shape{1, c.cols}.str()));
  }
  const DType dtype = operands.c.dtype();
  if (!is_float(dtype)) {
    throw std::invalid_argument(fmt::format("gemm '{}': {} is no floating-point type", name, to_string(dtype)));
  }
  for (const Tensor& tensor : {operands.a, operands.b, operands.bias}) {
    if (tensor && tensor.dtype() != dtype) {
      throw std::invalid_argument(fmt::format("gemm '{}': tensor '{}' is {}, the result is {}", name, tensor.name(),
                                              to_string(tensor.dtype()), to_string(dtype)));
    }
  }
}

}  // namespace

std::string GemmEstimate::binds() const {
  const std::pair<Ps, const char*> parts[] = {{array, "array"}, {memory, "HBM"},        {port, "PE port"},
                                              {cut, "UCIe"},    {dispatch, "dispatch"}, {latency, "latency"}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

std::string GemmBound::binds() const {
  return latency > std::max(array, memory) ? "latency" : array >= memory ? "array" : "HBM";
}

GemmPlan plan_gemm(const MachineMap& map, const std::string& name, const GemmOperands& operands,
                   const std::string& mapping) {
  check_operands(name, operands);
  Problem problem(map, operands);
  problem.farthest = farthest_access(problem);
  GemmPlan plan;
  plan.bound = bound_of(problem, operands);
  // A launch's share of TCM, less what rings may take of it.   assumed: three quarters
  const std::uint64_t room = map.tcm.bytes / problem.rates.engines.kernel_contexts / 4 * 3;
  plan.kept_bytes = room;
  const std::uint64_t pes = problem.common_pes();
  plan.pes_of_cube = pes;
  std::optional<GemmMapping> forced;
  if (mapping != "auto") forced = parse_gemm_mapping(mapping);
  for (const GemmMapping::Kind kind : gemm_mapping_kinds()) {
    if (forced && forced->kind != kind) continue;
    if (kind == GemmMapping::Kind::passed && (pes & (pes - 1)) == 0) continue;  // fewer than two PEs
    std::vector<GemmMapping> list = candidates(problem, kind, room);
    if (forced && forced->whole()) list = {*forced};
    std::optional<GemmCandidate> best;
    for (const GemmMapping& one : list) {
      const GemmCandidate candidate{one, estimate(problem, one, room)};
      if (!best || candidate.estimate.time < best->estimate.time) best = candidate;
    }
    if (best) plan.considered.push_back(*best);
  }
  if (plan.considered.empty()) {
    throw std::invalid_argument(
        fmt::format("gemm '{}': mapping {} does not serve these operands: the PEs of a cube have to make the same rows "
                    "of the result, and TCM to hold their columns of b",
                    name, mapping));
  }
  std::stable_sort(plan.considered.begin(), plan.considered.end(),
                   [](const auto& x, const auto& y) { return x.estimate.time < y.estimate.time; });
  plan.best = plan.considered.front();
  return plan;
}

}  // namespace kernbench::tp
