#pragma once
#include <string>

namespace kernbench {

/// What a file is known by: its contents. Of one beyond 256 MiB, weights that are never read as a whole, these are its
/// size, its first MiB, and 4 KiB at each of 1,024 places as far from each other.
std::string identity_of(const std::string& file);

/// Identifies this program: a hash over its executable.
const std::string& build_id();

}  // namespace kernbench
