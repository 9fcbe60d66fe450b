#include "sc_main/cli/limits.h"

#include <fmt/format.h>

namespace kernbench {

const std::vector<Limitation>& limitations() {
  static const std::vector<Limitation> kList{
      {"fidelity", "one level, 'accurate'; its error against BookSim, Ramulator and DRAMSys is not yet stated."},
      {"router",
       "virtual cut-through at packet grain: a hop is decided when the head arrives, for the whole packet, with credit "
       "for all of it; "
       "flits of one packet are never interleaved or stopped on the way. Arbitration is round-robin, commands and "
       "credits first."},
      {"energy", "not counted; `energy_pj` is null."},
      {"PCIe", "latency and bandwidth of the link; no TLP headers, no retry."},
      {"host copies", "untimed; messages, launches and map commands are timed."},
      {"scheduling", "`concurrent` only; `rounds` comes later."},
      {"collectives", "all_reduce over all ranks; other collectives and process groups come later."},
      {"errors on links", "no CRC errors, replay or width degradation."},
      {"foreign TLM",
       "memories answer plain TLM-2.0 payloads; a foreign initiator cannot yet be attached to a network interface."},
  };
  return kList;
}

std::string limitations_text() {
  std::string text;
  for (const Limitation& limit : limitations()) text += fmt::format("- **{}**: {}\n", limit.part, limit.text);
  return text;
}

}  // namespace kernbench
