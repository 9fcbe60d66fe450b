#include <algorithm>
#include <cmath>

#include "runtime/pipeline/run/run.h"

namespace kernbench::pipeline {

namespace {
constexpr double kPsPerSecond = 1e12;
}  // namespace

Ps HostModel::time_of(const HostWork& work) const {
  return static_cast<Ps>(std::ceil(std::max(work.flops / flops_per_s, work.bytes / bytes_per_s) * kPsPerSecond));
}

Ps HostModel::transfer(std::uint64_t bytes) const {
  return link_latency + static_cast<Ps>(std::ceil(static_cast<double>(bytes) / link_bytes_per_s * kPsPerSecond));
}

}  // namespace kernbench::pipeline
