#include "sc_main/workloads/collective_options.h"
#include "workloads/list.inc"  // generated: the makers, and kMakers of them

namespace kernbench {

const std::vector<WorkloadFactory>& workloads() {
  static const std::vector<WorkloadFactory> list = [] {
    std::vector<WorkloadFactory> makers = collective_workloads();
    makers.insert(makers.end(), std::begin(kMakers), std::end(kMakers));
    return makers;
  }();
  return list;
}

std::unique_ptr<Workload> find_workload(const std::string& name) {
  for (const WorkloadFactory make : workloads()) {
    auto workload = make();
    if (workload->name() == name) return workload;
  }
  return nullptr;
}

}  // namespace kernbench
