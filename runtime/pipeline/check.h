#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/pipeline/graph.h"
#include "runtime/pipeline/weight_file.h"

namespace kernbench::pipeline {

/// What the checker has to know beside the document.
struct CheckOptions {
  std::string folder;      ///< that file names are relative to; empty: the current one
  int sips = 1;            ///< of the machine
  int cubes = 1, pes = 1;  ///< of a SIP, of a cube
};

/// Files with weights, each opened once.
class WeightFiles {
 public:
  /// Throws ConfigError as the reader of the format does.
  const WeightFile& open(const std::string& path, ParamFormat format);

 private:
  std::map<std::pair<std::string, ParamFormat>, std::unique_ptr<WeightFile>> files_;
};

/// A document that holds together, and what was found out about it.
struct Checked {
  /// By supertask; of those that compute.
  std::vector<std::optional<Graph>> graphs;
  /// Supertasks in an order in which no exchange waits for a later one; members of one exchange stand together.
  std::vector<std::size_t> order;
  /// By tensor: who makes it, and on which slot; a constant has neither, a pipeline input has the slot that its slice
  /// says, and none if it has no slice.
  struct Origin {
    const SuperTask* producer = nullptr;
    std::string slot;
  };
  std::map<std::string, Origin> origins;
  /// Members of each group, by device_idx.
  std::map<std::string, std::vector<const SuperTask*>> groups;
  std::shared_ptr<WeightFiles> weights = std::make_shared<WeightFiles>();
};

/// Checks everything that the page "Checking" of docs/pipeline.md lists, in one pass; `warnings` do not keep it from
/// running. What is returned can be used if `problems` is empty.
Checked check_pipeline(const Pipeline& pipeline, const CheckOptions& options, Problems& problems, Problems& warnings);

/// SIPs are dealt to the document's machines in order, each as many: machine 1 of two has the second half.
int machines_of(const Pipeline& pipeline);
/// SIP of the whole system that an npu slot is, or is a part of.
int sip_of(const Pipeline& pipeline, const Device& device, int sips);

/// "p.json:3:1: warning: ..." of each, one after the other.
std::string warning_text(const Problems& warnings);

/// The file of a constant, by the document's folder.
std::string weight_path(const CheckOptions& options, const ParamValue& value);
/// Those of all constants that name one. `file`: of the document.
std::set<std::string> weight_paths(const std::string& file, const Pipeline& pipeline);

}  // namespace kernbench::pipeline
