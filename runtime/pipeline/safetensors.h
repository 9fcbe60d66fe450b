#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tlm/kernel/dtype.h"

namespace kernbench::pipeline {

/// A tensor in host memory: row-major elements as they stand in files.
struct HostTensor {
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  std::vector<std::uint8_t> bytes;
  std::int64_t count() const;
};

/// A file in the safetensors format, mapped into memory: 8 bytes of length, a JSON header, then the data.
/// source: https://github.com/huggingface/safetensors, "Format"
class Safetensors {
 public:
  struct Entry {
    std::vector<std::int64_t> shape;
    DType dtype = DType::f32;
    std::uint64_t begin = 0, end = 0;  ///< in the data
  };

  /// Maps the file and checks its whole header. Throws ConfigError, located at the file: cannot be read, a header that
  /// is cut off, longer than 100 MB or no JSON, a type that is unknown, offsets that do not fit shape and type,
  /// overlap, leave gaps or lie outside the file.
  explicit Safetensors(const std::string& path);
  ~Safetensors();
  Safetensors(const Safetensors&) = delete;
  Safetensors& operator=(const Safetensors&) = delete;

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;  ///< null: there is none
  std::vector<std::string> names() const;

  /// Elements [begin, end) in each dimension; reads nothing else of the file. REQUIRES: they lie inside the tensor.
  HostTensor read(const Entry& entry, const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const;
  HostTensor read(const Entry& entry) const;  ///< all of it

 private:
  void parse(const std::string& path);

  const std::uint8_t* data_ = nullptr;  // of the file
  std::uint64_t bytes_ = 0, data_begin_ = 0;
  std::map<std::string, Entry> entries_;
};

/// Writes tensors as one file, in the order of their names. Throws std::system_error where it cannot.
std::string to_safetensors(const std::map<std::string, HostTensor>& tensors);

/// Copies elements between row-major arrays: `shape` elements, at these distances (elements) on either side.
void copy_strided(const std::vector<std::int64_t>& shape, std::size_t item, const std::uint8_t* from,
                  const std::vector<std::int64_t>& from_strides, std::uint8_t* to,
                  const std::vector<std::int64_t>& to_strides);

}  // namespace kernbench::pipeline
