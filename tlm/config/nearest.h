#pragma once
#include <string>
#include <vector>

namespace kernbench {

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`; letter case and '-' against '_' cost nothing.
std::size_t edit_distance(const std::string& a, const std::string& b);
/// The candidate that `text` was probably meant to be; empty if none is near. Of equals the first.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);
/// Hint for a name that is none of `valid`: "did you mean 'rows'?", or the list of the valid ones.
std::string suggest(const std::string& text, const std::vector<std::string>& valid,
                    const std::string& label = "valid keys");
/// "a, b, c"
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");
/// What stands between the separators, empty parts too: one part where there is no separator.
std::vector<std::string> split(const std::string& text, char separator);
/// Whether `text` ends so.
bool ends_with(const std::string& text, const std::string& end);
/// Whether a value that may be a name or a file is a file: it has a slash, or ends as YAML and JSON files do.
bool names_file(const std::string& text);
/// For messages: in single quotes, control characters escaped, cut after 60 characters.
std::string quote(const std::string& text);

}  // namespace kernbench
