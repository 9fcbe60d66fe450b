#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "ccl/rehearsal/record.h"

namespace kernbench::ccl {

/// Seconds that a collective call should take, from the start of its kernels to the end of the last: the kernels of
/// all PEs are written down and their ops run against clocks, a message as a whole where the machine moves packets.
///
/// A PE issues in order, until the queue of an engine is full; each engine and each end of a queue does its ops in
/// order, one as soon as what it needs is there. Bytes pass ports and bundles of links one message after the other,
/// slices of HBM in pieces; a slot is free again a packet's way after its message was received, and where the next call
/// of the kind would wait for slots of this one, it is the next one that is rehearsed. Ranks that are PEs of one SIP
/// start one after the other, as IO_CPU sends their start commands, the one that asks before the others. Not modelled:
/// the networks inside cubes, which connection of a row's bundle a message takes, translation, HBM's refreshes, hazards
/// between ops that no value joins but loads of what is being stored.
///
/// REQUIRES: every rank makes this call: of a send_recv each sends as many ranks on.
/// Nothing if the call has more than `most_ops` ops, or what it has are no rehearsable ones. Throws Error as bind does.
std::optional<double> rehearse(const MachineMap& map, const Collective& collective, const CallTensors& tensors,
                               std::size_t most_ops);

}  // namespace kernbench::ccl
