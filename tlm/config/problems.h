#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace kernbench {

/// Where something stands in what the user wrote. Line and column count from 1; 0: the file as a whole.
struct Location {
  std::string file;  ///< as the user named it, or "--set key=value"
  unsigned line = 0, column = 0;

  std::string str() const;  ///< "machine.yaml:3:10"
  friend bool operator==(const Location& a, const Location& b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
  }
};

/// One thing that is wrong with the user's input: what was found, and what to do about it.
struct Problem {
  Location where;
  std::string text, hint;  ///< the hint may be empty

  /// "machine.yaml:3:10: error: unknown key 'rwos' in 'cube.noc'\n  hint: did you mean 'rows'?"
  std::string str() const;
};

/// Collects problems, so that one pass reports them all.
class Problems {
 public:
  /// The same text at the same place is kept once.
  void add(Location where, std::string text, std::string hint = {});
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  /// How often something was reported, what is known already included: unchanged by reading what is right.
  std::size_t reported() const { return reported_; }
  /// Files in the order in which they first occur, each by line and column.
  std::vector<Problem> sorted() const;
  /// All of them, one after the other, with no newline at the end.
  std::string str() const;
  /// Throws ConfigError if there are any.
  void throw_if_any() const;

 private:
  std::vector<Problem> list_;
  std::size_t reported_ = 0;
};

/// The user's input is wrong. what() is the text of all problems.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(const Problems& problems);
  ConfigError(Location where, std::string text, std::string hint = {});
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

}  // namespace kernbench
