#include "models/pe/tcm/tcm_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kernbench::pe {

namespace {
std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + TcmArena::kAlignment - 1) / TcmArena::kAlignment * TcmArena::kAlignment;
}
}  // namespace

TcmArena::TcmArena(std::uint64_t begin, std::uint64_t end) {
  begin = round_up(begin);
  end = end / kAlignment * kAlignment;
  begin_ = next_ = begin;
  capacity_ = end > begin ? end - begin : 0;
  if (capacity_ > 0) free_.emplace(begin, capacity_);
}

/// Lowest offset at or after `from` where `size` bytes below `end` are free.
std::optional<std::uint64_t> TcmArena::find(std::uint64_t from, std::uint64_t end, std::uint64_t size) const {
  auto block = free_.upper_bound(from);
  if (block != free_.begin()) --block;
  for (; block != free_.end() && block->first < end; ++block) {
    const std::uint64_t offset = std::max(block->first, from);
    if (offset + size <= std::min(block->first + block->second, end)) return offset;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> TcmArena::allocate(std::uint64_t bytes, const Label& label) {
  if (bytes == 0) return 0;
  const std::uint64_t size = round_up(bytes);
  const std::uint64_t window = begin_ + in_use_ + std::max({kWindow, 4 * size, in_use_});
  std::optional<std::uint64_t> offset = find(next_, window, size);
  if (!offset) offset = find(begin_, ~std::uint64_t{0}, size);
  if (!offset) return std::nullopt;
  const auto block = std::prev(free_.upper_bound(*offset));
  const std::uint64_t block_end = block->first + block->second;
  if (block->first == *offset) {
    free_.erase(block);
  } else {
    block->second = *offset - block->first;
  }
  if (block_end > *offset + size) free_.emplace(*offset + size, block_end - *offset - size);
  used_.emplace(*offset, Block{bytes, label});
  next_ = *offset + size;
  in_use_ += size;
  most_in_use_ = std::max(most_in_use_, in_use_);
  return offset;
}

void TcmArena::release(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  used_.erase(offset);
  in_use_ -= round_up(bytes);
  auto block = free_.emplace(offset, round_up(bytes)).first;
  const auto behind = std::next(block);
  if (behind != free_.end() && block->first + block->second == behind->first) {
    block->second += behind->second;
    free_.erase(behind);
  }
  if (block == free_.begin()) return;
  const auto before = std::prev(block);
  if (before->first + before->second == block->first) {
    before->second += block->second;
    free_.erase(block);
  }
}

bool TcmArena::reserve(std::uint64_t begin, std::uint64_t end) {
  begin = begin / kAlignment * kAlignment;
  end = round_up(end);
  for (const auto& [offset, block] : used_) {
    if (offset < end && begin < offset + round_up(block.bytes)) return false;
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> cut;
  for (const auto& [offset, bytes] : free_) {
    if (offset < end && begin < offset + bytes) cut.emplace_back(offset, offset + bytes);
  }
  for (const auto& [from, to] : cut) {
    free_.erase(from);
    if (from < begin) free_.emplace(from, begin - from);
    if (end < to) free_.emplace(end, to - end);
    capacity_ -= std::min(to, end) - std::max(from, begin);
  }
  return true;
}

std::uint64_t TcmArena::free_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& block : free_) sum += block.second;
  return sum;
}

std::uint64_t TcmArena::largest_free() const {
  std::uint64_t largest = 0;
  for (const auto& block : free_) largest = std::max(largest, block.second);
  return largest;
}

std::string TcmArena::occupants(std::size_t limit) const {
  std::vector<const Block*> blocks;
  for (const auto& used : used_) blocks.push_back(&used.second);
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
  std::string text;
  for (std::size_t i = 0; i < blocks.size() && i < limit; ++i) {
    const Label& label = blocks[i]->label;
    text += fmt::format("{}{} {} {} ({} B)", i == 0 ? "" : ", ", label.op, label.shape.str(), to_string(label.dtype),
                        blocks[i]->bytes);
  }
  if (blocks.size() > limit) text += fmt::format(", and {} more", blocks.size() - limit);
  return blocks.empty() ? "nothing" : text;
}

}  // namespace kernbench::pe
