#include "ccl/bounds/bounds.h"

#include <algorithm>
#include <map>
#include <set>

#include "ccl/bounds/bound_cuts.h"
#include "ccl/bounds/bound_latency.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

double ns_for(double bytes, double bytes_per_second) { return bytes / bytes_per_second * 1e9; }
double rate(Rate r) { return static_cast<double>(r.bytes_per_second()); }
constexpr double kPacketBytes = 256;   // of a full packet
constexpr unsigned kNetworksOfIo = 2;  // sets of channels of the messages that come down from an IO chiplet
bool at_io(const LinkBundle& link) { return link.a == kIoChiplet || link.b == kIoChiplet; }

/// Where one side of a collective lies on a rank's SIP.
struct TensorSide {
  std::map<std::uint16_t, double> by_cube;                                      ///< bytes, copies inside a cube once
  std::map<std::pair<std::uint16_t, std::uint16_t>, double> by_pe, read_by_pe;  ///< read: copies share it
  double distinct = 0, stored = 0;  ///< bytes of the SIP, copies once; all copies

  TensorSide(const std::vector<TensorShard>& shards, Scope scope) {
    const auto key = [&](const TensorShard& s) {  // what is a copy of what
      return std::tuple(scope == Scope::sip ? -1 : int{s.owner.cube}, scope == Scope::pe ? int{s.owner.pe} : -1,
                        s.offset_bytes);
    };
    std::map<decltype(key(shards.front())), int> copies;
    std::set<std::pair<std::uint16_t, std::uint64_t>> of_cube;
    for (const TensorShard& s : shards) ++copies[key(s)];
    for (const TensorShard& s : shards) {
      const auto bytes = static_cast<double>(s.nbytes);
      const std::pair pe(s.owner.cube, s.owner.pe);
      if (scope == Scope::pe || of_cube.insert({s.owner.cube, s.offset_bytes}).second) by_cube[s.owner.cube] += bytes;
      by_pe[pe] += bytes;
      read_by_pe[pe] += bytes / copies[key(s)];
      distinct += bytes / copies[key(s)];
      stored += bytes;
    }
  }
  static double at(const std::map<std::uint16_t, double>& by, std::uint16_t cube) {
    const auto found = by.find(cube);
    return found == by.end() ? 0 : found->second;
  }
};

/// Everything that the bounds look at.
struct Case {
  const MachineMap& map;
  const BoundInput& input;
  const OperationFacts& op;
  std::vector<TensorShard> in_shards, out_shards;
  TensorSide in, out;
  double ranks, per_sip, contributions, bytes;  ///< per_sip: contributions of a SIP

  Case(const MachineMap& map, const BoundInput& input, std::vector<TensorShard> in_shards,
       std::vector<TensorShard> out_shards)
      : map(map),
        input(input),
        op(facts_of(input.op)),
        in_shards(std::move(in_shards)),
        out_shards(std::move(out_shards)),
        in(this->in_shards, input.scope),
        out(this->out_shards, input.scope),
        ranks(static_cast<double>(input.sips.size())),
        per_sip(contributors()),
        contributions(ranks * per_sip),
        bytes(static_cast<double>(input.bytes)) {}

  double contributors() const {
    const TensorSide& side = in.by_pe.empty() ? out : in;
    if (input.scope == Scope::sip) return 1;
    return static_cast<double>(input.scope == Scope::cube ? side.by_cube.size() : side.by_pe.size());
  }
  bool has_in(std::size_t rank) const {
    return op.parties != Parties::from_root || static_cast<int>(rank) == input.root;
  }
  bool has_out(std::size_t rank) const {
    return op.parties != Parties::to_root || static_cast<int>(rank) == input.root;
  }
};

/// Bytes of one rank's side, copies once, if it is spread evenly over everything.
double whole(const MachineMap& map, const BoundInput& input, bool output) {
  const auto ranks = static_cast<double>(input.sips.size()), bytes = static_cast<double>(input.bytes);
  const double tiles = input.scope == Scope::sip    ? 1
                       : input.scope == Scope::cube ? map.cubes_per_sip()
                                                    : map.pes_per_sip();
  const OperationFacts& op = facts_of(input.op);
  if (output ? op.longer_in() : op.longer_out()) return bytes / ranks;
  const bool of_root = op.parties == (output ? Parties::to_root : Parties::from_root);
  return of_root || (output && op.whole_out()) ? bytes : bytes * tiles;
}

