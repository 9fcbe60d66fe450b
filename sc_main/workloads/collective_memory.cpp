#include "sc_main/workloads/collective_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/host_memory.h"
#include "runtime/placement.h"

namespace kernbench {
namespace {
/// What a group's ranks hold of the largest size; all of them alike, where they have it.
struct Held {
  Held(const CollectiveCase& c, const PlacementUnits& units, std::int64_t block)
      : layout(c, units, block),
        item(static_cast<int>(size_of(c.dtype))),
        in(place_shards(c.in_policy, layout.in_shape(), item, units, 0)) {
    if (!c.in_place) out = place_shards(c.out_policy, layout.out_shape(), item, units, 0);
  }
  static std::uint64_t bytes(const std::vector<ShardSpec>& shards) {
    std::uint64_t sum = 0;
    for (const ShardSpec& shard : shards) sum += shard.nbytes;
    return sum;
  }

  CollectiveLayout layout;
  int item;
  std::vector<ShardSpec> in, out;  ///< `out` of its own only
};

bool fits_device(Session& session, const std::vector<std::vector<int>>& groups, const std::vector<Held>& held) {
  std::map<std::tuple<int, int, int>, std::uint64_t> bytes;  // by rank, cube and PE
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      const auto member = static_cast<int>(i);
      const auto add = [&](const std::vector<ShardSpec>& shards) {
        for (const ShardSpec& shard : shards) bytes[{groups[g][i], shard.cube, shard.pe}] += shard.nbytes;
      };
      if (held[g].layout.has_in(member)) add(held[g].in);
      if (held[g].layout.has_out(member)) add(held[g].out);
    }
  }
  return std::all_of(bytes.begin(), bytes.end(), [&](const auto& entry) {
    const auto [rank, cube, pe] = entry.first;
    const PeCoord alike{0, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)};
    return entry.second <= session.runtime().free_bytes(alike);
  });
}
}  // namespace

void check_host_memory(Session& session, const std::string& name, const CollectiveRun& request,
                       const PlacementUnits& units) {
  if (session.options().only_checked || !makes_copies(session) || request.sizes.empty()) return;
  const std::uint64_t largest = *std::max_element(request.sizes.begin(), request.sizes.end());
  const bool data = session.options().run.data;
  std::uint64_t host = 0;
  std::set<int> all;  // one that is in several groups counts once
  std::vector<Held> held;
  for (const std::vector<int>& ranks : request.groups) {
    CollectiveCase c = request.what;
    c.ranks = static_cast<int>(ranks.size());
    const Held& here = held.emplace_back(c, units, request.block(c.ranks, units, largest));
    const std::uint64_t in = Held::bytes(here.in), out = c.in_place ? in : Held::bytes(here.out);
    const auto logical =
        static_cast<std::uint64_t>(here.layout.in_shape().count()) * static_cast<std::uint64_t>(here.item);
    all.insert(ranks.begin(), ranks.end());
    for (int member = 0; member < c.ranks; ++member) {
      const bool has_in = here.layout.has_in(member), has_out = here.layout.has_out(member);
      if (has_in) host += logical + (data ? in : 0);
      if (has_out && !c.in_place && data) host += out;
      if (has_out && data && request.check) host += out;  // every copy is compared
    }
  }
  if (host <= host_memory_left().bytes || !fits_device(session, request.groups, held)) return;
  require_host_memory(host, fmt::format("{} of {} B on {} ranks", name, largest, all.size()),
                      "--data off needs none of it, fewer ranks (--group), a smaller -e or -c 0 less");
}

}  // namespace kernbench
