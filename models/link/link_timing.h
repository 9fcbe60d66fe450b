#pragma once
#include <algorithm>
#include <cstdint>

#include "models/link/wire.h"
#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"

namespace kernbench {

/// Between a network and a wire at a link port, in either direction; LinkPort has the rules in words. `noc` is the
/// network at this end.
class LinkTiming {
 public:
  LinkTiming(const LinkConfig& link, const NocConfig& noc)
      : rate_(link.rate()),
        header_bytes_(link.header_bytes),
        flit_bytes_(noc.flit_bytes),
        flits_(noc.flit_bytes),
        clock_(noc.clock_hz),
        known_(clock_.at(Cycle{noc.sw_alloc_delay} + noc.switch_delay + noc.link_delay)) {}

  /// From when on a packet whose head and tail reach the port may go: when its head is here and its tail has won the
  /// last router's switch, so that it will not pause on the wire for what happens in the network; one that comes slower
  /// than one flit per cycle not so early that it would pause on a wire that others could use.
  Ps ready(std::uint32_t bytes, Ps head, Ps tail) const {
    const Ps held = rate_.time_for(bytes + std::uint64_t{header_bytes_} * packets_of(bytes));
    const Ps full_rate = clock_.at(flits_(bytes) - 1) + last_flit(bytes);
    const Ps needed = std::max(held, full_rate), sent = complete(bytes, tail);
    return std::max(earliest(bytes, head, tail), sent > needed ? sent - needed : 0);
  }
  /// From when on its first packet could go, however slowly the others come.
  Ps earliest(std::uint32_t bytes, Ps head, Ps tail) const {
    const Ps first = this->first(bytes, head, tail);
    return std::max(head, first > known_ ? first - known_ : 0);
  }
  /// When all of the first packet of a train is here whose flits come evenly from `head` to `tail`; of one packet:
  /// tail.
  Ps first(std::uint32_t bytes, Ps head, Ps tail) const {
    if (bytes <= kMaxPacketBytes) return tail;
    return head + (tail - head) * (flits_(kMaxPacketBytes) - 1) / (flits_(bytes) - 1);
  }
  /// When the last byte of a packet whose tail reaches the port at `tail` can have left: its last flit is not sent
  /// before it is here.
  Ps complete(std::uint32_t bytes, Ps tail) const { return tail + last_flit(bytes); }
  /// Cycle in which the last flit of a packet that the wire has brought by `tail` is injected, if the first is in
  /// `start`.
  Cycle last_injection(std::uint32_t bytes, Cycle start, Ps tail) const {
    return std::max(start + flits_(bytes) - 1, clock_.tick_at_or_after(tail));
  }

 private:
  Ps last_flit(std::uint32_t bytes) const { return rate_.time_for(bytes - (flits_(bytes) - 1) * flit_bytes_); }

  Rate rate_;
  std::uint32_t header_bytes_, flit_bytes_;
  FlitCounter flits_;
  Clock clock_;
  Ps known_;  // from the switch of the last router to the port
};

}  // namespace kernbench
