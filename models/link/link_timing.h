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
  /// From when on a packet whose head and tail reach the port may go: at once, but a packet that comes slower than one
  /// flit per cycle not so early that it would pause on a wire that others could use.
  Ps ready(std::uint32_t bytes, Ps head, Ps tail) const {
    const Ps full_rate = clock_.at(flits_(bytes) - 1) + last_flit(bytes);
    const Ps needed = std::max(held(bytes), full_rate), sent = tail + last_flit(bytes);
    return std::max(head, sent > needed ? sent - needed : 0);
  }
  /// When a packet that starts on the wire at `start` and whose tail reaches the port at `tail` has left: its last flit
  /// is not sent before it is here.
  Ps end(std::uint32_t bytes, Ps start, Ps tail) const {
    return std::max(start + held(bytes), tail + last_flit(bytes));
  }
  /// Time from the first bit of a packet to the last of its first flit.
  Ps first_flit(std::uint32_t bytes) const {
    return rate_.time_for(std::uint64_t{std::min(bytes, flit_bytes_)} + header_bytes_);
  }
  /// First cycle of injection into the network here of a packet that comes over the wire from `head` to `tail`: its
  /// first flit is complete.
  Cycle injection(std::uint32_t bytes, Ps head, Ps tail) const {
    return clock_.tick_at_or_after(std::min(tail, head + first_flit(bytes)));
  }
  /// Cycle in which the last flit is injected, if the first is in `start`.
  Cycle last_injection(std::uint32_t bytes, Cycle start, Ps tail) const {
    return std::max(start + flits_(bytes) - 1, clock_.tick_at_or_after(tail));
  }

 private:
  Ps last_flit(std::uint32_t bytes) const { return rate_.time_for(bytes - (flits_(bytes) - 1) * flit_bytes_); }

  Rate rate_;
  std::uint32_t header_bytes_, flit_bytes_;
  FlitCounter flits_;
  Clock clock_;
};

}  // namespace kernbench
