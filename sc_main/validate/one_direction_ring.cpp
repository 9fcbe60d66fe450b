#include "sc_main/validate/one_direction_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "runtime/runtime.h"
#include "tlm/kernel/tl.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::validate {
namespace {
using Shape2 = OneDirectionRing::Shape;

constexpr std::uint64_t kItem = 4;  // f32

/// Elements in memory.
struct Part {
  Va va = 0;
  std::int64_t count = 0;
  Part part(std::int64_t i, std::int64_t n) const { return {va + static_cast<Va>(i * (count / n)) * kItem, count / n}; }
};

/// A PE's place in the ring of one dimension.
struct Dimension {
  int position = 0, size = 1;
  Direction next, previous;
};

/// One PE's phases. A message leaves when all of it has arrived and been summed: chunks are stored and forwarded.
class Phases {
 public:
  Phases(Tl& tl, unsigned pieces) : tl_(tl), pieces_(static_cast<std::int64_t>(pieces)) {}

  /// Leaves part `position` of `all`, summed over the ring, in its place; returns its pieces.
  std::vector<Tile> reduce_scatter(const Dimension& ring, const Part& all) {
    const auto chunk = [&](int step) { return part(ring, all, -step - 1); };
    std::vector<Tile> sums;
    for (std::int64_t p = 0; p < pieces_; ++p) sums.push_back(load(chunk(0).part(p, pieces_)));
    for (int step = 0; step + 1 < ring.size; ++step) {
      for (std::int64_t p = 0; p < pieces_; ++p) {
        Tile& sum = sums[static_cast<std::size_t>(p)];
        tl_.send(ring.next, sum);
        const Part own = chunk(step + 1).part(p, pieces_);
        const Tile mine = load(own);
        sum = receive(ring.previous, own.count) + mine;
      }
    }
    for (std::int64_t p = 0; p < pieces_; ++p)
      tl_.store(chunk(ring.size - 1).part(p, pieces_).va, sums[static_cast<std::size_t>(p)]);
    return sums;
  }

  /// Spreads part `position` of `all`, which is there.
  void all_gather(const Dimension& ring, const Part& all) {
    std::vector<Tile> own;
    for (std::int64_t p = 0; p < pieces_; ++p) own.push_back(load(part(ring, all, 0).part(p, pieces_)));
    all_gather(ring, all, own);
  }
  void all_gather(const Dimension& ring, const Part& all, std::vector<Tile> travelling) {
    for (int step = 0; step + 1 < ring.size; ++step) {
      for (std::int64_t p = 0; p < pieces_; ++p) {
        Tile& tile = travelling[static_cast<std::size_t>(p)];
        const Part to = part(ring, all, -step - 1).part(p, pieces_);
        tl_.send(ring.next, tile);
        tile = receive(ring.previous, to.count);
        tl_.store(to.va, tile);
      }
    }
  }
  void all_reduce(const Dimension& ring, const Part& all) { all_gather(ring, all, reduce_scatter(ring, all)); }

 private:
  static Part part(const Dimension& ring, const Part& all, int ahead) {
    return all.part((ring.position + ahead + 2 * ring.size) % ring.size, ring.size);
  }
  Tile load(const Part& run) { return tl_.load(run.va, {1, run.count}, DType::f32); }
  Tile receive(Direction from, std::int64_t count) { return tl_.recv(from, {1, count}, DType::f32); }

