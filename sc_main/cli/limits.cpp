#include "sc_main/cli/limits.h"

#include <fmt/format.h>

namespace kernbench {

const std::vector<Limitation>& limitations() {
  static const std::vector<Limitation> kList{
      {"fidelity",
       "`fast` is a model of its own for `noc` and `hbm`; `ucie` and `link` have the same ports in both grades, `pe` "
       "has one grade. Trains of 4 to 64 KiB only where every part is fast; what shares their virtual channel waits "
       "for a whole train."},
      {"router",
       "input-queued, one flit per cycle and port; no speculation, adaptive routes, output buffers or speed-up. A "
       "virtual channel is chosen by source and destination, not by load."},
      {"UCIe and inter-SIP links",
       "bit errors are replayed, but links do not train, retrain or sleep; acknowledgements take no room on the wire; "
       "a packet starts on a wire when its tail has won its way, not with its head."},
      {"HBM",
       "two scheduling policies (`batched` and `shared`); no power-down, ECC, temperature, refresh management or "
       "postponed refreshes; the controller adds a constant latency."},
      {"TCM",
       "the engines' operand traffic loads all banks alike, as a rate; single words do not conflict below saturation."},
      {"PCIe",
       "one pool of flow control credits per direction, not one per class, header and data; no retry, no DLLPs."},
      {"machines with missing PEs",
       "tensors use equally many PEs of every cube, among those that all SIPs have; the others of such a cube stay "
       "idle."},
      {"GEMM", "a composite reads a and b again for every output tile; operands are not pinned in TCM."},
      {"energy", "M_CPU, IO_CPU and the instructions of PE_CPU are not counted."},
      {"collectives",
       "`send` and `recv` of two ranks run on their default streams; the barrier of ranks is a matter of the host and "
       "takes no simulated time. A call whose algorithm is a kernel, not a schedule, works in place only."},
      {"execution traces",
       "a rank of a Chakra trace communicates one thing at a time, and its computing is time only: it takes no memory "
       "bandwidth from communication. Memory, storage and checkpoint nodes are refused."},
      {"pipelines",
       "an exchange is among parts of one SIP or among SIPs, not both; a slot does one supertask at a time; supertasks "
       "that are not alike share no memory; an embedding's indices are read by the host."},
      {"foreign TLM",
       "a foreign initiator sits beside the PEs or in the place of one, a foreign target in that of a memory; there is "
       "no DMI."},
      {"checks",
       "`--debug` finds races between PEs of one launch on one SIP and kernels that meet in a queue, in the order of "
       "this run."},
      {"critical path",
       "contention inside a router network is not told apart by router; in fast networks what holds up packets from "
       "outside is named for those that wait at its border."},
  };
  return kList;
}

std::string limitations_text() {
  std::string text;
  for (const Limitation& limit : limitations()) text += fmt::format("- {}: {}\n", limit.part, limit.text);
  return text;
}

}  // namespace kernbench
