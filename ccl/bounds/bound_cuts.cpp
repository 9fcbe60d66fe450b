#include "ccl/bounds/bound_cuts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

#include "ccl/schedule/level_cost.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

/// By SIP of the machine (and switch): its place in the group, or -1.
std::vector<int> ranks_of(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  std::size_t nodes = map.sips;
  for (const LinkBundle& link : map.sip_links) nodes = std::max<std::size_t>({nodes, link.a + 1U, link.b + 1U});
  std::vector<int> rank(nodes, -1);
  for (std::size_t r = 0; r < sips.size(); ++r) rank[sips[r]] = static_cast<int>(r);
  return rank;
}

/// What enters the parts, together: `part` by rank. What belongs to no part forwards, but does not reduce.
Across into_parts(const MachineMap& map, const std::vector<int>& rank, const std::vector<int>& part) {
  Across sum;
  for (const LinkBundle& link : map.sip_links) {
    const int ra = rank[link.a], rb = rank[link.b];
    const int a = ra < 0 ? -1 : part[static_cast<std::size_t>(ra)],
              b = rb < 0 ? -1 : part[static_cast<std::size_t>(rb)];
    if (a != b) sum.add(link, networks_between_sips(map), (a >= 0 ? 1 : 0) + (b >= 0 ? 1 : 0));
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

/// Calls f(inside) for the sets of ranks that cut_ns looks at.
void for_each_set(const MachineMap& map, const std::vector<std::uint16_t>& sips,
                  const std::function<void(const std::vector<bool>&)>& f) {
  const std::size_t n = sips.size();
  std::vector<bool> inside(n);
  if (n <= 10) {
    for (std::size_t set = 1; set + 1 < std::size_t{1} << n; ++set) {
      for (std::size_t r = 0; r < n; ++r) inside[r] = (set >> r & 1) != 0;
      f(inside);
    }
    return;
  }
  const auto range = [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < n; ++r) inside[r] = r >= begin && r < end;
    if (end - begin < n) f(inside);
  };
  for (std::size_t begin = 0; begin < n; ++begin) {
    range(begin, begin + 1);
    if (begin > 0 && n > 64) continue;
    for (std::size_t end = begin + 2; end <= n; ++end) range(begin, end);
  }
  for (std::size_t begin = 0; begin < map.sip_w; ++begin) {
    for (std::size_t end = begin + 1; end <= map.sip_w; ++end) {
      for (std::size_t r = 0; r < n; ++r) inside[r] = sips[r] % map.sip_w >= begin && sips[r] % map.sip_w < end;
      if (end - begin < map.sip_w) f(inside);
    }
  }
}

}  // namespace

void Across::add(const LinkBundle& link, unsigned networks, double times) {
  const auto capacity = static_cast<double>(link.capacity.bytes_per_second());
  const double lasting = lasting_rate(link, networks);
  capacity_ += times * capacity;
  lasting_ += times * lasting;
  if (lasting < capacity) burst_ += times * window_bytes(link) * networks;
}

double Across::ns(double bytes) const { return std::max(bytes / capacity_, (bytes - burst_) / lasting_) * 1e9; }

unsigned networks_between_sips(const MachineMap& map) { return map.sip_topology == SipTopology::switch_star ? 1 : 2; }

double partition_ns(const MachineMap& map, const std::vector<std::uint16_t>& sips, double bytes) {
  const std::vector<int> rank = ranks_of(map, sips);
  const int ranks = static_cast<int>(sips.size());
  double worst = 0;
  const auto try_partition = [&](const std::vector<int>& part, int parts) {
    const Across links = into_parts(map, rank, part);
    if (links.any()) worst = std::max(worst, links.ns(2.0 * (parts - 1) * bytes));
  };
  // A switch joins its ports only: a part of several SIPs has no links inside, so larger parts prove nothing.
  const bool direct = map.sip_topology != SipTopology::switch_star;
  if (ranks <= 8 && direct) {
    for_each_partition(ranks, try_partition);
    return worst;
  }
  std::vector<int> part(static_cast<std::size_t>(ranks));
  std::iota(part.begin(), part.end(), 0);
  try_partition(part, ranks);
  for (int one = 0; one < ranks && direct; ++one) {
    std::fill(part.begin(), part.end(), 0);
    part[static_cast<std::size_t>(one)] = 1;
    try_partition(part, 2);
  }
  return worst;
}

