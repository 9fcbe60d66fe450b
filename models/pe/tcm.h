#pragma once
#include <cstdint>
#include <vector>

#include "models/memory/sparse_memory.h"
#include "models/pe/op.h"
#include "models/pe/pe_config.h"

namespace kernbench::pe {

/// A PE's scratchpad: its contents, and when its ports are free.
///
/// One read port and one write port of `bytes_per_second` each, first come first served; an access ends `latency` after
/// its last byte. They serve DMA, IPCQ and accesses from outside. Not modelled: banks, and the engines' operand reads
/// and result writes, whose rate is part of the engines' own formulas.
class Tcm {
 public:
  explicit Tcm(const TcmConfig& config) : config_(config), rate_(config.bytes_per_second) {}

  /// Takes the port for `bytes` from `now` on; the instant at which the access is complete.
  Ps reserve_read(Ps now, std::uint64_t bytes) { return reserve(read_free_, now, bytes); }
  Ps reserve_write(Ps now, std::uint64_t bytes) { return reserve(write_free_, now, bytes); }

  std::uint64_t bytes() const { return config_.bytes; }
  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= config_.bytes && bytes <= config_.bytes - offset;
  }

  void read(std::uint64_t offset, void* data, std::size_t bytes) const { contents_.read(offset, data, bytes); }
  void write(std::uint64_t offset, const void* data, std::size_t bytes) { contents_.write(offset, data, bytes); }
  std::vector<unsigned char> read(const TileRef& tile) const;
  void write(const TileRef& tile, const std::vector<unsigned char>& data) { write(tile.tcm, data.data(), data.size()); }

 private:
  Ps reserve(Ps& free, Ps now, std::uint64_t bytes) {
    free = (free > now ? free : now) + rate_.time_for(bytes);
    return free + config_.latency;
  }

  TcmConfig config_;
  Rate rate_;
  Ps read_free_ = 0, write_free_ = 0;
  SparseMemory contents_;
};

}  // namespace kernbench::pe
