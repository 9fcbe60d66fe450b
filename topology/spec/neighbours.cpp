#include "topology/spec/neighbours.h"

#include <algorithm>

namespace kernbench::topology {

std::vector<std::uint16_t> sip_neighbours(const SystemSpec& spec, std::uint16_t sip) {
  std::vector<std::uint16_t> list;
  const auto add = [&](unsigned other) {
    const auto id = static_cast<std::uint16_t>(other);
    if (other != sip && std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
  };
  switch (spec.topology) {
    case SipTopology::ring_1d:
      add((sip + 1u) % spec.sips);
      add((sip + spec.sips - 1u) % spec.sips);
      break;
    case SipTopology::torus_2d:
    case SipTopology::mesh_2d_no_wrap: {
      const bool wrap = spec.topology == SipTopology::torus_2d;
      const unsigned w = spec.sip_w, h = spec.sip_h, x = sip % w, y = sip / w;
      if (wrap || x + 1 < w) add(y * w + (x + 1) % w);
      if (wrap || x > 0) add(y * w + (x + w - 1) % w);
      if (wrap || y + 1 < h) add((y + 1) % h * w + x);
      if (wrap || y > 0) add((y + h - 1) % h * w + x);
      break;
    }
    case SipTopology::switch_star:
      if (spec.sips > 1) list.push_back(kFabric);
      break;
    case SipTopology::fully_connected:
      for (unsigned other = 0; other < spec.sips; ++other) add(other);
      break;
  }
  return list;
}

std::optional<std::uint16_t> cube_neighbour(std::uint16_t w, std::uint16_t h, std::uint16_t cube, Side side) {
  const int x = cube % w + (side == Side::east) - (side == Side::west);
  const int y = cube / w + (side == Side::south) - (side == Side::north);
  if (x < 0 || y < 0 || x >= w || y >= h) return std::nullopt;
  return static_cast<std::uint16_t>(y * w + x);
}

}  // namespace kernbench::topology
