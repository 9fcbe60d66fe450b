#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "sc_main/workloads/collective_case.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "tlm/kernel/operations.h"

namespace kernbench {

/// What a run of a collective is asked for, checked.
struct CollectiveRun {
  std::vector<std::uint64_t> sizes;      ///< in bytes, as nccl-tests counts them
  bool sized = true;                     ///< the user said them
  CollectiveCase what;                   ///< `ranks` set per group
  std::vector<std::vector<int>> groups;  ///< empty: one of all ranks
  int warmup = 1, iterations = 1;
  bool check = true;

  /// Elements of a block for a group of `ranks` ranks, as many as fit the size. Throws std::invalid_argument if none.
  std::int64_t block(int ranks, const PlacementUnits& units, std::uint64_t bytes) const;
  /// What every rank would find out on its own, before anything runs. Throws std::invalid_argument.
  void check_layouts(const PlacementUnits& units) const;
};

/// Of every operation, in the order of its number.
std::vector<WorkloadFactory> collective_workloads();

/// The options of `kernbench run` for an operation.
class CollectiveOptions {
 public:
  explicit CollectiveOptions(CollectiveOp op) : op_(op) {}
  void add_to(boost::program_options::options_description& options);

  // After boost::program_options::notify; all throw std::invalid_argument; request() Refused, with all that is wrong.
  CollectiveRun request(bool data) const;                 ///< without groups; data: of the run
  std::vector<std::vector<int>> groups(int ranks) const;  ///< of a run with so many ranks, after request()
  std::string algorithm() const;                          ///< entry of ccl.yaml, file, "auto", or empty: ccl.yaml says
  std::vector<std::string> files() const;                 ///< schedules, placements
  bool placed_elsewhere() const { return !out_placement_.empty(); }  ///< the output

 private:
  bool has_data() const { return facts_of(op_).has_data; }
  std::vector<std::uint64_t> sizes() const;
  void check_numbers(Refusals& refusals) const;

  const CollectiveOp op_;
  SizeRange sizes_{{}, {}, {}, 2};
  std::string dtype_ = "i32", redop_ = "sum", scope_, placement_ = "cube=column_wise,pe=column_wise", out_placement_,
              algorithm_, schedule_;
  std::vector<std::string> groups_;
  int warmup_ = 1, iterations_ = 1, check_ = 1, in_place_ = 1, root_ = 0;
};

}  // namespace kernbench
