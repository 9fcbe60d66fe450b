#include "tlm/machine/address.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kernbench {

namespace {
constexpr unsigned kOffsetBits = 33, kUnitBits = 8, kKindBits = 2, kCubeBits = 8, kSipBits = 12, kRackBits = 1;
constexpr std::uint64_t kSharedKind = 3;  // unit 0: SRAM, unit 1: host

class Packer {
 public:
  void field(const char* name, std::uint64_t value, unsigned bits) {
    const std::uint64_t largest = (std::uint64_t{1} << bits) - 1;
    if (value > largest) {
      throw std::out_of_range(fmt::format("physical address: {} is {}, the largest value is {}", name, value, largest));
    }
    bits_ = (bits_ << bits) | value;
  }
  std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};
}  // namespace

const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::hbm:
      return "hbm";
    case MemoryKind::tcm:
      return "tcm";
    case MemoryKind::sfr:
      return "sfr";
    case MemoryKind::sram:
      return "sram";
    case MemoryKind::host:
      return "host";
  }
  return "?";
}

std::uint64_t PhysicalAddress::encode() const {
  const bool shared = kind == MemoryKind::sram || kind == MemoryKind::host;
  Packer packer;
  packer.field("rack", rack, kRackBits);
  packer.field("sip", sip, kSipBits);
  packer.field("cube", cube, kCubeBits);
  packer.field("kind", shared ? kSharedKind : static_cast<std::uint64_t>(kind), kKindBits);
  packer.field("unit", shared ? (kind == MemoryKind::host ? 1 : 0) : unit, kUnitBits);
  packer.field("offset", offset, kOffsetBits);
  return packer.bits();
}

PhysicalAddress PhysicalAddress::decode(std::uint64_t bits) {
  const auto take = [&bits](unsigned n) {
    const std::uint64_t value = bits & ((std::uint64_t{1} << n) - 1);
    bits >>= n;
    return value;
  };
  PhysicalAddress address;
  address.offset = take(kOffsetBits);
  address.unit = static_cast<std::uint16_t>(take(kUnitBits));
  const std::uint64_t kind = take(kKindBits);
  address.cube = static_cast<std::uint16_t>(take(kCubeBits));
  address.sip = static_cast<std::uint16_t>(take(kSipBits));
  address.rack = static_cast<std::uint8_t>(take(kRackBits));
  if (kind == kSharedKind) {
    if (address.unit > 1) {
      throw std::invalid_argument(
          fmt::format("physical address: shared unit {} names no memory (0 SRAM, 1 host)", address.unit));
    }
    address.kind = address.unit == 0 ? MemoryKind::sram : MemoryKind::host;
    address.unit = 0;
  } else {
    address.kind = static_cast<MemoryKind>(kind);
  }
  return address;
}

std::string PhysicalAddress::str() const {
  switch (kind) {
    case MemoryKind::host:
      return fmt::format("sip{}.host+{:#x}", sip, offset);
    case MemoryKind::sram:
      return fmt::format("sip{}.cube{}.sram+{:#x}", sip, cube, offset);
    default:
      return fmt::format("sip{}.cube{}.pe{}.{}+{:#x}", sip, cube, unit, to_string(kind), offset);
  }
}

}  // namespace kernbench
