#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

namespace fs = std::filesystem;

/// A document for each kind of supertask, which share inputs, weights and expected outputs.
const fs::path kKinds = fs::path(KERNBENCH_SOURCE_DIR) / "docs" / "examples" / "pipeline" / "kinds";
const std::vector<std::string> kMachine{"--topology",          "minimal", "--set",
                                        "system.sips.count=2", "--set",   "sip.cube_mesh.w=2"};

struct Matrix {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< row-major
  double at(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(row * shape.back() + col)];
  }
};

Matrix made(std::vector<std::int64_t> shape, const std::function<double(std::int64_t, std::int64_t)>& element) {
  Matrix matrix{std::move(shape), {}};
  const std::int64_t cols = matrix.shape.empty() ? 1 : matrix.shape.back();
  const std::int64_t rows = matrix.shape.size() == 2 ? matrix.shape.front() : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) matrix.values.push_back(element(row, col));
  }
  return matrix;
}

/// As published at https://github.com/huggingface/safetensors: length of the header, header, data; f32.
std::string safetensors(const std::map<std::string, Matrix>& tensors) {
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [name, matrix] : tensors) {
    const std::size_t begin = data.size();
    for (const double value : matrix.values) {
      const auto single = static_cast<float>(value);
      char bytes[sizeof single];
      std::memcpy(bytes, &single, sizeof single);
      data.append(bytes, sizeof single);
    }
    header[name] = {{"dtype", "F32"}, {"shape", matrix.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';
  const std::uint64_t length = text.size();
  char bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  return std::string(bytes, sizeof length) + text + data;
}

/// Multiples of 1/4, of which no two rows or columns are alike.
const Matrix kX =
    made({4, 4}, [](auto row, auto col) { return static_cast<double>((row * 5 + col * 3) % 11 - 5) / 4; });
const Matrix kW =
    made({6, 4}, [](auto row, auto col) { return static_cast<double>((row * 7 + col * 2) % 13 - 6) / 8; });
const Matrix kB = made({4}, [](auto, auto col) { return static_cast<double>(col - 1) / 2; });
const double kFactor = -1.5;

std::map<std::string, Matrix> inputs() {
  std::map<std::string, Matrix> files{{"x", kX}, {"factor", made({}, [](auto, auto) { return kFactor; })}};
  for (const int layer : {0, 1}) {
    for (const int part : {0, 1})
      files["past_key_values_" + std::to_string(layer) + "_" + std::to_string(part)] =
          made({2, 4}, [&](auto row, auto col) { return static_cast<double>(layer * 20 + part * 10 + row * 4 + col); });
  }
  return files;
}

/// Outputs of all documents by the words of docs/pipeline.md, in plain loops.
std::map<std::string, Matrix> expected() {
  std::map<std::string, Matrix> outputs;
  const Matrix upper = made({2, 4}, [](auto row, auto col) { return kX.at(row, col); }),
               lower = made({2, 4}, [](auto row, auto col) { return kX.at(row + 2, col); });
  outputs["dfg"] = made({4, 4}, [](auto row, auto col) {
    double sum = kB.values[static_cast<std::size_t>(col)];
    for (int k = 0; k < 4; ++k) sum += kX.at(row, k) * kW.at(col + 2, k);
    return sum * 0.5 * (1 + std::erf(sum / std::sqrt(2.0)));
  });
  const Matrix product = made({4, 4}, [](auto row, auto col) {
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += kX.at(row, k) * kW.at(k, col);
    return sum;
  });
  outputs["FX"] = made({4, 4}, [&](auto row, auto col) {
    double all = 0;
    for (int k = 0; k < 4; ++k) all += std::exp(product.at(row, k));
    return std::exp(product.at(row, col)) / all;
  });
  const auto both = [&](const std::function<double(double, double)>& of) {
    return made({2, 4}, [&](auto row, auto col) { return of(upper.at(row, col), lower.at(row, col)); });
  };
  const Matrix sum = both([](double a, double b) { return a + b; }),
               most = both([](double a, double b) { return std::max(a, b); });
  outputs["send_recv"] = sum;
  for (const char* kind : {"reduce", "all_reduce"}) {
    outputs[std::string(kind) + "_sum"] = sum;
    outputs[std::string(kind) + "_avg"] = both([](double a, double b) { return (a + b) / 2; });
    outputs[std::string(kind) + "_max"] = most;
    outputs[std::string(kind) + "_min"] = both([](double a, double b) { return std::min(a, b); });
  }
  outputs["all_gather_0"] = kX;
  outputs["all_gather_1"] =
      made({2, 8}, [&](auto row, auto col) { return col < 4 ? upper.at(row, col) : lower.at(row, col - 4); });
  outputs["reduce_scatter_0"] = sum;
  outputs["reduce_scatter_1"] = most;
  outputs["all_to_all"] = kX;
  outputs["parts_sum"] = both([](double a, double b) { return 2 * a + 2 * b; });
  outputs["parts_turned"] = kX;
  outputs["broadcast"] = lower;
  outputs["broadcast_difference"] = both([](double a, double b) { return a - b; });
  outputs["scaled"] =
      made({4, 4}, [](auto row, auto col) { return row < 3 ? kX.at(row, col) * kFactor : kX.at(row, col); });
  outputs["unchanged"] = made({3, 4}, [](auto row, auto col) { return kX.at(row + 1, col); });
  outputs["cpu"] = made({4, 4}, [](auto row, auto col) { return 2 * std::tanh(kX.at(row, col)); });
  const std::map<std::string, Matrix> given = inputs();
  for (const std::string layer : {"0", "1"}) {
    for (const int part : {0, 1}) {
      const std::string number = layer + "_" + std::to_string(part);
      const Matrix& past = given.at("past_key_values_" + number);
      outputs["present_" + number] = made({6, 4}, [&](auto row, auto col) {
        return row < 2 ? past.at(row, col) : (part == 0 ? 1 : -1) * kX.at(row - 2, col);
      });
    }
  }
  return outputs;
}

std::string text_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// KERNBENCH_REGENERATE=1 in the environment writes the files.
TEST(PipelineExamples, InputsWeightsAndExpectedOutputsAreWhatPlainLoopsGive) {
  const std::map<std::string, std::map<std::string, Matrix>> files{
      {"inputs", inputs()}, {"weights", {{"w", kW}, {"b", kB}}}, {"expected", expected()}};
  for (const auto& [name, tensors] : files) {
    const fs::path path = kKinds / (name + ".safetensors");
    if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(path, std::ios::binary) << safetensors(tensors);
    EXPECT_TRUE(text_of(path) == safetensors(tensors))
        << name << ".safetensors is not in step: run this test with KERNBENCH_REGENERATE=1";
  }
}

std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(kKinds)) {
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".json") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expect_ok(const Outcome& outcome, const std::string& what) {
  ASSERT_EQ(outcome.code, 0) << what << ": " << outcome.err << outcome.out;
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(all["results"][0]["check"], "ok") << what;
  EXPECT_EQ(all["results"][0]["mismatches"], 0) << what;
}

/// Sums of up to five products of multiples of 1/32, and functions of f32: that is what rtol = atol = 1e-5 is for.
TEST(PipelineExamples, ADocumentForEachKindRunsToItsExpectedOutputs) {
  const Tool tool;
  std::set<std::string> kinds;
  for (const fs::path& path : documents()) {
    const std::string text = text_of(path);
    for (const char* kind : {"dfg", "FX", "send", "recv", "reduce", "all_gather", "all_reduce", "reduce_scatter",
                             "all_to_all", "broadcast", "input", "output"}) {
      for (const std::string& form : {"kind: " + std::string(kind) + ",", "kind: " + std::string(kind) + "\n",
                                      "\"kind\": \"" + std::string(kind) + "\""}) {
        if (text.find(form) != std::string::npos) kinds.insert(kind);
      }
    }
    std::vector<std::string> command{"pipeline",
                                     "run",
                                     path.string(),
                                     "--inputs",
                                     (kKinds / "inputs.safetensors").string(),
                                     "--expect",
                                     (kKinds / "expected.safetensors").string(),
                                     "--json",
                                     "-"};
    command.insert(command.end(), kMachine.begin(), kMachine.end());
    expect_ok(tool(command), path.filename().string());
  }
  EXPECT_EQ(kinds.size(), 12U);
}

/// A part of a nested argument keeps its path in the name, whatever the path: both of a name are renamed here. That
/// parts are missing before it is worth a warning.
TEST(PipelineExamples, PartsOfNestedArgumentsAreNamedByTheirPaths) {
  const Tool tool;
  for (const char* extension : {"json", "yaml"}) {
    // JSON is YAML, too: the document under both names.
    std::string text = text_of(kKinds / "nested.json");
    for (std::size_t at; (at = text.find("past_key_values_1_1")) != std::string::npos;)
      text.replace(at, 19, "past_key_values_3_1");
    const std::string file = std::string("nested.") + extension;
    std::ofstream(tool.file(file)) << text;
    const Outcome outcome = tool({"pipeline", "check", file, "--topology", "minimal", "--set", "system.sips.count=2"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, file +
                               ":45:9: warning: $.metadata.tensors.inputs.past_key_values_3_1: there is no "
                               "past_key_values_2 before it\n"
                               "  hint: parts are named by their place in the nested argument, from 0\n");
    EXPECT_NE(outcome.out.find(": ok: "), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace kernbench
