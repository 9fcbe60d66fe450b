#include "ccl/bounds/bound_latency.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ccl/bounds/bound_cuts.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

constexpr std::size_t kMaxPlaces = 16, kMaxSips = 32;

/// Bytes [begin, end) of a tile.
struct Range {
  double begin = 0, end = 0;
};

/// Of a tensor of one row its columns; of another one the place in its packed range, which is the same on all sides
/// that are placed alike.
Range range_of(const TensorShard& shard) {
  const auto bytes = static_cast<double>(shard.nbytes), packed = static_cast<double>(shard.offset_bytes);
  if (shard.rows != 1 || shard.cols == 0 || shard.row != 0) return {packed, packed + bytes};
  const double begin = bytes / static_cast<double>(shard.cols) * static_cast<double>(shard.col);
  return {begin, begin + bytes};
}

/// Which bytes of rank i's input rank j needs for bytes `out` of its output; nothing if none.
std::optional<Range> needed(const BoundInput& input, std::size_t i, std::size_t j, const Range& out, double block) {
  const bool picks = facts_of(input.op).out == Blocks::each;  // of the output, what comes from i
  const bool placed = facts_of(input.op).in == Blocks::each;  // in the input, what goes to j
  Range part = out;
  if (picks) {
    const double begin = block * static_cast<double>(i);
    part = {std::max(out.begin, begin) - begin, std::min(out.end, begin + block) - begin};
    if (part.end <= part.begin) return {};
  }
  const double shift = placed ? block * static_cast<double>(j) : 0;
  return Range{part.begin + shift, part.end + shift};
}

std::vector<TensorShard> sample(const std::vector<TensorShard>& shards) {
  const std::size_t stride = std::max<std::size_t>(1, shards.size() / kMaxPlaces);
  std::vector<TensorShard> some;
  for (std::size_t k = 0; k < shards.size(); k += stride) some.push_back(shards[k]);
  return some;
}

class LatencyWays {
 public:
  LatencyWays(const MachineMap& map, const BoundInput& input, const std::vector<TensorShard>& in,
              const std::vector<TensorShard>& out)
      : map_(map), input_(input), op_(facts_of(input.op)), in_(in), targets_(sample(out)) {
    for (const TensorShard& shard : in) in_bytes_ = std::max(in_bytes_, range_of(shard).end);
    for (const TensorShard& shard : out) out_bytes_ = std::max(out_bytes_, range_of(shard).end);
    sources_ = sample(in);
  }

  Ps between(std::size_t i, std::size_t j) const {
    return input_.scope == Scope::sip ? of_elements(i, j) : of_tiles(i, j);
  }
  /// Within SIP i: where every tile gives to every tile, or to or from the first one.
  Ps within(std::size_t i) const {
    if (op_.whole_in() || op_.whole_out() || op_.parties == Parties::pairs) return 0;
    if (!op_.rooted()) return of_tiles(i, i);
    return i == static_cast<std::size_t>(input_.root) ? of_first_tile(i) : 0;
  }

 private:
  /// 0 where a machine lacks one of them: no element comes from there.
  Ps way(PeCoord from, PeCoord to) const {
    if (!map_.has(from) || !map_.has(to)) return 0;
    return from == to ? 0 : map_.packet_latency(map_.pe(from), map_.pe(to), MachineMap::kLeastPacket);
  }
  static PeCoord on(std::uint16_t sip, PeCoord pe) { return {sip, pe.cube, pe.pe}; }

  /// Of the copies the nearest one supplies.
  Ps of_elements(std::size_t i, std::size_t j) const {
    const double block =
        op_.exchanges() ? in_bytes_ / static_cast<double>(input_.sips.size()) : std::min(in_bytes_, out_bytes_);
    Ps longest = 0;
    for (const TensorShard& target : targets_) {
      const auto part = needed(input_, i, j, range_of(target), block);
      if (!part) continue;
      Ps best = kNever;
      std::size_t looked_at = 0;
      for (const TensorShard& source : in_) {
        const Range has = range_of(source);
        if (has.end <= part->begin || has.begin >= part->end) continue;
        best = std::min(best, way(on(input_.sips[i], source.owner), on(input_.sips[j], target.owner)));
        if (++looked_at == kMaxPlaces) break;
      }
      if (best != kNever) longest = std::max(longest, best);
    }
    return longest;
  }

  /// Every tile counts, so the farthest does.
  Ps of_tiles(std::size_t i, std::size_t j) const {
    Ps longest = 0;
    for (const TensorShard& target : targets_) {
      for (const TensorShard& source : sources_) {
        if (input_.scope == Scope::cube && source.owner.pe != target.owner.pe) continue;
        longest = std::max(longest, way(on(input_.sips[i], source.owner), on(input_.sips[j], target.owner)));
      }
    }
    return longest;
  }

