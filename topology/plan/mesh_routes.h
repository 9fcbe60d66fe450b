#pragma once
#include "tlm/machine/routing.h"
#include "topology/plan/layout.h"

namespace kernbench::topology {

/// Port tables of one layout.
///
/// xy, yx   dimension order; REQUIRES: no holes.
/// table    up*/down* over the levels of a breadth-first search from router 0: a packet climbs towards router 0, then
/// descends, never
///          the other way, which is free of cycles on every connected mesh. On a mesh without holes it is
///          negative-first routing: all paths are minimal, and only the turns S-W and E-N are forbidden. Ties: E/W
///          before N/S.
/// Throws ConfigError if the mesh falls apart.
MeshRoutes route_mesh(const CubeLayout& layout, RoutingAlgorithm algorithm);

}  // namespace kernbench::topology
