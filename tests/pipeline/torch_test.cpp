#include "runtime/pipeline/torch_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "runtime/pipeline/mapped_zip.h"
#include "runtime/pipeline/unpickle.h"
#include "tests/support/test_folder.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// A folder with what write_torch.py makes.
class PipelineTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string script = std::string(KERNBENCH_SOURCE_DIR) + "/tests/pipeline/write_torch.py";
    ASSERT_EQ(std::system((std::string(KERNBENCH_PYTHON) + " " + script + " " + folder_.path().string()).c_str()), 0)
        << "needs Debian's python3-torch, which make test installs";
  }

  std::string path(const std::string& name) const { return folder_.file(name); }

  /// What the reader says of a file, without its place; "" if it takes it.
  std::string refusal(const std::string& name, bool exported) const {
    try {
      const TorchFile file(path(name), exported);
      return "";
    } catch (const ConfigError& error) {
      const std::string begin = path(name) + ": error: ", text = error.what();
      EXPECT_EQ(text.substr(0, begin.size()), begin);
      return text.substr(begin.size());
    }
  }

  void expect_the_bits() const;
  void expect_refusals() const;
  void expect_damage_to_end_with_a_text() const;
  void expect_damaged_pickles_to_end_with_a_text() const;

  TestFolder folder_;
};

