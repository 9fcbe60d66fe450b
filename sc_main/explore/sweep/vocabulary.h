#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/axis.h"
#include "sc_main/explore/sweep/expression.h"
#include "sc_main/explore/sweep/quantity_kind.h"
#include "sc_main/run/arguments.h"
#include "sc_main/workloads/plugin.h"
#include "tlm/config/config_node.h"
#include "tlm/config/problems.h"
#include "tlm/config/refusals.h"

namespace kernbench::sweep {

/// The names that a sweep of one workload may set, and what they may be: keys of the topology, options of the run.
class Vocabulary {
 public:
  /// `folder`: what paths in the file are relative to. REQUIRES: the catalogue has the workload and outlives this.
  Vocabulary(const WorkloadCatalogue& catalogue, std::string workload, std::string folder);

  /// The long name of an option ("minbytes" for "b"); anything else is returned as it is.
  std::string canonical(const std::string& name) const;
  std::optional<ValueKind> find(const std::string& canonical) const;
  /// find(), with a report of what is wrong with the name. `in`: the part of the file, for the message.
  std::optional<ValueKind> require(const std::string& name, const Location& where, const std::string& in,
                                   Problems& problems) const;
  /// A value, checked; reports what is wrong. `name` is canonical.
  std::optional<Setting> read(const ValueKind& kind, const std::string& name, const ConfigNode& node,
                              Problems& problems) const;

  /// Whether every run has the option, whatever its workload.
  bool is_common(const std::string& option) const { return common_.count(option) > 0; }
  /// What options that are good one by one are refused for together, but by the workload: "--name=value".
  std::vector<Refusal> refused_together(const Arguments& options) const;

  /// Parses a formula and checks its names. `metrics`: names that are none of ours may be metrics of the result.
  std::optional<Expression> formula(const ConfigNode& node, const std::string& what, bool metrics,
                                    Problems& problems) const;
  /// A text that formulas may name.
  void add_text(const std::string& text) { texts_.insert(text); }
  const std::string& workload() const { return workload_; }

 private:
  void check_option(const std::string& name, const std::string& text, const Location& where, Problems& problems) const;
  void check_name(const std::string& name, const Location& where, const std::string& what, bool metrics,
                  Problems& problems) const;

  const WorkloadCatalogue& catalogue_;
  std::string workload_, folder_;
  std::vector<std::string> keys_, options_;
  std::vector<std::pair<std::string, std::string>> short_names_;
  std::set<std::string> flags_, reals_, texts_, common_;
};

/// A path of a sweep file as seen from the working directory; names of presets stay.
std::string anchored(const std::string& folder, const std::string& path);

/// How an option is called in a formula: "max_rate" for "max-rate".
std::string formula_name(const std::string& name);

}  // namespace kernbench::sweep
