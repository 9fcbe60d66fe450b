#include "ccl/rehearsal/ways.h"

#include <algorithm>

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

WayBook::WayBook(const MachineMap& map) : map_(map) {
  request_.kind = kind_of(map.sip_topology);
  request_.sip_w = map.sip_w;
  request_.sip_h = map.sip_h;
  request_.ranks = map.sips;
  describe_machine(map, request_);
  for (const LinkBundle& link : map.sip_links) {
    for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      rates_[{kSipLink, a, b}] += per_second(link.capacity);
  }
  const std::int64_t cubes = map.cubes_per_sip();
  for (const LinkBundle& link : map.cube_links) {
    const double rate = per_second(link.capacity);
    if (link.a == kIoChiplet || link.b == kIoChiplet) {
      const std::int64_t column = (link.a == kIoChiplet ? link.b : link.a) % map.cube_w;
      rates_[{kColumnOut, link.sip, column}] += rate;
      rates_[{kColumnIn, link.sip, column}] += rate;
      continue;
    }
    for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      rates_[{kCubeLink, link.sip * cubes + a, link.sip * cubes + b}] += rate;
  }
}

double WayBook::rate(const Key& key) const {
  switch (std::get<0>(key)) {
    case kPortOut:
    case kPortIn:
      return per_second(map_.rates(pe(std::get<1>(key))).port);
    case kSwitchOut:
    case kSwitchIn:
      return request_.sip.bytes_per_second;
    default: {
      const auto found = rates_.find(key);
      return found == rates_.end() ? 0 : found->second;
    }
  }
}

std::uint32_t WayBook::passage(const Key& key) {
  const auto [found, fresh] = numbers_.try_emplace(key, static_cast<std::uint32_t>(passages_.size()));
  if (fresh) passages_.push_back({rate(key), 0});
  return found->second;
}

void WayBook::cube_link(std::vector<std::uint32_t>& way, int sip, int from, int to) {
  const std::int64_t first = std::int64_t{sip} * map_.cubes_per_sip();
  way.push_back(passage({kCubeLink, first + from, first + to}));
}

Way WayBook::way(PeCoord from, PeCoord to) {
  Way way;
  if (map_.packet_latency && from != to)
    way.seconds = seconds(map_.packet_latency(map_.pe(from), map_.pe(to), kMinimal));
  const int w = map_.cube_w;
  if (from.sip == to.sip) {
    int at = from.cube;
    for (; at % w != to.cube % w; at += at % w < to.cube % w ? 1 : -1)
      cube_link(way.out, from.sip, at, at + (at % w < to.cube % w ? 1 : -1));
    for (; at != to.cube; at += at < to.cube ? w : -w) cube_link(way.out, from.sip, at, at + (at < to.cube ? w : -w));
  } else {
    for (int at = from.cube; at >= w; at -= w) cube_link(way.out, from.sip, at, at - w);
    way.out.push_back(passage({kColumnOut, from.sip, from.cube % w}));
    if (request_.kind == kSwitch) {
      way.out.push_back(passage({kSwitchOut, from.sip, 0}));
      way.in.push_back(passage({kSwitchIn, to.sip, 0}));
    } else {
      const std::vector<std::int32_t> sips = sip_way(request_, from.sip, to.sip);
      for (std::size_t i = 0; i + 1 < sips.size(); ++i)
        (i == 0 ? way.out : way.links).push_back(passage({kSipLink, sips[i], sips[i + 1]}));
    }
    way.in.push_back(passage({kColumnIn, to.sip, to.cube % w}));
    for (int at = to.cube % w; at != to.cube; at += w) cube_link(way.in, to.sip, at, at + w);
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
