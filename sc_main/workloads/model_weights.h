#pragma once
#include <map>
#include <memory>
#include <string>

#include "runtime/pipeline/safetensors.h"
#include "runtime/tp/transformer.h"
#include "tlm/config/problems.h"

namespace kernbench {

/// Weights of a model in safetensors files, named as Hugging Face does for llama, mistral and mixtral: one file, or
/// several with an index (model.safetensors.index.json) that says which tensor is in which. Elements are read where
/// they lie, and rounded to the dtype of the run.
class ModelWeightFiles {
 public:
  /// `path`: a file, an index, or a folder with model.safetensors.index.json or model.safetensors. Every tensor that
  /// the model's `layers` need is there, with its shape. Throws ConfigError otherwise: of an index located at the line
  /// that is wrong, of a file at the file.
  ModelWeightFiles(const std::string& path, const tp::Model& model, std::int64_t layers, bool ends);
  /// The file that `path` stands for: itself, or what is read of a folder. Throws ConfigError if a folder has neither.
  static std::string main_file(const std::string& path);
  /// Of the name that the layers use. REQUIRES: this lives as long.
  tp::WeightPattern weight(const std::string& name, DType dtype) const;

 private:
  struct Place {
    const pipeline::Safetensors* file = nullptr;
    const pipeline::Safetensors::Entry* entry = nullptr;
  };
  void open_index(const std::string& path);
  const pipeline::Safetensors& open(const std::string& path);
  void check(const std::string& path, const tp::Model& model, std::int64_t layers, bool ends) const;

  std::map<std::string, std::unique_ptr<pipeline::Safetensors>> files_;  // by path
  std::map<std::string, Place> places_;                                  // by their name in the files
  mutable std::map<std::string, std::weak_ptr<pipeline::HostTensor>> read_;
};

}  // namespace kernbench
