#include "sc_main/cli/limits.h"

#include <fmt/format.h>

namespace kernbench {

const std::vector<Limitation>& limitations() {
  static const std::vector<Limitation> kList{
      {"fidelity",
       "one level, 'accurate'; its error against BookSim, Ramulator and DRAMSys is not yet stated by the tool."},
      {"router",
       "virtual cut-through at packet grain: a hop is decided when the head arrives, for the whole packet, with "
       "credit for all of it. Flits of different packets do not interleave on a link; a virtual channel is chosen "
       "by source and destination, not by load; a buffer shallower than a packet is refused."},
      {"UCIe and inter-SIP links",
       "packets take their bytes on the wire, not whole flits; no bit errors, replay, width degradation or power "
       "states."},
      {"HBM",
       "one scheduling policy (separate read and write queues, writes drained in batches); no forwarding from "
       "queued writes; no power-down, ECC or temperature."},
      {"TCM", "one read and one write port; no banks, and no conflicts with the compute engines."},
      {"PCIe", "latency, bandwidth and the overhead of each TLP; no flow control credits, no retry."},
      {"machines with missing PEs",
       "all_reduce needs a placement that avoids the missing PEs; none goes around them by itself."},
      {"GEMM", "a composite GEMM pays fill and drain of the array at every step along k."},
      {"energy", "not counted; `energy_pj` is null."},
      {"host copies",
       "untimed (only the probe workload sends timed ones); messages, launches and map commands are timed."},
      {"scheduling", "`concurrent` only; `rounds` comes later."},
      {"collectives",
       "all_reduce over all ranks; other collectives, process groups and one rank per PE come later. The algorithm "
       "`auto` is chosen by topology and scope, not by size."},
      {"foreign TLM",
       "memories answer plain TLM-2.0 payloads on their own ports, TCM without the END_RESP handshake; a foreign "
       "initiator cannot be attached to a network interface, and there is no b_transport or DMI through the network."},
      {"checks", "`--debug` reports reads of bytes that nobody wrote; races are not looked for."},
      {"op log", "JSON lines; there is no SQLite."},
  };
  return kList;
}

std::string limitations_text() {
  std::string text;
  for (const Limitation& limit : limitations()) text += fmt::format("- {}: {}\n", limit.part, limit.text);
  return text;
}

}  // namespace kernbench
