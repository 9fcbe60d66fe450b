#include "models/memory/sparse_memory.h"

#include <algorithm>
#include <bitset>
#include <cstring>

namespace kernbench {

struct SparseMemory::Page {
  std::uint8_t bytes[kPageBytes] = {};
  std::unique_ptr<std::bitset<kPageBytes>> written;  // only if tracked
};

namespace {

/// Calls body(page number, offset in the page, offset in the range, bytes) for each page that a range touches.
template <class Body>
void for_pages(std::uint64_t address, std::size_t bytes, const Body& body) {
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const std::size_t offset = at % SparseMemory::kPageBytes;
    const std::size_t count = std::min(bytes - done, SparseMemory::kPageBytes - offset);
    body(at / SparseMemory::kPageBytes, offset, done, count);
    done += count;
  }
}

}  // namespace

SparseMemory::SparseMemory(bool track_written) : track_written_(track_written) {}
SparseMemory::~SparseMemory() = default;

SparseMemory::Page* SparseMemory::find(std::uint64_t number) const {
  if (number == last_number_) return last_;
  const auto found = pages_.find(number);
  if (found == pages_.end()) return nullptr;
  last_number_ = number;
  return last_ = found->second.get();
}

SparseMemory::Page& SparseMemory::make(std::uint64_t number) {
  if (Page* page = find(number)) return *page;
  std::unique_ptr<Page>& slot = pages_[number];
  slot = std::make_unique<Page>();
  if (track_written_) slot->written = std::make_unique<std::bitset<kPageBytes>>();
  last_number_ = number;
  return *(last_ = slot.get());
}

void SparseMemory::write(std::uint64_t address, const void* data, std::size_t bytes) {
  for_pages(address, bytes, [&](std::uint64_t number, std::size_t offset, std::size_t done, std::size_t count) {
    Page& page = make(number);
    std::memcpy(page.bytes + offset, static_cast<const std::uint8_t*>(data) + done, count);
    for (std::size_t i = 0; page.written && i < count; ++i) page.written->set(offset + i);
  });
}

bool SparseMemory::read(std::uint64_t address, void* data, std::size_t bytes) const {
  bool all_written = true;
  for_pages(address, bytes, [&](std::uint64_t number, std::size_t offset, std::size_t done, std::size_t count) {
    auto* to = static_cast<std::uint8_t*>(data) + done;
    const Page* page = find(number);
    if (page == nullptr) {
      std::memset(to, 0, count);
      all_written = all_written && !track_written_;
      return;
    }
    std::memcpy(to, page->bytes + offset, count);
    for (std::size_t i = 0; page->written && i < count; ++i)
      all_written = all_written && page->written->test(offset + i);
  });
  return all_written;
}

}  // namespace kernbench
