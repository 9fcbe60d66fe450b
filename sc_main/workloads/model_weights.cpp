#include "sc_main/workloads/model_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <stdexcept>

#include "tlm/config/config_node.h"
#include "tlm/config/nearest.h"

namespace kernbench {

namespace {
namespace fs = std::filesystem;

constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kWholeFile = "model.safetensors";

/// A tensor of the files, and whether it is the transpose of ours: theirs have a row for each output.
struct FileName {
  std::string name;
  bool turned = false;
};

/// "router", "expert5.up": of a mixture of experts.
/// source: Hugging Face transformers, names of MixtralForCausalLM's parameters; w1 is the gate
std::string expert_name(const std::string& ours) {
  if (ours == "router") return "block_sparse_moe.gate";
  static const std::map<std::string, const char*> kMatrices{{"gate", "w1"}, {"down", "w2"}, {"up", "w3"}};
  const std::size_t dot = ours.find('.');
  return fmt::format("block_sparse_moe.experts.{}.{}", ours.substr(6, dot - 6), kMatrices.at(ours.substr(dot + 1)));
}

/// source: Hugging Face transformers, names of LlamaForCausalLM's parameters
FileName file_name(const std::string& ours) {
  if (ours == "embedding") return {"model.embed_tokens.weight"};
  if (ours == "output") return {"lm_head.weight", true};
  if (ours == "norm") return {"model.norm.weight"};
  const std::size_t dot = ours.find('.');
  const std::string part = dot == std::string::npos ? std::string() : ours.substr(dot + 1);
  static const std::map<std::string, FileName> kParts{{"attention_norm", {"input_layernorm", false}},
                                                      {"mlp_norm", {"post_attention_layernorm", false}},
                                                      {"attention.q", {"self_attn.q_proj", true}},
                                                      {"attention.k", {"self_attn.k_proj", true}},
                                                      {"attention.v", {"self_attn.v_proj", true}},
                                                      {"attention.out", {"self_attn.o_proj", true}},
                                                      {"mlp.up", {"mlp.up_proj", true}},
                                                      {"mlp.gate", {"mlp.gate_proj", true}},
                                                      {"mlp.down", {"mlp.down_proj", true}}};
  if (part.rfind("moe.", 0) == 0)
    return {fmt::format("model.layers.{}.{}.weight", ours.substr(5, dot - 5), expert_name(part.substr(4))), true};
  const auto found = kParts.find(part);
  if (found == kParts.end()) throw std::logic_error("no safetensors name for weight '" + ours + "'");
  return {fmt::format("model.layers.{}.{}.weight", ours.substr(5, dot - 5), found->second.name), found->second.turned};
}

}  // namespace

std::string ModelWeightFiles::main_file(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {kIndexFile, kWholeFile}) {
    if (const fs::path file = fs::path(path) / name; fs::exists(file)) return file.string();
  }
  throw ConfigError({path, 0, 0}, fmt::format("the folder has neither {} nor {}", kIndexFile, kWholeFile));
}

ModelWeightFiles::ModelWeightFiles(const std::string& path, const tp::Model& model, std::int64_t layers, bool ends) {
  const std::string file = main_file(path);
  if (ends_with(file, ".json")) {
    open_index(file);
  } else {
    const pipeline::Safetensors& whole = open(file);
    for (const auto& [name, entry] : whole.entries()) places_[name] = {&whole, &entry};
  }
  check(file, model, layers, ends);
}

const pipeline::Safetensors& ModelWeightFiles::open(const std::string& path) {
  std::unique_ptr<pipeline::Safetensors>& file = files_[path];
  if (file == nullptr) file = std::make_unique<pipeline::Safetensors>(path);
  return *file;
}

void ModelWeightFiles::open_index(const std::string& path) {
  const ConfigNode root = load_config(path);
  const ConfigNode* map = root.find("weight_map");
  if (map == nullptr || !map->is_map())
    throw ConfigError(map == nullptr ? root.where : map->where, "the index has no map 'weight_map'",
                      "it says for each tensor in which file it is");
  for (const ConfigNode::Entry& entry : map->entries) {
    const std::string& name = entry.value.text;
    // A path would reach out of the folder.
    if (!entry.value.is_scalar() || !entry.value.quoted || name.empty() || name == "." || name == ".." ||
        name != fs::path(name).filename().string())
      throw ConfigError(entry.value.where, fmt::format("'{}' is in no file", entry.key),
                        "give the name of a file beside the index");
    const fs::path file = fs::path(path).parent_path() / name;
    if (!fs::exists(file))
      throw ConfigError(entry.value.where, fmt::format("there is no file '{}' beside the index", name));
    const pipeline::Safetensors& tensors = open(file.string());
    const pipeline::Safetensors::Entry* found = tensors.find(entry.key);
    if (found == nullptr)
      throw ConfigError(entry.key_where, fmt::format("tensor '{}' is not in '{}'", entry.key, name));
    places_[entry.key] = {&tensors, found};
  }
}

