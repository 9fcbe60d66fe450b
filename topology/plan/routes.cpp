#include "topology/plan/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tlm/machine/names.h"
#include "topology/plan/machine_error.h"
#include "topology/spec/neighbours.h"
#include "topology/spec/overrides.h"

namespace kernbench::topology {

namespace {

constexpr unsigned kFar = 0xFFFF'FFFF;

/// `broken`: keys of the links that are in the way.
[[noreturn]] void unreachable(const std::string& from, const std::string& to, const std::string& cut,
                              std::vector<std::string> broken, const char* hint) {
  throw MachineError(std::move(broken), fmt::format("{} cannot reach {}: {}", from, to, cut), hint);
}

/// The cubes of one SIP as the table sees them.
struct CubeGrid {
  std::uint16_t w, h;
  const CubeTable::Broken& broken;

  /// Neighbour of `cube` on `side`; kIoChiplet: none.
  std::uint16_t neighbour(std::uint16_t cube, Side side) const {
    const auto other = cube_neighbour(w, h, cube, side);
    return !other || broken.count(std::minmax(cube, *other)) != 0 ? kIoChiplet : *other;
  }
};

/// Of the links that are broken those that `takes` says, or all of them if it takes none.
template <class Takes>
std::vector<std::string> keys_of(const CubeTable::Broken& broken, std::uint16_t sip, const Takes& takes) {
  std::vector<std::string> keys, others;
  for (const auto& [low, high] : broken)
    (takes(low, high) ? keys : others).push_back(override_key(names::cube({sip, low}), names::cube({sip, high})));
  return keys.empty() ? others : keys;
}

std::string broken_links(const CubeTable::Broken& broken, std::uint16_t sip) {
  std::string text = "broken:";
  for (const auto& [a, b] : broken) text += fmt::format(" {}-{}", names::cube({sip, a}), names::cube({sip, b}));
  return text + "; a way round must have the form (E|W|N)* S*";
}

}  // namespace

CubeTable::CubeTable(std::uint16_t w, std::uint16_t h, const Broken& broken, std::uint16_t sip)
    : cubes_(static_cast<std::uint16_t>(w * h)),
      next_(std::size_t{cubes_} * (cubes_ + 1), Side::north),
      longer_(next_.size()) {
  const CubeGrid grid{w, h, broken};
  std::vector<unsigned> steps(cubes_);
  constexpr std::array<Side, 3> kMoves = {Side::east, Side::west, Side::north};
  // Shortest paths of the form (E|W|N)* S* from the cubes whose distance is not known yet, with E/W preferred over N.
  const auto fill = [&](std::uint16_t to) {
    std::vector<std::uint16_t> found;
    for (std::uint16_t at = 0; at < cubes_; ++at) {
      if (steps[at] == kFar) found.push_back(at);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint16_t at : found) {
        for (const Side side : kMoves) {
          const std::uint16_t other = grid.neighbour(at, side);
          if (other == kIoChiplet || steps[other] == kFar || steps[other] + 1 >= steps[at]) continue;
          steps[at] = steps[other] + 1;
          changed = true;
        }
      }
    }
    for (const std::uint16_t at : found) {
      if (steps[at] == kFar) {
        const std::string target = to == cubes_ ? names::io(sip) : names::cube({sip, to});
        unreachable(
            names::cube({sip, at}), target, broken_links(broken, sip),
            keys_of(broken, sip, [&](std::uint16_t low, std::uint16_t high) { return low == at || high == at; }),
            "repair a link, or break none between rows");
      }
      next_[std::size_t{at} * (cubes_ + 1) + to] = *std::find_if(kMoves.begin(), kMoves.end(), [&](Side side) {
        const std::uint16_t other = grid.neighbour(at, side);
        return other != kIoChiplet && steps[other] + 1 == steps[at];
      });
      const int x = at % w, y = at / w;
      const int whole = to == cubes_ ? y + 1 : std::abs(x - to % w) + std::abs(y - to / w);
      longer_[std::size_t{at} * (cubes_ + 1) + to] = steps[at] > static_cast<unsigned>(whole);
    }
  };
  for (std::uint16_t to = 0; to < cubes_; ++to) {
    std::fill(steps.begin(), steps.end(), kFar);
    steps[to] = 0;
    for (std::uint16_t below = to, at; (at = grid.neighbour(below, Side::north)) != kIoChiplet; below = at) {
      steps[at] = steps[below] + 1;
      next_[std::size_t{at} * (cubes_ + 1) + to] = Side::south;
    }
    if (steps[to % w] != static_cast<unsigned>(to / w)) {
      const auto in_column = [&](std::uint16_t low, std::uint16_t high) {
        return high == low + w && low % w == to % w && low < to;
      };
      unreachable(names::io(sip), names::cube({sip, to}), broken_links(broken, sip), keys_of(broken, sip, in_column),
                  "repair a link, or break none between rows");
    }
    fill(to);
  }
  std::fill(steps.begin(), steps.end(), kFar);
  for (std::uint16_t column = 0; column < w; ++column) steps[column] = 1;  // next_ is north already
  fill(cubes_);
}

