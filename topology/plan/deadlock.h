#pragma once
#include <cstddef>

namespace kernbench::topology {

struct Plan;

/// Which (source, destination) pairs the deadlock check walks.
enum class Coverage {
  /// Every router with an attachment to every one, over the whole machine.
  everything,
  /// Every pair within a SIP; between SIPs the one way out of a cube that all remote destinations share, and one
  /// destination per (SIP, parallel link) from every crossbar. The same dependencies, since CubeRoutes knows of a
  /// remote
  /// destination only that it is remote, and IoRoutes only its SIP and parallel link; a test compares both.
  representatives
};

struct DeadlockStats {
  std::size_t channels = 0, dependencies = 0;
};

/// Enumerates the channel dependency graph by walking the NetworkRoutes of the plan, and throws ConfigError with the
/// cycle if there is one.
///
/// A channel is a buffer that a packet holds while it waits for the next: the one behind a router's output port (the
/// next router's input, a link port's sending side, an ejection buffer), the receiving side of a wire, and the router
/// input behind a link port's injection; each per VC set. The message classes are left out: routing does not see them,
/// so that their graphs are copies of this one, and a class only ever creates packets of a later one
/// (tlm/ext/packet.h), so that no cycle leads through two. Injection buffers of endpoints have no predecessor, hence
/// lie on no cycle.
DeadlockStats check_deadlock(const Plan& plan, Coverage coverage);

}  // namespace kernbench::topology
