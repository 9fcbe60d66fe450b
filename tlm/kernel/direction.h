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
  static constexpr Direction local(unsigned pe) { return Direction(static_cast<std::uint16_t>(0x1000 + pe)); }
  static constexpr Direction global(unsigned peer) { return Direction(static_cast<std::uint16_t>(0x4000 + peer)); }

  static constexpr Direction from_code(std::uint16_t code) { return Direction(code); }  ///< of code()

  constexpr std::uint16_t code() const { return code_; }  ///< as tables and packets carry it
  /// "N", "global_E", "local(3)", "global(7)".
  std::string str() const;
  friend constexpr bool operator==(Direction a, Direction b) { return a.code_ == b.code_; }
  friend constexpr bool operator!=(Direction a, Direction b) { return a.code_ != b.code_; }
  friend constexpr bool operator<(Direction a, Direction b) { return a.code_ < b.code_; }

 private:
  explicit constexpr Direction(std::uint16_t code) : code_(code) {}
  std::uint16_t code_ = 0;
};

}  // namespace kernbench
