#pragma once
#include <map>
#include <string>
#include <vector>

namespace kernbench::chakra {

/// {"1": [0, 1], "2": [2, 3]}: ASTRA-sim's communicator groups. Throws ConfigError.
std::map<std::string, std::vector<int>> read_groups(const std::string& file);

}  // namespace kernbench::chakra
