#include "runtime/tp/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

/// The published counts, in 10^9, of Mixtral the sum over its matrices; of GPT-3 174.6 with 2,048 positions.
TEST(Models, PresetsHaveThePublishedNumberOfWeights) {
  for (const auto& [name, billions] :
       {std::pair("llama3-8b", 8.03), std::pair("llama3-70b", 70.55), std::pair("llama3-405b", 405.85),
        std::pair("gpt3-175b", 174.6), std::pair("mixtral-8x7b", 46.70)}) {
    EXPECT_NEAR(static_cast<double>(tp::load_model(name).parameters()) / 1e9, billions, 0.006 * billions / 8 + 0.005)
        << name;
  }
  EXPECT_EQ(tp::model_presets().size(), 5u);
  EXPECT_EQ(tp::model_presets()[1].summary, "Llama 3 of 8 billion weights");
}

TEST(Models, VocabularyIsPaddedToMultiplesOf128Ranks) {
  const tp::Model model = tp::load_model("gpt3-175b");
  EXPECT_EQ(model.padded_vocabulary(1), 50304);  // as published
  EXPECT_EQ(model.padded_vocabulary(8), 51200);
  EXPECT_EQ(tp::load_model("llama3-8b").padded_vocabulary(2), 128256);
}

constexpr const char* kModelText = R"(layers: 2
width: 8
heads: 4
kv_heads: 2
head_dim: 4
mlp_width: 16
gated: true
activation: silu
norm: rms
epsilon: 1e-5
vocabulary: 32
position: rotary
rope_theta: 10000
positions: 16
biases: false
tied: false
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kModelText;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Models, WhatIsWrongInAFileIsNamedWithItsPlace) {
  const auto text = [](const std::string& yaml) { return error_text([&] { tp::parse_model(yaml, "m.yaml"); }); };
  EXPECT_EQ(text(kModelText), "nothing was thrown");
  EXPECT_EQ(text(with("mlp_width: 16", "mlp_widht: 16")),
            "m.yaml:1:1: error: missing key 'mlp_width'\n"
            "m.yaml:6:1: error: unknown key 'mlp_widht'\n  hint: did you mean 'mlp_width'?");
  EXPECT_EQ(text(with("activation: silu", "activation: sillu")),
            "m.yaml:8:13: error: activation is 'sillu'\n  hint: did you mean 'silu'? valid values: relu, gelu, silu, "
            "tanh, sigmoid");
  EXPECT_EQ(text(with("epsilon: 1e-5", "epsilon: -1")),
            "m.yaml:10:10: error: epsilon is '-1'\n  hint: give a number above 0, such as 1e-5");
  EXPECT_EQ(text(with("rope_theta: 10000", "rope_theta: inf")),
            "m.yaml:13:13: error: rope_theta is 'inf'\n  hint: give a number above 0, such as 10000");
  EXPECT_EQ(text(with("kv_heads: 2", "kv_heads: 3")),
            "m.yaml:4:11: error: kv_heads is '3'\n  hint: give a divisor of the 4 heads");
  EXPECT_EQ(text(with("position: rotary", "position: learned")),
            "m.yaml:13:13: error: rope_theta is given, but position is 'learned'\n  hint: leave it out");
  EXPECT_EQ(error_text([] { tp::load_model("lama3-8b"); }),
            "lama3-8b: error: is neither a model nor a file\n  hint: did you mean 'llama3-8b'? models: gpt3-175b, "
            "llama3-8b, llama3-70b, llama3-405b, mixtral-8x7b");
  EXPECT_EQ(error_text([] { tp::load_model("/tmp"); }),
            "/tmp: error: is a directory\n  hint: give a YAML file, or a config.json of Hugging Face");
}

/// A config.json of 16 heads of 4 elements; `more` begins with a comma.
std::string config_json(const std::string& family, const std::string& more = {}, const std::string& heads = "16") {
  return "{\"model_type\": \"" + family +
         "\", \"hidden_size\": 64, \"intermediate_size\": 48, \"num_attention_heads\": " + heads +
         ",\n \"num_hidden_layers\": 2, \"max_position_embeddings\": 64, \"vocab_size\": 70" + more + "}";
}

/// source: transformers, configuration_llama.py, configuration_mistral.py, configuration_mixtral.py
TEST(ConfigJson, AnAbsentKeyTakesItsFamilysDefaultAndNullIsNone) {
  const auto read = [](const char* family, const char* more = "") {
    return tp::parse_model(config_json(family, more), "m.json");
  };
  const tp::Model llama = read("llama"), mistral = read("mistral"), mixtral = read("mixtral");
  EXPECT_EQ(std::tuple(llama.kv_heads, llama.window, llama.epsilon, llama.rope_theta), std::tuple(16, 0, 1e-6, 1e4));
  EXPECT_EQ(std::tuple(mistral.kv_heads, mistral.window, mistral.epsilon, mistral.rope_theta),
            std::tuple(8, 4096, 1e-6, 1e4));
  EXPECT_EQ(std::tuple(mixtral.kv_heads, mixtral.window, mixtral.epsilon, mixtral.rope_theta),
            std::tuple(8, 0, 1e-5, 1e6));
  EXPECT_EQ(std::tuple(mixtral.experts, mixtral.experts_per_token), std::tuple(8, 2));
  const tp::Model none = read("mistral", ", \"num_key_value_heads\": null, \"sliding_window\": null");
  EXPECT_EQ(std::tuple(none.kv_heads, none.window), std::tuple(16, 0));
}

