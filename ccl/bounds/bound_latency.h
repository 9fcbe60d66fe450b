#pragma once
#include <vector>

#include "ccl/bounds/bounds.h"

/// The latency bound. For bounds.cpp alone.
namespace kernbench::ccl {

/// Longest shortest way from where an element lies to where it, or its sum, must end; one load and one store included.
/// Of large machines a sample of PEs and SIPs is looked at: the longest way of those is a bound all the same.
double latency_ns(const MachineMap& map, const BoundInput& input, const std::vector<TensorShard>& in,
                  const std::vector<TensorShard>& out);

/// Shortest way of a packet from any PE of the group's SIPs to one of another, one load and one store included: what
/// every byte between SIPs has to do besides waiting its turn. 0 where cubes or SIPs differ, or PEs are missing: what
/// is shortest there says nothing of the others.
double shortest_way_ns(const MachineMap& map, const BoundInput& input);

}  // namespace kernbench::ccl
