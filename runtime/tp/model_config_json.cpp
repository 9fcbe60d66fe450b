#include "runtime/tp/model_config_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "tlm/config/nearest.h"
#include "tlm/config/read.h"

namespace kernbench::tp {

namespace {
/// What is read below.
const std::vector<std::string> kRead = {"model_type",          "num_hidden_layers", "hidden_size",
                                        "num_attention_heads", "head_dim",          "hidden_act",
                                        "num_key_value_heads", "intermediate_size", "vocab_size",
                                        "rms_norm_eps",        "rope_theta",        "max_position_embeddings",
                                        "attention_bias",      "mlp_bias",          "tie_word_embeddings",
                                        "rope_scaling",        "rope_parameters",   "sliding_window"};
/// Of mixtral only.
const std::vector<std::string> kOfExperts = {"num_local_experts", "num_experts_per_tok"};
/// Of mixtral's training.
const std::vector<std::string> kOfExpertsWithoutEffect = {"router_aux_loss_coef", "output_router_logits",
                                                          "router_jitter_noise"};
/// Of training, text and file: they change neither sizes nor work. The type of the weights is --dtype.
const std::vector<std::string> kWithoutEffect = {
    "architectures",  "torch_dtype",       "dtype",        "transformers_version", "bos_token_id",
    "eos_token_id",   "pad_token_id",      "use_cache",    "_name_or_path",        "initializer_range",
    "pretraining_tp", "attention_dropout", "unk_token_id", "hidden_dropout"};

std::vector<std::string> known_keys(bool mixture) {
  std::vector<std::string> known = kRead;
  known.insert(known.end(), kWithoutEffect.begin(), kWithoutEffect.end());
  if (mixture) {
    known.insert(known.end(), kOfExperts.begin(), kOfExperts.end());
    known.insert(known.end(), kOfExpertsWithoutEffect.begin(), kOfExpertsWithoutEffect.end());
  }
  return known;
}

/// What a key that is not there means, where that is not the same for all families. A key that is null means none.
/// source: transformers, configuration_llama.py, configuration_mistral.py, configuration_mixtral.py
struct Defaults {
  std::int64_t kv_heads;  ///< 0: as many as heads
  std::int64_t window;    ///< 0: none
  double epsilon, rope_theta;
};
constexpr const char* kFamilies[] = {"llama", "mistral", "mixtral"};
constexpr Defaults kDefaults[] = {{0, 0, 1e-6, 1e4}, {8, 4096, 1e-6, 1e4}, {8, 0, 1e-5, 1e6}};

class Reader {
 public:
  Reader(const ConfigNode& root, const std::string& section, Problems& problems)
      : root_(root), section_(section), problems_(problems) {}
  const ConfigNode* value(const char* key) const {
    const ConfigNode* node = root_.find(key);
    return node == nullptr || node->is_null() || (node->is_scalar() && !node->quoted && node->text == "null") ? nullptr
                                                                                                              : node;
  }
  bool absent(const char* key) const { return root_.find(key) == nullptr; }
  /// Where the key's value stands; the whole map if it is not there.
  const Location& where(const char* key) const { return absent(key) ? root_.where : root_.find(key)->where; }
  /// `otherwise` 0: it has to be there.
  std::int64_t integer(const char* key, std::int64_t otherwise = 0) {
    const ConfigNode* node = value(key);
    if (node == nullptr) {
      if (otherwise == 0) problems_.add(root_.where, fmt::format("missing key '{}'", key));
      return otherwise;
    }
    const auto read = read_integer(*node, key, {1, 1u << 24}, problems_);
    return read ? static_cast<std::int64_t>(*read) : 0;
  }
  double number(const char* key, double otherwise, const char* example) {
    const ConfigNode* node = value(key);
    if (node == nullptr) return otherwise;
    char* end = nullptr;
    const double number = std::strtod(node->text.c_str(), &end);
    if (node->is_scalar() && !node->quoted && !node->text.empty() && *end == '\0' && std::isfinite(number) &&
        number > 0)
      return number;
    problems_.add(node->where, fmt::format("{} is not a number above 0", dotted(section_, key)),
                  fmt::format("give one, such as {}", example));
    return otherwise;
  }
  /// All of them are there: otherwise one error lists those that are not.
  bool need(std::vector<std::string> keys) {
    keys.erase(std::remove_if(keys.begin(), keys.end(), [&](const std::string& key) { return value(key.c_str()); }),
               keys.end());
    if (keys.empty()) return true;
    for (std::string& key : keys) key = quote(dotted(section_, key));
    problems_.add(root_.where, fmt::format("missing {} {}", keys.size() == 1 ? "key" : "keys", fmt::join(keys, ", ")));
    return false;
  }
  bool flag(const char* key) {
    const ConfigNode* node = value(key);
    if (node == nullptr) return false;
    return read_bool(*node, key, problems_).value_or(false);
  }
  void refuse(const char* key, const std::string& hint) {
    problems_.add(root_.find(key)->where, fmt::format("{} is not supported", key), hint);
  }

