#pragma once
#include <string>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/machine/ids.h"

namespace kernbench {

/// One thing that cannot go on, for the deadlock report.
struct Blocked {
  PeCoord pe;              ///< who is blocked
  std::string kernel, op;  ///< in which kernel, at which op: "recv(W, 1x2048 f16)"
  std::string waits_for;   ///< "data from sip0.cube2.pe1 (direction W), ring 0 of 4 slots full"
  bool has_peer = false;
  PeCoord peer;  ///< who could unblock it: an edge of the wait-for graph
  Ps since = 0;
};

/// A model that can say why it stands still. Asked only after the run has starved.
class Explainer {
 public:
  virtual ~Explainer() = default;
  virtual void explain(std::vector<Blocked>& blocked) const = 0;
};

}  // namespace kernbench
