#pragma once
#include <cstdint>
#include <map>
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

/// Names and elements of tensors in a file that is mapped into memory: what every format of weights comes down to.
class WeightFile {
 public:
  struct Entry {
    std::vector<std::int64_t> shape;
    DType dtype = DType::f32;
    std::uint64_t begin = 0;            ///< of the first element, in the file
    std::vector<std::int64_t> strides;  ///< elements between neighbours of each dimension
  };

  virtual ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;  ///< null: there is none
  std::vector<std::string> names() const;

  /// Elements [begin, end) in each dimension; reads nothing else of the file. REQUIRES: they lie inside the tensor.
  HostTensor read(const Entry& entry, const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const;
  HostTensor read(const Entry& entry) const;  ///< all of it

 protected:
  /// Maps the file, which a `format` file should be. Throws ConfigError, located at the file.
  WeightFile(const std::string& path, const char* format);

  const std::string path_;
  const std::uint8_t* data_ = nullptr;  // of the file
  std::uint64_t bytes_ = 0;
  std::map<std::string, Entry> entries_;
};

/// Copies elements between arrays: `shape` elements, at these distances (elements) on either side.
void copy_strided(const std::vector<std::int64_t>& shape, std::size_t item, const std::uint8_t* from,
                  const std::vector<std::int64_t>& from_strides, std::uint8_t* to,
                  const std::vector<std::int64_t>& to_strides);

}  // namespace kernbench::pipeline
