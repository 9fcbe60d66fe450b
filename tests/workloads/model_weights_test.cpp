#include "sc_main/workloads/model_weights.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {

namespace fs = std::filesystem;
using pipeline::HostTensor;
using ::testing::HasSubstr;
using Tensors = std::map<std::string, HostTensor>;

constexpr const char* kModel = R"(layers: 2
width: 8
heads: 2
kv_heads: 1
head_dim: 4
mlp_width: 6
gated: true
activation: silu
norm: rms
epsilon: 1e-5
vocabulary: 10
position: rotary
rope_theta: 1000
positions: 64
biases: false
tied: false
)";

/// Element i of the n-th tensor is (n + i / 64) / 32: exact in every type that is used here.
HostTensor numbered(std::vector<std::int64_t> shape, std::size_t number) {
  HostTensor tensor{std::move(shape), DType::f32, {}};
  const auto count = static_cast<std::size_t>(tensor.count());
  tensor.bytes.resize(count * 4);
  for (std::size_t i = 0; i < count; ++i)
    store_element(tensor.bytes.data(), DType::f32, i, (static_cast<double>(number) + static_cast<double>(i) / 64) / 32);
  return tensor;
}

/// As Hugging Face stores a llama: a matrix has a row for each output.
Tensors llama() {
  const std::vector<std::pair<const char*, std::vector<std::int64_t>>> parts{
      {"input_layernorm", {8}},     {"post_attention_layernorm", {8}}, {"self_attn.q_proj", {8, 8}},
      {"self_attn.k_proj", {4, 8}}, {"self_attn.v_proj", {4, 8}},      {"self_attn.o_proj", {8, 8}},
      {"mlp.up_proj", {6, 8}},      {"mlp.gate_proj", {6, 8}},         {"mlp.down_proj", {8, 6}}};
  Tensors tensors;
  std::size_t number = 0;
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    for (const auto& [part, shape] : parts) tensors[std::string(layer) + part + ".weight"] = numbered(shape, ++number);
  }
  tensors["model.embed_tokens.weight"] = numbered({10, 8}, ++number);
  tensors["model.norm.weight"] = numbered({8}, ++number);
  tensors["lm_head.weight"] = numbered({10, 8}, ++number);
  return tensors;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

/// The folder of a model in two files and an index.
fs::path sharded(const Tool& tool) {
  const fs::path folder = tool.file("model");
  fs::create_directory(folder);
  Tensors first, second;
  std::string map;
  for (auto& [name, tensor] : llama()) {
    const bool late = name.find("layers.1") != std::string::npos;
    map += (map.empty() ? "" : ",\n    ") + ("\"" + name) + "\": \"" + (late ? "b" : "a") + ".safetensors\"";
    (late ? second : first)[name] = tensor;
  }
  write(folder / "a.safetensors", pipeline::to_safetensors(first));
  write(folder / "b.safetensors", pipeline::to_safetensors(second));
  write(folder / "model.safetensors.index.json",
        "{\n  \"metadata\": {\"total_size\": 1},\n  \"weight_map\": {\n    " + map + "\n  }\n}\n");
  return folder;
}

