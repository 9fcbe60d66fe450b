#pragma once
#include <cstdint>
#include <string>

namespace kernbench {

/// Names one IPCQ queue pair of a PE. N, S, E, W join PE i of a cube to PE i of the neighbouring cube; local(j) reaches
/// PE j of the same cube; global(k) group peer k; global_n ... are names for the neighbours in the grid of SIPs.
class Direction {
 public:
  constexpr Direction() = default;
  static constexpr Direction north() { return Direction(0); }     ///< PE i of the cube to the north
  static constexpr Direction south() { return Direction(1); }     ///< PE i of the cube to the south
  static constexpr Direction east() { return Direction(2); }      ///< PE i of the cube to the east
  static constexpr Direction west() { return Direction(3); }      ///< PE i of the cube to the west
  static constexpr Direction global_n() { return Direction(4); }  ///< the SIP to the north
  static constexpr Direction global_s() { return Direction(5); }  ///< the SIP to the south
  static constexpr Direction global_e() { return Direction(6); }  ///< the SIP to the east
  static constexpr Direction global_w() { return Direction(7); }  ///< the SIP to the west
  /// PE `pe` of the same cube. Throws std::out_of_range beyond kLocals.
  static constexpr Direction local(unsigned pe) { return numbered("local", kFirstLocal, pe, kLocals); }
  /// Group peer `peer`. Throws std::out_of_range beyond kGlobals.
  static constexpr Direction global(unsigned peer) { return numbered("global", kFirstGlobal, peer, kGlobals); }

  static constexpr unsigned kLocals = 0x3000;   ///< that there are numbers for
  static constexpr unsigned kGlobals = 0xC000;  ///< likewise

  static constexpr Direction from_code(std::uint16_t code) { return Direction(code); }  ///< of code()

  constexpr std::uint16_t code() const { return code_; }  ///< as tables and packets carry it
  /// "N", "global_E", "local(3)", "global(7)".
  std::string str() const;
  friend constexpr bool operator==(Direction a, Direction b) { return a.code_ == b.code_; }
  friend constexpr bool operator!=(Direction a, Direction b) { return a.code_ != b.code_; }
  friend constexpr bool operator<(Direction a, Direction b) { return a.code_ < b.code_; }

 private:
  static constexpr unsigned kFirstLocal = 0x1000, kFirstGlobal = kFirstLocal + kLocals;
  explicit constexpr Direction(std::uint16_t code) : code_(code) {}
  static constexpr Direction numbered(const char* kind, unsigned first, unsigned number, unsigned count) {
    if (number >= count) throw_beyond(kind, number, count);
    return Direction(static_cast<std::uint16_t>(first + number));
  }
  [[noreturn]] static void throw_beyond(const char* kind, unsigned number, unsigned count);
  std::uint16_t code_ = 0;
};

}  // namespace kernbench
