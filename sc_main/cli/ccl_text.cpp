#include "sc_main/cli/ccl_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "ccl/select/registry.h"
#include "tlm/config/config_node.h"

namespace kernbench {
namespace {

bool same(const ConfigNode& a, const ConfigNode& b) {
  const auto same_entry = [&b](const ConfigNode::Entry& entry) {
    const ConfigNode* other = b.find(entry.key);
    return other != nullptr && same(entry.value, *other);
  };
  return a.kind == b.kind && a.text == b.text && a.quoted == b.quoted && a.entries.size() == b.entries.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::all_of(a.entries.begin(), a.entries.end(), same_entry);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A ccl.yaml without the lines of its `tuned`. Comments at the start of a line before the next key are that key's.
std::string without_times(const std::string& text, const ConfigNode& root) {
  const std::vector<std::string> lines = lines_of(text);
  const ConfigNode::Entry* tuned = root.entry("tuned");
  std::size_t begin = lines.size(), end = lines.size();  // counted from 0
  if (tuned != nullptr) {
    begin = tuned->key_where.line - 1;
    for (const ConfigNode::Entry& entry : root.entries) {
      if (entry.key_where.line > tuned->key_where.line) end = std::min<std::size_t>(end, entry.key_where.line - 1);
    }
    while (end > begin + 1 && end < lines.size() && lines[end - 1].rfind('#', 0) == 0) --end;
  }
  std::string rest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i < begin || i >= end) rest += lines[i] + "\n";
  }
  return rest;
}

}  // namespace

std::string with_times(const std::string& text, const std::string& file, const std::string& times) {
  ConfigNode wanted = parse_config(text, file);
  const std::string result = without_times(text, wanted) + times;
  wanted.set("tuned", wanted.where, *parse_config(times, file).find("tuned"));
  try {
    if (same(parse_config(result, file), wanted)) return result;
  } catch (const ConfigError&) {  // of a text that nobody has seen
  }
  throw ConfigError(
      wanted.where, "times cannot be written into this file",
      "begin 'algorithms' and 'tuned' at the start of a line each, in one document without braces around it");
}

std::string moved(const std::string& text, const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const fs::path old_folder = fs::absolute(from).parent_path(), folder = fs::absolute(to).parent_path();
  std::error_code unknown;
  if (fs::equivalent(old_folder, folder, unknown)) return text;
  std::vector<std::string> lines = lines_of(text);
  const ConfigNode root = parse_config(text, from);
  for (const ConfigNode::Entry& entry : root.find("algorithms")->entries) {
    const ConfigNode& module = *entry.value.find("module");
    if (fs::path(module.text).is_absolute() || ccl::is_builtin(module.text)) continue;
    std::string& line = lines[module.where.line - 1];
    const std::size_t at = module.where.column - 1 + (module.quoted ? 1 : 0);
    if (at > line.size() || line.compare(at, module.text.size(), module.text) != 0)
      throw ConfigError(module.where, fmt::format("the path of a module cannot be carried over to {}", to),
                        "give it in full");
    line.replace(at, module.text.size(), (old_folder / module.text).lexically_normal().string());
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

}  // namespace kernbench