std::vector<TensorShard> shards_of(const MachineMap& map, const BoundInput& input, bool output) {
  const bool same = output && input.out.empty() && !input.shards.empty() && input.op == CollectiveOp::all_reduce;
  const std::vector<TensorShard>& given = output && !same ? input.out : input.shards;
  std::vector<TensorShard> shards;
  for (const TensorShard& shard : given) {
    if (shard.nbytes > 0) shards.push_back(shard);
  }
  if (!given.empty()) return shards;
  const auto pes = map.pes(input.sips.front());
  const auto each =
      static_cast<std::uint64_t>(std::max(whole(map, input, output) / static_cast<double>(pes.size()), 1.0));
  for (std::size_t i = 0; i < pes.size(); ++i) {
    TensorShard shard;
    shard.owner = pes[i];
    shard.offset_bytes = i * each;
    shard.nbytes = each;
    shard.rows = 1;
    shard.cols = static_cast<std::int64_t>(each);
    shard.col = static_cast<std::int64_t>(i * each);
    shards.push_back(shard);
  }
  return shards;
}

Case case_of(const MachineMap& map, const BoundInput& input) {
  return {map, input, shards_of(map, input, false), shards_of(map, input, true)};
}

/// By SIP of the group: capacity of the links between its cubes, or a cube and the IO chiplet, each as often as `times`
/// says.
template <class Times>
std::vector<double> cube_link_capacity(const Case& c, const Times& times) {
  std::vector<double> sum(c.map.sips);
  for (const LinkBundle& link : c.map.cube_links)
    sum[link.sip] += rate(link.capacity) * static_cast<double>(times(link));
  std::vector<double> members;
  for (const std::uint16_t sip : c.input.sips) members.push_back(sum[sip]);
  return members;
}

/// Between SIPs: cuts, and for all_to_all the way that all bytes have to go.
void add_sip_bounds(const Case& c, std::vector<Bound>& bounds) {
  if (c.op.sums_for_all()) {
    bounds.push_back({"sip_partition", "links between SIPs", partition_ns(c.map, c.input.sips, c.bytes)});
  } else {
    double ns = cut_ns(c.map, c.input, c.per_sip);
    if (c.op.exchanges()) {
      double capacity = 0;
      for (const LinkBundle& link : c.map.sip_links) capacity += 2 * rate(link.capacity);
      if (capacity > 0) ns = std::max(ns, ns_for(sip_link_bytes(c.map, c.input), capacity));
    }
    bounds.push_back({"sip_cut", "links between SIPs", ns});
  }
  // What enters or leaves a SIP passes its IO chiplet, which does not reduce. all_reduce: the mean over the SIPs.
  std::vector<Across> by_sip(c.map.sips);
  for (const LinkBundle& link : c.map.cube_links) {
    if (at_io(link)) by_sip[link.sip].add(link, kNetworksOfIo);
  }
  double worst = 0;
  for (std::size_t rank = 0; rank < c.input.sips.size(); ++rank) {
    const Across& ports = by_sip[c.input.sips[rank]];
    std::vector<bool> inside(c.input.sips.size());
    inside[rank] = true;
    const double crossing =
        c.op.sums_for_all() ? 2 * (c.ranks - 1) / c.ranks * c.bytes : crossing_bytes(c.input, c.per_sip, inside);
    if (ports.any()) worst = std::max(worst, ports.ns(crossing));
  }
  if (worst > 0) bounds.push_back({"io_ports", "IO chiplet's links to its cubes", worst});
}

/// What passes the links between SIPs cannot begin before the first of it is there, and its last byte has a way to go.
void add_passage(const Case& c, std::vector<Bound>& bounds) {
  const Bound links = largest(bounds);
  const double way = shortest_way_ns(c.map, c.input);
  if (links.ns <= 0 || way <= 0) return;
  Across one;  // the way is that of a packet, which is on its link for a time that counts once
  for (const LinkBundle& link : c.map.sip_links) {
    if (!one.any()) one.add(link, 1);
  }
  const double packet = one.any() ? one.ns(kPacketBytes) : 0;
  bounds.push_back({"sip_passage", "links between SIPs and the way there", way + std::max(links.ns - packet, 0.0)});
}

/// Every cube a part of its own, where every cube contributes.
void add_cube_partition(const Case& c, std::vector<Bound>& bounds) {
  const std::size_t cubes = c.in.by_cube.size();
  if (!c.op.sums_for_all() || c.input.scope == Scope::sip || cubes < 2) return;
  double capacity = 0;
  for (const double sip : cube_link_capacity(c, [&](const LinkBundle& link) {
         return at_io(link) ? 0 : c.in.by_cube.count(link.a) + c.in.by_cube.count(link.b);
       })) {
    capacity += sip;
  }
  const std::set<std::uint16_t> members(c.input.sips.begin(), c.input.sips.end());
  for (const LinkBundle& link : c.map.sip_links)
    capacity += static_cast<double>(members.count(link.a) + members.count(link.b)) * rate(link.capacity);
  const double parts = c.ranks * static_cast<double>(cubes);
  if (capacity > 0)
    bounds.push_back({"cube_partition", "links between cubes", ns_for(2 * (parts - 1) * c.bytes, capacity)});
}

