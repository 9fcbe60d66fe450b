#pragma once
#include <string>
#include <vector>

namespace kernbench {

/// A command line, without the tool's name.
using Arguments = std::vector<std::string>;

/// Values of an option, where no parser knows it: plug-ins and an earlier run say which options there are.
inline Arguments values_of(const std::string& option, const Arguments& arguments) {
  Arguments values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) values.push_back(arguments[++i]);
    if (arguments[i].rfind(option + "=", 0) == 0) values.push_back(arguments[i].substr(option.size() + 1));
  }
  return values;
}

}  // namespace kernbench