TEST(ModelWeights, OfOneFileOrSeveralAreTheFilesElementsTurned) {
  const Tool tool;
  const Tensors tensors = llama();
  const fs::path one = tool.file("one.safetensors"), folder = sharded(tool);
  write(one, pipeline::to_safetensors(tensors));
  const tp::Model model = tp::parse_model(kModel, "m.yaml");
  for (const fs::path& path : {one, folder, folder / "model.safetensors.index.json"}) {
    const ModelWeightFiles files(path.string(), model, 2, true);
    const auto element = [&](const char* name, std::size_t i) {
      return load_element(tensors.at(name).bytes.data(), DType::f32, i);
    };
    EXPECT_EQ(files.weight("layer1.attention.k", DType::f32)(5, 3),
              element("model.layers.1.self_attn.k_proj.weight", 29));
    EXPECT_EQ(files.weight("layer0.attention.out", DType::f32)(1, 7),
              element("model.layers.0.self_attn.o_proj.weight", 57));
    EXPECT_EQ(files.weight("layer0.mlp.down", DType::f32)(4, 2), element("model.layers.0.mlp.down_proj.weight", 16));
    EXPECT_EQ(files.weight("layer1.mlp.up", DType::f32)(7, 5), element("model.layers.1.mlp.up_proj.weight", 47));
    EXPECT_EQ(files.weight("layer1.mlp_norm", DType::f32)(0, 6),
              element("model.layers.1.post_attention_layernorm.weight", 6));
    EXPECT_EQ(files.weight("embedding", DType::f32)(9, 1), element("model.embed_tokens.weight", 73));
    EXPECT_EQ(files.weight("output", DType::f32)(1, 9), element("lm_head.weight", 73));
    // 21 + 73/64, divided by 32: f16 keeps ten bits behind the leading one of 22.14.
    EXPECT_NEAR(files.weight("output", DType::f16)(1, 9), element("lm_head.weight", 73), 0x1p-11);
    EXPECT_NE(files.weight("output", DType::bf16)(1, 9), element("lm_head.weight", 73)) << "rounded";
  }
}

/// As Hugging Face stores mixtral: w1 is the gate, w3 goes up, w2 down.
TEST(ModelWeights, OfExpertsHaveTheNamesOfMixtral) {
  const Tool tool;
  tp::Model model = tp::parse_model(kModel, "m.yaml");
  model.experts = 2;
  model.experts_per_token = 1;
  Tensors tensors = llama();
  std::size_t number = 50;
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* part : {"mlp.up_proj", "mlp.gate_proj", "mlp.down_proj"})
      tensors.erase(std::string(layer) + part + ".weight");
    const std::string moe = std::string(layer) + "block_sparse_moe.";
    tensors[moe + "gate.weight"] = numbered({2, 8}, ++number);
    for (const char* expert : {"experts.0.", "experts.1."}) {
      tensors[moe + expert + "w1.weight"] = numbered({6, 8}, ++number);
      tensors[moe + expert + "w2.weight"] = numbered({8, 6}, ++number);
      tensors[moe + expert + "w3.weight"] = numbered({6, 8}, ++number);
    }
  }
  const fs::path path = tool.file("moe.safetensors");
  write(path, pipeline::to_safetensors(tensors));
  const ModelWeightFiles files(path.string(), model, 2, true);
  const auto element = [&](const char* name, std::size_t i) {
    return load_element(tensors.at(name).bytes.data(), DType::f32, i);
  };
  const auto weight = [&](const char* name, std::int64_t row, std::int64_t col) {
    return files.weight(name, DType::f32)(row, col);
  };
  EXPECT_EQ(weight("layer1.moe.router", 5, 1), element("model.layers.1.block_sparse_moe.gate.weight", 13));
  EXPECT_EQ(weight("layer0.moe.expert1.gate", 7, 4),
            element("model.layers.0.block_sparse_moe.experts.1.w1.weight", 39));
  EXPECT_EQ(weight("layer1.moe.expert0.down", 3, 6),
            element("model.layers.1.block_sparse_moe.experts.0.w2.weight", 39));
  EXPECT_EQ(weight("layer1.moe.expert1.up", 2, 5), element("model.layers.1.block_sparse_moe.experts.1.w3.weight", 42));
  model.experts = 3;
  try {
    ModelWeightFiles(path.string(), model, 1, true);
    ADD_FAILURE() << "a third expert is not there";
  } catch (const ConfigError& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("there is no tensor 'model.layers.0.block_sparse_moe.experts.2.w3.weight'"));
    EXPECT_THAT(problem.what(),
                HasSubstr("'model.layers.0.block_sparse_moe.gate.weight' is [2, 8], the model's is [3, 8]"));
  }
}

