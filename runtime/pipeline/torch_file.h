#pragma once
#include <string>

#include "runtime/pipeline/weight_file.h"

namespace kernbench::pipeline {

class MappedZip;

/// A file of PyTorch, mapped into memory: of torch.save (1.6 and later), or an archive of torch.export (2.1 and later),
/// whose state dict and constants count. A name is the keys that lead to a tensor, joined by points:
/// "model.layers.0.weight"; a tensor that is saved alone is "tensor". Tensors of types that a document cannot name are
/// left out.
class TorchFile final : public WeightFile {
 public:
  /// Reads directories and pickles, no elements. Throws ConfigError, located at the file.
  TorchFile(const std::string& path, bool exported);

 private:
  /// What torch.save wrote in [begin, begin + bytes) of the file.
  void add_saved(std::uint64_t begin, std::uint64_t bytes, const std::string& prefix, const std::string& alone);
  void add_exported();
  void add_model(const MappedZip& zip, const std::string& root, const std::string& kind, const std::string& model,
                 const std::string& prefix);
  /// A tensor in `held` bytes at `begin` of the file. Throws BrokenFile if it does not lie in them.
  void add(const std::string& name, Entry entry, std::int64_t offset, std::uint64_t held);
};

}  // namespace kernbench::pipeline
