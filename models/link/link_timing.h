#pragma once
#include <algorithm>
#include <cstdint>

#include "models/link/link_config.h"
#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"

namespace kernbench {

/// When a packet crosses a wire, at one end of it; LinkPort has the rules in words. `noc` is the network at this end.
class LinkTiming {
 public:
  LinkTiming(const LinkConfig& link, const NocConfig& noc)
      : rate_(link.rate()),
        header_bytes_(link.header_bytes),
        flit_bytes_(noc.flit_bytes),
        flits_(noc.flit_bytes),
        clock_(noc.clock_hz) {}

  /// Time that a packet of `bytes` needs the wire for.
  Ps held(std::uint32_t bytes) const { return rate_.time_for(std::uint64_t{bytes} + header_bytes_); }
  /// When a packet that starts on the wire at `start` and whose tail reaches the port at `tail` has left: its last flit
  /// is not sent before it is here.
  Ps end(std::uint32_t bytes, Ps start, Ps tail) const {
    const std::uint32_t last_flit = bytes - (flits_(bytes) - 1) * flit_bytes_;
    return std::max(start + held(bytes), tail + rate_.time_for(last_flit));
  }
  /// First cycle of injection into the network here of a packet that came over the wire from `head` to `tail`: its
  /// first flit is complete, and its last flit will be when its turn comes.
  Cycle injection(std::uint32_t bytes, Ps head, Ps tail) const {
    const Ps first_flit = rate_.time_for(std::uint64_t{std::min(bytes, flit_bytes_)} + header_bytes_);
    const Cycle body = flits_(bytes) - 1, last = clock_.tick_at_or_after(tail);
    return std::max(clock_.tick_at_or_after(std::min(tail, head + first_flit)), last > body ? last - body : 0);
  }

 private:
  Rate rate_;
  std::uint32_t header_bytes_, flit_bytes_;
  FlitCounter flits_;
  Clock clock_;
};

}  // namespace kernbench
