#include <fmt/format.h>

#include "runtime/pipeline/checker.h"
#include "runtime/pipeline/safetensors.h"
#include "runtime/pipeline/torch_file.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

const WeightFile& WeightFiles::open(const std::string& path, ParamFormat format) {
  auto& file = files_[{path, format}];
  if (file != nullptr) return *file;
  if (format == ParamFormat::safetensors) {
    file = std::make_unique<Safetensors>(path);
  } else {
    file = std::make_unique<TorchFile>(path, format == ParamFormat::torch_export);
  }
  return *file;
}

void Checker::check_weights() {
  std::set<std::pair<std::string, ParamFormat>> refused;  // each file once
  for (const TensorInfo& tensor : pipeline_.tensors) {
    if (!tensor.value) continue;
    const ParamValue& value = *tensor.value;
    if (!value.format.given || !value.file.given || !value.name.given) continue;
    const std::string path = weight_path(options_, value);
    if (refused.count({path, value.format.value}) > 0) continue;
    try {
      result_.weights->open(path, value.format.value);
    } catch (const ConfigError& error) {
      refused.insert({path, value.format.value});
      for (const Problem& problem : error.problems())
        add(value.file.where, fmt::format("{}: {} {}", json_path(value.path, "path"), quote(path), problem.text),
            problem.hint.empty() ? "paths are relative to the document's folder" : problem.hint);
      continue;
    }
    check_weight(tensor, value);
  }
}

void Checker::check_weight(const TensorInfo& tensor, const ParamValue& value) {
  const WeightFile& file = result_.weights->open(weight_path(options_, value), value.format.value);
  const WeightFile::Entry* entry = file.find(value.name.value);
  if (entry == nullptr) {
    add(value.name.where,
        fmt::format("{} is {}, which {} does not hold", json_path(value.path, "name"), quote(value.name.value),
                    quote(value.file.value)),
        suggest_known(value.name.value, file.names(), "tensors in it"));
    return;
  }
  if (tensor.dtype.given && entry->dtype != tensor.dtype.value) {
    const bool eights =
        std::string(document_type(entry->dtype)) == "f8" && std::string(document_type(tensor.dtype.value)) == "f8";
    add(tensor.dtype.where,
        fmt::format("{} is {}, but {} in {} is {}", json_path(tensor.path, "dtype"),
                    kernbench::to_string(tensor.dtype.value), quote(value.name.value), quote(value.file.value),
                    kernbench::to_string(entry->dtype)),
        eights ? fmt::format("give --f8 {}", entry->dtype == DType::f8e5m2 ? "e5m2" : "e4m3")
               : "constants are not converted: cast in a graph");
  }
  if (!value.placements.given) return;
  check_part(value.placements, json_path(value.path, "placements"), value.name.value,
             {entry->shape.begin(), entry->shape.end()}, tensor, "give a pair for each dimension of the stored tensor");
}

}  // namespace kernbench::pipeline
