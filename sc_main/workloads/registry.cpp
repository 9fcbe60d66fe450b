#include "sc_main/workloads/workload.h"

namespace kernbench {

// One line per workload, here and below; each is defined in a file of its own.
std::unique_ptr<Workload> make_all_reduce();
std::unique_ptr<Workload> make_all_gather();
std::unique_ptr<Workload> make_reduce_scatter();
std::unique_ptr<Workload> make_reduce();
std::unique_ptr<Workload> make_broadcast();
std::unique_ptr<Workload> make_all_to_all();
std::unique_ptr<Workload> make_gather();
std::unique_ptr<Workload> make_scatter();
std::unique_ptr<Workload> make_send_recv();
std::unique_ptr<Workload> make_barrier();
std::unique_ptr<Workload> make_gemm_single_pe();
std::unique_ptr<Workload> make_gemm();
std::unique_ptr<Workload> make_p2p();
std::unique_ptr<Workload> make_stream();
std::unique_ptr<Workload> make_probe();
std::unique_ptr<Workload> make_noc_traffic();
std::unique_ptr<Workload> make_link();
std::unique_ptr<Workload> make_tp_mlp();
std::unique_ptr<Workload> make_tp_transformer();
std::unique_ptr<Workload> make_qkv();
std::unique_ptr<Workload> make_va_offset_verify();
std::unique_ptr<Workload> make_chakra();
std::unique_ptr<Workload> make_pipeline();

const std::vector<WorkloadFactory>& workloads() {
  static const std::vector<WorkloadFactory> list = {&make_all_reduce,
                                                    &make_all_gather,
                                                    &make_reduce_scatter,
                                                    &make_reduce,
                                                    &make_broadcast,
                                                    &make_all_to_all,
                                                    &make_gather,
                                                    &make_scatter,
                                                    &make_send_recv,
                                                    &make_barrier,
                                                    &make_gemm_single_pe,
                                                    &make_gemm,
                                                    &make_p2p,
                                                    &make_stream,
                                                    &make_probe,
                                                    &make_noc_traffic,
                                                    &make_link,
                                                    &make_tp_mlp,
                                                    &make_tp_transformer,
                                                    &make_qkv,
                                                    &make_va_offset_verify,
                                                    &make_chakra,
                                                    &make_pipeline};
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
