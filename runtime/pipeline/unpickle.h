#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tlm/kernel/dtype.h"

namespace kernbench::pipeline {

/// A tensor in a pickle of torch.save: elements of a storage.
struct PickledTensor {
  std::string name;              ///< keys and places of the containers that it is in, joined by points; "" alone
  std::string key;               ///< of its storage
  std::optional<DType> dtype;    ///< none: a type that a document cannot name
  std::uint64_t held_bytes = 0;  ///< that its storage should have
  std::int64_t offset = 0;       ///< of its first element
  std::vector<std::int64_t> shape, strides;
};

/// The tensors of what torch.save pickled: dictionaries, lists, tuples, numbers, texts, tensors and parameters. The
/// opcodes of protocols 2 to 5 and the globals that PyTorch writes for these are known, and no other: nothing of a file
/// is ever called. Throws BrokenFile.
/// source: Python, Lib/pickletools.py; PyTorch, torch/_utils.py, _rebuild_tensor_v2 and below, torch/serialization.py,
/// persistent_id
std::vector<PickledTensor> unpickle_tensors(const std::string& pickle);

}  // namespace kernbench::pipeline
