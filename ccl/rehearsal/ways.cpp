#include "ccl/rehearsal/ways.h"

#include <algorithm>
#include <cmath>

#include "ccl/grid.h"
#include "ccl/level_cost.h"
#include "ccl/schedule/machine.h"

namespace kernbench::ccl {
namespace {

constexpr std::uint32_t kMinimal = 64;  // bytes of a message whose size does not count: one flit

double per_second(Rate rate) { return static_cast<double>(rate.bytes_per_second()); }

std::int32_t kind_of(SipTopology topology) {
  switch (topology) {
    case SipTopology::torus_2d:
      return kTorus2d;
    case SipTopology::mesh_2d_no_wrap:
      return kMesh2d;
    case SipTopology::switch_star:
      return kSwitch;
    case SipTopology::fully_connected:
      return kFullyConnected;
    default:
      return kRing1d;
  }
}

}  // namespace

double Passage::with_credits(double head, double bytes) {
  const double needs = std::min(packets_of(bytes), packets);
  while (!sent_.empty() && under_way_ + needs > packets) {
    head = std::max(head, sent_.front().time + round_trip);
    under_way_ -= sent_.front().packets;
    sent_.pop_front();
  }
  sent_.push_back({head, needs});
  under_way_ += needs;
  return head;
}

WayBook::WayBook(const MachineMap& map) : map_(map) {
  request_.kind = kind_of(map.sip_topology);
  request_.sip_w = map.sip_w;
  request_.sip_h = map.sip_h;
  request_.ranks = map.sips;
  describe_machine(map, request_);
  for (const LinkBundle& link : map.sip_links) {
    for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      Passage& both = bundles_[{kSipLink, a, b, kWhole}].whole;
      both.least = seconds(map.io_cycle) / link.links;
      both.bytes_per_second += per_second(link.capacity);
      both.packets += link.packets;
      both.round_trip = 2 * seconds(link.latency);
    }
  }
  const std::int64_t cubes = map.cubes_per_sip();
  const auto add = [&](Kind kind, std::int64_t from, std::int64_t to, const LinkBundle& link) {
    Bundle& bundle = bundles_[{kind, from, to, kWhole}];
    bundle.whole.bytes_per_second += per_second(link.capacity);
    bundle.links = link.links;
    if (kind != kCubeLink) bundle.whole.least = seconds(map.io_cycle) / link.links;
  };
  for (const LinkBundle& link : map.cube_links) {
    if (link.a == kIoChiplet || link.b == kIoChiplet) {
      const std::int64_t column = (link.a == kIoChiplet ? link.b : link.a) % map.cube_w;
      add(kColumnOut, link.sip, column, link);
      add(kColumnIn, link.sip, column, link);
      continue;
    }
    for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      add(kCubeLink, link.sip * cubes + a, link.sip * cubes + b, link);
  }
}

Passage WayBook::fresh(const Key& key) const {
  const auto& [kind, from, to, link] = key;
  Passage passage;
  switch (kind) {
    case kPortOut:
    case kPortIn:
      passage.bytes_per_second = per_second(map_.rates(pe(from)).port);
      return passage;
    case kSwitchOut:
    case kSwitchIn:
      passage.bytes_per_second = request_.sip.bytes_per_second;
      passage.least = seconds(map_.io_cycle);
      return passage;
    default: {
      const auto found = bundles_.find({kind, from, to, kWhole});
      if (found == bundles_.end()) return passage;
      passage = found->second.whole;
      if (link == kWhole) return passage;
      passage.bytes_per_second /= static_cast<double>(found->second.links);
      passage.least *= static_cast<double>(found->second.links);
      return passage;
    }
  }
}

std::uint32_t WayBook::passage(const Key& key) {
  const auto [found, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(passages_.size()));
  if (is_new) passages_.push_back(fresh(key));
  return found->second;
}

void WayBook::cube_link(std::vector<std::uint32_t>& way, int sip, int from, int to, std::int64_t link) {
  const std::int64_t first = std::int64_t{sip} * map_.cubes_per_sip();
  way.push_back(passage({kCubeLink, first + from, first + to, link}));
}

/// Of the bundles in its column: of a PE whose packets enter or leave the cubes' networks there.
std::int64_t WayBook::link_of(PeCoord pe) const {
  const auto at = static_cast<std::size_t>(number(pe));
  return at < map_.pe_links.size() ? map_.pe_links[at] : kWhole;
}

/// To a unit of the IO chiplet: what counts is how much longer it is from a PE that is farther away.
double WayBook::to_io(PeCoord from) const {
  if (!map_.packet_latency || from.sip >= map_.pcie_nodes.size()) return 0;
  return seconds(map_.packet_latency(map_.pe(from), map_.pcie_nodes[from.sip], kMinimal));
}

std::vector<std::uint32_t> WayBook::links(std::uint16_t from, std::uint16_t to) {
  if (request_.kind == kSwitch) return {passage({kSwitchOut, from, 0, kWhole})};
  std::vector<std::uint32_t> links;
  const std::vector<std::int32_t> sips = sip_way(request_, from, to);
  for (std::size_t i = 0; i + 1 < sips.size(); ++i) links.push_back(passage({kSipLink, sips[i], sips[i + 1], kWhole}));
  return links;
}

Way WayBook::way(PeCoord from, PeCoord to) {
  Way way;
  if (map_.packet_latency && from != to)
    way.seconds = seconds(map_.packet_latency(map_.pe(from), map_.pe(to), kMinimal));
  const int w = map_.cube_w;
  const std::int64_t out = link_of(from), in = link_of(to);
  if (from.sip == to.sip) {
    int at = from.cube;
    for (; at % w != to.cube % w; at += at % w < to.cube % w ? 1 : -1)
      cube_link(way.out, from.sip, at, at + (at % w < to.cube % w ? 1 : -1), kWhole);
    for (; at != to.cube; at += at < to.cube ? w : -w)
      cube_link(way.out, from.sip, at, at + (at < to.cube ? w : -w), in);
  } else {
    way.out_seconds = to_io(from);
    for (int at = from.cube; at >= w; at -= w) cube_link(way.out, from.sip, at, at - w, out);
    way.out.push_back(passage({kColumnOut, from.sip, from.cube % w, out}));
    way.links = links(from.sip, to.sip);
    if (request_.kind == kSwitch) way.in.push_back(passage({kSwitchIn, to.sip, 0, kWhole}));
    way.in.push_back(passage({kColumnIn, to.sip, to.cube % w, in}));
    for (int at = to.cube % w; at != to.cube; at += w) cube_link(way.in, to.sip, at, at + w, in);
  }
  way.least_bytes_per_second = std::min(per_second(map_.rates(from).port), per_second(map_.rates(to).port));
  for (const auto* part : {&way.out, &way.links, &way.in}) {
    for (const std::uint32_t id : *part) {
      if (const double rate = passages_[id].bytes_per_second; rate > 0)
        way.least_bytes_per_second = std::min(way.least_bytes_per_second, rate);
    }
  }
  return way;
}

}  // namespace kernbench::ccl