namespace {

struct RingHop {
  int step = 0;        // +1, -1; 0: no way
  bool wraps = false;  // over the wrap link, now
  bool will = false;   // now or later
};

/// A ring, or a line, of SIPs along one dimension: how far each reaches in either direction.
class Line {
 public:
  /// `broken(i)`: the link between i and i + 1, of the last one the wrap link.
  template <class Broken>
  Line(unsigned n, bool wrap, const Broken& broken) : n_(n), up_(n), down_(n) {
    wrap = wrap && n > 2;  // a dimension of length 2 has one link
    const auto crossed = [&](unsigned i) { return (i + 1 < n || wrap) && !broken(i); };
    for (unsigned at = 0; at < n; ++at) {
      while (up_[at] + 1 < n && crossed((at + up_[at]) % n)) ++up_[at];
      while (down_[at] + 1 < n && crossed((at + 2 * n - down_[at] - 1) % n)) ++down_[at];
    }
  }

  /// One hop from `at` towards `to`.
  RingHop hop(unsigned at, unsigned to) const {
    const unsigned above = (to + n_ - at) % n_, below = (at + n_ - to) % n_;
    const unsigned up = above <= up_[at] ? above : kFar, down = below <= down_[at] ? below : kFar;
    if (up == kFar && down == kFar) return {};
    if (up <= down) return {1, at + 1 == n_, to < at};
    return {-1, at == 0, to > at};
  }

 private:
  unsigned n_;
  std::vector<unsigned> up_, down_;  // hops, by where they begin
};

}  // namespace

SipTable::SipTable(const SystemSpec& spec)
    : sips_(spec.sips), grid_(spec.topology == SipTopology::torus_2d), hops_(std::size_t{sips_} * sips_) {
  const auto is_broken = [&](unsigned a, unsigned b) {
    return spec.broken_sip_links.count(std::minmax(static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b))) != 0;
  };
  /// Of the broken links with both ends in what `holds` says.
  const auto broken_in = [&](const auto& holds) {
    std::vector<std::string> keys;
    for (const auto& [low, high] : spec.broken_sip_links) {
      if (holds(low) && holds(high)) keys.push_back(override_key(names::sip(low), names::sip(high)));
    }
    return keys;
  };
  const bool grid = spec.is_grid();
  const unsigned w = grid ? spec.sip_w : sips_, h = grid ? spec.sip_h : 1;
  const bool wrap = spec.topology != SipTopology::mesh_2d_no_wrap;
  std::vector<Line> rows, columns;
  const bool lanes = grid || spec.topology == SipTopology::ring_1d;
  for (unsigned y = 0; lanes && y < h; ++y)
    rows.emplace_back(w, wrap, [&](unsigned i) { return is_broken(y * w + i, y * w + (i + 1) % w); });
  for (unsigned x = 0; lanes && x < w; ++x)
    columns.emplace_back(h, wrap, [&](unsigned i) { return is_broken(i * w + x, (i + 1) % h * w + x); });
  for (std::uint16_t at = 0; at < sips_; ++at) {
    const std::vector<std::uint16_t> neighbours = sip_neighbours(spec, at);
    const auto link_to = [&](unsigned other) {
      return static_cast<std::uint8_t>(std::find(neighbours.begin(), neighbours.end(), other) - neighbours.begin());
    };
    for (std::uint16_t to = 0; to < sips_; ++to) {
      if (at == to) continue;
      Hop& hop = hops_[std::size_t{at} * sips_ + to];
      if (spec.topology == SipTopology::switch_star) continue;  // link 0, the switch
      if (spec.topology == SipTopology::fully_connected) {
        unsigned via = to;
        if (is_broken(at, to)) {
          via = 0;
          while (via < sips_ && (via == at || via == to || is_broken(at, via) || is_broken(via, to))) ++via;
          if (via == sips_)
            unreachable(names::sip(at), names::sip(to), "no third SIP has links to both",
                        broken_in([&](unsigned sip) { return sip == at || sip == to; }), "repair a link");
        }
        hop = {link_to(via), 0, true, via != to};
        continue;
      }
      const unsigned x = at % w, y = at / w;
      const bool along_x = x != to % w;
      const RingHop step = along_x ? rows[y].hop(x, to % w) : columns[x].hop(y, to / w);
      if (step.step == 0) {
        const unsigned target = along_x ? y * w + to % w : to;
        unreachable(names::sip(at), names::sip(to),
                    fmt::format("broken links cut {} from {} along {}", names::sip(at),
                                names::sip(static_cast<std::uint16_t>(target)), along_x ? "x" : "y"),
                    broken_in([&](unsigned sip) { return along_x ? sip / w == y : sip % w == x; }),
                    "repair a link: packets go along x, then along y, and only a ring has another way");
      }
      const auto moved = [&](unsigned i, unsigned n) { return (i + n + static_cast<unsigned>(step.step)) % n; };
      const std::uint8_t link = link_to(along_x ? y * w + moved(x, w) : moved(y, h) * w + x);
      hop = along_x ? Hop{link, static_cast<std::uint8_t>(step.will ? 1 : 0), false, false}
                    : Hop{link, 0, true, step.wraps};
    }
  }
  if (spec.broken_sip_links.empty() || spec.topology == SipTopology::switch_star) return;
  SystemSpec whole = spec;
  whole.broken_sip_links.clear();
  const std::vector<unsigned> with = lengths(spec), without = SipTable(whole).lengths(whole);
  for (std::size_t i = 0; i < with.size(); ++i) longer_.push_back(with[i] > without[i]);
}

