#pragma once
#include <algorithm>
#include <cstdint>

#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"

namespace kernbench {

/// A packet on its way through an idle machine: when its head and tail reach the next hop. What the models do when
/// nothing hinders, in closed form. From one network interface over r routers to another: pass(noc, inject(noc, bytes,
/// now), r).tail.
struct Flight {
  std::uint32_t bytes = 0;
  Ps head = 0, tail = 0;
};

/// Injection of the head in cycle `first`, of the tail in cycle `last`: 1 + link_delay cycles to the first router.
inline Flight inject_at(const NocConfig& noc, std::uint32_t bytes, Cycle first, Cycle last) {
  const Clock clock(noc.clock_hz);
  const Cycle delay = 1 + Cycle{noc.link_delay};
  return {bytes, clock.at(first + delay), clock.at(last + delay)};
}

/// Injection by a network interface that is asked at `now`.
inline Flight inject(const NocConfig& noc, std::uint32_t bytes, Ps now) {
  const Cycle start = Clock(noc.clock_hz).tick_at_or_after(now);
  return inject_at(noc, bytes, start, start + FlitCounter(noc.flit_bytes)(bytes) - 1);
}

/// Through `routers` routers to what the last one's output is bound to.
inline Flight pass(const NocConfig& noc, const Flight& flight, unsigned routers) {
  const Clock clock(noc.clock_hz);
  const Cycle wait = Cycle{noc.routing_delay} + noc.vc_alloc_delay;  // of the head only
  const Cycle hop = Cycle{noc.sw_alloc_delay} + noc.switch_delay + noc.link_delay;
  const Cycle head = clock.tick_at_or_after(flight.head) + routers * (wait + hop);
  const Cycle tail = clock.tick_at_or_after(flight.tail) + routers * hop;
  const Cycle body = FlitCounter(noc.flit_bytes)(flight.bytes) - 1;
  return {flight.bytes, clock.at(head), clock.at(std::max(head + body, tail))};
}

}  // namespace kernbench
