#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace kernbench {

/// How closely a part of the machine is modelled. Numerics are the same in both (docs/fidelity.md).
enum class Grade : std::uint8_t { accurate, fast };

/// Parts whose grade may be chosen apart from the others'. Only whole packets with one arrival time and explicit
/// backpressure cross from one to another.
enum class Subsystem : std::uint8_t { noc, ucie, link, hbm, pe };
inline constexpr std::array<Subsystem, 5> kSubsystems{Subsystem::noc, Subsystem::ucie, Subsystem::link, Subsystem::hbm,
                                                      Subsystem::pe};

/// The grade of every subsystem.
struct Fidelity {
  Grade noc = Grade::accurate;   ///< routers and network interfaces of cubes, IO chiplets and the fabric switch
  Grade ucie = Grade::accurate;  ///< die-to-die ports
  Grade link = Grade::accurate;  ///< links between SIPs
  Grade hbm = Grade::accurate;
  Grade pe = Grade::accurate;

  static constexpr Fidelity all(Grade grade) { return {grade, grade, grade, grade, grade}; }
  constexpr Grade of(Subsystem part) const {
    switch (part) {
      case Subsystem::noc:
        return noc;
      case Subsystem::ucie:
        return ucie;
      case Subsystem::link:
        return link;
      case Subsystem::hbm:
        return hbm;
      case Subsystem::pe:
        return pe;
    }
    return Grade::accurate;
  }
  /// Transfers travel in trains (tlm/ext/train.h): where no part on the way looks at single packets.
  constexpr bool trains() const {
    return noc == Grade::fast && ucie == Grade::fast && link == Grade::fast && hbm == Grade::fast && pe == Grade::fast;
  }
  constexpr void set(Subsystem part, Grade grade) {
    (part == Subsystem::noc    ? noc
     : part == Subsystem::ucie ? ucie
     : part == Subsystem::link ? link
     : part == Subsystem::hbm  ? hbm
                               : pe) = grade;
  }
};
constexpr bool operator==(const Fidelity& a, const Fidelity& b) {
  return a.noc == b.noc && a.ucie == b.ucie && a.link == b.link && a.hbm == b.hbm && a.pe == b.pe;
}
constexpr bool operator!=(const Fidelity& a, const Fidelity& b) { return !(a == b); }

/// Whether this version has the grade; one that it does not have is refused before the machine is built. `ucie`, `link`
/// and `pe` are the same model in both grades.
constexpr bool has_grade(Subsystem part, Grade grade) {
  switch (part) {
    case Subsystem::noc:
    case Subsystem::ucie:
    case Subsystem::link:
    case Subsystem::hbm:
    case Subsystem::pe:
      return grade == Grade::accurate || grade == Grade::fast;
  }
  return false;
}

const char* to_string(Grade grade);
const char* to_string(Subsystem part);
/// "accurate", "fast", or every part where they differ: "noc=fast,ucie=accurate,...". parse_fidelity() reads it back.
std::string to_string(const Fidelity& fidelity);

}  // namespace kernbench
