#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace kernbench {

/// Functional contents of one memory: pages on first write, zero until written. Knows no time.
class SparseMemory {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  /// `track_written` keeps a bit per byte, so that read() can tell bytes that nobody wrote (`--debug`).
  explicit SparseMemory(bool track_written = false);
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  void write(std::uint64_t address, const void* data, std::size_t bytes);
  /// Fills `data`. Returns false if written bytes are tracked and one of these had never been written.
  bool read(std::uint64_t address, void* data, std::size_t bytes) const;

 private:
  struct Page;
  Page* find(std::uint64_t number) const;
  Page& make(std::uint64_t number);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  bool track_written_ = false;
  mutable std::uint64_t last_number_ = ~std::uint64_t{0};  // the page of the last access
  mutable Page* last_ = nullptr;
};

}  // namespace kernbench
