#pragma once
#include "runtime/tp/model.h"
#include "tlm/config/config_node.h"

namespace kernbench::tp {

/// A file of a model as Hugging Face's transformers write it (config.json): it says its `model_type`.
bool is_config_json(const ConfigNode& root);
/// The model that it describes. Adds what is missing, wrong, unknown or not supported to `problems`, at its place.
///
/// Families: llama (Llama 2 and 3) and mistral, which have the same layers, and mixtral, with experts in place of the
/// MLP. Source of names and defaults: transformers, LlamaConfig, MistralConfig and MixtralConfig.
Model read_config_json(const ConfigNode& root, const std::string& name, Problems& problems);

}  // namespace kernbench::tp
