#pragma once
#include <map>
#include <string>

#include "runtime/pipeline/weight_file.h"

namespace kernbench::pipeline {

/// A file in the safetensors format: 8 bytes of length, a JSON header, then the data.
/// source: https://github.com/huggingface/safetensors, "Format"
class Safetensors final : public WeightFile {
 public:
  /// Maps the file and checks its whole header. Throws ConfigError, located at the file: cannot be read, a header that
  /// is cut off, longer than 100 MB or no JSON, a type that is unknown, offsets that do not fit shape and type,
  /// overlap, leave gaps or lie outside the file.
  explicit Safetensors(const std::string& path);
};

/// Writes tensors as one file, in the order of their names. Throws std::system_error where it cannot.
std::string to_safetensors(const std::map<std::string, HostTensor>& tensors);

}  // namespace kernbench::pipeline
