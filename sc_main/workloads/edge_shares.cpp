#include "sc_main/workloads/edge_shares.h"

#include <algorithm>
#include <limits>

#include "tlm/machine/names.h"

namespace kernbench {

void EdgeShares::use(Flow& flow, const std::string& edge, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return;  // without a limit of its own
  Edge& entry = edges_[edge];
  entry.bytes_per_second = static_cast<double>(bytes_per_second);
  ++entry.flows;
  flow.push_back(edge);
}

void EdgeShares::use_path(Flow& flow, const std::string& from, const std::string& to) {
  const topology::Graph& graph = paths_.graph();
  const std::vector<std::string> way = paths_.find_path(from, to);
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    const topology::GraphEdge* edge = graph.edge(graph.find(way[i]), graph.find(way[i + 1]));
    sc_assert(edge != nullptr);
    use(flow, way[i] + ">" + way[i + 1], edge->bytes_per_second);
  }
}

void EdgeShares::use_slice(Flow& flow, PeCoord owner) {
  use(flow, names::hbm_port(owner) + " slice", plan_.map.rates(owner).hbm_slice.bytes_per_second());
}

void EdgeShares::add_read(PeCoord pe, PeCoord owner) {
  Flow flow;
  use_slice(flow, owner);
  use_path(flow, names::hbm_port(owner), names::pe(pe));
  use(flow, names::pe(pe) + " TCM", plan_.map.rates(pe).tcm.bytes_per_second());
  flows_.push_back(std::move(flow));
}

void EdgeShares::add_host_copy(std::uint16_t sip, PeCoord owner, bool to_device) {
  const std::string endpoint = plan_.map.name(plan_.map.pcie_ep(sip)), slice = names::hbm_port(owner);
  Flow flow;
  use(flow, endpoint + " host", plan_.spec.sip.io.pcie.bytes_per_second);
  use_path(flow, to_device ? endpoint : slice, to_device ? slice : endpoint);
  use_slice(flow, owner);
  flows_.push_back(std::move(flow));
}

double EdgeShares::narrowest() const {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& edge : flows_.front()) least = std::min(least, edges_.at(edge).bytes_per_second);
  return least;
}

double EdgeShares::fair_sum() const {
  double sum = 0;
  for (const Flow& flow : flows_) {
    double share = std::numeric_limits<double>::infinity();
    for (const std::string& name : flow) {
      const Edge& edge = edges_.at(name);
      share = std::min(share, edge.bytes_per_second / edge.flows);
    }
    sum += share;
  }
  return sum;
}

}  // namespace kernbench
