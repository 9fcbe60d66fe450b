#pragma once
#include <cstdint>
#include <vector>

#include "models/memory/sparse_memory.h"
#include "models/pe/op.h"
#include "models/pe/tcm/tcm_timing.h"

namespace kernbench::pe {

/// A PE's scratchpad: its contents, and when its ports and banks are free.
class Tcm {
 public:
  Tcm(const TcmConfig& config, bool track_written) : config_(config), timing_(config), contents_(track_written) {}

  /// Takes the port and the banks of [offset, offset + bytes) from `now` on; when the access is complete. It counts as
  /// `packets` accesses.
  Ps reserve_read(Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets = 1) {
    return timing_.read(now, offset, bytes, packets);
  }
  Ps reserve_write(Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets = 1) {
    return timing_.write(now, offset, bytes, packets);
  }
  TcmTiming& timing() { return timing_; }
  const TcmTiming& timing() const { return timing_; }

  std::uint64_t bytes() const { return config_.bytes; }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= config_.bytes && bytes <= config_.bytes - offset;
  }

  bool read(std::uint64_t offset, void* data, std::size_t bytes) const { return contents_.read(offset, data, bytes); }
  void write(std::uint64_t offset, const void* data, std::size_t bytes) { contents_.write(offset, data, bytes); }
  std::vector<unsigned char> read(const TileRef& tile) const;
  void write(const TileRef& tile, const std::vector<unsigned char>& data) { write(tile.tcm, data.data(), data.size()); }
  SparseMemory& contents() { return contents_; }

 private:
  TcmConfig config_;
  TcmTiming timing_;
  SparseMemory contents_;
};

}  // namespace kernbench::pe
