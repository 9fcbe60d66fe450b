#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tlm/kernel/tile.h"

namespace kernbench::pe {

/// Hands out ranges of a part of a TCM: next fit within a window at the low end, first fit beyond it; neighbours merge
/// on release. So a loop whose tiles die with each turn walks through the window instead of waiting for the tile of the
/// turn before, and the part of TCM that is touched stays small. The window holds what is in use and as much again, so
/// that tiles which live long leave room to walk. Knows no time: the scoreboard makes an op wait for the earlier ops on
/// a range that is used again.
class TcmArena {
 public:
  static constexpr std::uint64_t kAlignment = 64;  ///< bytes   assumed: one line of the engines' operand ports
  /// Room to walk: for four allocations of the size asked for, and at least this much.
  /// assumed: 64 tiles of 4 KiB, as many as four queues of 16 ops may hold.
  static constexpr std::uint64_t kWindow = 256 << 10;  ///< bytes

  /// What a range is for; shown when nothing fits any more.
  struct Label {
    const char* op = "";
    Shape shape;
    DType dtype = DType::f16;
  };

  TcmArena(std::uint64_t begin, std::uint64_t end);

  /// Offset of `bytes` bytes; nothing if no free block is large enough. Zero bytes occupy nothing.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, const Label& label);
  void release(std::uint64_t offset, std::uint64_t bytes);
  /// Takes whatever part of [begin, end) lies in this arena out of use, for good. False if some of it is in use.
  bool reserve(std::uint64_t begin, std::uint64_t end);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t free_bytes() const;
  std::uint64_t most_in_use() const { return most_in_use_; }  ///< bytes, of tiles, at any time so far
  std::uint64_t largest_free() const;
  /// "load 256x1024 f16 (524288 B), add 1x64 f16 (128 B)": the largest first, at most `limit` of them.
  std::string occupants(std::size_t limit) const;

 private:
  struct Block {
    std::uint64_t bytes;
    Label label;
  };
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes; neighbours merged
  std::map<std::uint64_t, Block> used_;
  std::uint64_t begin_;
  std::uint64_t next_;  // where the last allocation ended
  std::uint64_t capacity_;
  std::uint64_t in_use_ = 0, most_in_use_ = 0;

  std::optional<std::uint64_t> find(std::uint64_t from, std::uint64_t end, std::uint64_t size) const;
};

}  // namespace kernbench::pe