/// Bytes that one cube must take or give, whichever is more.
double through_cube(const Case& c, std::uint16_t cube) {
  const double in = TensorSide::at(c.in.by_cube, cube), out = TensorSide::at(c.out.by_cube, cube);
  if (c.op.longer_out()) return std::max(out - in, in);
  if (c.op.longer_in()) return std::max(in - out, out);
  // On some rank the own block, which stays, lies elsewhere: the mean over ranks.
  if (c.op.exchanges()) return std::max(in, out) * (c.contributions - 1) / c.contributions;
  return std::max(in, out);
}

void add_cube_in(const Case& c, std::vector<Bound>& bounds) {
  std::set<std::uint16_t> cubes;
  for (const TensorSide* side : {&c.in, &c.out}) {
    for (const auto& entry : side->by_cube) cubes.insert(entry.first);
  }
  double worst = 0;
  for (const std::uint16_t cube : cubes) {
    const auto members =
        cube_link_capacity(c, [&](const LinkBundle& link) { return link.a == cube || link.b == cube ? 1 : 0; });
    const double capacity = *std::min_element(members.begin(), members.end());
    if (capacity > 0) worst = std::max(worst, ns_for(through_cube(c, cube), capacity));
  }
  bounds.push_back({"cube_in", "links into one cube", worst});
}

/// Ports: what a SIP holds enters its PEs, and what it gets leaves them, whoever works on it. Slices: every byte is
/// read once and every copy written.
void add_pe_bounds(const Case& c, std::vector<Bound>& bounds) {
  double port_ns = 0, hbm_ns = 0;
  for (std::size_t rank = 0; rank < c.input.sips.size(); ++rank) {
    const std::uint16_t sip = c.input.sips[rank];
    double ports = 0;
    for (const PeCoord pe : c.map.pes(sip)) ports += rate(c.map.rates(pe).port);
    const double through = std::max(c.has_in(rank) ? c.in.distinct : 0, c.has_out(rank) ? c.out.stored : 0);
    if (ports > 0) port_ns = std::max(port_ns, ns_for(through, ports));
    std::map<std::pair<std::uint16_t, std::uint16_t>, double> moved;
    if (c.has_in(rank)) moved = c.in.read_by_pe;
    if (c.has_out(rank)) {
      for (const auto& [pe, stored] : c.out.by_pe) {
        const auto own = c.in.by_pe.find(pe);
        const bool there = c.op.longer_out() && c.input.in_place && own != c.in.by_pe.end();
        moved[pe] += stored - (there ? std::min(stored, own->second) : 0);
      }
    }
    for (const auto& [pe, sum] : moved)
      hbm_ns = std::max(hbm_ns, ns_for(sum, rate(c.map.rates({sip, pe.first, pe.second}).hbm_slice)));
    if (c.map.odd_pes.empty() && !c.op.rooted()) break;  // all ranks alike
  }
  bounds.push_back({"pe_port", "ports of the PEs", port_ns});
  bounds.push_back({"hbm", "HBM slice of one PE", hbm_ns});
}

}  // namespace

double sip_link_bytes(const MachineMap& map, const BoundInput& input) {
  const Case c = case_of(map, input);
  const auto others = c.ranks - 1;
  if (c.op.sums_for_all()) return 2 * others * c.bytes;
  if (c.op.combines() || c.op.alike) return others * c.bytes;
  double sum = 0;
  const auto distances = sip_distances(map, input.sips);
  const double bytes = c.bytes * (c.op.rooted() ? 1 : c.per_sip) / (c.op.counts_all() ? c.ranks : 1);
  for (std::size_t from = 0; from < input.sips.size(); ++from) {
    for (std::size_t to = 0; to < input.sips.size(); ++to)
      sum += goes(input, from, to) ? bytes * std::max(distances[from][to], 0) : 0;
  }
  return sum;
}

std::vector<Bound> collective_bounds(const MachineMap& map, const BoundInput& input) {
  const Case c = case_of(map, input);
  if (c.contributions < 2 || (c.in_shards.empty() && c.out_shards.empty())) return {{"none", "nothing to combine", 0}};
  std::vector<Bound> bounds;
  if (input.sips.size() > 1) {
    add_sip_bounds(c, bounds);
    add_passage(c, bounds);
  }
  add_cube_partition(c, bounds);
  add_cube_in(c, bounds);
  add_pe_bounds(c, bounds);
  bounds.push_back({"latency", "longest way between contributors", latency_ns(map, input, c.in_shards, c.out_shards)});
  return bounds;
}

Bound largest(const std::vector<Bound>& bounds) {
  return *std::max_element(bounds.begin(), bounds.end(), [](const Bound& a, const Bound& b) { return a.ns < b.ns; });
}

Bound named(const std::vector<Bound>& bounds, const std::string& name) {
  for (const Bound& bound : bounds) {
    if (bound.name == name) return bound;
  }
  return {name, "", 0};
}

}  // namespace kernbench::ccl
