#include "sc_main/workloads/tp_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/errors.h"

namespace kernbench {

namespace {
constexpr double kMost = 1e18;  ///< bytes: more is that much, far beyond any machine; terms still add up
constexpr const char* kOfWeights = "use more SIPs (--tp, --pp) or fewer layers";
constexpr const char* kOfTables = "use a shorter context (--context, --prompt, --decode)";
}  // namespace

TpMemory::TpMemory(const tp::Model& model, const MachineMap& map, std::int64_t layers, std::int64_t ranks,
                   std::int64_t batch, std::int64_t positions, std::int64_t rows, DType dtype, std::int64_t ends) {
  // Of sizes up to the largest that are allowed products leave 64 bits.
  const auto width = static_cast<double>(model.width), of = static_cast<double>(layers),
             tokens = static_cast<double>(rows), reach = static_cast<double>(positions),
             share = 1 / static_cast<double>(ranks);
  const std::int64_t queries = model.heads * model.head_dim / ranks,
                     keys = std::max<std::int64_t>(model.kv_heads / ranks, 1) * model.head_dim;
  const std::int64_t inner = model.mlp_width / ranks, up = model.gated ? 2 : 1;
  const auto of_heads = static_cast<double>(2 * queries + 2 * keys), mlps = static_cast<double>(up + 1);
  const auto add_bytes = [&](const char* name, const char* remedy, double bytes) {
    terms.push_back(
        {name, remedy, bytes < kMost ? static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(kMost)});
  };
  const auto add = [&](const char* name, const char* remedy, double elements) {
    add_bytes(name, remedy, elements * static_cast<double>(size_of(dtype)));
  };
  // Of a mixture the router.
  const double of_mlp = model.mixture() ? static_cast<double>(model.experts) : mlps * static_cast<double>(inner);
  add("weights of the layers", kOfWeights, of * width * (of_heads + of_mlp));
  if (model.mixture())
    add("experts", kOfWeights,
        of * static_cast<double>(model.experts) * mlps * width * static_cast<double>(model.mlp_width) * share);
  if (ends > 0) {
    const auto vocabulary = static_cast<double>(model.padded_vocabulary(static_cast<int>(ranks)) / ranks);
    add(ends < 2     ? "embedding or output matrix"
        : model.tied ? "embedding and output matrix, each for its own use where they are tied"
                     : "embedding and output matrix",
        ends < 2 ? "use more SIPs (--tp), or leave both out (--ends 0)"
                 : "use more SIPs (--tp, --pp), or leave both out (--ends 0)",
        static_cast<double>(ends) * vocabulary * width);
  }
  add("KV caches",
      "use more SIPs (--tp, --dp, --pp), fewer layers, a smaller --batch or a shorter context (--context, --prompt, "
      "--decode)",
      of * 2 * static_cast<double>(batch) * reach * static_cast<double>(keys));
  if (model.position == tp::PositionKind::rotary) {  // f32 or f64, a copy in each cube
    add_bytes("rotary tables", kOfTables,
              reach * static_cast<double>(model.head_dim) *
                  static_cast<double>(std::max(size_of(dtype), size_of(DType::f32))) * map.cubes_per_sip());
  } else if (ends > 0) {
    add("table of positions", kOfTables, reach * width);
  }
  // Of experts: tokens on their way there and back, and a balanced one's share of the rows.
  const std::int64_t k = model.experts_per_token;
  const std::int64_t of_row =
      model.mixture() ? k * (2 * model.width / ranks + up * model.mlp_width / model.experts) : up * inner;
  add("activations", "use more SIPs (--tp, --dp), a shorter --prompt or a smaller --batch",
      tokens * (4 * width + of_heads + static_cast<double>(of_row)));
  have = map.hbm_slice.bytes * map.pes(0).size();
}

std::uint64_t TpMemory::need() const {
  std::uint64_t sum = 0;
  for (const Term& term : terms) sum += term.bytes;
  return sum;
}

void TpMemory::check(const std::string& who) const {
  if (need() <= have) return;
  const auto largest =
      std::max_element(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.bytes < b.bytes; });
  throw OutOfDeviceMemory(fmt::format("{} needs {} B of HBM on each SIP, which has {} B; most of it, {} B, are {}: {}",
                                      who, need(), have, largest->bytes, largest->name, largest->remedy));
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
