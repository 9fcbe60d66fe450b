#include "runtime/tp/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "runtime/tp/model_config_json.h"
#include "tlm/config/embedded_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/read.h"

namespace kernbench::tp {

extern const EmbeddedText kModelPresets[];  ///< the files of runtime/tp/models

namespace {
constexpr std::uint64_t kMostOfAModel = 1 << 24;  ///< of any size in a model's file

const std::vector<std::string>& model_keys() {
  static const std::vector<std::string> keys = {
      "layers",     "width",      "heads",  "kv_heads", "head_dim",   "mlp_width",
      "gated",      "activation", "norm",   "epsilon",  "vocabulary", "position",
      "rope_theta", "positions",  "biases", "tied",     "experts",    "experts_per_token"};
  return keys;
}

/// Reads the keys of a model's file; each missing one is a problem of its own.
class ModelReader {
 public:
  ModelReader(const ConfigNode& root, Problems& problems) : root_(root), problems_(problems) {
    check_keys(root, "", model_keys(), problems);
  }

  void read(const char* key, std::int64_t& value) {
    const ConfigNode* node = find(key);
    if (node == nullptr) return;
    if (const auto read = read_integer(*node, key, {1, kMostOfAModel}, problems_))
      value = static_cast<std::int64_t>(*read);
  }
  void read(const char* key, bool& value) {
    const ConfigNode* node = find(key);
    if (node == nullptr) return;
    if (const auto read = read_bool(*node, key, problems_)) value = *read;
  }
  void read(const char* key, double& value, const char* example) {
    const ConfigNode* node = find(key);
    if (node == nullptr) return;
    const auto text = read_text(*node, key, problems_);
    if (!text) return;
    char* end = nullptr;
    const double number = std::strtod(text->c_str(), &end);
    if (text->empty() || *end != '\0' || !std::isfinite(number) || number <= 0) {
      problems_.add(node->where, fmt::format("{} is {}", key, quote(*text)),
                    fmt::format("give a number above 0, such as {}", example));
      return;
    }
    value = number;
  }
  /// Place of the value in `names`.
  std::optional<std::size_t> read(const char* key, const std::vector<std::string>& names) {
    const ConfigNode* node = find(key);
    if (node == nullptr) return std::nullopt;
    return read_name(*node, key, names, problems_);
  }
  void refuse(const char* key, const std::string& why, const std::string& hint) {
    const ConfigNode* node = root_.find(key);
    problems_.add(node == nullptr ? root_.where : node->where, fmt::format("{} {}", key, why), hint);
  }
  bool has(const char* key) const { return root_.find(key) != nullptr; }

 private:
  const ConfigNode* find(const char* key) {
    const ConfigNode* node = root_.find(key);
    if (node == nullptr) problems_.add(root_.where, fmt::format("missing key '{}'", key));
    return node;
  }

  const ConfigNode& root_;
  Problems& problems_;
};

Model read_model(const ConfigNode& root, const std::string& name, Problems& problems) {
  if (is_config_json(root)) return read_config_json(root, name, problems);
  ModelReader reader(root, problems);
  Model model;
  model.name = name;
  reader.read("layers", model.layers);
  reader.read("width", model.width);
  reader.read("heads", model.heads);
  reader.read("kv_heads", model.kv_heads);
  reader.read("head_dim", model.head_dim);
  reader.read("mlp_width", model.mlp_width);
  reader.read("gated", model.gated);
  reader.read("epsilon", model.epsilon, "1e-5");
  reader.read("vocabulary", model.vocabulary);
  reader.read("positions", model.positions);
  reader.read("biases", model.biases);
  reader.read("tied", model.tied);
  if (reader.has("experts") || reader.has("experts_per_token")) {
    reader.read("experts", model.experts);
    reader.read("experts_per_token", model.experts_per_token);
    if (const std::string why = wrong_mixture(model); model.experts > 0 && model.experts_per_token > 0 && !why.empty())
      reader.refuse("experts_per_token", fmt::format("is '{}'", model.experts_per_token), why);
    if (!model.gated) reader.refuse("gated", "is 'false'", "give true: experts are gated MLPs");
    if (model.biases) reader.refuse("biases", "is 'true'", "give false: experts have no biases");
  }
  // In the order of Activation, which begins with none.
  if (const auto which = reader.read("activation", {"relu", "gelu", "silu", "tanh", "sigmoid"}))
    model.activation = static_cast<Activation>(*which + 1);
  if (const auto which = reader.read("norm", {"rms", "layer"})) model.norm = static_cast<NormKind>(*which);
  if (const auto which = reader.read("position", {"rotary", "learned"}))
    model.position = static_cast<PositionKind>(*which);
  if (model.position == PositionKind::rotary) {
    reader.read("rope_theta", model.rope_theta, "10000");
    if (model.head_dim % 2 != 0)
      reader.refuse("head_dim", fmt::format("is '{}'", model.head_dim), "give an even one: position is 'rotary'");
  } else if (reader.has("rope_theta")) {
    reader.refuse("rope_theta", "is given, but position is 'learned'", "leave it out");
  }
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    reader.refuse("kv_heads", fmt::format("is '{}'", model.kv_heads),
                  fmt::format("give a divisor of the {} heads", model.heads));
  }
  return model;
}
}  // namespace

