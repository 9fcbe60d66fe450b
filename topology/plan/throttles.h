#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/network.h"

namespace kernbench::topology {

struct Plan;

/// A value that keeps a part of the machine from the rate that another value gives it. The machine runs all the same.
struct Throttle {
  std::string key;   ///< of topology.yaml; "overrides" where one of them gave the value
  std::string text;  ///< key and value found, and what they fall short of
  std::string hint;  ///< the value wanted
};

/// Bytes per second that a port of a router passes in packets of 256 B.
std::uint64_t port_payload_rate(const NocConfig& noc);
/// Of a packet of 256 B that leaves `from`, from its start until its place at the far end is known to be free again: at
/// the least.
Ps round_trip(const LinkEnd& from, const LinkEnd& peer);
/// Places that the far end needs, so that a virtual network fills the wire: LinkConfig::packets_to_cover, where the two
/// directions differ in latency.
std::uint32_t packets_to_cover(const LinkEnd& from, const LinkEnd& peer);

/// All of them, each once however often the machine has it, outermost links first:
/// - receivers of links with less room than bandwidth x round trip, and PCIe with fewer credits than that;
/// - router ports that pass less than the link behind them brings;
/// - UCIe connections whose two ends differ: the faster one waits;
/// - router buffers that one flow empties before credits are back.
std::vector<Throttle> throttles(const Plan& plan);

}  // namespace kernbench::topology
