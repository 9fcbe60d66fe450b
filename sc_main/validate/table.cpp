#include "sc_main/validate/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "tlm/config/config_node.h"
#include "tlm/config/nearest.h"

namespace kernbench::validate {
namespace fs = std::filesystem;
namespace {
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Where `key=` stands as a word of its own; npos if nowhere.
std::size_t find_key(const std::string& text, const std::string& key) {
  const std::string wanted = key + "=";
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    if (at == 0 || !is_word(text[at - 1])) return at;
  }
  return std::string::npos;
}

/// From `begin` to the next blank, comma, semicolon or colon outside brackets.
std::string value_at(const std::string& text, std::size_t begin) {
  int depth = 0;
  std::size_t end = begin;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') {
      if (depth == 0) break;
      --depth;
    }
    if (depth == 0 && (c == ' ' || c == ',' || c == ';' || c == ':')) break;
  }
  return text.substr(begin, end - begin);
}

bool read_number(const std::string& text, double& value) {
  if (text.empty()) return false;
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && std::isfinite(value);
}

bool read_integer(const std::string& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}
}  // namespace

ConfigError problem(const Stated& value, const std::string& hint) {
  return {value.where, fmt::format("{} {}", value.name, quote(value.text)), hint};
}

double number(const Stated& value) {
  double number = 0;
  if (!read_number(value.text, number)) throw problem(value, "give a number");
  return number;
}

std::uint64_t integer(const Stated& value, std::uint64_t most) {
  std::uint64_t number = 0;
  if (read_integer(value.text, number) && number <= most) return number;
  const bool bounded = most < std::numeric_limits<std::uint64_t>::max();
  throw problem(value, bounded ? fmt::format("give an integer from 0 to {}", most) : "give an integer of at least 0");
}

Table::Table(const fs::path& file) : file_(file.string()), name_(file.stem().string()) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::istringstream lines(load_text(file_, kMostBytes, "give a CSV table", ""));
  unsigned number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (line.front() == '#') {
      comments_.emplace_back(number, line);
    } else if (columns_.empty()) {
      header_line_ = number;
      columns_ = split(line, ',');
    } else {
      rows_.push_back({number, split(line, ',')});
      if (rows_.back().fields.size() != columns_.size())
        throw ConfigError({file_, number, 1}, fmt::format("{} fields in this row, {} columns in the header",
                                                          rows_.back().fields.size(), columns_.size()));
    }
  }
  if (columns_.empty()) throw ConfigError({file_, 0, 0}, "no line of column names in this table");
  if (rows_.empty()) throw ConfigError({file_, header_line_, 1}, "no rows in this table");
}

bool Table::has(const std::string& column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

void Table::require(const std::vector<std::string>& columns) const {
  for (const std::string& name : columns) static_cast<void>(column(name));
}

std::size_t Table::column(const std::string& name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  const std::string near = nearest(name, columns_);
  throw ConfigError({file_, header_line_, 1}, fmt::format("missing column '{}'", name),
                    near.empty() ? std::string() : fmt::format("is '{}' meant to be it?", near));
}

const std::string& Table::text(std::size_t row, const std::string& name) const {
  return rows_.at(row).fields[column(name)];
}

Stated Table::cell(std::size_t row, const std::string& name) const {
  const Row& at = rows_.at(row);
  unsigned begin = 1;
  for (std::size_t i = 0; i < column(name); ++i) begin += static_cast<unsigned>(at.fields[i].size()) + 1;
  return {fmt::format("'{}' is", name), text(row, name), {file_, at.line, begin}};
}

double Table::number(std::size_t row, const std::string& name) const { return validate::number(cell(row, name)); }

std::uint64_t Table::integer(std::size_t row, const std::string& name) const {
  return validate::integer(cell(row, name));
}

std::optional<Stated> Table::find_parameter(const std::string& key) const {
  for (const auto& [line, text] : comments_) {
    const std::size_t at = find_key(text, key);
    if (at == std::string::npos) continue;
    const Location where{file_, line, static_cast<unsigned>(at) + 1};
    return Stated{fmt::format("'{}' is", key), value_at(text, at + key.size() + 1), where};
  }
  return std::nullopt;
}

Stated Table::parameter(const std::string& key) const {
  if (std::optional<Stated> value = find_parameter(key)) return *std::move(value);
  throw ConfigError({file_, 1, 1}, fmt::format("no '{}=' in the comment lines of this table", key),
                    "the lines that start with # state every parameter");
}

std::vector<std::vector<Stated>> Table::matches(const std::string& expression, const std::string& what) const {
  const std::regex pattern(expression);
  std::vector<std::vector<Stated>> found;
  for (const auto& [line, text] : comments_) {
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
      std::vector<Stated> groups;
      for (std::size_t i = 1; i < match->size(); ++i) {
        const Location where{file_, line, static_cast<unsigned>(match->position(i)) + 1};
        groups.push_back({what + " has", (*match)[i].str(), where});
      }
      found.push_back(std::move(groups));
    }
  }
  if (found.empty())
    throw ConfigError({file_, 1, 1}, fmt::format("no {} in the comment lines of this table", what),
                      "the lines that start with # state every parameter");
  return found;
}

void Table::fail(std::size_t row, const std::string& name, const std::string& hint) const {
  throw problem(row, name, hint);
}

ConfigError Table::problem(std::size_t row, const std::string& name, const std::string& hint) const {
  return validate::problem(cell(row, name), hint);
}

std::vector<fs::path> csv_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".csv") files.push_back(entry->path());
  }
  if (error)
    throw ConfigError({folder.string(), 0, 0}, "cannot read this folder of tables: " + error.message(),
                      "give --reference DIR");
  if (files.empty()) throw ConfigError({folder.string(), 0, 0}, "no CSV table in this folder", "give --reference DIR");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace kernbench::validate
