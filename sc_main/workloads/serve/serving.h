#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sc_main/workloads/serve/machine_steps.h"
#include "sc_main/workloads/serve/schedule.h"
#include "sc_main/workloads/serve/steps.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"

namespace kernbench::serve {

/// --requests and what goes with it: which requests a model serves, and how.
struct ServingOptions {
  std::string requests;                     ///< a CSV file, or their number
  double rate = 0;                          ///< per second, of as many as `requests` says
  std::string lengths = "fixed";            ///< of as many: fixed, or conversation
  std::int64_t most = 0;                    ///< of a file: the first so many; 0: all
  std::int64_t prompt = 0, output = 0;      ///< tokens of each where neither file nor `lengths` says it
  bool sizes_given = false;                 ///< one of these is asked for
  std::int64_t batch = 1;                   ///< sequences that a replica runs at once
  std::string scheduler = "prefill_first";  ///< or chunked
  std::int64_t chunk = 0;                   ///< of chunked: tokens of a step, at most
  std::int64_t replicas = 1, stages = 1;

  bool asked() const { return !requests.empty(); }
  bool is_file() const;
  bool chunked() const { return scheduler == "chunked"; }
  void check_into(Refusals& refusals) const;
  /// REQUIRES: check_into() found nothing. Throws ConfigError as read_requests.
  Requests read(std::uint64_t seed) const;

 private:
  void check_made(Refusals& refusals) const;  ///< of `requests` that are a number
};

/// A model that serves requests on the ranks of a run. The schedule has a clock of its own: simulated time only
/// measures steps (MachineSteps).
class Serving {
 public:
  /// Throws, in a text that begins with `where`, OutOfDeviceMemory if the machine has no room for a pass over `prompt`
  /// tokens.
  using CheckPrompt = std::function<void(std::int64_t prompt, const std::string& where)>;

  /// `taken_bytes`: of the SIP with most, of what it has, but for caches. Throws OutOfDeviceMemory on a request that
  /// does not fit into the rest, std::invalid_argument (of a file ConfigError, at its line) on one that the model has
  /// no positions for.
  Serving(const MachineMap& map, tp::Model model, tp::TransformerOptions options, std::int64_t layers,
          std::int64_t ranks, const ServingOptions& serving, Requests requests, std::uint64_t seed,
          std::uint64_t taken_bytes, std::uint64_t have_bytes, const CheckPrompt& check_prompt);
  /// The program of every rank. `meter` outlives it.
  void run(Context& ctx, const Runtime& runtime, const MachineSteps::Meter& meter);
  Report report() const;

 private:
  void check_requests(const CheckPrompt& check_prompt) const;
  std::string place_of(std::size_t number) const;  ///< of a request, from 0: "requests.csv:3", "request 1"
  /// Throws: request `number`, from 0, cannot be served.
  [[noreturn]] void refuse(std::size_t number, const std::string& why) const;
  void compare(StepCosts& costs);
  void compare(StepCosts& costs, const std::vector<const Step*>& steps, std::size_t count, std::uint64_t seed);
  nlohmann::ordered_json interval(Ps begin, Ps end) const;
  nlohmann::ordered_json row() const;
  nlohmann::ordered_json served() const;

  const MachineMap& map_;
  const tp::Model model_;
  const tp::TransformerOptions options_;
  const std::int64_t ranks_;
  const ServingOptions serving_;
  const Requests asked_;
  const std::vector<Request>& requests_;  ///< of these
  const std::uint64_t seed_;
  const Limits limits_;
  const StepRange range_;
  MachineSteps machine_;
  // Rank 0's.
  Schedule schedule_;
  double standing_ = 0;                 ///< pJ that all SIPs draw in a ps, whatever they do
  std::map<std::string, double> most_;  ///< MachineSteps::Meter
  std::size_t simulated_ = 0, compared_ = 0;
  double largest_ = 0;                       ///< difference of a compared step, as a share
  double expected_ = 0, compared_time_ = 0;  ///< ps: sums over them
};

}  // namespace kernbench::serve