std::string wrong_mixture(const Model& model) {
  const std::int64_t most = std::min(model.experts, kMostExpertsPerToken);
  if (model.experts_per_token >= 1 && model.experts_per_token <= most) return "";
  return fmt::format("give 1 to {}, of the {} experts", most, model.experts);
}

std::int64_t Model::parameters() const {
  const std::int64_t queries = heads * head_dim, keys = kv_heads * head_dim, up = gated ? 2 : 1;
  const std::int64_t of_norm = norm == NormKind::layer ? 2 * width : width;
  std::int64_t of_mlp = (up + 1) * width * mlp_width;
  if (mixture()) of_mlp = experts * (of_mlp + width);  // a column of the router each
  std::int64_t of_layer = width * (queries + 2 * keys) + queries * width + of_mlp + 2 * of_norm;
  if (biases) of_layer += queries + 2 * keys + width + up * mlp_width + width;
  const std::int64_t tables = position == PositionKind::learned ? positions * width : 0;
  return layers * of_layer + of_norm + tables + (tied ? 1 : 2) * vocabulary * width;
}

std::int64_t Model::padded_vocabulary(int ranks) const {
  const std::int64_t unit = 128 * static_cast<std::int64_t>(ranks);
  return (vocabulary + unit - 1) / unit * unit;
}

std::vector<ModelPreset> model_presets() {
  std::vector<ModelPreset> presets;
  for (const EmbeddedText* preset = kModelPresets; preset->name != nullptr; ++preset) {
    const std::string text = preset->text;
    const std::size_t begin = text.find_first_not_of("# ");
    presets.push_back({preset->name, text.substr(begin, text.find('\n') - begin)});
  }
  return presets;
}

Model parse_model(const std::string& text, const std::string& name) {
  Problems problems;
  const ConfigNode root = parse_config(text, name, &problems);
  Model model = read_model(root, name, problems);
  problems.throw_if_any();
  return model;
}

Model load_model(const std::string& preset_or_file) {
  std::vector<std::string> names;
  for (const EmbeddedText* preset = kModelPresets; preset->name != nullptr; ++preset) {
    names.emplace_back(preset->name);
    if (preset_or_file != names.back()) continue;
    Model model = parse_model(preset->text, fmt::format("models/{}.yaml", preset->name));
    model.name = preset->name;
    return model;
  }
  std::error_code ignored;
  if (!names_file(preset_or_file) && !std::filesystem::exists(preset_or_file, ignored)) {
    const std::string near = nearest(preset_or_file, names);
    throw ConfigError(
        {preset_or_file, 0, 0}, "is neither a model nor a file",
        (near.empty() ? std::string() : fmt::format("did you mean '{}'? ", near)) + "models: " + join(names));
  }
  Problems problems;
  const std::string text =
      load_text(preset_or_file, kMaxConfigBytes, "give a YAML file, or a config.json of Hugging Face");
  const ConfigNode root = parse_config(text, preset_or_file, &problems);
  Model model = read_model(root, preset_or_file, problems);
  problems.throw_if_any();
  return model;
}

}  // namespace kernbench::tp