// Hops from each to each. REQUIRES: no switch.
std::vector<unsigned> SipTable::lengths(const SystemSpec& spec) const {
  std::vector<unsigned> all(hops_.size());
  for (std::uint16_t from = 0; from < sips_; ++from) {
    for (std::uint16_t to = 0; to < sips_; ++to) {
      for (std::uint16_t at = from; at != to; at = sip_neighbours(spec, at)[next(at, to).link])
        ++all[std::size_t{from} * sips_ + to];
    }
  }
  return all;
}

bool CubeRoutes::detour(NodeId source, NodeId destination) const {
  const Attachment &from = map_.node(source).at, &to = map_.node(destination).at;
  if (from.sip != self_.sip || from.cube == kIoChiplet) return false;  // from an IO chiplet there is one way
  const std::uint16_t target = to.sip == self_.sip ? to.cube : kIoChiplet;
  return from.cube != target && table_.detour(from.cube, target);
}

RouteDecision CubeRoutes::enter(NodeId destination, std::uint16_t at, bool from_io, std::uint8_t dateline) const {
  const Attachment& to = map_.node(destination).at;
  const bool here = to.sip == self_.sip;
  if (here && to.cube == self_.cube) return {{to.router, to.port}, 1, 0};
  const std::uint16_t target = here ? to.cube : kIoChiplet;
  const Side side = table_.next(self_.cube, target);
  std::uint16_t connection = 0;
  if (side == Side::east || side == Side::west) {
    connection = layout_.nearest_connection(side, layout_.routers[at].row);
  } else if (target == kIoChiplet) {
    connection = layout_.nearest_connection(side, layout_.routers[at].col);
  } else {
    const CubeLayout& there = *layouts_[std::size_t{to.sip} * map_.cubes_per_sip() + to.cube];
    connection = layout_.nearest_connection(side, there.routers[to.router].col);
  }
  const Spot spot = layout_.ucie[static_cast<std::size_t>(side)][connection];
  const bool descending = side == Side::south || from_io;
  return {{spot.router, spot.port}, static_cast<std::uint8_t>(descending ? 1 : 0), here ? std::uint8_t{0} : dateline};
}

RouteDecision IoRoutes::enter(NodeId destination, std::uint16_t, bool, std::uint8_t dateline) const {
  const Attachment& to = map_.node(destination).at;
  if (to.sip == sip_) {
    const std::uint8_t set = table_.last_set(dateline);
    if (to.cube == kIoChiplet) return {{0, to.port}, set, 0};
    const std::size_t first = std::size_t{sip_} * map_.cubes_per_sip();
    const auto column = static_cast<std::uint16_t>(to.cube % map_.cube_w);
    const std::uint16_t mesh_column = layouts_[first + to.cube]->routers[to.router].col;
    const std::uint16_t connection = layouts_[first + column]->nearest_connection(Side::north, mesh_column);
    return {{0, layout_.ucie[column][connection].port}, set, 0};
  }
  const SipTable::Hop hop = table_.next(sip_, to.sip);
  const std::vector<Spot>& spots = layout_.links[hop.link];
  const bool crossed = (dateline & SipTable::kDatelineBit) != 0;
  const std::uint8_t set = hop.by_dateline ? static_cast<std::uint8_t>(crossed ? 1 : 0) : hop.vc_set;
  if (hop.dateline) dateline = static_cast<std::uint8_t>(dateline | SipTable::kDatelineBit);
  return {{0, spots[choose_link(destination, spots.size())].port}, set, dateline};
}

RouteDecision FabricRoutes::enter(NodeId destination, std::uint16_t, bool, std::uint8_t) const {
  const std::vector<Spot>& spots = layout_.links[map_.node(destination).at.sip];
  return {{0, spots[choose_link(destination, spots.size())].port}, 1, 0};
}

}  // namespace kernbench::topology
