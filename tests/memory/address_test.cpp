#include "tlm/machine/address.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <stdexcept>

namespace kernbench {
namespace {

constexpr MemoryKind kKinds[] = {MemoryKind::hbm, MemoryKind::tcm, MemoryKind::sfr, MemoryKind::sram, MemoryKind::host};
bool has_unit(MemoryKind kind) { return kind != MemoryKind::sram && kind != MemoryKind::host; }

std::string error(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(PhysicalAddress, RoundTripsOverTheWholeRangeOfEveryField) {
  const bool holds = rc::check("decode(encode(address)) == address", [] {
    PhysicalAddress address;
    address.rack = *rc::gen::inRange<std::uint8_t>(0, 2);
    address.sip = *rc::gen::inRange<std::uint16_t>(0, 4096);
    address.cube = *rc::gen::inRange<std::uint16_t>(0, 256);
    address.kind = *rc::gen::elementOf(std::vector<MemoryKind>(std::begin(kKinds), std::end(kKinds)));
    address.unit = has_unit(address.kind) ? *rc::gen::inRange<std::uint16_t>(0, 256) : 0;
    address.offset = *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, PhysicalAddress::kMaxOffset + 1),
                                     rc::gen::just(PhysicalAddress::kMaxOffset), rc::gen::just(std::uint64_t{0}));
    RC_ASSERT(PhysicalAddress::decode(address.encode()) == address);
  });
  EXPECT_TRUE(holds);
}

TEST(PhysicalAddress, EveryValueOfEveryFieldAloneRoundTrips) {
  for (const MemoryKind kind : kKinds) {
    for (std::uint32_t sip = 0; sip < 4096; ++sip) {
      const PhysicalAddress address{0, static_cast<std::uint16_t>(sip), 0, kind, 0, 0};
      ASSERT_EQ(PhysicalAddress::decode(address.encode()), address);
    }
    for (std::uint32_t i = 0; i < 256; ++i) {
      const auto value = static_cast<std::uint16_t>(i);
      const PhysicalAddress cube{1, 4095, value, kind, 0, PhysicalAddress::kMaxOffset};
      ASSERT_EQ(PhysicalAddress::decode(cube.encode()), cube);
      const PhysicalAddress unit{1, 4095, 255, kind, has_unit(kind) ? value : std::uint16_t{0}, 1};
      ASSERT_EQ(PhysicalAddress::decode(unit.encode()), unit);
    }
  }
}

TEST(PhysicalAddress, DifferentAddressesHaveDifferentCodes) {
  const bool holds = rc::check("encode(decode(bits)) == bits", [](std::uint64_t bits) {
    try {
      RC_ASSERT(PhysicalAddress::decode(bits).encode() == bits);
    } catch (const std::invalid_argument&) {
      RC_ASSERT(((bits >> 41) & 3) == 3u && ((bits >> 33) & 0xff) > 1);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(PhysicalAddress, AValueThatDoesNotFitItsFieldIsAnErrorThatNamesBoth) {
  EXPECT_EQ(error([] { PhysicalAddress{2, 0, 0, MemoryKind::hbm, 0, 0}.encode(); }),
            "physical address: rack is 2, the largest value is 1");
  EXPECT_EQ(error([] { PhysicalAddress{0, 4096, 0, MemoryKind::hbm, 0, 0}.encode(); }),
            "physical address: sip is 4096, the largest value is 4095");
  EXPECT_EQ(error([] { PhysicalAddress{0, 0, 256, MemoryKind::sram, 0, 0}.encode(); }),
            "physical address: cube is 256, the largest value is 255");
  EXPECT_EQ(error([] { PhysicalAddress{0, 0, 0, MemoryKind::tcm, 256, 0}.encode(); }),
            "physical address: unit is 256, the largest value is 255");
  EXPECT_EQ(error([] { PhysicalAddress{0, 0, 0, MemoryKind::hbm, 0, PhysicalAddress::kMaxOffset + 1}.encode(); }),
            "physical address: offset is 8589934592, the largest value is 8589934591");
  EXPECT_EQ(error([] { PhysicalAddress::decode((std::uint64_t{3} << 41) | (std::uint64_t{2} << 33)); }),
            "physical address: shared unit 2 names no memory (0 SRAM, 1 host)");
}

TEST(PhysicalAddress, ReadsAsItsStructuralName) {
  EXPECT_EQ(PhysicalAddress::hbm({0, 3, 5}, 0x1000).str(), "sip0.cube3.pe5.hbm+0x1000");
  EXPECT_EQ(PhysicalAddress::tcm({1, 2, 7}, 0).str(), "sip1.cube2.pe7.tcm+0x0");
  EXPECT_EQ(PhysicalAddress::sram({1, 2}, 16).str(), "sip1.cube2.sram+0x10");
  EXPECT_EQ(PhysicalAddress::host(4, 255).str(), "sip4.host+0xff");
}

}  // namespace
}  // namespace kernbench
