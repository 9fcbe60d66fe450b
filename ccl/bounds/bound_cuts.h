#pragma once
#include <vector>

#include "ccl/bounds/bounds.h"

/// Bounds from cuts through the links between SIPs. For bounds.cpp alone.
namespace kernbench::ccl {

/// What bundles of links carry together.
///
/// By time T a bundle has passed at most rate x T, and where credits return later than its receivers fill at most two
/// figures together: a window that goes at once, and then a window per round trip.
class Across {
 public:
  /// Counts `times` directions of a bundle whose data take up to `networks` virtual networks.
  void add(const LinkBundle& link, unsigned networks, double times = 1);
  bool any() const { return capacity_ > 0; }
  /// The least time in which `bytes` pass.
  double ns(double bytes) const;

 private:
  double capacity_ = 0, lasting_ = 0, burst_ = 0;
};

/// Virtual networks that data between two SIPs may take on one link: a set of channels behind a switch, elsewhere two,
/// on either side of a dateline (docs/routing.md).
unsigned networks_between_sips(const MachineMap& map);

/// Largest of 2 (k-1) S / (capacity into the parts) over partitions of the group's SIPs into k parts: all of them up to
/// 8 SIPs; beyond, every SIP on its own and every single SIP against the rest.
double partition_ns(const MachineMap& map, const std::vector<std::uint16_t>& sips, double bytes);

/// Bytes that must enter or leave a set of ranks, whichever is more. `inside`: by rank; neither all nor none of them.
double crossing_bytes(const BoundInput& input, double contributions_per_sip, const std::vector<bool>& inside);

/// Whom a rank of a send_recv sends to; -1: nobody.
int partner_of(const BoundInput& input, std::size_t rank);
/// Some of rank i's elements go to rank j.
bool goes(const BoundInput& input, std::size_t i, std::size_t j);

/// Largest of crossing_bytes / capacity over sets of the group's SIPs: all sets up to 10 SIPs; beyond, every range of
/// ranks (up to 64) or every range from the first rank on, single SIPs, and ranges of columns of a grid.
double cut_ns(const MachineMap& map, const BoundInput& input, double contributions_per_sip);

/// Least number of links between SIPs from one to another, by the positions of `sips`; -1: no way.
std::vector<std::vector<int>> sip_distances(const MachineMap& map, const std::vector<std::uint16_t>& sips);

}  // namespace kernbench::ccl
