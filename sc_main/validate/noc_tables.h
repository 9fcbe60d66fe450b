#pragma once

#include "sc_main/validate/table.h"
#include "sc_main/validate/validate.h"

namespace kernbench::validate {

/// Limits of the specification, "Accuracy to reach", for one grade of the network.
struct NocLimits {
  double latency, saturation, long_packets_held_saturation, accepted;
};
inline constexpr NocLimits kAccurateNoc{0.05, 0.05, 0.05, 0.03};
/// Accepted throughput is reported only; what is listed as its limit is that of the accurate grade.
inline constexpr NocLimits kFastNoc{0.15, 0.10, 0.15, 0.03};

/// Runs of each case, with seeds 1, 2, ...: the reference's seed noise is 2% at 0.8 of saturation.
inline constexpr unsigned kSeeds = 5;
/// Latencies are judged up to this fraction of the table's saturation load.
inline constexpr double kJudgedUpTo = 0.8;
inline constexpr const char* kNotJudged = "above 0.8 of saturation, where seeds decide";

// Columns that several kinds of table have.
inline constexpr const char* kLoad = "injection_rate_flits_per_node_per_cycle";
inline constexpr const char* kLatency = "avg_packet_latency_cycles";
inline constexpr const char* kAccepted = "accepted_flits_per_node_per_cycle";

/// The kinds of table, told apart by their columns. One group each.
Group latency_load_group(const Table& table, const Request& request);
Group credit_loop_group(const Table& table, const Request& request);
Group zero_load_group(const Table& table, const Request& request);
Group seed_noise_group(const Table& table, const Request& request);
Group sensitivity_group(const Table& table, const Request& request);

}  // namespace kernbench::validate
