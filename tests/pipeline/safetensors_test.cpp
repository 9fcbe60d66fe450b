#include "runtime/pipeline/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/test_folder.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {
namespace {

/// A file of these bytes; one at a time in a test.
class WeightFile {
 public:
  explicit WeightFile(const std::string& content) { std::ofstream(path(), std::ios::binary) << content; }
  std::string path() const { return folder_.file("w.safetensors"); }

 private:
  TestFolder folder_;
};

/// As the format's page puts a file together, written out once more.
std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  for (unsigned i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + data;
}

TEST(Safetensors, ReadsSlicesOfEveryType) {
  for (const auto& [name, dtype] :
       {std::pair("F64", DType::f64), std::pair("F32", DType::f32), std::pair("BF16", DType::bf16),
        std::pair("F16", DType::f16), std::pair("F8_E4M3", DType::f8e4m3), std::pair("I64", DType::i64),
        std::pair("I8", DType::i8), std::pair("BOOL", DType::boolean)}) {
    const std::size_t item = size_of(dtype);
    std::string data;
    for (std::size_t i = 0; i < 24 * item; ++i) data += static_cast<char>(i);
    const WeightFile file(file_of("{\"a\":{\"dtype\":\"" + std::string(name) +
                                      "\",\"shape\":[2,3,4],\"data_offsets\":[0," + std::to_string(24 * item) +
                                      "]},\"__metadata__\":{\"format\":\"pt\"}}",
                                  data));
    const Safetensors weights(file.path());
    ASSERT_NE(weights.find("a"), nullptr);
    const HostTensor part = weights.read(*weights.find("a"), {{1, 2}, {0, 2}, {1, 3}});
    EXPECT_EQ(part.shape, (std::vector<std::int64_t>{1, 2, 2}));
    EXPECT_EQ(part.dtype, dtype);
    std::string expected;
    for (const std::size_t element : {13U, 14U, 17U, 18U}) expected += data.substr(element * item, item);
    EXPECT_EQ(std::string(part.bytes.begin(), part.bytes.end()), expected) << name;
    EXPECT_EQ(weights.read(*weights.find("a")).bytes.size(), data.size());
  }
}

/// Pages that this process holds in memory, of files too, in bytes.
std::size_t resident() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0, pages = 0;
  file >> size >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// 4 rows of 16 columns out of 64 GiB, which have no room on the disk: were more read than the part, this process would
/// grow by that. A read of neighbouring pages is the kernel's (128 KiB a row).
TEST(Safetensors, APartOfAFileLargerThanMemoryIsReadAlone) {
  constexpr std::int64_t kRows = 131072, kCols = 262144;
  constexpr std::size_t kData = std::size_t{2} * kRows * kCols;
  const std::string header = "{\"w\":{\"dtype\":\"F16\",\"shape\":[" + std::to_string(kRows) + "," +
                             std::to_string(kCols) + "],\"data_offsets\":[0," + std::to_string(kData) + "]}}";
  const WeightFile file(file_of(header, ""));
  std::filesystem::resize_file(file.path(), 8 + header.size() + kData);
  std::fstream stream(file.path(), std::ios::binary | std::ios::in | std::ios::out);
  for (std::int64_t row = 99999; row < 100003; ++row) {
    for (std::int64_t col = 200000; col < 200016; ++col) {
      const auto value = static_cast<std::uint16_t>(row * 31 + col);
      stream.seekp(static_cast<std::streamoff>(8 + header.size()) + 2 * (row * kCols + col));
      stream.write(reinterpret_cast<const char*>(&value), 2);
    }
  }
  stream.close();
  const std::size_t before = resident();
  const Safetensors weights(file.path());
  const HostTensor part = weights.read(*weights.find("w"), {{99999, 100003}, {200000, 200016}});
  EXPECT_LT(resident() - before, std::size_t{16} << 20);
  ASSERT_EQ(part.shape, (std::vector<std::int64_t>{4, 16}));
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint16_t value = 0;
    std::memcpy(&value, part.bytes.data() + 2 * i, 2);
    EXPECT_EQ(value, static_cast<std::uint16_t>((99999 + i / 16) * 31 + 200000 + i % 16)) << i;
  }
}

TEST(Safetensors, WritesWhatItReads) {
  std::map<std::string, HostTensor> tensors;
  tensors["b"] = {{3}, DType::i8, {1, 2, 3}};
  tensors["a"] = {{}, DType::f16, {0, 60}};
  tensors["none"] = {{0, 4}, DType::f32, {}};
  const WeightFile file(to_safetensors(tensors));
  const Safetensors weights(file.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "none"}));
  for (const auto& [name, tensor] : tensors) {
    const HostTensor got = weights.read(*weights.find(name));
    EXPECT_EQ(got.shape, tensor.shape);
    EXPECT_EQ(got.dtype, tensor.dtype);
    EXPECT_EQ(got.bytes, tensor.bytes);
  }
}

/// Quantised checkpoints hold them beside others.
TEST(Safetensors, LeavesOutTensorsOfTypesThatDocumentsCannotName) {
  const WeightFile file(
      file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
              "\"b\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[3,6]},"
              "\"c\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[6,8]}}",
              "abcdefgh"));
  const Safetensors weights(file.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"c"}));
  EXPECT_EQ(weights.read(*weights.find("c")).bytes, (std::vector<std::uint8_t>{'g', 'h'}));
}

TEST(Safetensors, RefusesBrokenHeadersAtTheFile) {
  const auto tensor = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  const std::string good = "\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]";
  const std::pair<std::string, std::string> cases[] = {
      {"abc", "is shorter than the 8 bytes in front of a safetensors header\n  hint: give a safetensors file"},
      {std::string(8, '\xff'),
       "says that its header has 18446744073709551615 B, but the file has 8 B\n  hint: this is probably "
       "not a safetensors file, or it is cut off"},
      {file_of("[1]", ""), "its header is no JSON map\n  hint: this is probably not a safetensors file"},
      {file_of("{\"a\": 1", ""), "its header is no JSON map\n  hint: this is probably not a safetensors file"},
      {file_of("{\"a\":1}", ""), "tensor 'a': it is no map\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F17\",\"shape\":[2],\"data_offsets\":[0,4]"), "1234"),
       "tensor 'a': dtype 'F17' is none of safetensors\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F16\",\"shape\":2,\"data_offsets\":[0,4]"), "1234"),
       "tensor 'a': 'shape' is no list\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F16\",\"shape\":[-2],\"data_offsets\":[0,4]"), "1234"),
       "tensor 'a': 'shape' holds what is no integer from 0\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F16\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), "1234"),
       "tensor 'a': its shape is larger than the file\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,6]"), "1234"),
       "tensor 'a': its data_offsets do not lie in the file\n  hint: the file is broken"},
      {file_of(tensor("\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]"), "1234"),
       "tensor 'a': its data_offsets hold 4 B, its shape and dtype 2 B\n  hint: the file is broken"},
      {file_of(tensor(good), "123456"), "its tensors have 4 B, its data 6 B\n  hint: the file is broken"},
      {file_of("{\"a\":{" + good + "},\"b\":{" + good + "}}", "1234"),
       "its tensors overlap, or leave a gap, at byte 0 of the data\n  hint: the file is broken"},
  };
  for (const auto& [content, expected] : cases) {
    const WeightFile file(content);
    try {
      const Safetensors weights(file.path());
      ADD_FAILURE() << "accepted: " << expected;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), file.path() + ": error: " + expected);
    }
  }
}

}  // namespace
}  // namespace kernbench::pipeline
