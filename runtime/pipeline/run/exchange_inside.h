#pragma once
#include <vector>

#include "runtime/pipeline/document.h"
#include "runtime/runtime.h"

namespace kernbench::pipeline {

/// An exchange whose members are all parts of one SIP: no packets between SIPs. Each member's PEs read what they need
/// where the others hold it, over the SIP's own networks, and write the member's result. It is this for any number of
/// members from two.
bool inside_one_sip(const Pipeline& pipeline, const std::vector<const SuperTask*>& members);

/// One member's side of it, once all have come: makes `out` of the members' linear tensors `in` (an empty handle where
/// a member brings none) and waits. Pieces are added up in the order of the members and rounded after each, as a ring
/// of SIPs does it.
void exchange_inside(Context& context, const Pipeline& pipeline, const std::vector<const SuperTask*>& members,
                     std::size_t place, const std::vector<Tensor>& in, const Tensor& out);

}  // namespace kernbench::pipeline
