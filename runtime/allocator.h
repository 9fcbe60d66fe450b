#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tlm/machine/machine_map.h"

namespace kernbench {

/// Hands out ranges of one memory: first fit by offset; neighbouring free ranges merge. Sizes are rounded up to kGrain.
class BlockAllocator {
 public:
  static constexpr std::uint64_t kGrain = 256;  ///< a DMA burst never crosses a multiple of it
  explicit BlockAllocator(std::uint64_t capacity);

  struct Block {
    std::uint64_t offset = 0;
    bool fresh = false;  ///< no byte of it was ever handed out before: it still reads as zero
  };
  /// Nothing if no free range is large enough. REQUIRES: bytes > 0.
  std::optional<Block> allocate(std::uint64_t bytes);
  /// REQUIRES: exactly what was allocated. Throws std::logic_error if it was not, or is free already.
  void free(std::uint64_t offset, std::uint64_t bytes);

  /// Gives up everything from `capacity` on. False, and nothing changes, if a part of it is allocated.
  bool shrink(std::uint64_t capacity);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free_bytes() const;
  std::uint64_t largest_free() const;
  std::uint64_t most_used() const { return most_used_; }  ///< B that were allocated at one time, at most

 private:
  std::uint64_t capacity_;
  std::uint64_t high_water_ = 0;  // offset
  std::uint64_t used_bytes_ = 0, most_used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
  std::map<std::uint64_t, std::uint64_t> used_;
};

/// The HBM slices of all PEs as pools for tensors, by (sip, cube, pe).
class DeviceMemory {
 public:
  explicit DeviceMemory(const MachineMap& map) : map_(map) {}

  /// Keeps the top `bytes` of a slice, in all, from tensors: IPCQ rings lie there. Throws OutOfDeviceMemory if tensors
  /// lie there already, std::invalid_argument if the slice is smaller.
  void reserve(PeCoord pe, std::uint64_t bytes);
  /// Throws OutOfDeviceMemory naming the pool, what was asked, what is free, the largest free block and the biggest
  /// tensors.
  BlockAllocator::Block allocate(PeCoord pe, std::uint64_t bytes, const std::string& tensor);
  void free(PeCoord pe, std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t free_bytes(PeCoord pe) const;
  /// That tensors had at one time, at most, and what is kept from them.
  std::uint64_t most_used(PeCoord pe) const;

 private:
  struct Pool {
    explicit Pool(std::uint64_t capacity) : blocks(capacity) {}
    BlockAllocator blocks;
    struct Owner {
      std::string tensor;
      std::uint64_t bytes = 0;
    };
    std::map<std::uint64_t, Owner> owners;  // by offset
  };
  std::uint64_t capacity(PeCoord pe) const;
  std::string report(PeCoord pe, const Pool& pool, std::uint64_t bytes, const std::string& tensor) const;

  const MachineMap& map_;
  std::map<PeCoord, Pool> pools_;
  std::map<PeCoord, std::uint64_t> reserved_;  // at the top of the slice
};

}  // namespace kernbench
