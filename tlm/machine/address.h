#pragma once
#include <cstdint>
#include <string>

#include "tlm/machine/ids.h"

namespace kernbench {

/// Which memory of a SIP an address lies in. `sram`: a cube's shared SRAM; `host`: the host's memory.
enum class MemoryKind : std::uint8_t { hbm, tcm, sfr, sram, host };
const char* to_string(MemoryKind kind);

/// A physical address, taken apart. Bit layout of the encoded form, most significant first:
///
///   | 63   | 62..51 | 50..43 | 42..41          | 40..33 | 32..0  |
///   | rack | sip    | cube   | memory kind     | unit   | offset |
///
/// Kinds 0 HBM, 1 TCM, 2 SFR: unit = PE (for HBM: the slice of that PE). Kind 3: unit 0 = the cube's shared SRAM,
/// unit 1 = host memory. Room for 2 racks of 4,096 SIPs, 256 cubes, 256 PEs and 8 GiB per unit.
struct PhysicalAddress {
  std::uint8_t rack = 0;              ///< 0 or 1
  std::uint16_t sip = 0;              ///< 0 to 4095
  std::uint16_t cube = 0;             ///< within SIP
  MemoryKind kind = MemoryKind::hbm;  ///< which memory
  std::uint16_t unit = 0;             ///< PE for hbm, tcm and sfr; 0 for sram and host
  std::uint64_t offset = 0;           ///< bytes

  static constexpr std::uint64_t kMaxOffset = (std::uint64_t{1} << 33) - 1;  ///< of 33 bits

  /// Throws std::out_of_range, naming the field, its value and its largest value, if one does not fit.
  std::uint64_t encode() const;
  /// Throws std::invalid_argument if the bits name no memory (kind 3 with a unit above 1).
  static PhysicalAddress decode(std::uint64_t bits);
  std::string str() const;  ///< "sip0.cube3.pe5.hbm+0x1000"

  /** In a PE's HBM slice. */ static PhysicalAddress hbm(PeCoord pe, std::uint64_t offset) {
    return {0, pe.sip, pe.cube, MemoryKind::hbm, pe.pe, offset};
  }
  /** In a PE's TCM. */ static PhysicalAddress tcm(PeCoord pe, std::uint64_t offset) {
    return {0, pe.sip, pe.cube, MemoryKind::tcm, pe.pe, offset};
  }
  /** Among a PE's registers. */ static PhysicalAddress sfr(PeCoord pe, std::uint64_t offset) {
    return {0, pe.sip, pe.cube, MemoryKind::sfr, pe.pe, offset};
  }
  /** In a cube's SRAM. */ static PhysicalAddress sram(CubeCoord cube, std::uint64_t offset) {
    return {0, cube.sip, cube.cube, MemoryKind::sram, 0, offset};
  }
  /** In a SIP's host memory. */ static PhysicalAddress host(std::uint16_t sip, std::uint64_t offset) {
    return {0, sip, 0, MemoryKind::host, 0, offset};
  }

  /// So many bytes further on in the same memory.
  friend PhysicalAddress operator+(PhysicalAddress address, std::uint64_t bytes) {
    address.offset += bytes;
    return address;
  }
  friend bool operator==(const PhysicalAddress& a, const PhysicalAddress& b) {
    return std::tie(a.rack, a.sip, a.cube, a.kind, a.unit, a.offset) ==
           std::tie(b.rack, b.sip, b.cube, b.kind, b.unit, b.offset);
  }
};

}  // namespace kernbench
