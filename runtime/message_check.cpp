#include "runtime/message_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tlm/machine/names.h"

namespace kernbench {
namespace {

/// One message and the SIP that it goes to. Each check gives the first fault, or "".
class Check {
 public:
  Check(const MachineMap& map, int sip) : map_(map), sip_(sip) {}

  std::string operator()(const LaunchMessage& launch) const {
    if (launch.entry.call == nullptr) return "there is no kernel: entry is empty";
    if (launch.arguments.size() > kMaxArgumentBytes) {
      return fmt::format("{} B of arguments, a launch carries at most {}", launch.arguments.size(), kMaxArgumentBytes);
    }
    if (launch.targets.empty()) return "there are no targets";
    std::vector<PeCoord> targets = launch.targets;
    std::sort(targets.begin(), targets.end());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (const std::string fault = here(targets[i], "target"); !fault.empty()) return fault;
      if (i > 0 && targets[i] == targets[i - 1]) return fmt::format("{} is a target twice", names::pe(targets[i]));
    }
    for (const LaunchMessage::TensorArg& tensor : launch.tensors) {
      for (const TensorShard& shard : tensor.shards) {
        if (!map_.has(shard.owner)) return fmt::format("a shard's owner: there is no {}", names::pe(shard.owner));
      }
    }
    return {};
  }

  std::string operator()(const MmuMapMessage& mapping) const {
    for (const MapEntry& entry : mapping.entries) {
      if (const std::string fault = virtual_range(entry.va, entry.bytes); !fault.empty()) return fault;
      if (const std::string fault = physical_range(entry.target, entry.bytes); !fault.empty()) return fault;
      for (const PeCoord viewer : entry.viewers) {
        if (const std::string fault = here(viewer, "viewer"); !fault.empty()) return fault;
      }
    }
    return {};
  }

  std::string operator()(const MmuUnmapMessage& range) const { return virtual_range(range.va, range.bytes); }

  std::string operator()(const SfrWriteMessage& queues) const {
    for (const NeighbourEntry& entry : queues.entries) {
      if (const std::string fault = here(entry.self, "queue's PE"); !fault.empty()) return fault;
      for (const PeCoord other : {entry.peer, entry.source}) {
        if (!map_.has(other))
          return fmt::format("a queue of {}: there is no {}", names::pe(entry.self), names::pe(other));
      }
      if (entry.slots == 0 || entry.slot_bytes == 0) {
        return fmt::format("a queue of {}: {} slots of {} B", names::pe(entry.self), entry.slots, entry.slot_bytes);
      }
      const std::uint64_t bytes = std::uint64_t{entry.slots} * entry.slot_bytes;
      for (const PhysicalAddress& ring : {entry.ring_base, entry.peer_ring_base}) {
        if (const std::string fault = physical_range(ring, bytes); !fault.empty()) return fault;
      }
    }
    return {};
  }

  std::string operator()(const ProgramMessage& program) const {
    if (!program.program) return "there is no program";
    for (const ProgramMessage::Part& part : program.parts) {
      if (const std::string fault = here(part.pe, "part's PE"); !fault.empty()) return fault;
    }
    return {};
  }

  std::string operator()(const MemoryWriteMessage& write) const { return physical_range(write.to, write.data.size()); }
  std::string operator()(const MemoryReadMessage& read) const { return physical_range(read.from, read.bytes); }

 private:
  std::string here(PeCoord pe, const char* what) const {
    if (!map_.has(pe)) return fmt::format("a {}: there is no {}", what, names::pe(pe));
    if (pe.sip != sip_)
      return fmt::format("a {}: {} is not on sip{}, which the message goes to", what, names::pe(pe), sip_);
    return {};
  }

  static std::string virtual_range(Va va, std::uint64_t bytes) {
    if (bytes == 0) return fmt::format("the range at 0x{:x} has no bytes", va);
    if (bytes - 1 > std::numeric_limits<Va>::max() - va) {
      return fmt::format("{} B at 0x{:x} end beyond all virtual addresses", bytes, va);
    }
    return {};
  }

  std::string physical_range(const PhysicalAddress& begin, std::uint64_t bytes) const {
    PhysicalAddress last = begin;
    if (bytes > 0) last.offset += bytes - 1;
    if (last.offset >= begin.offset && last.offset <= PhysicalAddress::kMaxOffset) {
      const NodeId node = map_.resolve(begin);
      if (node != kNoNode && node == map_.resolve(last)) return {};
    }
    return fmt::format("no memory of this machine has {} B at {}", bytes, begin.str());
  }

  const MachineMap& map_;
  int sip_;
};

}  // namespace

std::string fault_of(const decltype(Message::body)& body, const MachineMap& map, int sip) {
  return std::visit(Check(map, sip), body);
}

}  // namespace kernbench
