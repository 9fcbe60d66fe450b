#pragma once
#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/model.h"
#include "runtime/tp/moe.h"
#include "sc_main/workloads/tp_times.h"
#include "tlm/config/refusals.h"

namespace kernbench {

/// How a model's experts are spread and used: options of the command line.
struct MoeSettings {
  std::int64_t ep = 0;         ///< ranks that the experts are dealt to; 0: all of --tp
  double capacity_factor = 0;  ///< 0: no drops
  std::optional<double> skew;  ///< of the routing without values

  bool asked() const { return ep != 0 || capacity_factor != 0 || skew; }
  void add(boost::program_options::options_description& options);
  /// Whatever the machine.
  void check_into(Refusals& refusals, const std::string& model, bool mixture) const;
  /// Ranks that do not divide, naming layer, dimension and numbers.
  void check_divides(Refusals& refusals, const tp::Model& model, std::int64_t tp, bool sequence_parallel) const;
  int ranks(std::int64_t tp) const { return static_cast<int>(ep == 0 ? tp : ep); }
  /// SIPs of the groups of rank 0: that share layers, experts, an expert.
  std::vector<std::vector<std::uint16_t>> groups(std::int64_t tp) const;
  std::string routing_text(bool data) const;
  std::string text(std::int64_t tp, bool data) const;  ///< for the head of a report
};

/// What the experts of each layer of rank 0's stage did in a phase, means of a step: an entry for each layer, with
/// times of `router`, `dispatch`, `experts` and `combine`, tokens per expert, and drops.
///
/// first, end  pieces of the phase, as TpTimes numbers them
/// steps       in all timed passes
nlohmann::ordered_json experts_of(const tp::MoeLog& log, const TpTimes& times, const std::vector<HostTraceEntry>& trace,
                                  std::size_t first, std::size_t end, int steps);
/// Comments for the terminal; of many layers, which are alike, the first `shown`.
std::string experts_text(const std::string& phase, const nlohmann::ordered_json& layers, std::size_t shown);

}  // namespace kernbench
