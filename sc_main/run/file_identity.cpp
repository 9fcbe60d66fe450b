#include "sc_main/run/file_identity.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "sc_main/run/result_file.h"
#include "topology/spec/resolve.h"

namespace kernbench {

std::string identity_of(const std::string& file) {
  constexpr std::uintmax_t kWhole = std::uintmax_t{256} << 20, kFirst = std::uintmax_t{1} << 20, kPlaces = 1024;
  constexpr std::size_t kBlock = 4096;
  const std::uintmax_t size = std::filesystem::file_size(file);
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

const std::string& build_id() {
  static const std::string id = topology::hash_of(read_file("/proc/self/exe")).substr(0, 16);
  return id;
}

}  // namespace kernbench
