#include "sc_main/validate/reference_folder.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace kernbench::validate {
namespace fs = std::filesystem;

fs::path reference_folder(const std::string& given, const std::string& domain_folder) {
  std::error_code ignored;
  if (!given.empty()) {
    fs::path folder = given;
    if (!fs::is_directory(folder, ignored))
      throw std::invalid_argument(fmt::format("--reference '{}' is not a folder", given));
    return fs::is_directory(folder / domain_folder, ignored) ? folder / domain_folder : folder;
  }
  const fs::path tool = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  constexpr std::array<const char*, 2> kPlaces{KERNBENCH_BUILD_REFERENCE, KERNBENCH_INSTALLED_REFERENCE};
  for (const char* place : kPlaces) {
    fs::path folder = (tool / place / domain_folder).lexically_normal();
    if (fs::is_directory(folder, ignored)) return folder;
  }
  throw std::invalid_argument(fmt::format(
      "the reference tables of '{}' are not beside this tool\n  hint: give --reference DIR", domain_folder));
}

}  // namespace kernbench::validate
