#include "sc_main/run/file_identity.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "sc_main/run/exit_code.h"
#include "sc_main/run/result_file.h"
#include "tlm/config/nearest.h"
#include "topology/spec/resolve.h"

namespace kernbench {
namespace fs = std::filesystem;

std::string identity_of(const std::string& file) {
  constexpr std::uintmax_t kWhole = std::uintmax_t{256} << 20, kFirst = std::uintmax_t{1} << 20, kPlaces = 1024;
  constexpr std::size_t kBlock = 4096;
  const std::uintmax_t size = fs::file_size(file);
  if (size <= kWhole) return topology::hash_of(read_file(file));
  std::ifstream stream(file, std::ios::binary);
  std::string text = std::to_string(size) + "\n";
  std::string block(kFirst, '\0');
  stream.read(block.data(), static_cast<std::streamsize>(block.size()));
  text += block;
  block.resize(kBlock);
  for (std::uintmax_t i = 1; i <= kPlaces; ++i) {
    stream.seekg(static_cast<std::streamoff>((size - kBlock) / kPlaces * i));
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    text += block;
  }
  return topology::hash_of(text);
}

void refuse_same_files(const NamedFiles& files) {
  const auto same = [](const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return false;
    std::error_code ignored;
    const fs::path path = fs::weakly_canonical(fs::absolute(a, ignored), ignored),
                   other = fs::weakly_canonical(fs::absolute(b, ignored), ignored);
    const bool device =
        fs::exists(path, ignored) && !fs::is_regular_file(path, ignored) && !fs::is_directory(path, ignored);
    return path == other && !device;
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = i + 1; j < files.size(); ++j) {
      if (same(files[i].second, files[j].second))
        throw UsageError(fmt::format("{} and {} are both {}", files[i].first, files[j].first, quote(files[j].second)),
                         "give each a file of its own");
    }
  }
}

void refuse_overwriting(const std::vector<std::string>& inputs, const NamedFiles& outputs) {
  refuse_same_files(outputs);
  for (const auto& output : outputs) {
    for (const std::string& input : inputs) refuse_same_files({{"an input", input}, output});
  }
}

const std::string& build_id() {
  static const std::string id = topology::hash_of(read_file("/proc/self/exe")).substr(0, 16);
  return id;
}

}  // namespace kernbench