double crossing_bytes(const BoundInput& input, double contributions_per_sip, const std::vector<bool>& inside) {
  const auto ranks = static_cast<double>(inside.size());
  const auto in = static_cast<double>(std::count(inside.begin(), inside.end(), true)), rest = ranks - in;
  const auto bytes = static_cast<double>(input.bytes);
  const OperationFacts& op = facts_of(input.op);
  // What is combined or copied crosses once; of blocks those that one side has, and the other one gives or gets.
  if (op.combines() || op.alike) return op.counts_all() ? std::max(rest, in) / ranks * bytes : bytes;
  if (op.rooted()) return (inside[static_cast<std::size_t>(input.root)] ? rest : in) / ranks * bytes;
  if (op.exchanges()) return in * rest / ranks * bytes * contributions_per_sip;
  double enter = 0, leave = 0;
  for (std::size_t r = 0; r < inside.size(); ++r) {
    const int to = partner_of(input, r);
    if (to < 0 || inside[static_cast<std::size_t>(to)] == inside[r]) continue;
    (inside[r] ? leave : enter) += bytes * contributions_per_sip;
  }
  return std::max(enter, leave);
}

int partner_of(const BoundInput& input, std::size_t rank) {
  return input.to.empty() ? static_cast<int>((rank + 1) % input.sips.size()) : input.to[rank];
}

bool goes(const BoundInput& input, std::size_t i, std::size_t j) {
  const OperationFacts& op = facts_of(input.op);
  const int from = static_cast<int>(i), to = static_cast<int>(j);
  if (op.parties == Parties::pairs) return partner_of(input, i) == to;
  if (op.parties == Parties::to_root && to != input.root) return false;
  return op.from({to, from, static_cast<int>(input.sips.size()), input.root}).has(from);
}

double cut_ns(const MachineMap& map, const BoundInput& input, double contributions_per_sip) {
  const std::vector<int> rank = ranks_of(map, input.sips);
  double worst = 0;
  for_each_set(map, input.sips, [&](const std::vector<bool>& inside) {
    Across links;  // into the set, and out of it
    for (const LinkBundle& link : map.sip_links) {
      const auto holds = [&](int r) { return r >= 0 && inside[static_cast<std::size_t>(r)]; };
      if (holds(rank[link.a]) != holds(rank[link.b])) links.add(link, networks_between_sips(map));
    }
    if (links.any()) worst = std::max(worst, links.ns(crossing_bytes(input, contributions_per_sip, inside)));
  });
  return worst;
}

std::vector<std::vector<int>> sip_distances(const MachineMap& map, const std::vector<std::uint16_t>& sips) {
  std::size_t nodes = map.sips;
  for (const LinkBundle& link : map.sip_links) nodes = std::max<std::size_t>({nodes, link.a + 1U, link.b + 1U});
  std::vector<std::vector<std::uint16_t>> next(nodes);
  for (const LinkBundle& link : map.sip_links) {
    next[link.a].push_back(link.b);
    next[link.b].push_back(link.a);
  }
  std::vector<std::vector<int>> distances;
  for (const std::uint16_t from : sips) {
    std::vector<int> at(nodes, -1);
    std::queue<std::uint16_t> open;
    at[from] = 0;
    open.push(from);
    while (!open.empty()) {
      const std::uint16_t here = open.front();
      open.pop();
      for (const std::uint16_t there : next[here]) {
        if (at[there] >= 0) continue;
        at[there] = at[here] + 1;
        open.push(there);
      }
    }
    std::vector<int> row;
    row.reserve(sips.size());
    for (const std::uint16_t to : sips) row.push_back(at[to]);
    distances.push_back(std::move(row));
  }
  return distances;
}

}  // namespace kernbench::ccl
