#pragma once
#include <string>
#include <utility>
#include <vector>

namespace kernbench {

/// What a file is known by: its contents. Of one beyond 256 MiB, weights that are never read as a whole, these are its
/// size, its first MiB, and 4 KiB at each of 1,024 places as far from each other.
std::string identity_of(const std::string& file);

/// Files by what they are for.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;
/// No two may be one, but for a terminal and the like. An empty name is no file. Throws UsageError.
void refuse_same_files(const NamedFiles& files);
/// The same of what a command writes, which may be nothing that it reads either. Before anything is written.
void refuse_overwriting(const std::vector<std::string>& inputs, const NamedFiles& outputs);

/// Identifies this program: a hash over its executable.
const std::string& build_id();

}  // namespace kernbench