 private:
  const ConfigNode& root_;
  const std::string section_;
  Problems& problems_;
};

/// Of one type: which keys have to be there, and what they say. A key of another type is none of this one.
void read_scaling(Reader& reader, const std::string& section, bool linear, Model& model, Problems& problems) {
  const std::vector<std::string> keys = {"factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings"};
  if (!reader.need({keys.begin(), linear ? keys.begin() + 1 : keys.end()})) return;
  model.rope_scaling.factor = reader.number("factor", 1, "8");
  if (linear) return;
  const std::size_t before = problems.reported();
  model.rope_scaling.original = reader.number("original_max_position_embeddings", 1, "8192");
  model.rope_scaling.low = reader.number("low_freq_factor", 1, "1");
  model.rope_scaling.high = reader.number("high_freq_factor", 2, "4");
  if (problems.reported() == before && model.rope_scaling.high <= model.rope_scaling.low)
    problems.add(reader.where("high_freq_factor"),
                 fmt::format("{}.high_freq_factor is {}", section, model.rope_scaling.high),
                 fmt::format("give more than low_freq_factor, {}", model.rope_scaling.low));
}

/// A section of its own: `rope_scaling`, or `rope_parameters` of transformers 5, which has the base as well. Of a type
/// that is not supported nothing else is said: its keys are its own.
void read_rope(Reader& of_model, Model& model, Problems& problems) {
  static const std::vector<std::string> kKeys = {
      "rope_type", "type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
      "rope_theta"};
  for (const char* section : {"rope_scaling", "rope_parameters"}) {
    const ConfigNode* node = of_model.value(section);
    if (node == nullptr || !expect_map(*node, section, kKeys, problems)) continue;
    Reader reader(*node, section, problems);
    const ConfigNode* type = reader.value("rope_type");
    if (type == nullptr) type = reader.value("type");
    if (type == nullptr) {
      problems.add(node->where, fmt::format("missing key '{}.rope_type'", section), "default, linear or llama3");
      continue;
    }
    const auto kind = read_name(*type, dotted(section, "rope_type"), {"default", "linear", "llama3"}, problems);
    if (!kind) continue;
    check_keys(*node, section, kKeys, problems);
    model.rope_theta = reader.number("rope_theta", model.rope_theta, "10000");
    if (*kind > 0) read_scaling(reader, section, *kind == 1, model, problems);
  }
}

/// How many heads there are of what size; of each error once, at the field that it is due to.
void read_heads(Reader& reader, std::size_t family, Model& model, Problems& problems) {
  model.width = reader.integer("hidden_size");
  model.heads = reader.integer("num_attention_heads");
  const std::int64_t own = std::max<std::int64_t>(model.heads, 1);  // null: each head has its own
  const bool assumed = kDefaults[family].kv_heads > 0 && reader.absent("num_key_value_heads");
  model.kv_heads = reader.integer("num_key_value_heads", assumed ? kDefaults[family].kv_heads : own);
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    problems.add(
        reader.where("num_key_value_heads"),
        assumed ? fmt::format("missing key 'num_key_value_heads': of {} it is {}", kFamilies[family], model.kv_heads)
                : fmt::format("num_key_value_heads is '{}'", model.kv_heads),
        fmt::format("give a divisor of the {} heads", model.heads));
  }
  const bool given = reader.value("head_dim") != nullptr;
  const bool sized = model.heads > 0 && model.width > 0;  // else that is said, and nothing that follows from it
  model.head_dim = reader.integer("head_dim", sized ? std::max<std::int64_t>(model.width / model.heads, 1) : 2);
  if (given && model.head_dim % 2 != 0) {
    problems.add(reader.where("head_dim"), fmt::format("head_dim is '{}'", model.head_dim),
                 "give an even one: positions are rotary");
  } else if (!given && sized && model.width % (2 * model.heads) != 0) {
    problems.add(reader.where("hidden_size"), fmt::format("hidden_size is '{}'", model.width),
                 fmt::format("give {} heads an even number of elements each, or head_dim", model.heads));
  }
}

void read_experts(Reader& reader, Model& model, Problems& problems) {
  model.experts = reader.integer("num_local_experts", 8);
  model.experts_per_token = reader.integer("num_experts_per_tok", 2);
  const std::string why = wrong_mixture(model);
  if (why.empty() || model.experts == 0 || model.experts_per_token == 0) return;  // that is said
  const bool given = reader.value("num_experts_per_tok") != nullptr;
  problems.add(reader.where(given ? "num_experts_per_tok" : "num_local_experts"),
               given ? fmt::format("num_experts_per_tok is '{}'", model.experts_per_token)
                     : fmt::format("num_local_experts is '{}', and num_experts_per_tok is not there, hence {}",
                                   model.experts, model.experts_per_token),
               why);
}
}  // namespace

