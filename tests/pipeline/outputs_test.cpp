#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

/// A tensor as a file has it. Files are put together and taken apart here by
/// https://github.com/huggingface/safetensors, not by the project's reader: length of the header, header, data.
struct Stored {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

std::string file_with(const std::map<std::string, Stored>& tensors) {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
}

std::map<std::string, Stored> tensors_in(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const nlohmann::json header = nlohmann::json::parse(file.substr(sizeof length, length));
  std::map<std::string, Stored> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    tensors[name] = {entry["dtype"], entry["shape"], file.substr(sizeof length + length + begin, end - begin)};
  }
  return tensors;
}

template <class T>
Stored stored(const char* dtype, std::int64_t rows, std::int64_t cols,
              const std::function<T(std::int64_t, std::int64_t)>& element) {
  Stored tensor{dtype, {rows, cols}, ""};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      const T value = element(row, col);
      tensor.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return tensor;
}

template <class T>
T element_of(const Stored& tensor, std::int64_t row, std::int64_t col) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(row * tensor.shape[1] + col) * sizeof value,
              sizeof value);
  return value;
}

/// Rows of x are on two SIPs, and change places on their way: the first two become the last two. Columns of u are on
/// two SIPs. Rows of i are on a SIP and on the host.
constexpr const char* kDocument = R"yaml(name: outputs
devices: {a: {kind: npu, idx: 0}, b: {kind: npu, idx: 1}, host: {kind: cpu, idx: 0}}
tensors:
  xa: {shape: [2, 4], dtype: f32}
  xb: {shape: [4, 4], dtype: f32}
  ya: {shape: [2, 4], dtype: f32}
  yb: {shape: [4, 4], dtype: f32}
  ua: {shape: [4, 5], dtype: f16}
  ub: {shape: [4, 1], dtype: f16}
  va: {shape: [4, 5], dtype: f16}
  vb: {shape: [4, 1], dtype: f16}
  ia: {shape: [3, 3], dtype: i64}
  ih: {shape: [2, 3], dtype: i64}
  ja: {shape: [3, 3], dtype: i64}
  jh: {shape: [2, 3], dtype: i64}
supertasks:
  in: {kind: input, inputs: [], outputs: [xa, xb, ua, ub, ia, ih]}
  xa1: {kind: dfg, device: a, inputs: [xa], outputs: [ya], data: "ya = mul(xa, -1.5)"
}
  xb1: {kind: dfg, device: b, inputs: [xb], outputs: [yb], data: "yb = mul(xb, -1.5)"}
  ua1: {kind: dfg, device: a, inputs: [ua], outputs: [va], data: "va = neg(ua)"}
  ub1: {kind: dfg, device: b, inputs: [ub], outputs: [vb], data: "vb = neg(ub)"}
  ia1: {kind: dfg, device: a, inputs: [ia], outputs: [ja], data: "ja = sub(ia, 7)"}
  ih1: {kind: dfg, device: host, inputs: [ih], outputs: [jh], data: "jh = sub(ih, 7)"}
  out: {kind: output, inputs: [ya, yb, va, vb, ja, jh], outputs: []}
metadata:
  tensors:
    inputs:
      x: {shape: [6, 4], dtype: f32, idx: 0}
      u: {shape: [4, 6], dtype: f16, idx: 1}
      i: {shape: [5, 3], dtype: i64, idx: 2}
    outputs:
      y: {shape: [6, 4], dtype: f32, idx: 0}
      v: {shape: [4, 6], dtype: f16, idx: 1}
      j: {shape: [5, 3], dtype: i64, idx: 2}
  tensor_slices:
    inputs:
      xa: {placements: [[0, 2], [0, 4]], origin: x, dtype: f32, device: a}
      xb: {placements: [[2, 6], [0, 4]], origin: x, dtype: f32, device: b}
      ua: {placements: [[0, 4], [0, 5]], origin: u, dtype: f16, device: a}
      ub: {placements: [[0, 4], [5, 6]], origin: u, dtype: f16, device: b}
      ia: {placements: [[0, 3], [0, 3]], origin: i, dtype: i64, device: a}
      ih: {placements: [[3, 5], [0, 3]], origin: i, dtype: i64, device: host}
    outputs:
      ya: {placements: [[4, 6], [0, 4]], origin: y, dtype: f32, device: a}
      yb: {placements: [[0, 4], [0, 4]], origin: y, dtype: f32, device: b}
      va: {placements: [[0, 4], [0, 5]], origin: v, dtype: f16, device: a}
      vb: {placements: [[0, 4], [5, 6]], origin: v, dtype: f16, device: b}
      ja: {placements: [[0, 3], [0, 3]], origin: j, dtype: i64, device: a}
      jh: {placements: [[3, 5], [0, 3]], origin: j, dtype: i64, device: host}
)yaml";

