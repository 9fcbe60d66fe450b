#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/transformer.h"
#include "sc_main/workloads/serve/schedule.h"
#include "sc_main/workloads/serve/steps.h"
#include "sc_main/workloads/tp_times.h"
#include "sc_main/workloads/workload.h"

namespace kernbench::serve {

/// --requests and --rate: which requests a model serves.
struct ServingOptions {
  std::string requests;                 ///< a CSV file, or their number
  double rate = 0;                      ///< per second, of as many as `requests` says
  std::int64_t most = 0;                ///< of a file: the first so many; 0: all
  std::int64_t prompt = 0, output = 0;  ///< tokens of each where no file says it
  std::int64_t batch = 1;               ///< sequences that run at once

  bool asked() const { return !requests.empty(); }
  bool is_file() const;
  /// Throws std::invalid_argument, ConfigError as read_requests.
  std::vector<Request> read(std::uint64_t seed) const;
};

/// A model that serves requests on the ranks of a run. Layers are alike: of a step two are simulated, and the second
/// stands for all that follow. The schedule has a clock of its own: simulated time only measures steps.
class Serving {
 public:
  /// Throws std::invalid_argument on a request that does not fit into what `weights_bytes` leave of a SIP's HBM.
  Serving(const MachineMap& map, tp::Model model, tp::TransformerOptions options, std::int64_t layers,
          std::int64_t ranks, const ServingOptions& serving, std::vector<Request> requests, std::uint64_t seed,
          std::uint64_t weights_bytes, std::uint64_t have_bytes);
  /// The program of every rank.
  void run(Context& ctx, const Runtime& runtime);
  Report report() const;

 private:
  void measure(Context& ctx, const tp::ParallelState& state);
  Cost cost(const std::vector<TpTimes::Row>& rows) const;
  Cost simulate(Context& ctx, const tp::ParallelState& state, const Runtime& runtime, const StepKind& kind);
  void compare(StepCosts& costs, const std::function<Cost(const StepKind&)>& exactly);
  nlohmann::ordered_json interval(Ps begin, Ps end) const;

  const MachineMap& map_;
  const tp::Model model_;
  const tp::TransformerOptions options_;
  const std::int64_t layers_, ranks_;
  const ServingOptions serving_;
  const std::vector<Request> requests_;
  const std::uint64_t seed_;
  Limits limits_;
  CollectiveBounds bounds_;
  // Shared by the ranks, which take turns: what all are to measure, set by rank 0.
  std::optional<StepKind> wanted_;
  std::optional<TpTimes> times_;
  // Rank 0's.
  Schedule schedule_;
  std::size_t simulated_ = 0, compared_ = 0;
  double largest_ = 0;  ///< share
};

}  // namespace kernbench::serve
