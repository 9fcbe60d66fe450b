// Descriptors of another KernBench: only their first member is known.
#include <cstdint>

struct OtherAbi {
  std::uint32_t abi_version = 99;
};

extern "C" __attribute__((visibility("default"))) const OtherAbi* kernbench_workload_plugin() {
  static const OtherAbi other;
  return &other;
}

extern "C" __attribute__((visibility("default"))) const OtherAbi* kernbench_ccl_algorithm() {
  static const OtherAbi other;
  return &other;
}