TEST(PipelineOutputs, TheFileHasEveryElementWhereTheSlicesOfTheMetadataSay) {
  const Tool tool;
  const Stored x = stored<float>("F32", 6, 4, [](auto row, auto col) { return static_cast<float>(row * 4 + col) / 8; });
  // Codes of f16, no two of them alike; negative ones, too, and the smallest.
  const Stored u = stored<std::uint16_t>("F16", 4, 6, [](auto row, auto col) {
    return static_cast<std::uint16_t>((row * 6 + col) * 1021 + (col % 2) * 0x8000);
  });
  // Odd numbers beyond 2^53, which no double holds.
  const Stored i = stored<std::int64_t>(
      "I64", 5, 3, [](auto row, auto col) { return ((std::int64_t{1} << 60) + row * 3 + col) * (col == 1 ? -1 : 1); });
  std::ofstream(tool.file("in.safetensors"), std::ios::binary) << file_with({{"x", x}, {"u", u}, {"i", i}});
  std::ofstream(tool.file("p.yaml")) << kDocument;
  const Outcome outcome = tool({"pipeline", "run", "p.yaml", "--topology", "minimal", "--set", "system.sips.count=2",
                                "--inputs", "in.safetensors", "--outputs", "out.safetensors"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::map<std::string, Stored> got = tensors_in(read(tool.file("out.safetensors")));
  ASSERT_EQ(got.size(), 3U);
  const Stored &y = got.at("y"), &v = got.at("v"), &j = got.at("j");
  EXPECT_EQ(std::tie(y.dtype, y.shape), std::tie(x.dtype, x.shape));
  EXPECT_EQ(std::tie(v.dtype, v.shape), std::tie(u.dtype, u.shape));
  EXPECT_EQ(std::tie(j.dtype, j.shape), std::tie(i.dtype, i.shape));
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t col = 0; col < 4; ++col)
      EXPECT_EQ(element_of<float>(y, row, col), -1.5F * element_of<float>(x, (row + 2) % 6, col)) << row << ", " << col;
  }
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t col = 0; col < 6; ++col)
      EXPECT_EQ(element_of<std::uint16_t>(v, row, col), element_of<std::uint16_t>(u, row, col) ^ 0x8000)
          << row << ", " << col;
  }
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t col = 0; col < 3; ++col)
      EXPECT_EQ(element_of<std::int64_t>(j, row, col), element_of<std::int64_t>(i, row, col) - 7) << row << ", " << col;
  }
}

