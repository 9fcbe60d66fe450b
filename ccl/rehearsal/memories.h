#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "ccl/rehearsal/slice.h"
#include "ccl/rehearsal/ways.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// How a PE reaches a slice.
struct Reach {
  Way to, from;
  double seconds = 0;  ///< of a read there
  std::uint32_t slice = 0;
};

/// The slices of a machine, and the ways to them.
class Memories {
 public:
  Memories(const MachineMap& map, WayBook& ways) : map_(map), ways_(ways) {}

  /// The number of a new way. REQUIRES: of a PE's slices each is asked for once.
  std::uint32_t add(PeCoord from, PeCoord owner);
  Reach& operator[](std::uint32_t number) { return reaches_[number]; }
  std::size_t slices() const { return slices_.size(); }
  HbmSlice& slice(std::uint32_t number) { return slices_[number]; }

 private:
  const MachineMap& map_;
  WayBook& ways_;
  std::vector<Reach> reaches_;
  std::vector<HbmSlice> slices_;
  std::map<PeCoord, std::uint32_t> numbers_;
};

}  // namespace kernbench::ccl
