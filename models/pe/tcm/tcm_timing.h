#pragma once
#include <cstdint>
#include <vector>

#include "models/pe/pe_config.h"
#include "models/pe/pe_statistics.h"

namespace kernbench::pe {

/// When TCM has served an access: two ports and a set of banks.
///
/// DMA, IPCQ and accesses from outside pass a read port and a write port of `bytes_per_second` each, first come first
/// served. A bank serves one word of `bank_bytes` per cycle, a read or a write; words lie in the banks in turn. An
/// access begins when its port and all its banks are free and holds each bank for its words; it is complete `latency`
/// after its last byte passed the port.
/// The GEMM and the math engine have wide ports of their own and walk through whole tiles, so that all banks see their
/// traffic alike: while a stream of theirs runs it takes its share of every bank's cycles. Accesses get what is left,
/// but never less than their turn (one in n + 1 beside n streams). Streams that together ask for more than the banks
/// have stretch the one that comes last. Not modelled: conflicts between the words of one access and between single
/// words of streams below saturation.
class TcmTiming {
 public:
  explicit TcmTiming(const TcmConfig& config);

  /// `packets`: a train's, each of which counts as an access.
  Ps read(Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets = 1) {
    return access(read_, now, offset, bytes, packets);
  }
  Ps write(Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets = 1) {
    return access(write_, now, offset, bytes, packets);
  }
  /// An engine will move `bytes` from `begin` to `end`, known at `now`. Returns by how much it takes longer.
  Ps stream(Ps now, Ps begin, Ps end, std::uint64_t bytes);
  /// That have passed so far, streams included.
  std::uint64_t bytes() const { return read_.traffic.bytes + write_.traffic.bytes + streamed_.bytes; }
  TcmTraffic& reads() { return read_.traffic; }
  TcmTraffic& writes() { return write_.traffic; }
  TcmTraffic& streamed() { return streamed_; }

 private:
  /// Of all banks' cycles, in units of 2^-20.
  static constexpr std::uint64_t kWhole = std::uint64_t{1} << 20;
  struct Stream {
    Ps begin, end;
    std::uint64_t share;
  };
  struct Port {
    Ps free = 0;
    TcmTraffic traffic;
  };
  Ps access(Port& port, Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets);
  std::uint64_t left_at(Ps now) const;

  TcmConfig config_;
  Rate port_;
  Rate bank_;   // of one bank
  Rate banks_;  // of all of them
  Port read_, write_;
  std::vector<Ps> bank_free_;
  std::vector<Stream> streams_;  // those that may still run; at most a few
  TcmTraffic streamed_;          // busy: of all banks together
};

}  // namespace kernbench::pe
