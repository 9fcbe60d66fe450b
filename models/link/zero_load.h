#pragma once
#include "models/link/link_timing.h"
#include "models/noc/zero_load.h"

namespace kernbench {

/// `flight` has reached a link port out of a network `from`; the result reaches the first router of the network `to`
/// behind the far port.
inline Flight cross(const LinkConfig& link, const NocConfig& from, const NocConfig& to, const Flight& flight) {
  const LinkTiming here(link, from), there(link, to);
  const Ps start = here.ready(flight.bytes, flight.head, flight.tail);
  const Ps head = start + link.latency;
  const Ps tail = here.end(flight.bytes, start, flight.tail) + link.latency;
  const Cycle first = there.injection(flight.bytes, head, tail);
  return inject_at(to, flight.bytes, first, there.last_injection(flight.bytes, first, tail));
}

}  // namespace kernbench
