#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ccl/run/collective.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::test {

/// A machine map without nodes' places: PEs, HBM ports and links, for what collectives read of it.
MachineMap make_map(SipTopology topology, int sips, int sip_w, int sip_h, int cube_w, int cube_h, int pes);

/// Ops of a kernel as one PE recorded them. Not a model of the machine: every op waits for the one before it, which is
/// the strictest execution that the kernel rules allow. What ends here ends on any machine with as many slots.
struct Op {
  enum class Kind { load, store, send, recv, math, fill, slice } kind;
  std::uint64_t result = 0;
  std::vector<std::uint64_t> operands;
  Va va = 0;
  Shape shape;
  DType dtype = DType::f16;
  Direction direction;
  MathOp math = MathOp::add;
  double value = 0;
  std::int64_t first = 0;  ///< slice: element of the operand
};

/// Runs one collective call on all ranks, functionally.
class FakeMachine {
 public:
  FakeMachine(const MachineMap& map, const ccl::Collective& collective);

  /// Contents of one PE's memory from `va` on. Others see it unless they have their own there: that of the first PE of
  /// their cube, or else of their SIP, that has it.
  std::vector<std::uint8_t>& memory(PeCoord pe, Va va) { return memory_[pe][va]; }
  /// Records and executes the launches of all ranks. Returns who is stuck, empty if all ended and every queue is empty.
  std::string run(const std::vector<ccl::Collective::Launch>& launches);

  std::uint64_t messages = 0;  ///< sent in all
  std::uint64_t most_message_bytes = 0;
  std::map<std::pair<PeCoord, std::uint16_t>, std::uint64_t> received;  ///< bytes from other SIPs, by ring

 private:
  struct Queue {
    std::deque<std::vector<std::uint8_t>> slots;
    std::size_t capacity = 0;
  };
  struct Process {
    PeCoord pe;
    std::vector<Op> ops;
    std::size_t next = 0;
    std::map<std::uint64_t, std::vector<std::uint8_t>> tiles;
  };
  bool step(Process& process);
  std::uint8_t* at(PeCoord pe, Va va, std::size_t bytes);
  std::uint8_t* find(PeCoord pe, Va va, std::size_t bytes);

  const MachineMap& map_;
  std::map<std::pair<PeCoord, Direction>, NeighbourEntry> entries_;
  std::map<std::pair<PeCoord, std::uint16_t>, Queue> rings_;
  std::map<PeCoord, std::map<Va, std::vector<std::uint8_t>>> memory_;
};

}  // namespace kernbench::test
