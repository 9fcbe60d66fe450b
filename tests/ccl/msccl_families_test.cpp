// The families of the public MSCCL files (docs/collectives.md), written anew.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ccl/import/import.h"
#include "tests/ccl/collective_case.h"
#include "tests/ccl/msccl_step.h"
#include "tests/support/test_folder.h"

namespace kernbench::test {
namespace {

constexpr int kGpus = 8;

/// A thread block of a file that is being written: what it sends to and receives from, and its steps.
struct Block {
  int send = -1, recv = -1, channel = 0;
  std::string steps{};
  int count = 0;
  /// `after`: block and step that come first; none where the block is -1.
  void add(const std::string& type, const std::string& from, int from_chunk, const std::string& to, int to_chunk,
           int chunks, std::pair<int, int> after = {-1, -1}) {
    steps += step(count++, type, from, from_chunk, to, to_chunk,
                  "cnt=\"" + std::to_string(chunks) + "\" depid=\"" + std::to_string(after.first) + "\" deps=\"" +
                      std::to_string(after.second) + "\" hasdep=\"1\"");
  }
};
/// An all-reduce in place of `chunks` chunks, whose gpu g has blocks_of(g).
std::string all_reduce_file(int chunks, const std::function<std::vector<Block>(int)>& blocks_of) {
  std::string text = "<algo name=\"a\" nchunksperloop=\"" + std::to_string(chunks) + "\" ngpus=\"" +
                     std::to_string(kGpus) + "\" coll=\"allreduce\" inplace=\"1\">\n";
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    text += "<gpu id=\"" + std::to_string(gpu) + "\">\n";
    int id = 0;
    for (const Block& block : blocks_of(gpu)) {
      text += "<tb id=\"" + std::to_string(id++) + "\" send=\"" + std::to_string(block.send) + "\" recv=\"" +
              std::to_string(block.recv) + "\" chan=\"" + std::to_string(block.channel) + "\">\n" + block.steps +
              "</tb>\n";
    }
    text += "</gpu>\n";
  }
  return text + "</algo>\n";
}
/// The gpu that has place `i` of those beside `gpu`, and the place that `gpu` has of those beside `peer`.
int beside(int gpu, int i) { return i < gpu ? i : i + 1; }
int place_of(int gpu, int peer) { return gpu < peer ? gpu : gpu - 1; }

/// Everyone gets its chunk of all, adds them up, and gives the sum to all.
std::vector<Block> all_pairs_in_two_steps(int gpu) {
  std::vector<Block> blocks(kGpus);
  for (int i = 0; i < kGpus - 1; ++i) {
    const int peer = beside(gpu, i);
    blocks[i].send = blocks[i].recv = peer;
    blocks[i].add("s", "i", peer, "s", place_of(gpu, peer), 1);
    blocks[i].add("r", "s", i, "s", i, 1);
    blocks[kGpus - 1].add("re", "s", i, "i", gpu, 1, {i, 1});
    blocks[i].add("s", "i", gpu, "i", gpu, 1, {kGpus - 1, kGpus - 2});
    blocks[i].add("r", "i", peer, "i", peer, 1);
  }
  return blocks;
}
/// Everyone gets all of all, and adds it up.
std::vector<Block> all_pairs_in_one_step(int gpu) {
  std::vector<Block> blocks(kGpus);
  Block& sum = blocks[kGpus - 1];
  for (int i = 0; i < kGpus - 1; ++i) {
    blocks[i].send = blocks[i].recv = beside(gpu, i);
    blocks[i].add("s", "i", 0, "s", place_of(gpu, beside(gpu, i)), 1);
    blocks[i].add("r", "s", i, "s", i, 1);
    if (i > 0) sum.add("re", "s", i, "s", 0, 1, {i, 1});
  }
  sum.add("re", "s", 0, "i", 0, 1, {0, 1});  // last: by now all have been sent what was there
  return blocks;
}
std::vector<Block> recursive_doubling(int gpu) {
  std::vector<Block> blocks;
  for (int distance = 1, round = 0; distance < kGpus; distance *= 2, ++round) {
    Block block;
    block.send = block.recv = gpu ^ distance;
    block.add("s", "i", 0, "s", round, 1, round == 0 ? std::pair(-1, -1) : std::pair(round - 1, 2));
    block.add("r", "s", round, "s", round, 1);
    block.add("re", "s", round, "i", 0, 1);
    blocks.push_back(block);
  }
  return blocks;
}
/// Halves of what a gpu still sums go to the one at half the distance; then the sums come back the same way.
std::vector<Block> halving_doubling(int gpu) {
  std::vector<Block> blocks;
  const auto next = [&](int peer, int channel) -> Block& {
    blocks.push_back({peer, peer, channel});
    return blocks.back();
  };
  const auto before = [&] {
    return blocks.size() == 1 ? std::pair(-1, -1) : std::pair<int, int>(blocks.size() - 2, 1);
  };
  for (int distance = kGpus / 2; distance > 0; distance /= 2) {
    Block& block = next(gpu ^ distance, 0);
    const int own = gpu / distance * distance, other = own ^ distance;
    block.add("s", "i", other, "i", other, distance, before());
    block.add("rrc", "i", own, "i", own, distance);
  }
  for (int distance = 1; distance < kGpus; distance *= 2) {
    Block& block = next(gpu ^ distance, 1);
    const int own = gpu / distance * distance, other = own ^ distance;
    block.add("s", "i", own, "i", own, distance, before());
    block.add("r", "i", other, "i", other, distance);
  }
  return blocks;
}

TEST(Msccl, TheFamiliesOfThePublicFilesAreRightInEveryElement) {
  const TestFolder folder;
  const MachineMap eight = make_map(SipTopology::ring_1d, kGpus, 0, 0, 2, 1, 2);
  const std::vector<std::tuple<const char*, int, std::function<std::vector<Block>(int)>>> families{
      {"all_pairs_in_two_steps", kGpus, all_pairs_in_two_steps},
      {"all_pairs_in_one_step", 1, all_pairs_in_one_step},
      {"recursive_doubling", 1, recursive_doubling},
      {"halving_doubling", kGpus, halving_doubling}};
  for (const auto& [name, chunks, blocks_of] : families) {
    const std::string file = folder.file(std::string(name) + ".xml");
    std::ofstream(file) << all_reduce_file(chunks, blocks_of);
    for (const std::int64_t count : {1, 48, 201}) {
      CollectiveCase c;
      c.algorithm = file;
      c.count = count;
      for (const bool in_place : {true, false}) {
        c.in_place = in_place;
        EXPECT_EQ(run_collective(eight, c), "") << name << " " << count;
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::test
