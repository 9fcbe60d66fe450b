#include "runtime/pipeline/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

const char* to_string(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "npu"; }

const char* to_string(TaskKind kind) {
  constexpr const char* kNames[] = {"dfg",        "FX",         "send",       "recv",
                                    "reduce",     "all_gather", "all_reduce", "reduce_scatter",
                                    "all_to_all", "broadcast",  "input",      "output"};
  return kNames[static_cast<std::size_t>(kind)];
}

const MetadataEntry* SuperTask::entry(const std::string& key) const {
  for (const MetadataEntry& entry : metadata.value) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

void Pipeline::index() {
  for (std::size_t i = 0; i < devices.size(); ++i) device_at_.emplace(devices[i].name, i);
  for (std::size_t i = 0; i < tensors.size(); ++i) tensor_at_.emplace(tensors[i].name, i);
}

const Device* Pipeline::device(const std::string& name) const {
  const auto found = device_at_.find(name);
  return found == device_at_.end() ? nullptr : &devices[found->second];
}

const TensorInfo* Pipeline::tensor(const std::string& name) const {
  const auto found = tensor_at_.find(name);
  return found == tensor_at_.end() ? nullptr : &tensors[found->second];
}

std::string suggest_known(const std::string& text, const std::vector<std::string>& valid, const std::string& things) {
  return valid.empty() ? "there are no " + things : suggest(text, valid, things);
}

const char* document_type(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2 ? "f8" : kernbench::to_string(dtype);
}

std::string to_text(const std::vector<std::uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace kernbench::pipeline