std::string hex_of(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

DType dtype_named(const std::string& name) {
  return name == "f64"    ? DType::f64
         : name == "f32"  ? DType::f32
         : name == "f16"  ? DType::f16
         : name == "bf16" ? DType::bf16
         : name == "i64"  ? DType::i64
         : name == "i32"  ? DType::i32
         : name == "i16"  ? DType::i16
         : name == "i8"   ? DType::i8
                          : DType::boolean;
}

void PipelineTorch::expect_the_bits() const {
  const std::pair<const char*, bool> files[] = {
      {"types", false},     {"views", false},   {"nested", false},     {"model", false},     {"alone", false},
      {"ordered", false},   {"plain", false},   {"parameters", false}, {"protocol3", false}, {"protocol4", false},
      {"protocol5", false}, {"export21", true}, {"export27", true},    {"export28", true},   {"export29", true}};
  for (const auto& [name, exported] : files) {
    const TorchFile file(path(std::string(name) + (exported ? ".pt2" : ".pt")), exported);
    const auto expected = nlohmann::json::parse(content_of(path(std::string(name) + ".json")));
    EXPECT_FALSE(expected.empty());
    std::vector<std::string> names;
    for (const auto& [tensor, described] : expected.items()) {
      names.push_back(tensor);
      const WeightFile::Entry* entry = file.find(tensor);
      ASSERT_NE(entry, nullptr) << name << ": " << tensor;
      EXPECT_EQ(entry->dtype, dtype_named(described["dtype"])) << name << ": " << tensor;
      EXPECT_EQ(entry->shape, described["shape"].get<std::vector<std::int64_t>>()) << name << ": " << tensor;
      EXPECT_EQ(hex_of(file.read(*entry).bytes), described["hex"].get<std::string>()) << name << ": " << tensor;
    }
    EXPECT_EQ(file.names(), names) << name;
  }
  // A part of a view, with the strides of the view.
  const TorchFile views(path("views.pt"), false);
  const auto turned = nlohmann::json::parse(content_of(path("views.json")))["turned"]["hex"].get<std::string>();
  std::string part;
  for (const std::size_t element : {2U * 6 + 1, 2U * 6 + 2, 3U * 6 + 1, 3U * 6 + 2})
    part += turned.substr(8 * element, 8);
  EXPECT_EQ(hex_of(views.read(*views.find("turned"), {{2, 4}, {1, 3}}).bytes), part);
  // Storages that are shared are there once.
  EXPECT_EQ(views.find("turned")->begin, views.find("whole")->begin);
}

void PipelineTorch::expect_refusals() const {
  const std::string state_dict = "\n  hint: save the state dict alone: torch.save(model.state_dict(), FILE)",
                    is_broken = "\n  hint: the file is broken",
                    other = "\n  hint: give a file of PyTorch 1.6 or later; this is another one, or it is cut off";
  const std::tuple<const char*, bool, std::string> refused[] = {
      {"legacy.pt", false, "is no zip archive" + other},
      {"module.pt", false,
       "wants the Python object 'torch.nn.modules.container.Sequential', which is not loaded" + state_dict},
      {"command.pt", false, "wants the Python object 'posix.system', which is not loaded" + state_dict},
      {"script.pt", false, "is a TorchScript module" + state_dict},
      {"compressed.pt", false,
       "has its entry 'ordered/data.pkl' compressed\n  hint: PyTorch does not compress: pack it without"},
      {"storage.pt", false, "has no entry 'ordered/data/0'" + is_broken},
      {"short.pt", false, "has a storage '0' of 100 B, which should be 192" + is_broken},
      {"pickle.pt", false, "its pickle is cut off, at byte 40" + is_broken},
      {"endian.pt", false, "is not little-endian\n  hint: save it on a little-endian machine"},
      {"size.pt", false, "tensor 'b': it reaches beyond its storage" + is_broken},
      {"negative.pt", false, "tensor 'b': its offset is negative" + is_broken},
      {"stride.pt", false, "tensor 'b': it reaches beyond its storage" + is_broken},
      {"plain_short.pt", false, "has a storage '0' of 100 B, which should be 192" + is_broken},
      {"plain_size.pt", false, "tensor 'b': it reaches beyond its storage" + is_broken},
      {"plain_negative.pt", false, "tensor 'b': its offset is negative" + is_broken},
      {"plain_stride.pt", false, "tensor 'b': it reaches beyond its storage" + is_broken},
      {"export_cut.pt2", true, "tensor 'part': it reaches beyond its storage" + is_broken},
      {"export_config.pt2", true,
       "has a list of weights that cannot be read: [json.exception.type_error.304] cannot use at() with number" +
           is_broken},
      {"export_deep.pt2", true, "has a list of weights that is nested deeper than 100 levels" + is_broken},
      {"export_next.pt2", true,
       "is of another version of the archive than 0, which is read\n  hint: write the weights as safetensors"},
      {"model.pt", true,
       "is no archive of torch.export\n  hint: give a file of torch.export.save; one of torch.save has that format"},
      {"export29.pt2", false,
       "has no data.pkl\n  hint: give a file of torch.save; an archive of torch.export has that format"},
      {"none.pt", false, "cannot be read: No such file or directory"}};
  for (const auto& [name, exported, text] : refused) EXPECT_EQ(refusal(name, exported), text) << name;
  EXPECT_FALSE(fs::exists(path("executed"))) << "a file's command was executed";
}

/// Cut off, bytes changed: what is taken all the same can be read; nothing crashes.
void PipelineTorch::expect_damage_to_end_with_a_text() const {
  std::mt19937 random(1);
  int taken = 0;
  for (const auto& [name, exported] :
       {std::pair("model.pt", false), std::pair("export27.pt2", true), std::pair("export29.pt2", true)}) {
    const std::string good = content_of(path(name));
    for (int i = 0; i < 300; ++i) {
      std::string damaged = good;
      if (i % 4 == 0) {
        damaged.resize(random() % good.size());
      } else {
        for (unsigned edit = 0; edit < 1 + random() % 4; ++edit)
          damaged[random() % good.size()] = static_cast<char>(random() % 256);
      }
      std::ofstream(path("damaged"), std::ios::binary) << damaged;
      try {
        const TorchFile file(path("damaged"), exported);
        for (const auto& [tensor, entry] : file.entries()) file.read(entry);
        ++taken;
      } catch (const ConfigError&) {
      }
    }
  }
  EXPECT_LT(taken, 800);
}

/// A pickle, damaged where no checksum sees it: it ends with tensors or with BrokenFile.
void PipelineTorch::expect_damaged_pickles_to_end_with_a_text() const {
  for (const char* name : {"nested.pt", "protocol4.pt", "parameters.pt"}) {
    const std::string file = content_of(path(name));
    const std::string good = MappedZip(reinterpret_cast<const std::uint8_t*>(file.data()), 0, file.size())
                                 .text(std::string(name, std::string(name).size() - 3) + "/data.pkl");
    EXPECT_FALSE(unpickle_tensors(good).empty());
    std::mt19937 random(2);
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
      std::string damaged = good;
      for (unsigned edit = 0; edit < 1 + random() % 3; ++edit) {
        const std::size_t at = random() % damaged.size();
        if (random() % 3 == 0) {
          damaged.erase(at, 1 + random() % 8);
        } else if (random() % 2 == 0) {
          damaged.insert(at, damaged.substr(random() % damaged.size(), 1 + random() % 8));
        } else {
          damaged[at] = static_cast<char>(random() % 256);
        }
      }
      try {
        unpickle_tensors(damaged);
      } catch (const BrokenFile&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 1000) << name;
  }
}

/// One case: PyTorch takes a second to start.
TEST_F(PipelineTorch, ReadsWhatPyTorchWritesToTheBitAndRefusesTheRest) {
  expect_the_bits();
  expect_refusals();
  expect_damage_to_end_with_a_text();
  expect_damaged_pickles_to_end_with_a_text();
}

}  // namespace
}  // namespace kernbench::pipeline
