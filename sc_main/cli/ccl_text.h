#pragma once
#include <string>

/// A user's ccl.yaml as text, whose comments and order stay.
namespace kernbench {

/// The text of the ccl.yaml `file` with `times` (a `tuned:` and its list) at its end, in place of those that it has.
/// Throws ConfigError if it would not read back as just that.
std::string with_times(const std::string& text, const std::string& file, const std::string& times);

/// The text of the ccl.yaml `from`, which reads without errors, for a file `to`: if that lies in another folder,
/// modules that are named from the old one get their full paths. Throws ConfigError at one that cannot be replaced.
std::string moved(const std::string& text, const std::string& from, const std::string& to);

}  // namespace kernbench