TEST(ConfigJson, WhatDoesNotFitIsSaidAtItsField) {
  const auto error = [](const char* family, const std::string& more, const char* heads = "16") {
    return error_text([&] { tp::parse_model(config_json(family, more, heads), "m.json"); });
  };
  EXPECT_EQ(error("llama", ",\n \"head_dim\": 3"),
            "m.json:3:14: error: head_dim is '3'\n  hint: give an even one: positions are rotary");
  for (const char* heads : {"3", "64"}) {
    EXPECT_EQ(error("llama", "", heads), std::string("m.json:1:40: error: hidden_size is '64'\n  hint: give ") + heads +
                                             " heads an even number of elements each, or head_dim");
  }
  EXPECT_EQ(error("llama", ", \"head_dim\": 8", "3"), "nothing was thrown");
  EXPECT_EQ(error("llama", ",\n \"num_key_value_heads\": 3"),
            "m.json:3:25: error: num_key_value_heads is '3'\n  hint: give a divisor of the 16 heads");
  EXPECT_EQ(error("mixtral", ",\n \"num_local_experts\": 1"),
            "m.json:3:23: error: num_local_experts is '1', and num_experts_per_tok is not there, hence 2\n  hint: give "
            "1 to 1, of the 1 experts");
  EXPECT_EQ(error("mixtral", ",\n \"num_experts_per_tok\": 9"),
            "m.json:3:25: error: num_experts_per_tok is '9'\n  hint: give 1 to 8, of the 8 experts");
  EXPECT_EQ(error("mixtral", ",\n \"num_experts_per_tok\": 0"),
            "m.json:3:25: error: num_experts_per_tok is '0'\n  hint: give an integer from 1 to 16777216");
}

TEST(ConfigJson, ADefaultThatDoesNotFitIsAMissingKey) {
  EXPECT_EQ(error_text([] { tp::parse_model(config_json("mistral", "", "4"), "m.json"); }),
            "m.json:1:1: error: missing key 'num_key_value_heads': of mistral it is 8\n  hint: give a divisor of the 4 "
            "heads");
}

TEST(ConfigJson, WhatIsWrongWithARopeScalingIsOneError) {
  const auto error = [](const std::string& scaling) {
    return error_text(
        [&] { tp::parse_model(config_json("llama", ",\n\"rope_scaling\": {" + scaling + "}"), "m.json"); });
  };
  EXPECT_EQ(error(R"("type": "yarn", "factor": "x", "finetuned": true)"),
            "m.json:3:26: error: rope_scaling.rope_type is 'yarn'\n  hint: valid values: default, linear, llama3");
  EXPECT_EQ(error(R"("factor": 2, "finetuned": true)"),
            "m.json:3:17: error: missing key 'rope_scaling.rope_type'\n  hint: default, linear or llama3");
  EXPECT_EQ(error(R"("rope_type": "linear")"), "m.json:3:17: error: missing key 'rope_scaling.factor'");
  EXPECT_EQ(error(R"("rope_type": "llama3")"),
            "m.json:3:17: error: missing keys 'rope_scaling.factor', 'rope_scaling.low_freq_factor', "
            "'rope_scaling.high_freq_factor', 'rope_scaling.original_max_position_embeddings'");
  const std::string whole = R"("rope_type": "llama3", "original_max_position_embeddings": 32, "factor": )";
  EXPECT_EQ(error(whole + R"(8, "low_freq_factor": 4, "high_freq_factor": 4)"),
            "m.json:3:136: error: rope_scaling.high_freq_factor is 4\n  hint: give more than low_freq_factor, 4");
  EXPECT_EQ(error(whole + R"(8, "low_freq_factor": 4, "high_freq_factor": "x")"),
            "m.json:3:136: error: rope_scaling.high_freq_factor is not a number above 0\n  hint: give one, such as 4");
  EXPECT_EQ(error(whole + R"("x", "low_freq_factor": 1, "high_freq_factor": 4, "fctor": 8)"),
            "m.json:3:91: error: rope_scaling.factor is not a number above 0\n  hint: give one, such as 8\n"
            "m.json:3:141: error: unknown key 'fctor' in 'rope_scaling'\n  hint: did you mean 'factor'?");
  EXPECT_EQ(error(whole + R"(8, "low_freq_factor": 1, "high_freq_factor": 4)"), "nothing was thrown");
}

/// Source of the expected values: Llama 3.1, theta 500,000, heads of 128; pairs whose wavelength is below 8,192 / 4
/// positions keep their frequency, those above 8,192 turn at an eighth of it.
TEST(RotaryFrequency, IsLoweredWhereAWavelengthIsLongerThanWhatTheModelWasTrainedOn) {
  const tp::RopeScaling none, linear{4, 0, 0, 0}, llama{8, 8192, 1, 4};
  bool kept = false, between = false, lowered = false;
  double last = 2;
  for (std::int64_t pair = 0; pair < 64; ++pair) {
    const double plain = std::pow(500'000.0, -static_cast<double>(pair) / 64), wavelength = 2 * std::acos(-1.0) / plain;
    EXPECT_DOUBLE_EQ(tp::rotary_frequency(500'000, none, pair, 128), plain);
    EXPECT_DOUBLE_EQ(tp::rotary_frequency(500'000, linear, pair, 128), plain / 4);
    const double scaled = tp::rotary_frequency(500'000, llama, pair, 128);
    if (wavelength < 2048) {
      kept = true;
      EXPECT_DOUBLE_EQ(scaled, plain);
    } else if (wavelength > 8192) {
      lowered = true;
      EXPECT_DOUBLE_EQ(scaled, plain / 8);
    } else {
      between = true;
      EXPECT_LT(scaled, plain);
      EXPECT_GT(scaled, plain / 8);
    }
    EXPECT_LT(scaled, last) << "and falls from pair to pair";
    last = scaled;
  }
  EXPECT_TRUE(kept && between && lowered);
}

}  // namespace
}  // namespace kernbench::testing