TEST(ModelWeights, RunOnEveryRankAsOnTheHost) {
  const Tool tool;
  write(tool.file("m.yaml"), kModel);
  const auto rows = rows_of(tool, {"run",        "tp_transformer",
                                   "--topology", "ring8",
                                   "--set",      "system.sips.count=2",
                                   "--set",      "sip.cube_mesh.w=2",
                                   "--set",      "sip.cube_mesh.h=1",
                                   "--set",      "cube.pes=2",
                                   "--model",    "m.yaml",
                                   "--page",     "4",
                                   "--layers",   "2",
                                   "--prompt",   "3",
                                   "--decode",   "1",
                                   "-w",         "0",
                                   "--dtype",    "f32",
                                   "--weights",  sharded(tool).string()});
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i]["check"], "ok");
}

TEST(ModelWeights, RefuseWhatIsBrokenWithItsPlace) {
  const Tool tool;
  const fs::path folder = sharded(tool), index = folder / "model.safetensors.index.json";
  const tp::Model model = tp::parse_model(kModel, "m.yaml");
  std::ifstream in(index);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto error = [&](const std::string& text, const tp::Model& of) -> std::string {
    write(index, text);
    try {
      ModelWeightFiles(folder.string(), of, 2, true);
    } catch (const ConfigError& problem) {
      return problem.what();
    }
    return "nothing";
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(error(whole, model), "nothing");
  EXPECT_THAT(error(replaced("\"weight_map\"", "\"map\""), model), HasSubstr("the index has no map 'weight_map'"));
  EXPECT_THAT(error(replaced("\"a.safetensors\"", "\"c.safetensors\""), model),
              HasSubstr("index.json:4:23: error: there is no file 'c.safetensors' beside the index"));
  EXPECT_THAT(error(replaced("\"a.safetensors\"", "\"../a.safetensors\""), model),
              HasSubstr("'lm_head.weight' is in no file"));
  EXPECT_THAT(error(replaced("\"a.safetensors\"", "3"), model),
              HasSubstr("index.json:4:23: error: 'lm_head.weight' is in no file\n  hint: give the name of a file"));
  EXPECT_THAT(error(replaced("\"a.safetensors\"", "\"b.safetensors\""), model),
              HasSubstr("index.json:4:5: error: tensor 'lm_head.weight' is not in 'b.safetensors'"));
  EXPECT_THAT(error(replaced("\"lm_head.weight\": \"a.safetensors\",\n", ""), model),
              HasSubstr("there is no tensor 'lm_head.weight'"));
  EXPECT_NE(error("{", model), "nothing");
  tp::Model wide = model;
  wide.mlp_width = 7;
  EXPECT_THAT(error(whole, wide),
              HasSubstr("tensor 'model.layers.0.mlp.down_proj.weight' is [8, 6], the model's is [8, 7]"));
}

TEST(ModelWeights, OfATypeThatIsNotReadAreOneError) {
  const Tool tool;
  Tensors tensors = llama();
  for (auto& [name, tensor] : tensors) {
    if (name.find("proj") == std::string::npos && name != "lm_head.weight") continue;
    tensor.bytes.resize(static_cast<std::size_t>(tensor.count()));
    tensor.dtype = name == "lm_head.weight" ? DType::i16 : DType::i8;
    tensor.bytes.resize(tensor.bytes.size() * size_of(tensor.dtype));
  }
  const std::string path = tool.file("one.safetensors");
  write(path, pipeline::to_safetensors(tensors));
  try {
    ModelWeightFiles(path, tp::parse_model(kModel, "m.yaml"), 2, true);
    ADD_FAILURE() << "i8 is no type of weights";
  } catch (const ConfigError& problem) {
    const std::string hint = "\n  hint: weights are f16, bf16, f32 or f64";
    EXPECT_EQ(problem.what(), path + ": error: tensor 'lm_head.weight' is i16" + hint + "\n" + path +
                                  ": error: tensor 'model.layers.0.self_attn.q_proj.weight' and 13 more are i8" + hint);
  }
}

}  // namespace
}  // namespace kernbench
