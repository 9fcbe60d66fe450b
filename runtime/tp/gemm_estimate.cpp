#include "runtime/tp/gemm_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/tp/gemm_bound.h"
#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "runtime/tp/tcm_room.h"
#include "runtime/tp/tensor_view.h"

namespace kernbench::tp {

namespace {
std::uint64_t parts(std::int64_t whole, std::int64_t part) {
  return static_cast<std::uint64_t>((whole + part - 1) / part);
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

/// Share of its peak that a slice gives to long reads.   measured: validate hbm, streams with refresh, 0.93 to 0.96
constexpr double kStreamShare = 0.93;

/// What an access of a far slice takes while all PEs read, of one alone.   measured on `default`: 1.3 to 1.8
constexpr double kBusyWay = 1.5;

/// Share of its rate that the busiest wire between cubes reaches: who is far off gets his answers late, and asks for
/// more only then.   measured on `default`: 0.52 to 0.73 (128 to 512 rows, a over all cubes, by `split` and `stream`)
constexpr double kWireShare = 0.6;

/// Where cubes hold rows of a, PEs read them from few cubes at a time: the part of the links' time that `stream`, whose
/// loads run a few tiles ahead, does not hide.   measured on `default`: 115 us where array and links ask for 82 and 84
/// (2048 x 1792 x 4096)
constexpr double kNotHidden = 0.4;

/// The part of TCM that tiles walk through (docs/pe.md). On the math engine a step has its tile of b, the same widened
/// to f32, and weighted: where three steps do not fit, a load waits for the products of the step before.
/// measured on `minimal`: 1 x 512 x 2048 in steps of 16 rows of b 24.3 us, of 32 31.4, of 64 39.1
constexpr double kTileWindow = 256 << 10;
bool loads_behind_products(const GemmProblem& p, std::int64_t step, std::int64_t cols) {
  constexpr double kWide = 4, kSteps = 3;
  return kSteps * static_cast<double>(step * cols) * (p.item + 2 * kWide) > kTileWindow;
}

/// Rows of a that are short pieces of wide rows fall on few channels and open rows for little.   measured on `default`
double strided_share(double piece_bytes, bool dense) {
  constexpr double kLong = 2048, kLeast = 0.25;
  return dense ? 1 : std::clamp(piece_bytes / kLong, kLeast, 1.0);
}

/// Reading `bytes` in pieces of memory of `piece` bytes, with as many packets under way as the DMA engine has: each is
/// there a latency after it was asked for, and only then another one may be (Little's law).
Ps windowed(const PeEngines& e, double bytes, double piece, Ps latency) {
  const double packets = bytes / std::min<double>(piece, kPacketBytes);
  return static_cast<Ps>(packets * static_cast<double>(latency) / (static_cast<double>(e.dma_bytes) / kPacketBytes));
}

/// Partial sums of a split k: what a PE sends and gets, and its additions; of the last group nothing hides them. Of a
/// group of rows those PEs get that hold them in the end: of few rows few PEs, one group after the other.
void add_exchange(const GemmProblem& p, std::int64_t group, double passes, GemmEstimate& out) {
  const PeEngines& e = p.rates.engines;
  const double wide = static_cast<double>(size_of(compute_type(p.dtype)));
  const auto row_groups = static_cast<double>(parts(p.part.rows, group)), groups = row_groups * passes;
  const auto others = static_cast<double>(p.sharers) - 1, cols = static_cast<double>(p.part.cols);
  const auto own = static_cast<double>(p.own_rows) * cols;
  const double sent = static_cast<double>(group) * others / static_cast<double>(p.sharers);
  const double received = static_cast<double>(std::min(p.own_rows, group)) * others;
  const double bytes = row_groups * std::max(sent, received) * cols * wide;
  const Ps added = cycles_at(
      static_cast<std::uint64_t>(own * others / e.math_lanes) + p.sharers * std::uint64_t{e.math_fill}, e.math_hz);
  const Ps moved = time_of(bytes, p.rates.port);
  out.port += moved;
  out.dispatch += static_cast<Ps>(groups * 3 * others) * e.dispatch;
  out.latency += static_cast<Ps>(static_cast<double>(moved + added) / groups) + 2 * way_there_and_back(p.map, p.pe);
}

/// Links between the cubes of a SIP, the slowest, one way.
double cube_link_rate(const GemmProblem& p) {
  double least = 0;
  for (const LinkBundle& link : p.map.cube_links) {
    if (link.sip != p.pe.sip || link.a == kIoChiplet || link.b == kIoChiplet) continue;
    const auto rate = static_cast<double>(link.capacity.bytes_per_second());
    least = least == 0 ? rate : std::min(least, rate);
  }
  return least;
}

/// Blocks of b go round the cubes: each is summed over the PE's own k while the next ones come, as fast as the busiest
/// link, the slots of a queue and the PE's port let them. What is not hidden: each time round the first operands and
/// the way of the first message; at the end the exchange of the last piece of columns.
GemmEstimate ring_estimate(const GemmProblem& p, const GemmMapping& mapping) {
  const PeEngines& e = p.rates.engines;
  const std::int64_t rows = p.part.rows, tile_m = std::min(mapping.tile_m, rows);
  const std::int64_t group = std::min(rows, tile_m * mapping.row_blocks);
  const auto rounds = static_cast<double>(parts(rows, group));
  std::vector<std::int64_t> cuts = p.b_cuts;
  cuts.insert(cuts.end(), p.a_cuts.begin(), p.a_cuts.end());
  const std::vector<Piece> steps = pieces(p.first_k, p.first_k + p.k, cuts, mapping.tile_k);
  const std::vector<Piece> columns = pieces(0, p.part.cols, p.columns, mapping.tile_n);
  const std::uint64_t way_in = std::uint64_t{3} * e.gemm_rows + e.gemm_cols;  // as in estimate()
  const auto sums = static_cast<double>(parts(group, tile_m)) * mapping.chains;
  double cycles = 0;
  for (const Piece& cols : columns) {
    for (const Piece& step : steps) {
      const auto one = static_cast<double>(array_cycles(e, p.dtype, tile_m, cols.length, step.length));
      const double alone = steps.size() == 1 ? 1 : (one + static_cast<double>(way_in)) / sums / one;
      cycles += one * static_cast<double>(parts(rows, tile_m)) * std::max(1.0, alone);
    }
  }
  GemmEstimate out;
  out.array = cycles_at(static_cast<std::uint64_t>(cycles), e.gemm_hz);
  const double tiles = static_cast<double>(columns.size() * steps.size());
  out.dispatch = static_cast<Ps>(tiles * (3 * rounds + static_cast<double>(parts(rows, tile_m)))) * e.dispatch;
  const double slice = static_cast<double>(p.rates.hbm_slice.bytes_per_second()) * kStreamShare / 1e12;
  out.memory = static_cast<Ps>((p.a.all() + p.b.all() * rounds) / slice);
  out.port = std::max(time_of(rounds * static_cast<double>(p.part.cols * p.k) * p.item, p.rates.port),
                      windowed(e, p.a.all(), kPacketBytes, p.a.latency));
  const double over_link = rounds * p.blocks_over_link * static_cast<double>(p.block_cols * p.k) * p.item;
  const double rate = cube_link_rate(p);  // 0: a single cube
  const auto of_link = [&](double bytes) {
    return rate > 0 ? static_cast<Ps>(bytes * static_cast<double>(p.sharers) / rate * 1e12) : Ps{0};
  };
  const PeCoord next{p.pe.sip, static_cast<std::uint16_t>(p.pe.cube > 0 ? p.pe.cube - 1 : rate > 0 ? 1 : 0), p.pe.pe};
  const Ps hop = rate > 0 ? p.map.packet_latency(p.map.pe(p.pe), p.map.pe(next), kPacketBytes) : 0;
  const double window = static_cast<double>(p.map.ipcq_slots) * p.map.ipcq_slot_bytes;  // there, and the credit back
  out.cut = std::max(of_link(over_link), static_cast<Ps>(over_link / window * 2 * static_cast<double>(hop)));
  const Piece &step = steps.front(), &cols = columns.front();
  const double first = static_cast<double>((tile_m + cols.length) * step.length) * p.item;
  const Ps begins = access_of(p.map, p.pe, p.pe) + static_cast<Ps>(first / slice) + hop +
                    of_link(static_cast<double>(cols.length * step.length) * p.item);
  const auto last = static_cast<double>(group * cols.length), others = static_cast<double>(p.sharers) - 1;
  const Ps added =
      cycles_at(static_cast<std::uint64_t>(last * (others / static_cast<double>(p.sharers) + 2) / e.math_lanes) +
                    p.sharers * std::uint64_t{e.math_fill},
                e.math_hz);
  out.latency = static_cast<Ps>(rounds) * begins + e.dispatch * 4 + fill_and_drain(e) +
                time_of(last * static_cast<double>(size_of(compute_type(p.dtype))), p.rates.port) + added +
                2 * way_there_and_back(p.map, p.pe);
  out.time = out.latency + std::max({out.array, out.memory, out.port, out.cut, out.dispatch});
  return out;
}

/// PEs of a cube that read b from one slice at a time, where its rows lie on all of them. By `stream` each begins with
/// its own, and all go round in step if each one's rows are whole steps. If not, two meet, share the slice, end
/// together and go on together: they never part. By others all begin at the first.   measured on `default`: 512 x 4096
/// x 7168 in steps of 448, half a slice's rows, 74.8 us; of 512, 95.2
double crowd(const GemmProblem& p, const GemmMapping& mapping) {
  if (p.b_borders.empty()) return 1;
  if (mapping.kind != GemmMapping::Kind::stream) return static_cast<double>(p.pes_of_cube);
  const auto whole = [&](std::int64_t border) { return border % mapping.tile_k == 0; };
  return std::all_of(p.b_borders.begin(), p.b_borders.end(), whole) ? 1 : 2;
}
}  // namespace

std::string GemmEstimate::binds() const {
  const std::pair<Ps, const char*> parts[] = {{array, "array"}, {memory, "HBM"},        {port, "PE port"},
                                              {cut, "UCIe"},    {dispatch, "dispatch"}, {latency, "latency"}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

Ps farthest_access(const GemmProblem& p) {
  Ps longest = access_of(p.map, p.pe, p.pe);
  if (p.a.far == 0) return longest;
  for (const PeCoord holder : p.a_holders) longest = std::max(longest, access_of(p.map, p.pe, holder));
  return longest;
}

std::uint64_t room_of(const GemmProblem& p) { return tcm_room(p.map.tcm.bytes / p.rates.engines.kernel_contexts); }

std::int64_t longest_span(const GemmProblem& p) {
  constexpr std::int64_t kSpanBytes = 2048, kFewRows = 32, kWide = 128;
  if (p.block_cols > 0 || (p.part.rows > kFewRows && p.part.cols < kWide)) return 0;
  constexpr std::int64_t kSpans = 11;  // of a block of rows: as many loads ahead, their turned copies, the next group's
  const std::int64_t rows = kSpans * std::min(p.part.rows, kFewRows);
  std::int64_t bytes = kSpanBytes;
  while (bytes >= kSpanBytes / 32 && static_cast<std::uint64_t>(rows * bytes) > room_of(p) / 2) bytes /= 2;
  return bytes / static_cast<std::int64_t>(p.item);
}

std::int64_t span_of(const GemmProblem& p, const GemmMapping& mapping, std::int64_t step) {
  const std::int64_t dense = std::min(p.a.width, p.k);
  return std::min(dense, exchanges_sums(mapping.kind) ? std::max(step, longest_span(p)) : step);
}

GemmEstimate estimate(const GemmProblem& p, const GemmMapping& mapping, std::uint64_t kept_bytes) {
  if (mapping.kind == GemmMapping::Kind::ring) return ring_estimate(p, mapping);
  const PeEngines& e = p.rates.engines;
  const bool passed = mapping.kind == GemmMapping::Kind::passed, vector = on_math_engine(mapping.kind);
  const std::int64_t rows = p.part.rows, cols = p.part.cols;
  const std::int64_t tile_n = passed ? cols : std::min(mapping.tile_n, cols);
  const std::int64_t tile_m = std::min(mapping.tile_m, rows);
  const std::int64_t group = std::min(rows, tile_m * mapping.row_blocks);
  const double groups = static_cast<double>(parts(rows, group)), passes = static_cast<double>(parts(cols, tile_n));
  std::vector<std::int64_t> cuts = p.b_cuts;
  cuts.insert(cuts.end(), p.a_cuts.begin(), p.a_cuts.end());
  const std::vector<Piece> steps = pieces(p.first_k, p.first_k + p.k, cuts, mapping.tile_k);
  const auto blocks = static_cast<double>(parts(group, tile_m)) * static_cast<double>(p.columns.size() + 1);

  GemmEstimate out;
  double ops = 0;
  const auto k_steps = static_cast<double>(steps.size());
  if (vector) {
    const std::int64_t all = e.math_lanes, lanes = size_of(p.dtype) > 4 ? std::max<std::int64_t>(all / 2, 1) : all;
    std::uint64_t cycles = 0;
    for (const Piece& step : steps) {
      const std::uint64_t pass = parts(step.length * cols, lanes) + e.math_fill;
      cycles += pass * static_cast<std::uint64_t>(groups) +
                static_cast<std::uint64_t>(rows) * (2 * pass + 8 + std::uint64_t{3} * (e.math_fill + 1));
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
    if (span_of(p, mapping, steps.front().length) > steps.front().length && rows > 1) {  // a turned over and back
      // Measured: of few rows hidden, of more than a block of them hardly.
      const double turned = 2 * static_cast<double>(rows * p.k) * passes / e.math_lanes;
      const Ps time = cycles_at(static_cast<std::uint64_t>(turned), e.math_hz);
      out.array = rows > tile_m ? out.array + time : std::max(out.array, time);
    }
    ops =
        k_steps * (static_cast<double>(parts(rows, tile_m)) * static_cast<double>(p.columns.size() + 1) * 2 + groups) +
        6 * static_cast<double>(parts(rows, tile_m));
    if (passed) ops += k_steps * groups * 2;
  }
  out.dispatch = static_cast<Ps>(ops) * e.dispatch;

  const auto workers = static_cast<double>(p.workers.size());
  const bool streamed = mapping.kind == GemmMapping::Kind::vector;
  const bool kept =
      streamed || groups < 2 || static_cast<double>(tile_n * p.k) * p.item <= static_cast<double>(kept_bytes);
  const double b_times = kept && !streamed ? 1 : groups;
  const double sharing = passed ? static_cast<double>(p.pes_of_cube) : 1;
  // Of fewer steps than PEs of a cube, and of the last round, some PEs fetch nothing.
  const double fetching = passed ? k_steps / std::ceil(k_steps / sharing) : 1;
  const double a_bytes = p.a.all() * passes / sharing, b_bytes = p.b.all() * b_times;
  const std::int64_t span = span_of(p, mapping, steps.front().length), b_piece = std::min(tile_n, p.b.width);
  const bool dense = rows == 1 || span == (p.a_cuts.empty() ? p.k : p.a.width);
  const double piece = static_cast<double>(span) * p.item, share = strided_share(piece, dense);
  const double slice = static_cast<double>(p.rates.hbm_slice.bytes_per_second()) * kStreamShare / 1e12;
  const double a_time = a_bytes * workers / static_cast<double>(p.a_holders.size()) / share / slice;
  const double b_time = b_bytes * workers / static_cast<double>(p.b_holders.size()) / slice * crowd(p, mapping);
  out.memory = static_cast<Ps>(a_time + b_time);
  out.port = time_of((passed ? p.a.all() : a_bytes) + b_bytes, p.rates.port);
  // A DMA engine works at one operand after the other, each at the slices' rate or as its window allows.
  const double whole = kPacketBytes;
  const Ps window_a = windowed(e, p.a.all() * passes / fetching, dense ? whole : piece, p.a.latency);
  const Ps window_b =
      windowed(e, b_bytes, b_piece == p.b.width ? whole : static_cast<double>(b_piece) * p.item, p.b.latency);
  out.port =
      std::max(out.port, std::max(window_a, static_cast<Ps>(a_time)) + std::max(window_b, static_cast<Ps>(b_time)));
  if (passed) {
    // Who fetches a part sends it to each of the others: of fewer steps than PEs all of it leaves by few ports.
    out.port = std::max(out.port, time_of(p.a.all() / fetching * (sharing - 1), p.rates.port));
    // A round is a fetch from afar and messages to all of the cube; measured on `default`, rounds hardly overlap.
    const double rounds = groups * static_cast<double>(parts(static_cast<std::int64_t>(steps.size()),
                                                             static_cast<std::int64_t>(p.pes_of_cube)));
    const double message = static_cast<double>(group * steps.front().length) * p.item;
    out.port = std::max(
        out.port, static_cast<Ps>(rounds * static_cast<double>(p.farthest + time_of(message, p.rates.hbm_slice))));
  }
  for (const WireLoad& load : p.wires)
    out.cut = std::max(out.cut, static_cast<Ps>((load.a * passes / sharing + load.b * b_times) / kWireShare));
  // Before the first product: a of all rows that are summed at once, and the first step of b.
  const double first_a = static_cast<double>(group * (passed ? steps.front().length : span)) * p.item / share;
  const double first_b = static_cast<double>(steps.front().length * cols) * p.item;
  const Ps way = access_of(p.map, p.pe, p.pe);
  const auto here = static_cast<Ps>((first_a + first_b) / slice);
  const auto from_afar = static_cast<Ps>(kBusyWay * static_cast<double>(p.a.latency) + first_a / slice);
  // Of a split k the blocks of a group end together: of the last one all chains are added behind the products, and the
  // PE rounds and stores its own rows. Of others one block's.   assumed: those before it are done beside its products
  const std::int64_t held = exchanges_sums(mapping.kind) ? std::min(p.own_rows, group) : tile_m;
  const std::int64_t ending = exchanges_sums(mapping.kind) ? group : tile_m,
                     wide = exchanges_sums(mapping.kind) ? tile_n : cols;
  const std::int64_t math = (tile_m + (mapping.chains - 1) * ending + 2 * held) * wide;
  out.latency = e.dispatch * 4 + std::max(way * (passed ? 2 : 1) + here, from_afar) + fill_and_drain(e) +
                cycles_at(parts(math, e.math_lanes) + 3 * std::uint64_t{e.math_fill}, e.math_hz) +
                time_of(static_cast<double>(held * wide) * p.item, p.rates.hbm_slice);
  if (span > steps.front().length && rows > 1) {  // the first one is turned over before it is cut
    out.latency += cycles_at(parts(tile_m * span, e.math_lanes) + 2 * std::uint64_t{e.math_fill}, e.math_hz);
  }
  if (kept && groups > 1) {
    // All of b comes with the first group of rows.
    const auto of_a_group = static_cast<Ps>(static_cast<double>(out.array) / groups);
    const auto of_b = std::max(window_b, static_cast<Ps>(b_time));
    out.latency += std::max(static_cast<Ps>(a_time / groups) + of_b, of_a_group) - of_a_group;
  }
  if (exchanges_sums(mapping.kind)) add_exchange(p, group, passes, out);
  const bool waits = p.rows_over_cubes && mapping.kind == GemmMapping::Kind::stream && 2 * p.a.far > p.a.all();
  const bool far_b = mapping.kind == GemmMapping::Kind::stream && 2 * p.b.far > p.b.all();
  const double waiting = far_b ? 1 : waits ? kNotHidden : 0;  // where most of b is far, it is asked for a step ahead
  const bool in_turn = vector && loads_behind_products(p, steps.front().length, tile_n);
  const Ps products =
      out.array + static_cast<Ps>(waiting * static_cast<double>(out.cut)) + (in_turn ? out.memory : Ps{0});
  out.time = out.latency + std::max({products, out.memory, out.port, out.cut, out.dispatch});
  return out;
}

}  // namespace kernbench::tp
