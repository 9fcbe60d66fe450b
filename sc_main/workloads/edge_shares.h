#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "topology/plan/paths.h"

namespace kernbench {

/// Edges that the data of several flows take, to say how much of the machine they use. An edge's name is free text; one
/// name is one edge.
class EdgeShares {
 public:
  /// `paths`: of `plan`. Both outlive it.
  EdgeShares(const topology::Plan& plan, const topology::Paths& paths) : plan_(plan), paths_(paths) {}

  /// Data of a read by `pe` out of the slice of `owner`: slice, networks, TCM.
  void add_read(PeCoord pe, PeCoord owner);
  /// Data of a host copy to or from the slice of `owner`, over the SIP's PCIE_EP.
  void add_host_copy(std::uint16_t sip, PeCoord owner, bool to_device);

  /// Narrowest edge of the first flow, in bytes per second.
  double narrowest() const;
  /// Sum over the flows of each one's fair share (rate / flows on it) of the edge where that is least: where most flows
  /// share it. Equal flows cannot be faster together.
  double fair_sum() const;

 private:
  using Flow = std::vector<std::string>;
  void use(Flow& flow, const std::string& edge, std::uint64_t bytes_per_second);
  void use_path(Flow& flow, const std::string& from, const std::string& to);
  void use_slice(Flow& flow, PeCoord owner);

  const topology::Plan& plan_;
  const topology::Paths& paths_;
  std::vector<Flow> flows_;
  struct Edge {
    double bytes_per_second = 0;
    std::uint32_t flows = 0;
  };
  std::map<std::string, Edge> edges_;
};

}  // namespace kernbench