void ModelWeightFiles::check(const std::string& path, const tp::Model& model, std::int64_t layers, bool ends) const {
  const Location where{path, 0, 0};
  if (model.position != tp::PositionKind::rotary || model.biases || !model.gated || model.norm != tp::NormKind::rms)
    throw ConfigError(where, fmt::format("model '{}' is of no family that safetensors are read for", model.name),
                      "llama, mistral, mixtral: rotary positions, gated MLPs, RMS norms, no biases");
  Problems problems;
  std::map<DType, std::vector<std::string>> refused;  // tensors by their type
  const auto needs = [&](const std::string& ours, std::int64_t rows, std::int64_t cols) {
    const FileName file = file_name(ours);
    const auto found = places_.find(file.name);
    if (found == places_.end()) return problems.add(where, fmt::format("there is no tensor '{}'", file.name));
    const pipeline::Safetensors::Entry& entry = *found->second.entry;
    if (entry.dtype != DType::f64 && entry.dtype != DType::f32 && entry.dtype != DType::f16 &&
        entry.dtype != DType::bf16)
      refused[entry.dtype].push_back(file.name);
    std::vector<std::int64_t> shape{rows, cols};
    if (file.turned) std::swap(shape[0], shape[1]);
    if (rows == 1) shape.erase(shape.begin());
    if (entry.shape != shape)
      problems.add(where, fmt::format("tensor '{}' is [{}], the model's is [{}]", file.name,
                                      fmt::join(entry.shape, ", "), fmt::join(shape, ", ")));
  };
  const std::int64_t queries = model.heads * model.head_dim, keys = model.kv_heads * model.head_dim;
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("layer{}.", i);
    needs(layer + "attention_norm", 1, model.width);
    needs(layer + "mlp_norm", 1, model.width);
    needs(layer + "attention.q", model.width, queries);
    needs(layer + "attention.k", model.width, keys);
    needs(layer + "attention.v", model.width, keys);
    needs(layer + "attention.out", queries, model.width);
    const auto needs_mlp = [&](const std::string& mlp) {
      needs(mlp + ".up", model.width, model.mlp_width);
      needs(mlp + ".gate", model.width, model.mlp_width);
      needs(mlp + ".down", model.mlp_width, model.width);
    };
    if (!model.mixture()) needs_mlp(layer + "mlp");
    if (model.mixture()) needs(layer + "moe.router", model.width, model.experts);
    for (std::int64_t expert = 0; expert < model.experts; ++expert)
      needs_mlp(fmt::format("{}moe.expert{}", layer, expert));
  }
  needs("embedding", model.vocabulary, model.width);
  if (ends) needs("norm", 1, model.width);
  if (ends && !model.tied) needs("output", model.width, model.vocabulary);
  for (const auto& [dtype, names] : refused) {
    const std::string more = names.size() == 1 ? "is" : fmt::format("and {} more are", names.size() - 1);
    problems.add(where, fmt::format("tensor '{}' {} {}", names.front(), more, to_string(dtype)),
                 "weights are f16, bf16, f32 or f64");
  }
  problems.throw_if_any();
}

tp::WeightPattern ModelWeightFiles::weight(const std::string& name, DType dtype) const {
  const FileName file = file_name(name);
  std::shared_ptr<pipeline::HostTensor> tensor = read_[file.name].lock();
  if (tensor == nullptr) {
    const Place& place = places_.at(file.name);
    tensor = std::make_shared<pipeline::HostTensor>(place.file->read(*place.entry));
    read_[file.name] = tensor;
  }
  return [tensor, turned = file.turned, dtype](std::int64_t row, std::int64_t col) {
    const std::int64_t cols = tensor->shape.back(), place = turned ? col * cols + row : row * cols + col;
    const double value = load_element(tensor->bytes.data(), tensor->dtype, static_cast<std::size_t>(place));
    std::uint8_t rounded[8];
    store_element(rounded, dtype, 0, value);
    return load_element(rounded, dtype, 0);
  };
}

}  // namespace kernbench
