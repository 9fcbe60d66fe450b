#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tlm/machine/ids.h"
#include "topology/spec/spec.h"

/// Who stands beside whom, whether or not the links between them are broken.
namespace kernbench::topology {

inline constexpr std::uint16_t kFabric = 0xFFFF;  ///< the fabric switch among SIPs

/// SIPs that `sip` has a link bundle to, in the order E, W, S, N of the grid (a dimension of length 2 has one bundle);
/// ring_1d counts as a grid of one row. For `switch`: {kFabric}.
std::vector<std::uint16_t> sip_neighbours(const SystemSpec& spec, std::uint16_t sip);

/// The cube on one side of another in a mesh of w x h; none at its edge.
std::optional<std::uint16_t> cube_neighbour(std::uint16_t w, std::uint16_t h, std::uint16_t cube, Side side);

}  // namespace kernbench::topology
