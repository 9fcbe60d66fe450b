#pragma once
#include <cstdint>
#include <string>

namespace kernbench::topology {

struct Plan;

/// `topology show --stage N`, N from 3 to 6: layouts, components and edges, routing tables with what follows from them,
/// and the modules that the elaborator would make. What repeats is shown once. Throws std::invalid_argument for another
/// stage.
std::string show(const Plan& plan, int stage);

/// "400 ns", "17.5 ns"; "128 GB/s"
std::string format_time(std::uint64_t ps);
std::string format_rate(std::uint64_t bytes_per_second);

}  // namespace kernbench::topology
