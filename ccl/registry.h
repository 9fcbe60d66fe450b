#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ccl/contract.h"

namespace kernbench::ccl {

/// What the user asked of a collective cannot be done; says why and what to do. Bad input: exit code 2.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// One entry of ccl.yaml with its module loaded.
struct AlgorithmEntry {
  std::string name;                                ///< of the entry
  std::string module;
  std::shared_ptr<const Algorithm> algorithm;      ///< keeps a shared library open
  std::map<std::string, std::int64_t> parameters;  ///< every declared one, with ccl.yaml's value or its preset
};

/// The entries of a ccl.yaml, or the built-in ones.
class Registry {
 public:
  /// One entry per built-in algorithm, named after it.
  Registry();
  /// Reads `file`; empty: the built-in entries. Throws ConfigError with file:line:column.
  explicit Registry(const std::string& file);

  const std::string& default_algorithm() const { return default_algorithm_; }
  std::vector<std::string> names() const;
  /// Loads the module of entry `name` ("auto": see choose()) and checks it. `overrides` replace parameters of ccl.yaml.
  /// Throws Error: unknown entry (with the nearest), missing file, missing symbol, other ABI version, unknown parameter.
  AlgorithmEntry load(const std::string& name, const std::map<std::string, std::int64_t>& overrides = {}) const;

  /// What `auto` stands for: the default algorithm for scope cube, the ring for scope sip.
  std::string choose(Scope scope) const;

 private:
  struct Entry {
    std::string module;   ///< built-in name, or path resolved against the file's folder
    std::string where;    ///< file:line:column, for errors at load
    std::map<std::string, std::int64_t> parameters;
  };
  std::string default_algorithm_;
  std::map<std::string, Entry> entries_;
};

/// Names of the built-in algorithms, without `kernbench.ccl.`.
std::vector<std::string> builtin_algorithms();

/// Opens a module: `kernbench.ccl.<name>` or the path of a shared library. Does nothing else with it. Throws Error.
std::shared_ptr<const Algorithm> load_module(const std::string& module);

}  // namespace kernbench::ccl
