#include "ccl/bounds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace kernbench::ccl {
namespace {

double ns_for(double bytes, double bytes_per_second) { return bytes / bytes_per_second * 1e9; }
double rate(Rate r) { return static_cast<double>(r.bytes_per_second()); }

/// Capacity into one side of a set of links, by part: `part_of` gives a part for each end or -1 for a node that belongs
/// to none (it forwards, but does not reduce).
double capacity_into_parts(const std::vector<LinkBundle>& links, const std::function<int(std::uint16_t)>& part_of) {
  double sum = 0;
  for (const LinkBundle& link : links) {
    const int a = part_of(link.a), b = part_of(link.b);
    if (a == b) continue;
    sum += rate(link.capacity) * ((a >= 0 ? 1 : 0) + (b >= 0 ? 1 : 0));
  }
  return sum;
}

/// Calls f(part of each member, number of parts) for every partition of `n` members into at least two parts.
void for_each_partition(int n, const std::function<void(const std::vector<int>&, int)>& f) {
  std::vector<int> part(static_cast<std::size_t>(n), 0);
  const std::function<void(int, int)> place = [&](int member, int parts) {
    if (member == n) {
      if (parts > 1) f(part, parts);
      return;
    }
    for (int p = 0; p <= parts; ++p) {
      part[static_cast<std::size_t>(member)] = p;
      place(member + 1, std::max(parts, p + 1));
    }
  };
  place(0, 0);
}

/// Largest of 2 (k-1) S / (capacity into the parts) over partitions of the SIPs into k parts. All of them up to 8 SIPs;
/// beyond, every SIP on its own and every single SIP against the rest.
double sip_partition_ns(const MachineMap& map, const BoundInput& input) {
  const int ranks = static_cast<int>(input.sips.size());
  double worst = 0;
  const auto try_partition = [&](const std::vector<int>& part, int parts) {
    const double capacity = capacity_into_parts(map.sip_links, [&](std::uint16_t sip) {
      const auto found = std::find(input.sips.begin(), input.sips.end(), sip);
      return found == input.sips.end() ? -1 : part[static_cast<std::size_t>(found - input.sips.begin())];
    });
    if (capacity > 0) worst = std::max(worst, ns_for(2.0 * (parts - 1) * static_cast<double>(input.bytes), capacity));
  };
  std::vector<int> part(static_cast<std::size_t>(ranks));
  // A switch joins its ports only: a part of several SIPs has no links inside, so larger parts prove nothing.
  const bool direct = map.sip_topology != SipTopology::switch_star;
  if (ranks <= 8 && direct) {
    for_each_partition(ranks, try_partition);
    return worst;
  }
  std::iota(part.begin(), part.end(), 0);
  try_partition(part, ranks);
  for (int one = 0; one < ranks && direct; ++one) {
    std::fill(part.begin(), part.end(), 0);
    part[static_cast<std::size_t>(one)] = 1;
    try_partition(part, 2);
  }
  return worst;
}

bool at_io(const LinkBundle& link) { return link.a == kIoChiplet || link.b == kIoChiplet; }

/// By SIP of `sips`: capacity of the links between cubes, or a cube and the IO chiplet, each as often as `times` says.
std::vector<double> cube_link_capacity(const MachineMap& map, const std::vector<std::uint16_t>& sips,
                                       const std::function<std::size_t(const LinkBundle&)>& times) {
  std::vector<double> sum(map.sips);
  for (const LinkBundle& link : map.cube_links) sum[link.sip] += rate(link.capacity) * static_cast<double>(times(link));
  std::vector<double> members;
  for (const std::uint16_t sip : sips) members.push_back(sum[sip]);
  return members;
}

/// Between an IO chiplet and its cubes, of the SIP that has least; 0 if no such links are known.
double io_capacity(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  const auto members = cube_link_capacity(map, sips, at_io);
  return *std::min_element(members.begin(), members.end());
}

/// Into a cube, the IO chiplet's links included, of the SIP that has least.
double capacity_into_cube(const MachineMap& map, const std::vector<std::uint16_t>& sips, std::uint16_t cube) {
  const auto members =
      cube_link_capacity(map, sips, [&](const LinkBundle& link) { return link.a == cube || link.b == cube; });
  return *std::min_element(members.begin(), members.end());
}

std::vector<TensorShard> shards_of(const MachineMap& map, const BoundInput& input) {
  std::vector<TensorShard> shards;
  for (const TensorShard& shard : input.shards) {
    if (shard.nbytes > 0) shards.push_back(shard);
  }
  if (!shards.empty() || !input.shards.empty()) return shards;
  const auto pes = map.pes(input.sips.front());
  const std::uint64_t tiles = input.scope == Scope::cube ? map.cubes_per_sip() : 1;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    const std::uint64_t each = std::max<std::uint64_t>(input.bytes * tiles / pes.size(), 1);
    shards.push_back({pes[i], i * each, each, 1, static_cast<std::int64_t>(each)});
  }
  return shards;
}

std::uint64_t round_trip(const MachineMap& map, PeCoord pe) {
  constexpr std::uint32_t kElement = 8;  // a minimal message: one flit
  const NodeId self = map.pe(pe), hbm = map.hbm_port(pe);
  return map.packet_latency(self, hbm, 0) + map.packet_latency(hbm, self, kElement);
}

