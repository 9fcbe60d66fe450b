#pragma once
#include <cstdint>

#include "topology/plan/network.h"

namespace kernbench::topology {

/// Where a place is within its SIP, which says which places of equal SIPs are equal.
enum class Where : std::uint8_t { wire, sip_wire, pcie, router_port, stack, sram, pe, ipcq, m_cpu, io_cpu };
constexpr std::uint64_t key_of(Where where, std::uint64_t of, std::uint64_t unit = 0, std::uint64_t part = 0) {
  return static_cast<std::uint64_t>(where) << 60 | of << 40 | unit << 20 | part;
}
/// Of networks: the cube, or which other one.
inline std::uint64_t place_of(const Network& network) {
  constexpr std::uint64_t kOther = 1 << 16;
  return network.kind == NetworkKind::cube ? network.cube : kOther + static_cast<std::uint64_t>(network.kind);
}

}  // namespace kernbench::topology
