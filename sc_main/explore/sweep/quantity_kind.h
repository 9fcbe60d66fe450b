#pragma once
#include <optional>
#include <string>

#include "tlm/config/config_node.h"
#include "topology/spec/schema.h"

namespace kernbench::sweep {

/// What values a setting takes: those of a key of the topology, or those of an option of the run.
struct ValueKind {
  const topology::Field* field = nullptr;  ///< null: an option
  bool flag = false;                       ///< of an option that takes no value
  bool real = false;                       ///< of an option that takes fractions
  std::string option;                      ///< long name of the option

  bool numeric() const;      ///< values may be numbers: they can be a range
  bool whole() const;        ///< numbers are integers
  std::string unit() const;  ///< of numbers, in base units; may be empty

  /// A number in base units as text that reads back as the same; nothing if there is none, such as 2.5 rows.
  std::optional<std::string> text_of(double number) const;
  /// The number in base units that a number of the topology was read as.
  static std::optional<double> number_of(const topology::FieldValue& value);
  /// The number behind a text of this kind; nothing if it is no number (a name, a list).
  std::optional<double> number_of(const std::string& text) const;
};

/// A YAML value as text that may stand behind "key:" on one line.
std::string flow_text(const ConfigNode& node);

}  // namespace kernbench::sweep