/// Longest shortest way between two PEs that must combine what they hold, one load and one store included. Only a
/// sample of pairs is looked at on large machines: the longest of them is a bound all the same.
double latency_ns(const MachineMap& map, const BoundInput& input, const std::vector<TensorShard>& shards) {
  constexpr std::size_t kMaxPlaces = 16, kMaxSips = 32;
  constexpr std::uint32_t kElement = 8;
  if (!map.packet_latency || shards.empty()) return 0;
  std::map<std::uint64_t, std::vector<PeCoord>> copies;  // of one distinct part; with scope cube every tile is one
  for (const TensorShard& shard : shards) {
    const std::uint64_t key = input.scope == Scope::cube ? shard.owner.pe : shard.offset_bytes;
    copies[key].push_back(shard.owner);
  }
  const std::vector<PeCoord>& places = copies.begin()->second;
  const std::size_t stride = std::max<std::size_t>(1, places.size() / kMaxPlaces);
  const std::size_t sip_stride = std::max<std::size_t>(1, input.sips.size() / kMaxSips);
  Ps longest = 0;
  for (std::size_t i = 0; i < input.sips.size(); i += sip_stride) {
    for (std::size_t j = 0; j < input.sips.size(); j += sip_stride) {
      if (i == j && input.scope == Scope::sip) continue;
      for (std::size_t to = 0; to < places.size(); to += stride) {
        PeCoord target = places[to];
        target.sip = input.sips[j];
        Ps best = kNever, farthest = 0;  // of the copies the nearest supplies; of contributions the farthest counts
        for (std::size_t from = 0; from < places.size(); from += stride) {
          PeCoord source = places[from];
          source.sip = input.sips[i];
          const Ps way = source == target ? 0 : map.packet_latency(map.pe(source), map.pe(target), kElement);
          best = std::min(best, way);
          farthest = std::max(farthest, way);
        }
        longest = std::max(longest, input.scope == Scope::cube ? farthest : best);
      }
    }
  }
  return static_cast<double>(longest + 2 * round_trip(map, places.front())) / 1e3;
}

}  // namespace

std::vector<Bound> all_reduce_bounds(const MachineMap& map, const BoundInput& input) {
  std::vector<Bound> bounds;
  const auto shards = shards_of(map, input);
  std::set<std::uint16_t> cubes;
  std::map<std::uint16_t, std::map<std::uint64_t, std::uint64_t>> tiles;  // distinct bytes of each cube, by offset
  std::map<std::pair<int, std::uint64_t>, int> copies;
  const auto copy_of = [&](const TensorShard& shard) {
    return std::pair(input.scope == Scope::cube ? int{shard.owner.cube} : -1, shard.offset_bytes);
  };
  for (const TensorShard& shard : shards) {
    cubes.insert(shard.owner.cube);
    tiles[shard.owner.cube][shard.offset_bytes] = shard.nbytes;
    ++copies[copy_of(shard)];
  }
  double hbm_ns = 0, port_ns = 0;
  for (const TensorShard& shard : shards) {
    const double bytes = static_cast<double>(shard.nbytes);
    const double moved = bytes * (1 + 1.0 / copies[copy_of(shard)]);  // every copy is written, one of them is read
    for (const std::uint16_t sip : input.sips) {
      const PeRates rates = map.rates({sip, shard.owner.cube, shard.owner.pe});
      hbm_ns = std::max(hbm_ns, ns_for(moved, rate(rates.hbm_slice)));
      port_ns = std::max(port_ns, ns_for(bytes, rate(rates.port)));
    }
  }
  const double sips = static_cast<double>(input.sips.size());
  const double contributions = sips * (input.scope == Scope::cube ? static_cast<double>(cubes.size()) : 1.0);
  const double bytes = static_cast<double>(input.bytes);
  if (contributions < 2 || shards.empty()) return {{"none", "nothing to combine", 0}};

  if (input.sips.size() > 1) {
    bounds.push_back({"sip_partition", "links between SIPs", sip_partition_ns(map, input)});
    if (const double ports = io_capacity(map, input.sips); ports > 0) {
      bounds.push_back({"io_ports", "IO chiplet's links to its cubes", ns_for(2 * (sips - 1) / sips * bytes, ports)});
    }
  }
  if (input.scope == Scope::cube && cubes.size() > 1) {
    double capacity = 0;
    for (const double sip : cube_link_capacity(map, input.sips, [&](const LinkBundle& link) {
           return at_io(link) ? 0 : cubes.count(link.a) + cubes.count(link.b);
         })) {
      capacity += sip;
    }
    for (const LinkBundle& link : map.sip_links) capacity += 2 * rate(link.capacity);
    if (capacity > 0) {
      bounds.push_back({"cube_partition", "links between cubes", ns_for(2 * (contributions - 1) * bytes, capacity)});
    }
  }
  double cube_in = 0;
  for (const auto& [cube, parts] : tiles) {
    double tile = 0;
    for (const auto& [offset, nbytes] : parts) tile += static_cast<double>(nbytes);
    if (const double in = capacity_into_cube(map, input.sips, cube); in > 0)
      cube_in = std::max(cube_in, ns_for(tile, in));
  }
  bounds.push_back({"cube_in", "links into one cube", cube_in});
  bounds.push_back({"pe_port", "port of one PE", port_ns});
  bounds.push_back({"hbm", "HBM slice of one PE", hbm_ns});
  bounds.push_back({"latency", "longest way between contributors", latency_ns(map, input, shards)});
  return bounds;
}

Bound largest(const std::vector<Bound>& bounds) {
  return *std::max_element(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) { return a.ns < b.ns; });
}

}  // namespace kernbench::ccl
