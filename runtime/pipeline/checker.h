#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/pipeline/check.h"
#include "runtime/pipeline/table.h"
#include "tlm/config/units.h"

namespace kernbench::pipeline {

/// One check of a document: for the files of the checker alone.
class Checker {
 public:
  Checker(const Pipeline& pipeline, const CheckOptions& options, Problems& problems, Problems& warnings)
      : pipeline_(pipeline), options_(options), problems_(problems), warnings_(warnings) {}

  Checked run();

 private:
  using Task = SuperTask;

  // check.cpp
  void check_devices();
  void check_task(const Task& task);
  void check_fields(const Task& task, const KindRule& rule);
  void check_names(const Task& task, const KindRule& rule);
  void check_metadata(const Task& task, const KindRule& rule);
  void find_producers();
  void check_slots();
  void check_graphs();

  // check_groups.cpp
  void check_groups();
  std::string other_group(const std::string& group) const;
  void check_members(const std::string& group, std::vector<const Task*>& members);
  void check_places(const std::string& group, const std::vector<const Task*>& members);
  void check_sides(const Task& task);
  void check_shapes(const std::string& group, const std::vector<const Task*>& members);
  void check_output(const Task& task, const TensorType& expected);
  bool check_dim(const Task& task, const char* key, const TensorType& type, std::uint64_t divisor, std::size_t& dim);

  // check_order.cpp
  bool check_cycles();
  void check_deadlocks();

  // check_slices.cpp
  void check_slices();
  void check_slices_of(const std::string& side, const std::vector<TensorSlice>& slices,
                       const std::vector<WholeTensor>& wholes, TaskKind kind);
  void check_nested(const std::vector<WholeTensor>& wholes);
  void check_slice(const TensorSlice& slice, const std::vector<WholeTensor>& wholes, TaskKind kind);
  /// The places of a part in the whole tensor `name` of that shape. `hint`: on as many pairs as dimensions.
  void check_part(const Placements& placements, const std::string& path, const std::string& name,
                  const std::vector<std::uint64_t>& whole, const TensorInfo& tensor, const std::string& hint);
  void check_cover(const std::string& side, const WholeTensor& whole, const std::vector<TensorSlice>& slices,
                   Problems& into);

  // check_weights.cpp
  void check_weights();
  void check_weight(const TensorInfo& tensor, const ParamValue& value);

  void add(const Location& where, const std::string& text, const std::string& hint = {}) {
    problems_.add(where, text, hint);
  }
  /// The only input (output) of a supertask, if its type is known; null otherwise.
  const TensorInfo* only(const Located<std::vector<Text>>& names) const;
  std::vector<std::string> slots() const;
  static bool known(const TensorInfo* tensor) {
    return tensor != nullptr && tensor->shape.given && tensor->dtype.given;
  }
  static bool communicates(const Task& task) {
    return task.kind.given && rule_of(task.kind.value).is == KindRule::Class::communication;
  }
  /// "'s1'"
  static std::string name_of(const Task& task);

  const Pipeline& pipeline_;
  const CheckOptions& options_;
  Problems& problems_;
  Problems& warnings_;
  Checked result_;
  std::map<std::string, std::vector<const Task*>> consumers_;  // by tensor
  bool devices_sound_ = true;
  std::set<std::pair<const Device*, const Device*>> apart_;  // slots that were said not to reach each other
};

}  // namespace kernbench::pipeline
