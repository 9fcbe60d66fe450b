#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace kernbench::pipeline {

/// What is wrong with a file of weights, without its place, and what to do.
struct BrokenFile : std::runtime_error {
  explicit BrokenFile(const std::string& text, std::string hint = "the file is broken")
      : std::runtime_error(text), hint(std::move(hint)) {}
  std::string hint;
};

/// Entries of a zip archive in a part of memory: archives of torch.export hold others, uncompressed.
class MappedZip {
 public:
  struct Entry {
    std::uint64_t begin = 0, bytes = 0;  ///< of its data, in the file; as stored
    unsigned long method = 0, crc = 0;   ///< 0: stored as it is
  };
  /// Throws BrokenFile: [begin, begin + bytes) of `data` is no archive, or an entry does not lie in it.
  MappedZip(const std::uint8_t* data, std::uint64_t begin, std::uint64_t bytes);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  /// Throws BrokenFile: it is not there, or compressed.
  const Entry& stored(const std::string& name) const;
  /// Contents of a small entry, whose checksum is compared. Throws BrokenFile.
  std::string text(const std::string& name) const;

 private:
  const std::uint8_t* data_;
  std::map<std::string, Entry> entries_;
};

}  // namespace kernbench::pipeline
