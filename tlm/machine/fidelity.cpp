#include "tlm/machine/fidelity.h"

namespace kernbench {

const char* to_string(Grade grade) { return grade == Grade::fast ? "fast" : "accurate"; }

const char* to_string(Subsystem part) {
  switch (part) {
    case Subsystem::noc:
      return "noc";
    case Subsystem::ucie:
      return "ucie";
    case Subsystem::link:
      return "link";
    case Subsystem::hbm:
      return "hbm";
    case Subsystem::pe:
      return "pe";
  }
  return "";
}

std::string to_string(const Fidelity& fidelity) {
  if (fidelity == Fidelity::all(fidelity.noc)) return to_string(fidelity.noc);
  return std::string("noc=") + to_string(fidelity.noc) + ",hbm=" + to_string(fidelity.hbm);
}

}  // namespace kernbench
