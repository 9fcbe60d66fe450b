#pragma once
#include <filesystem>
#include <string>

namespace kernbench::validate {

/// The folder of one domain's tables. `given`: --reference; it may hold the folder of each domain or the tables
/// themselves; empty: the tables that come with the tool, found from the place of its executable. Throws
/// std::invalid_argument if there is no such folder.
std::filesystem::path reference_folder(const std::string& given, const std::string& domain_folder);

}  // namespace kernbench::validate
