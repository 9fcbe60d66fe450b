#pragma once
#include <string>
#include <vector>

namespace kernbench {

/// A command line, without the tool's name.
using Arguments = std::vector<std::string>;

}  // namespace kernbench
