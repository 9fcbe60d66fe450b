#include "runtime/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/errors.h"
#include "tlm/machine/names.h"

namespace kernbench {

namespace {
std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + BlockAllocator::kGrain - 1) / BlockAllocator::kGrain * BlockAllocator::kGrain;
}
}  // namespace

BlockAllocator::BlockAllocator(std::uint64_t capacity) : capacity_(capacity / kGrain * kGrain) {
  if (capacity_ > 0) free_.emplace(0, capacity_);
}

std::optional<BlockAllocator::Block> BlockAllocator::allocate(std::uint64_t bytes) {
  if (bytes > capacity_) return std::nullopt;
  const std::uint64_t size = rounded(bytes);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, length] = *range;
    if (length < size) continue;
    free_.erase(range);
    if (length > size) free_.emplace(offset + size, length - size);
    used_.emplace(offset, size);
    used_bytes_ += size;
    most_used_ = std::max(most_used_, used_bytes_);
    const bool fresh = offset >= high_water_;
    high_water_ = std::max(high_water_, offset + size);
    return Block{offset, fresh};
  }
  return std::nullopt;
}

void BlockAllocator::free(std::uint64_t offset, std::uint64_t bytes) {
  const auto found = used_.find(offset);
  if (found == used_.end() || found->second != rounded(bytes)) {
    throw std::logic_error(fmt::format("{} bytes at offset {:#x} are not allocated", bytes, offset));
  }
  std::uint64_t begin = offset, end = offset + found->second;
  used_bytes_ -= found->second;
  used_.erase(found);
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  free_.emplace(begin, end - begin);
}

bool BlockAllocator::shrink(std::uint64_t capacity) {
  const std::uint64_t end = capacity / kGrain * kGrain;
  if (end >= capacity_) return true;
  const auto last = free_.empty() ? free_.end() : std::prev(free_.end());
  if (last == free_.end() || last->first > end || last->first + last->second != capacity_) return false;
  if (last->first == end) {
    free_.erase(last);
  } else {
    last->second = end - last->first;
  }
  capacity_ = end;
  return true;
}

std::uint64_t BlockAllocator::free_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [offset, bytes] : free_) sum += bytes;
  return sum;
}

std::uint64_t BlockAllocator::largest_free() const {
  std::uint64_t largest = 0;
  for (const auto& [offset, bytes] : free_) largest = std::max(largest, bytes);
  return largest;
}

void DeviceMemory::reserve(PeCoord pe, std::uint64_t bytes) {
  std::uint64_t& reserved = reserved_[pe];
  if (bytes <= reserved) return;
  const std::uint64_t whole = capacity(pe) + reserved;
  if (bytes > whole) {
    throw std::invalid_argument(
        fmt::format("{} B are to be reserved in {}, which has {} B", bytes, names::hbm_port(pe), whole));
  }
  const auto pool = pools_.find(pe);
  if (pool != pools_.end() && !pool->second.blocks.shrink(whole - bytes)) {
    throw OutOfDeviceMemory(
        fmt::format("the top {} B of {} are needed for IPCQ rings, but tensors lie there already: "
                    "make process groups and call each collective before large tensors",
                    bytes, names::hbm_port(pe)));
  }
  reserved = bytes;
}

std::uint64_t DeviceMemory::capacity(PeCoord pe) const {
  const auto found = reserved_.find(pe);
  return map_.hbm_slice.bytes / BlockAllocator::kGrain * BlockAllocator::kGrain -
         (found == reserved_.end() ? 0 : found->second);
}

BlockAllocator::Block DeviceMemory::allocate(PeCoord pe, std::uint64_t bytes, const std::string& tensor) {
  map_.hbm_port(pe);  // throws if there is no such PE
  Pool& pool = pools_.try_emplace(pe, capacity(pe)).first->second;
  const auto block = pool.blocks.allocate(bytes);
  if (!block) throw OutOfDeviceMemory(report(pe, pool, bytes, tensor));
  pool.owners[block->offset] = {tensor, bytes};
  return *block;
}

void DeviceMemory::free(PeCoord pe, std::uint64_t offset, std::uint64_t bytes) {
  Pool& pool = pools_.at(pe);
  pool.blocks.free(offset, bytes);
  pool.owners.erase(offset);
}

std::uint64_t DeviceMemory::free_bytes(PeCoord pe) const {
  const auto found = pools_.find(pe);
  return found == pools_.end() ? BlockAllocator(capacity(pe)).free_bytes() : found->second.blocks.free_bytes();
}

std::uint64_t DeviceMemory::most_used(PeCoord pe) const {
  const auto pool = pools_.find(pe);
  const auto kept = reserved_.find(pe);
  return (pool == pools_.end() ? 0 : pool->second.blocks.most_used()) + (kept == reserved_.end() ? 0 : kept->second);
}

std::string DeviceMemory::report(PeCoord pe, const Pool& pool, std::uint64_t bytes, const std::string& tensor) const {
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format(
      "out of device memory: tensor '{}' asks for {} B of {} ({} B): {} B are free, the largest free block has {} B",
      tensor, bytes, names::hbm_port(pe), pool.blocks.capacity(), pool.blocks.free_bytes(), pool.blocks.largest_free());
  std::vector<Pool::Owner> biggest;
  for (const auto& [offset, owner] : pool.owners) biggest.push_back(owner);
  std::stable_sort(biggest.begin(), biggest.end(),
                   [](const Pool::Owner& a, const Pool::Owner& b) { return a.bytes > b.bytes; });
  if (biggest.size() > kShown) biggest.resize(kShown);
  for (std::size_t i = 0; i < biggest.size(); ++i) {
    text += fmt::format("{} '{}' {} B", i == 0 ? "; biggest tensors there:" : ",", biggest[i].tensor, biggest[i].bytes);
  }
  return text;
}

}  // namespace kernbench