  Tl& tl_;
  const std::int64_t pieces_;
};

bool two_links(const OneDirectionRing& ring) {
  return ring.shape == Shape2::fabric || ring.shape == Shape2::storing_fabric;
}
/// SIPs for each rank: with relays every second one is a rank.
unsigned sips_per_rank(const OneDirectionRing& ring) { return ring.shape == Shape2::storing_fabric ? 2 : 1; }

/// Receives and sends on what a rank sends in the whole operation.
void run_relay(const OneDirectionRing& config, Tl& tl) {
  const int phases = config.op == CollectiveOp::all_reduce ? 2 : 1;
  const auto n = static_cast<std::int64_t>(config.dims[0]);
  const std::int64_t count = static_cast<std::int64_t>(config.bytes / kItem) / n / config.pieces;
  for (std::int64_t i = 0; i < phases * (n - 1) * config.pieces; ++i)
    tl.send(Direction::global_e(), tl.recv(Direction::global_w(), {1, count}, DType::f32));
}

void run_phases(Va tensor, const OneDirectionRing& config, Tl& tl) {
  const auto rank = static_cast<int>(tl.program_id(2) / sips_per_rank(config));
  if (tl.program_id(2) % sips_per_rank(config) != 0) return run_relay(config, tl);
  const int w = static_cast<int>(config.dims[0]), h = static_cast<int>(config.dims[1]);
  const Dimension first{rank % w, w, Direction::global_e(), Direction::global_w()};
  const Dimension second{rank / w, h, Direction::global_s(), Direction::global_n()};
  const Part all{tl.shard(tensor).va, static_cast<std::int64_t>(config.bytes / kItem)};
  const Part mine = all.part(first.position, first.size);
  Phases phases(tl, config.pieces);
  switch (config.op) {
    case CollectiveOp::all_gather:
      if (h > 1) phases.all_gather(second, mine);
      phases.all_gather(first, all);
      return;
    case CollectiveOp::reduce_scatter:
      phases.reduce_scatter(first, all);
      if (h > 1) phases.reduce_scatter(second, mine);
      return;
    default:
      break;
  }
  if (h == 1 || config.whole_per_dimension) {
    phases.all_reduce(first, all);
    if (h > 1) phases.all_reduce(second, all);
    return;
  }
  phases.reduce_scatter(first, all);
  phases.all_reduce(second, mine);
  phases.all_gather(first, all);
}

std::vector<std::string> sets_of(const OneDirectionRing& ring) {
  const char* topology = ring.shape == Shape2::torus             ? "torus_2d"
                         : ring.shape == Shape2::fabric          ? "switch"
                         : ring.shape == Shape2::fully_connected ? "fully_connected"
                                                                 : "ring_1d";
  std::vector<std::string> sets = {fmt::format("system.sips.count={}", ring.ranks() * sips_per_rank(ring)),
                                   fmt::format("system.sips.topology={}", topology)};
  if (ring.shape == Shape2::torus) {
    sets.push_back(fmt::format("system.sips.w={}", ring.dims[0]));
    sets.push_back(fmt::format("system.sips.h={}", ring.dims[1]));
  }
  // Through a switch a message passes two links, but two endpoints all the same.
  const double sides = two_links(ring) ? 4 : 2;
  sets.push_back(fmt::format("system.links.bandwidth={} B/s", ring.bytes_per_second));
  sets.push_back(fmt::format("system.links.propagation={:.0f} ps", ring.latency_ns * 1e3));
  sets.push_back(fmt::format("system.links.serdes={:.0f} ps", ring.endpoint_ns * 1e3 / sides));
  // Three passes of 4 B for each element: the lanes sum so many elements per second.
  const double elements = ring.memory_bytes_per_second / (3 * kItem);
  const double lanes = std::clamp(std::ceil(elements / 100e9), 1.0, 65'536.0);  // few and fast: no group is half empty
  sets.push_back(fmt::format("pe.math.lanes={:.0f}", lanes));
  sets.push_back(fmt::format("pe.math.clock={:.0f} Hz", std::clamp(elements / lanes, 1e6, 100e9)));
  return sets;
}

/// What rank `rank` starts with at element `i`: whole numbers, so that sums are exact in any order.
float start_value(unsigned rank, std::uint64_t i) {
  return static_cast<float>((i * 7 + rank * std::uint64_t{13}) % 61);
}

/// What must stand at element `i` of `rank` in the end; nothing if any value may.
struct Expected {
  bool judged = false;
  float value = 0;
};
Expected expected(const OneDirectionRing& ring, unsigned rank, std::uint64_t i) {
  const unsigned w = ring.dims[0], h = ring.dims[1];
  const std::uint64_t block = i / (ring.bytes / kItem / ring.ranks());  // blocks lie column by column
  const auto owner = static_cast<unsigned>(block % h * w + block / h);
  if (ring.op == CollectiveOp::all_gather) return {true, start_value(owner, i)};
  if (ring.op == CollectiveOp::reduce_scatter && owner != rank) return {};
  float sum = 0;
  for (unsigned r = 0; r < ring.ranks(); ++r) sum += start_value(r, i);
  return {true, sum};
}

}  // namespace

double OneDirectionRing::packets() const {
  const double p = ranks(), w = dims[0], h = dims[1], s = static_cast<double>(bytes);
  const double twice = op == CollectiveOp::all_reduce ? 2 : 1;
  const double sent = whole_per_dimension ? 2 * s * ((w - 1) / w + (h - 1) / h) : twice * s * (p - 1) / p;
  return p * sent / 256 * (two_links(*this) ? 2 : 1);
}

RingTime run_one_direction_ring(const OneDirectionRing& ring) {
  if (ring.bytes == 0 || ring.bytes % (kItem * ring.ranks() * ring.pieces) != 0) {
    throw std::invalid_argument(fmt::format("{} B do not divide into {} pieces of f32 for each of {} ranks", ring.bytes,
                                            ring.pieces, ring.ranks()));
  }
  const topology::Plan plan(topology::resolve("astra", sets_of(ring)).spec);
  RunOptions options;
  options.data = ring.data;
  options.fidelity = ring.fidelity;
  // Its process ends without taking the machine down.
  topology::Machine machine(plan, options, nullptr);
  Runtime runtime("host", machine.map(), machine.dispatcher(), options, nullptr);
  for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));

  Ps start = kNever, end = 0;
  RingTime time;
  runtime.init_process_group({"ring_allreduce", "", Scope::sip, {}});
  runtime.spawn(
      [&](Context& ctx) {
        const bool relay = static_cast<unsigned>(ctx.rank()) % sips_per_rank(ring) != 0;
        const unsigned rank = static_cast<unsigned>(ctx.rank()) / sips_per_rank(ring);
        const std::uint64_t count = ring.bytes / kItem;
        const Shape shape{1, static_cast<std::int64_t>(count)};
        std::vector<float> values(ring.data ? count : 0);
        for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = start_value(rank, i);
        std::vector<std::uint8_t> raw(values.size() * kItem);
        if (ring.data) std::memcpy(raw.data(), values.data(), raw.size());
        const Tensor tensor =
            ring.data ? ctx.from_bytes(raw, shape, DType::f32, {}, "ring") : ctx.empty(shape, DType::f32, {}, "ring");
        ctx.barrier();
        const Handle handle = ctx.launch("one_direction_ring", run_phases, tensor, ring);
        start = std::min(start, handle.kernel_start());
        end = std::max(end, handle.kernel_end());
        if (!ring.data || relay) return;
        const std::vector<std::uint8_t> found = tensor.bytes_to_host();
        std::memcpy(values.data(), found.data(), found.size());
        for (std::uint64_t i = 0; i < count; ++i) {
          const Expected right = expected(ring, rank, i);
          if (right.judged && values[i] != right.value) ++time.wrong;
        }
      },
      std::tuple<>(), static_cast<int>(machine.map().sips));
  time.ns = static_cast<double>(end - start) / 1e3;
  return time;
}

}  // namespace kernbench::validate
