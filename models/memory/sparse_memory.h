#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kernbench {

/// Functional contents of one memory: pages on first write, zero until written. Knows no time.
class SparseMemory {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  void write(std::uint64_t address, const void* data, std::size_t bytes);
  /// Fills `data`; returns whether every byte had been written before.
  bool read(std::uint64_t address, void* data, std::size_t bytes) const;
  void fill(std::uint64_t address, std::size_t bytes, std::uint8_t value);
  std::size_t touched_bytes() const { return pages_.size() * kPageBytes; }

 private:
  struct Page;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  mutable std::uint64_t last_number_ = ~std::uint64_t{0};
  mutable Page* last_ = nullptr;

 public:
  SparseMemory();
  ~SparseMemory();
};

}  // namespace kernbench
