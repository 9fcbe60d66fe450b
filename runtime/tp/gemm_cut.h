#pragma once
#include "runtime/tp/gemm.h"

namespace kernbench::tp {

/// What must cross UCIe, at the payload rate of the links that it can take. In every mapping the PEs of a cube make the
/// part of c that the cube holds, so that whole rows of a and whole columns of b for it come in, each byte once, but
/// for what lies there. Looked at are each cube, and both sides of each straight cut through the mesh of cubes; 0 of
/// one cube.
Ps least_ucie_time(const MachineMap& map, const GemmOperands& operands);

}  // namespace kernbench::tp
