#include "sc_main/workloads/tp_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/errors.h"

namespace kernbench {

TpMemory::TpMemory(const tp::Model& model, const MachineMap& map, std::int64_t layers, std::int64_t ranks,
                   std::int64_t batch, std::int64_t positions, std::int64_t rows, DType dtype, std::int64_t ends) {
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t queries = model.heads * model.head_dim / ranks,
                     keys = std::max<std::int64_t>(model.kv_heads / ranks, 1) * model.head_dim;
  const std::int64_t inner = model.mlp_width / ranks, up = model.gated ? 2 : 1;
  const auto add = [&](const char* name, std::int64_t elements) {
    terms.push_back({name, static_cast<std::uint64_t>(elements * item)});
  };
  const std::int64_t of_mlp = model.mixture() ? model.experts : (up + 1) * inner;  // of a mixture the router
  add("weights of the layers", layers * model.width * (2 * queries + 2 * keys + of_mlp));
  if (model.mixture()) add("experts", layers * model.experts * (up + 1) * model.width * model.mlp_width / ranks);
  if (ends > 0)
    add(ends == 2 ? "embedding and output matrix" : "embedding or output matrix",
        ends * model.padded_vocabulary(static_cast<int>(ranks)) / ranks * model.width);
  add("KV caches", layers * 2 * batch * positions * keys);
  if (model.position == tp::PositionKind::rotary) {  // f32 or f64, a copy in each cube
    terms.push_back({"rotary tables", static_cast<std::uint64_t>(positions * model.head_dim) *
                                          std::max(size_of(dtype), size_of(DType::f32)) * map.cubes_per_sip()});
  }
  // Of experts: tokens on their way there and back, and a balanced one's share of the rows.
  const std::int64_t k = model.experts_per_token;
  const std::int64_t of_row =
      model.mixture() ? k * (2 * model.width / ranks + up * model.mlp_width / model.experts) : up * inner;
  add("activations", rows * (4 * model.width + 2 * queries + 2 * keys + of_row));
  have = map.hbm_slice.bytes * map.pes(0).size();
}

std::uint64_t TpMemory::need() const {
  std::uint64_t sum = 0;
  for (const Term& term : terms) sum += term.bytes;
  return sum;
}

void TpMemory::check(const std::string& model) const {
  if (need() <= have) return;
  const auto largest =
      std::max_element(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.bytes < b.bytes; });
  throw OutOfDeviceMemory(fmt::format(
      "model '{}' needs {} B of HBM on each SIP, which has {} B; most of it, {} B, are {}: use more SIPs (--tp), fewer "
      "layers or a shorter context",
      model, need(), have, largest->bytes, largest->name));
}

nlohmann::ordered_json where_time_goes(const TpTimes::Row& row, int passes) {
  const auto mean = [&](Ps sum) { return static_cast<double>(sum) / passes / 1e3; };
  Ps compute = 0, memory = 0, latency = 0, kernels = 0;
  for (const TpTimes::Launches& launches : row.details) {
    kernels += launches.kernel;
    const auto most = std::max_element(launches.by.begin(), launches.by.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string by = most == launches.by.end() ? std::string() : most->first;
    (by == "array" || by == "math" ? compute : by == "HBM" ? memory : latency) += launches.kernel;
  }
  const Ps host = row.launch > kernels ? row.launch - kernels : 0;
  return {{"compute_ns", mean(compute)},        {"hbm_ns", mean(memory)},
          {"latency_ns", mean(latency)},        {"host_ns", mean(host)},
          {"exposed_ns", mean(row.collective)}, {"waiting_ns", mean(row.waiting)}};
}

}  // namespace kernbench
