#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/placement_units.h"
#include "runtime/process_group.h"
#include "runtime/runtime.h"
#include "sc_main/workloads/chakra/program.h"
#include "sc_main/workloads/collective_case.h"

namespace kernbench::chakra {

/// Where the time of computing comes from.
enum class ComputeRule : std::uint8_t {
  automatic,  ///< roofline where a node has num_ops, recorded elsewhere
  roofline,   ///< the longer of num_ops / operations_per_second and tensor_size / bytes_per_second
  recorded    ///< duration_micros, or the attribute runtime
};
struct ComputeRates {
  ComputeRule rule = ComputeRule::automatic;
  double operations_per_second = 0, bytes_per_second = 0;  ///< of a SIP
};
/// What a node takes; work of the host is always as recorded.
Ps compute_time(const Node& node, const ComputeRates& rates);

struct WalkOptions {
  DType dtype = DType::f16;
  ReduceOp reduce_op = ReduceOp::sum;
  DPPolicy policy;
  ProcessGroupOptions group;
  ComputeRates rates;
  bool warm_up = true;
  bool check = true;  ///< what is read is compared with the host's
  bool data = true;   ///< the host fills inputs: for their data, or for the time that it takes
  bool reads = true;  ///< the host reads results: likewise
  std::uint64_t seed = 1;
};

/// Since the common start.
struct NodeTimes {
  Ps ready = 0;  ///< what it depends on is complete
  Ps begin = 0;  ///< its engine is free; of a communication: all that take part are ready, and it is submitted
  Ps end = 0;    ///< the rank knows that it is complete
};
struct RankTimes {
  std::vector<NodeTimes> nodes;  ///< by place in the file
  Ps end = 0;                    ///< of the last one
  Ps computing = 0;              ///< sum over the nodes that compute on the device
  std::uint64_t timeless = 0;    ///< computing nodes of which nothing says how long they take
};
struct CommunicationResult {
  Ps begin = kNever, end = 0;
  std::string algorithm;
  Comparison comparison;
};

/// Every rank walks its graph: a node begins when all it depends on is complete; of those that are ready the smallest
/// id first. A rank's device computes one node at a time, its host too.
///
/// A communication begins when all its members are ready for it, and is then submitted on each of them, in one order
/// for the whole machine. The merged graph has no cycle, so none can wait for another for ever. An eager transfer
/// begins when its sender is ready; its receive ends when it has come and the receiver is ready, too.
class Walk {
 public:
  Walk(Program program, const WalkOptions& options, const PlacementUnits& units);

  /// On every rank, in its own thread.
  void run(Context& ctx);
  /// After the run: results against the host's.
  void compare();

  const Program& program() const { return program_; }
  const WalkOptions& options() const { return options_; }
  const RankTimes& rank(std::size_t rank) const { return times_[rank]; }
  const CommunicationResult& communication(std::size_t c) const { return results_[c]; }
  const Node& node_of(std::size_t c, std::size_t member) const;
  std::uint64_t mismatches() const;

 private:
  class RankWalk;
  /// A communication as the machine is asked for it.
  struct Call {
    CollectiveCase what;
    CollectiveLayout layout;
    CollectiveData data;
    Pattern pattern;          ///< of the inputs: sums of them are exact, in whatever order a rank adds
    std::size_t arrived = 0;  ///< members that are ready
  };
  struct Buffers {
    Tensor in, out;
  };

  Call make_call(const Communication& communication, const PlacementUnits& units) const;
  Buffers make_buffers(Context& ctx, std::size_t c, int member);
  void refresh(std::size_t c, int member, Buffers& buffers) const;
  Handle start(Context& ctx, std::size_t c, int member, const Buffers& buffers, const std::vector<Group>& groups) const;
  void warm_up(Context& ctx, const std::vector<Buffers>& buffers, const std::vector<Group>& groups) const;
  int member_of(std::size_t c, int rank) const;  ///< -1: none

  Program program_;
  const WalkOptions options_;
  std::vector<Call> calls_;
  std::vector<RankTimes> times_;
  std::vector<CommunicationResult> results_;
  std::vector<std::deque<std::size_t>> inbox_;  ///< by rank: communications that it may submit
  std::vector<Handle> bell_;                    ///< by rank: a promise that something is in the inbox
};

}  // namespace kernbench::chakra
