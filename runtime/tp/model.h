#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tp/norm.h"
#include "runtime/tp/rope.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// How a model knows where a token stands: queries and keys are turned by it, or a row of a table is added.
enum class PositionKind : std::uint8_t { rotary, learned };

/// Sizes of a decoder-only language model: what its layers are made from. All of the whole model, before it is split.
struct Model {
  std::string name;                              ///< preset or file
  std::int64_t layers = 0;                       ///< transformer layers
  std::int64_t width = 0;                        ///< of the hidden state, elements
  std::int64_t heads = 0, kv_heads = 0;          ///< query heads; key/value heads, which divide them
  std::int64_t head_dim = 0;                     ///< elements of a head
  std::int64_t mlp_width = 0;                    ///< elements between the MLP's matrices, of one expert's
  std::int64_t experts = 0;                      ///< MLPs of a layer, a mixture; 0: a single one
  std::int64_t experts_per_token = 0;            ///< of a mixture, those that each token goes to
  bool gated = false;                            ///< three matrices in the MLP: activation(gate x) * (up x), then down
  Activation activation = Activation::gelu;      ///< of the MLP
  NormKind norm = NormKind::rms;                 ///< before attention, before the MLP, and at the end
  double epsilon = 1e-5;                         ///< of the norms
  std::int64_t vocabulary = 0;                   ///< tokens
  PositionKind position = PositionKind::rotary;  ///< how it knows where a token stands
  double rope_theta = 0;                         ///< base of rotary positions; 0 of learned ones
  RopeScaling rope_scaling;                      ///< of their frequencies
  std::int64_t window = 0;                       ///< positions that a token sees, itself the last; 0: all before it
  std::int64_t positions = 0;                    ///< that the model was trained for
  bool biases = false;                           ///< of every matrix
  bool tied = false;                             ///< the output matrix is the embedding's

  bool mixture() const { return experts > 0; }  ///< its layers have experts

  /// Weights, biases, norms and tables included; a tied matrix once.
  std::int64_t parameters() const;
  /// The vocabulary as it is split: the next multiple of 128 ranks (as Megatron pads it).
  std::int64_t padded_vocabulary(int ranks) const;
};

/// Of any model.
inline constexpr std::int64_t kMostExpertsPerToken = 64;
/// What to give for experts_per_token, if it is wrong; empty: it is right.
std::string wrong_mixture(const Model& model);

/// A model that ships with the tool.
struct ModelPreset {
  std::string name;     ///< as load_model takes it
  std::string summary;  ///< first comment line of its file
};
/// All of them, by name.
std::vector<ModelPreset> model_presets();

/// Reads a preset, a YAML file of the same form, or a config.json of Hugging Face (model_config_json.h). Throws
/// ConfigError with file:line:column for every key that is unknown, missing or wrong.
Model load_model(const std::string& preset_or_file);
/// The same from text; `name` stands for the file in messages.
Model parse_model(const std::string& text, const std::string& name);

}  // namespace kernbench::tp