  Ps of_first_tile(std::size_t i) const {
    const std::uint16_t sip = input_.sips[i];
    Ps longest = 0;
    for (const TensorShard& other : sources_) {
      PeCoord first = in_.front().owner;
      if (input_.scope == Scope::cube) first.pe = other.owner.pe;
      const PeCoord a = on(sip, other.owner), b = on(sip, first);
      longest = std::max(longest, op_.parties == Parties::to_root ? way(a, b) : way(b, a));
    }
    return longest;
  }

  const MachineMap& map_;
  const BoundInput& input_;
  const OperationFacts& op_;
  const std::vector<TensorShard>& in_;
  const std::vector<TensorShard> targets_;
  std::vector<TensorShard> sources_;
  double in_bytes_ = 0, out_bytes_ = 0;
};

/// One access of a PE to its own slice. 0 for a PE that is missing.
Ps access(const MachineMap& map, PeCoord pe) {
  if (!map.has(pe)) return 0;
  const NodeId self = map.pe(pe), hbm = map.hbm_port(pe);
  return map.packet_latency(self, hbm, 0) + map.packet_latency(hbm, self, MachineMap::kLeastPacket);
}

/// The two SIPs of the group with the fewest links between them.
std::pair<std::uint16_t, std::uint16_t> nearest_sips(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  const auto distances = sip_distances(map, sips);
  std::pair<std::uint16_t, std::uint16_t> nearest{sips[0], sips[1]};
  int fewest = distances[0][1];
  for (std::size_t i = 0; i < sips.size(); ++i) {
    for (std::size_t j = 0; j < sips.size(); ++j) {
      if (i == j || distances[i][j] < 0 || (fewest >= 0 && distances[i][j] >= fewest)) continue;
      fewest = distances[i][j];
      nearest = {sips[i], sips[j]};
    }
  }
  return nearest;
}

}  // namespace

double shortest_way_ns(const MachineMap& map, const BoundInput& input) {
  const bool missing = std::find(map.pe_nodes.begin(), map.pe_nodes.end(), kNoNode) != map.pe_nodes.end();
  if (!map.packet_latency || input.sips.size() < 2 || !map.odd_pes.empty() || missing) return 0;
  const auto [from, to] = nearest_sips(map, input.sips);
  // A way is one to the link and one from it. Each is looked for by itself; what is rounded to edges of clocks may
  // differ between pairs.   assumed: by less than a few cycles
  constexpr Ps kRounding = 2'000;
  const std::vector<PeCoord> sources = map.pes(from), targets = map.pes(to);
  const auto way = [&](PeCoord a, PeCoord b) {
    return map.packet_latency(map.pe(a), map.pe(b), MachineMap::kLeastPacket);
  };
  const auto nearest = [](const std::vector<PeCoord>& pes, const auto& distance) {
    return *std::min_element(pes.begin(), pes.end(), [&](PeCoord a, PeCoord b) { return distance(a) < distance(b); });
  };
  const PeCoord target = nearest(targets, [&](PeCoord pe) { return way(sources.front(), pe); });
  const PeCoord source = nearest(sources, [&](PeCoord pe) { return way(pe, target); });
  const PeCoord own = nearest(sources, [&](PeCoord pe) { return access(map, pe); });
  const Ps shortest = way(source, target) + 2 * access(map, own);
  return static_cast<double>(shortest - std::min(shortest, kRounding)) / 1e3;
}

double latency_ns(const MachineMap& map, const BoundInput& input, const std::vector<TensorShard>& in,
                  const std::vector<TensorShard>& out) {
  if (!map.packet_latency || in.empty() || out.empty()) return 0;
  const LatencyWays ways(map, input, in, out);
  // A transfer has one partner for each rank; of other pairs some are enough.
  const bool pairs = facts_of(input.op).parties == Parties::pairs;
  const std::size_t stride = pairs ? 1 : std::max<std::size_t>(1, input.sips.size() / kMaxSips);
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < input.sips.size(); rank += stride) ranks.push_back(rank);
  ranks.push_back(static_cast<std::size_t>(input.root));
  Ps longest = 0;
  for (const std::size_t i : ranks) {
    if (input.scope != Scope::sip) longest = std::max(longest, ways.within(i));
    for (const std::size_t j : ranks) {
      if (i != j && goes(input, i, j)) longest = std::max(longest, ways.between(i, j));
    }
  }
  const PeCoord first = in.front().owner, last = out.front().owner;
  return static_cast<double>(longest + access(map, first) + access(map, last)) / 1e3;
}

}  // namespace kernbench::ccl
