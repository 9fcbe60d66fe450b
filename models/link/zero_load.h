#pragma once
#include "models/link/link_timing.h"
#include "models/noc/zero_load.h"

namespace kernbench {

/// `flight` has reached a link port out of a network `from`; the result reaches the first router of the network `to`
/// behind the far port.
inline Flight cross(const LinkConfig& link, const NocConfig& from, const NocConfig& to, const Flight& flight) {
  LinkConfig good = link;
  good.bit_errors = 0;
  const LinkTiming here(link, from), there(link, to);
  const Wire::Passage wire = Wire(good, to.flit_bytes)
                                 .send(flight.bytes, here.ready(flight.bytes, flight.head, flight.tail),
                                       here.complete(flight.bytes, flight.tail));
  const Cycle first = Clock(to.clock_hz).tick_at_or_after(wire.head);
  return inject_at(to, flight.bytes, first, there.last_injection(flight.bytes, first, wire.tail));
}

}  // namespace kernbench
