#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tlm/config/problems.h"

namespace kernbench::validate {

/// A value in a table, and where it stands.
struct Stated {
  std::string name;  ///< how an error begins: "'num_vcs' is"
  std::string text;
  Location where;
};
/// What stands there is not what `hint` asks for.
ConfigError problem(const Stated& value, const std::string& hint);
/// These throw it.
double number(const Stated& value);
std::uint64_t integer(const Stated& value, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// A CSV file of a reference: comment lines that start with '#', a line of column names, rows.
///
/// Accessors throw ConfigError at file, line and column of what is wrong, so that a broken table names itself.
class Table {
 public:
  /// Throws ConfigError: no such file, no header, a row whose number of fields differs from the header's.
  explicit Table(const std::filesystem::path& file);

  /// File name without folder and extension.
  const std::string& name() const { return name_; }
  std::size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const;
  /// Throws, naming the file, if any of these columns is missing.
  void require(const std::vector<std::string>& columns) const;

  const std::string& text(std::size_t row, const std::string& column) const;
  bool empty(std::size_t row, const std::string& column) const { return text(row, column).empty(); }
  Stated cell(std::size_t row, const std::string& column) const;
  double number(std::size_t row, const std::string& column) const;
  std::uint64_t integer(std::size_t row, const std::string& column) const;

  /// Value of `key=value` in the comment lines: up to the next blank, comma, semicolon or colon outside
  /// brackets. Throws if it is not there.
  Stated parameter(const std::string& key) const;
  std::optional<Stated> find_parameter(const std::string& key) const;
  /// What the brackets of an ECMAScript expression match in the comment lines, in order of the lines; throws, saying
  /// that `what` is missing, if it matches nowhere.
  std::vector<std::vector<Stated>> matches(const std::string& expression, const std::string& what) const;

  /// Throws: what stands here is not what `hint` asks for.
  [[noreturn]] void fail(std::size_t row, const std::string& column, const std::string& hint) const;
  /// What fail() throws.
  ConfigError problem(std::size_t row, const std::string& column, const std::string& hint) const;

 private:
  struct Row {
    unsigned line = 0;
    std::vector<std::string> fields;
  };
  std::size_t column(const std::string& name) const;

  std::string file_, name_;
  std::vector<std::pair<unsigned, std::string>> comments_;  // line, text
  unsigned header_line_ = 0;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

/// CSV files of a folder, by name. Throws ConfigError if the folder cannot be read or has none.
std::vector<std::filesystem::path> csv_files(const std::filesystem::path& folder);

}  // namespace kernbench::validate
