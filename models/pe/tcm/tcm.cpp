#include "models/pe/tcm/tcm.h"

namespace kernbench::pe {

std::vector<unsigned char> Tcm::read(const TileRef& tile) const {
  std::vector<unsigned char> data(tile.bytes());
  if (!data.empty()) read(tile.tcm, data.data(), data.size());
  return data;
}

}  // namespace kernbench::pe
