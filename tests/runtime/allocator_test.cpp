#include "runtime/allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <stdexcept>

#include "runtime/errors.h"
#include "tests/support/thrown.h"

namespace kernbench {
namespace {

// The same cases in every run, unless the environment asks for others.
[[maybe_unused]] const int kSeededRuns = setenv("RC_PARAMS", "seed=1 max_success=300", 0);

TEST(BlockAllocator, TakesTheFirstRangeThatFits) {
  BlockAllocator blocks(4096);
  EXPECT_EQ(blocks.allocate(1000)->offset, 0u);
  EXPECT_EQ(blocks.allocate(256)->offset, 1024u);
  EXPECT_EQ(blocks.allocate(1)->offset, 1280u);
  blocks.free(0, 1000);
  EXPECT_EQ(blocks.allocate(512)->offset, 0u);
  EXPECT_EQ(blocks.allocate(513)->offset, 1536u);
  EXPECT_FALSE(blocks.allocate(4096).has_value());
}

TEST(BlockAllocator, KnowsHowMuchWasAllocatedAtOneTime) {
  BlockAllocator blocks(4096);
  blocks.allocate(1000);
  blocks.allocate(256);
  blocks.free(0, 1000);
  blocks.allocate(512);
  EXPECT_EQ(blocks.most_used(), 1024u + 256u);
  blocks.allocate(1024);
  EXPECT_EQ(blocks.most_used(), 256u + 512u + 1024u);
}

TEST(BlockAllocator, MergesNeighboursWhenTheyAreFreed) {
  BlockAllocator blocks(1024);
  for (int i = 0; i < 4; ++i) blocks.allocate(256);
  blocks.free(256, 256);
  blocks.free(768, 256);
  EXPECT_EQ(blocks.largest_free(), 256u);
  blocks.free(512, 256);
  EXPECT_EQ(blocks.largest_free(), 768u);
  blocks.free(0, 256);
  EXPECT_EQ(blocks.largest_free(), 1024u);
  EXPECT_TRUE(blocks.allocate(1024).has_value());
}

TEST(BlockAllocator, TellsWhetherMemoryWasUsedBefore) {
  BlockAllocator blocks(1024);
  EXPECT_TRUE(blocks.allocate(256)->fresh);
  blocks.free(0, 256);
  EXPECT_FALSE(blocks.allocate(512)->fresh);
  EXPECT_TRUE(blocks.allocate(512)->fresh);
}

TEST(BlockAllocator, RefusesWhatWasNotAllocated) {
  BlockAllocator blocks(1024);
  blocks.allocate(256);
  EXPECT_THROW(blocks.free(256, 256), std::logic_error);
  EXPECT_THROW(blocks.free(0, 512), std::logic_error);
  blocks.free(0, 256);
  EXPECT_THROW(blocks.free(0, 256), std::logic_error);
}

TEST(BlockAllocator, RandomUseNeverOverlapsAndReturnsEverything) {
  EXPECT_TRUE(rc::check("no overlap", [] {
    BlockAllocator blocks(1 << 16);
    std::map<std::uint64_t, std::uint64_t> used;
    const auto sizes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 5000));
    for (const int size : sizes) {
      if (size % 3 == 0 && !used.empty()) {
        const auto victim = std::next(used.begin(), size % static_cast<int>(used.size()));
        blocks.free(victim->first, victim->second);
        used.erase(victim);
        continue;
      }
      const auto bytes = static_cast<std::uint64_t>(size);
      if (const auto block = blocks.allocate(bytes)) {
        for (const auto& [offset, length] : used) {
          RC_ASSERT(block->offset + bytes <= offset || offset + length <= block->offset);
        }
        used.emplace(block->offset, bytes);
      }
    }
    for (const auto& [offset, length] : used) blocks.free(offset, length);
    RC_ASSERT(blocks.largest_free() == blocks.capacity());
  }));
}

MachineMap one_pe_of_a_mebibyte() {
  MachineMap map;
  map.sips = 1;
  map.cube_w = map.cube_h = 1;
  map.pes_per_cube = 1;
  map.hbm_slice.bytes = 1 << 20;
  map.pe_nodes = {NodeId{0}};
  map.hbm_nodes = {NodeId{1}};
  return map;
}

TEST(DeviceMemory, SaysWhyATensorDoesNotFit) {
  const MachineMap map = one_pe_of_a_mebibyte();
  DeviceMemory memory(map);
  const PeCoord pe{0, 0, 0};
  memory.allocate(pe, 256 << 10, "a");
  const auto gap = memory.allocate(pe, 128 << 10, "b");
  memory.allocate(pe, 512 << 10, "c");
  memory.free(pe, gap.offset, 128 << 10);
  EXPECT_EQ(memory.free_bytes(pe), 256u << 10);
  EXPECT_EQ(thrown_by([&] { memory.allocate(pe, 200 << 10, "w"); }),
            "out of device memory: tensor 'w' asks for 204800 B of sip0.cube0.hbm.pe0 (1048576 B): 262144 B are "
            "free, the largest free block has 131072 B; biggest tensors there: 'c' 524288 B, 'a' 262144 B");
}

TEST(DeviceMemory, KeepsTensorsOutOfWhatIsReserved) {
  const MachineMap map = one_pe_of_a_mebibyte();
  DeviceMemory memory(map);
  const PeCoord pe{0, 0, 0};
  EXPECT_THROW(memory.reserve(pe, (1 << 20) + 1), std::invalid_argument);
  memory.reserve(pe, 256 << 10);
  EXPECT_EQ(memory.free_bytes(pe), 768u << 10);
  EXPECT_EQ(memory.allocate(pe, 768 << 10, "a").offset, 0u);
  EXPECT_THROW(memory.allocate(pe, 256, "b"), OutOfDeviceMemory);
  memory.reserve(pe, 256 << 10);  // the same again
  EXPECT_THROW(memory.reserve(pe, (256 << 10) + 256), OutOfDeviceMemory) << "a tensor lies there";
  memory.free(pe, 0, 768 << 10);
  memory.reserve(pe, (256 << 10) + 256);
  EXPECT_EQ(memory.free_bytes(pe), (768u << 10) - 256);
  EXPECT_THROW(memory.allocate(pe, 768 << 10, "a"), OutOfDeviceMemory);
}

}  // namespace
}  // namespace kernbench
