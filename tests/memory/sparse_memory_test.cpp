#include "models/memory/sparse_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <utility>
#include <vector>

namespace kernbench {
namespace {

using Bytes = std::vector<std::uint8_t>;
Bytes read(const SparseMemory& memory, std::uint64_t address, std::size_t bytes) {
  Bytes data(bytes, 0xee);
  memory.read(address, data.data(), bytes);
  return data;
}

TEST(SparseMemory, IsZeroUntilWritten) {
  const SparseMemory memory;
  EXPECT_EQ(read(memory, (std::uint64_t{1} << 62) - 3, 9), Bytes(9, 0));
}

TEST(SparseMemory, BehavesLikeAByteMap) {
  const bool holds = rc::check("any writes, then any read", [] {
    SparseMemory memory(true);
    std::map<std::uint64_t, std::uint8_t> bytes;
    const auto place = rc::gen::inRange<std::uint64_t>(0, 3 * SparseMemory::kPageBytes);
    const auto length = rc::gen::inRange<std::size_t>(0, 2 * SparseMemory::kPageBytes);
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t address = *place;
      const std::size_t count = *length;
      const auto value = *rc::gen::arbitrary<std::uint8_t>();
      Bytes data(count);
      for (std::size_t k = 0; k < count; ++k) bytes[address + k] = data[k] = static_cast<std::uint8_t>(value + k);
      memory.write(address, data.data(), count);
    }
    const std::uint64_t address = *place;
    Bytes data(*length, 0xee);
    const bool all_written = memory.read(address, data.data(), data.size());
    bool expected = true;
    for (std::size_t k = 0; k < data.size(); ++k) {
      const auto found = bytes.find(address + k);
      expected = expected && found != bytes.end();
      RC_ASSERT(data[k] == (found == bytes.end() ? 0 : found->second));
    }
    RC_ASSERT(all_written == expected);
  });
  EXPECT_TRUE(holds);
}

TEST(SparseMemory, ReportsUnwrittenBytesOnlyWhereTheyAreTracked) {
  SparseMemory tracked(true), plain;
  std::uint8_t data[8] = {1, 2, 3, 4};
  tracked.write(100, data, 4);
  plain.write(100, data, 4);
  EXPECT_TRUE(tracked.read(100, data, 4));
  EXPECT_FALSE(tracked.read(100, data, 5));
  EXPECT_FALSE(tracked.read(99, data, 2));
  EXPECT_FALSE(tracked.read(1 << 20, data, 8)) << "of a page that has nothing at all";
  EXPECT_TRUE(plain.read(99, data, 8));
  EXPECT_TRUE(plain.read(1 << 20, data, 8));
}

}  // namespace
}  // namespace kernbench