/// The run would end with code 4.
TEST(PipelineOutputs, WhatTheyAreComparedWithIsRefusedBeforeTheSimulation) {
  const Tool tool;
  std::ofstream(tool.file("p.yaml")) << kDocument;
  const auto zeros = [](std::int64_t rows, std::int64_t cols) {
    return stored<float>("F32", rows, cols, [](auto, auto) { return 0.0F; });
  };
  std::ofstream(tool.file("other.safetensors"), std::ios::binary) << file_with({{"x", zeros(6, 4)}});
  std::ofstream(tool.file("small.safetensors"), std::ios::binary) << file_with({{"y", zeros(2, 4)}});
  for (const auto& [file, text] : {std::pair("none", "cannot be read: No such file or directory\n"),
                                   {"other", "holds no tensor 'y'\n  hint: did you mean 'x'?\n"},
                                   {"small", "tensor 'y' is f32[2, 4], but the pipeline says f32[6, 4]\n"}}) {
    const std::string path = std::string(file) + ".safetensors";
    const Outcome outcome = tool({"pipeline", "run", "p.yaml", "--topology", "minimal", "--set", "system.sips.count=2",
                                  "--expect", path, "--max-sim-time", "1 ns"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, path + ": error: " + text);
  }
}

/// 64 GiB that take no room on the disk. The limit is of memory that a process writes to; what is mapped for reading
/// does not count.
TEST(PipelineOutputs, AConstantThatIsAPartOfAFileLargerThanMemoryIsLoadedAlone) {
  const Tool tool;
  constexpr std::int64_t kRows = 131072, kCols = 262144;
  constexpr std::size_t kData = std::size_t{2} * kRows * kCols;
  const nlohmann::json header = {
      {"w", {{"dtype", "F16"}, {"shape", {kRows, kCols}}, {"data_offsets", {std::size_t{0}, kData}}}}};
  const std::uint64_t length = header.dump().size();
  std::ofstream(tool.file("w.safetensors"), std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), sizeof length) << header.dump();
  std::filesystem::resize_file(tool.file("w.safetensors"), sizeof length + length + kData);
  const auto code = [](std::int64_t row, std::int64_t col) {
    return static_cast<std::uint16_t>((row * 31 + col) % 0x4000);
  };
  std::fstream stream(tool.file("w.safetensors"), std::ios::binary | std::ios::in | std::ios::out);
  for (std::int64_t row = 99999; row < 100003; ++row) {
    for (std::int64_t col = 200000; col < 200016; ++col) {
      const std::uint16_t value = code(row, col);
      stream.seekp(static_cast<std::streamoff>(sizeof length + length) + 2 * (row * kCols + col));
      stream.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  stream.close();
  std::ofstream(tool.file("in.safetensors"), std::ios::binary)
      << file_with({{"x", stored<std::uint16_t>("F16", 4, 16, [](auto, auto) { return std::uint16_t{0}; })}});
  std::ofstream(tool.file("p.yaml")) << R"yaml(name: part
devices: {a: {kind: npu, idx: 0}}
tensors:
  x: {shape: [4, 16], dtype: f16}
  w: {shape: [4, 16], dtype: f16, value: {path: w.safetensors, format: safetensors, name: w, name_in_graph: w, placements: [[99999, 100003], [200000, 200016]]}}
  y: {shape: [4, 16], dtype: f16}
supertasks:
  in: {kind: input, inputs: [], outputs: [x]}
  t: {kind: dfg, device: a, inputs: [x, w], outputs: [y], data: "y = add(w, x)"}
  out: {kind: output, inputs: [y], outputs: []}
metadata:
  tensors: {inputs: {x: {shape: [4, 16], dtype: f16, idx: 0}}, outputs: {y: {shape: [4, 16], dtype: f16, idx: 0}}}
  tensor_slices:
    inputs: {x: {placements: [[0, 4], [0, 16]], origin: x, dtype: f16, device: a}}
    outputs: {y: {placements: [[0, 4], [0, 16]], origin: y, dtype: f16, device: a}}
)yaml";
#ifdef KERNBENCH_SANITIZED
  const std::string limit;  // its shadow is larger
#else
  const std::string limit = "ulimit -d 1000000; ";  // KiB
#endif
  const Outcome outcome = tool.shell(limit + quoted(KERNBENCH_BINARY) +
                                     " pipeline run p.yaml --topology minimal --inputs in.safetensors --outputs "
                                     "out.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Stored y = tensors_in(read(tool.file("out.safetensors"))).at("y");
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t col = 0; col < 16; ++col)
      EXPECT_EQ(element_of<std::uint16_t>(y, row, col), code(99999 + row, 200000 + col)) << row << ", " << col;
  }
}

}  // namespace
}  // namespace kernbench
