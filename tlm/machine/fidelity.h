#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace kernbench {

/// How closely a part of the machine is modelled. Numerics are the same in both (docs/fidelity.md).
enum class Grade : std::uint8_t { accurate, fast };

/// Parts of the machine with an error of their own. Only whole packets with one arrival time and explicit backpressure
/// cross from one to another.
enum class Subsystem : std::uint8_t { noc, ucie, link, hbm, pe };
inline constexpr std::array<Subsystem, 5> kSubsystems{Subsystem::noc, Subsystem::ucie, Subsystem::link, Subsystem::hbm,
                                                      Subsystem::pe};

/// The grades that may be chosen. UCIe ports, links and PEs are one model in both.
struct Fidelity {
  Grade noc = Grade::accurate;  ///< routers and network interfaces of cubes, IO chiplets and the fabric switch
  Grade hbm = Grade::accurate;
  bool noc_by_name = false;  ///< `noc` was asked for by its name: also where its short cuts do not hold

  static constexpr Fidelity all(Grade grade) { return {grade, grade}; }
  /// Transfers travel in trains (tlm/ext/train.h): where no part on the way looks at single packets.
  constexpr bool trains() const { return noc == Grade::fast && hbm == Grade::fast; }
  /// Of a part that is one model: fast where it carries trains.
  constexpr Grade of(Subsystem part) const {
    if (part == Subsystem::noc) return noc;
    if (part == Subsystem::hbm) return hbm;
    return trains() ? Grade::fast : Grade::accurate;
  }
};
/// The same grades.
constexpr bool operator==(const Fidelity& a, const Fidelity& b) { return a.noc == b.noc && a.hbm == b.hbm; }
constexpr bool operator!=(const Fidelity& a, const Fidelity& b) { return !(a == b); }

const char* to_string(Grade grade);
const char* to_string(Subsystem part);
/// "accurate", "fast", or both where they differ: "noc=fast,hbm=accurate". parse_fidelity() reads it back.
std::string to_string(const Fidelity& fidelity);

}  // namespace kernbench