bool is_config_json(const ConfigNode& root) {
  for (const char* key : {"model_type", "architectures", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "n_embd", "n_layer"}) {
    if (root.find(key) != nullptr) return true;
  }
  return false;
}

Model read_config_json(const ConfigNode& root, const std::string& name, Problems& problems) {
  Model model;
  model.name = name;
  const ConfigNode* type = root.find("model_type");
  if (type == nullptr) {
    problems.add(root.where, "missing key 'model_type'", "a config.json of llama, mistral or mixtral is read");
    return model;
  }
  const auto family = read_name(*type, "model_type", {std::begin(kFamilies), std::end(kFamilies)}, problems);
  if (!family) return model;
  const Defaults& absent = kDefaults[*family];
  const bool mixture = *family == 2;
  check_keys(root, "", known_keys(mixture), problems);
  Reader reader(root, "", problems);
  model.layers = reader.integer("num_hidden_layers");
  read_heads(reader, *family, model, problems);
  model.mlp_width = reader.integer("intermediate_size");
  model.vocabulary = reader.integer("vocab_size");
  model.positions = reader.integer("max_position_embeddings");
  model.epsilon = reader.number("rms_norm_eps", absent.epsilon, "1e-5");
  model.rope_theta = reader.number("rope_theta", absent.rope_theta, "10000");
  if (mixture) read_experts(reader, model, problems);
  model.tied = reader.flag("tie_word_embeddings");
  model.gated = true;
  model.norm = NormKind::rms;
  model.position = PositionKind::rotary;
  model.activation = Activation::silu;
  if (const ConfigNode* act = reader.value("hidden_act")) {
    static_cast<void>(read_name(*act, "hidden_act", {"silu"}, problems));
  }
  const bool attention = reader.flag("attention_bias"), mlp = reader.flag("mlp_bias");
  model.biases = attention && mlp;
  if (mixture && (attention || mlp)) {
    reader.refuse(attention ? "attention_bias" : "mlp_bias", "false: experts have no biases");
  } else if (attention != mlp) {
    reader.refuse(attention ? "attention_bias" : "mlp_bias", "all matrices have a bias here, or none");
  }
  read_rope(reader, model, problems);
  if (reader.value("sliding_window") != nullptr) model.window = reader.integer("sliding_window");
  if (reader.absent("sliding_window")) model.window = absent.window;
  return model;
}

}  // namespace kernbench::tp
