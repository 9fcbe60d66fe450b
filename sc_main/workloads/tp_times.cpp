#include "sc_main/workloads/tp_times.h"

#include <fmt/format.h>

namespace kernbench {

TpTimes::Row& TpTimes::Row::operator+=(const Row& other) {
  time += other.time;
  mapping += other.mapping;
  loading += other.loading;
  queues += other.queues;
  launch += other.launch;
  collective += other.collective;
  waiting += other.waiting;
  launches += other.launches;
  collectives += other.collectives;
  return *this;
}

void TpTimes::add(Context& ctx, SetUp what, Ps begin) {
  if (ctx.rank() != 0) return;
  // Nothing else takes the time of the host's program: what lies between two pieces of work is waiting, too.
  set_up_.waiting += begin - begin_;
  (what == SetUp::mapping   ? set_up_.mapping
   : what == SetUp::loading ? set_up_.loading
                            : set_up_.queues) += ctx.now() - begin;
  begin_ = ctx.now();
}

void TpTimes::next(Context& ctx, std::size_t layer) {
  ctx.barrier();
  if (ctx.rank() != 0) return;
  const Ps now = ctx.now();
  if (layer == kSetUp) {
    set_up_.waiting += now - begin_;
    set_up_.time = now;
  } else if (layer != kWarmUp) {
    made_.push_back({layer, begin_, now});
  }
  begin_ = now;
}

TpTimes::Row TpTimes::of_layer(std::size_t layer, const std::vector<HostTraceEntry>& trace) const {
  Row row;
  auto entry = trace.begin();  // in order of completion, as the passes are
  for (const Pass& pass : made_) {
    Ps last = pass.begin;
    Row one;
    for (; entry != trace.end() && entry->t_complete <= pass.end; ++entry) {
      if (entry->rank != 0 || entry->t_submit < pass.begin) continue;
      const bool launch = entry->kind == "launch";
      (launch ? one.launch : one.collective) += entry->t_complete - entry->t_submit;
      ++(launch ? one.launches : one.collectives);
      one.waiting += entry->t_submit - last;
      last = entry->t_complete;
    }
    one.waiting += pass.end - last;
    one.time = pass.end - pass.begin;
    if (pass.layer == layer) row += one;
  }
  return row;
}

void TpTimes::add_to(const Row& row, nlohmann::ordered_json& json) const {
  const auto passes = static_cast<std::size_t>(passes_);
  json["launches"] = row.launches / passes;
  json["launch_ns"] = mean_ns(row.launch);
  json["collectives"] = row.collectives / passes;
  json["collective_ns"] = mean_ns(row.collective);
  json["waiting_ns"] = mean_ns(row.waiting);
}

void TpTimes::add_set_up_to(nlohmann::ordered_json& json) const {
  json["layer"] = "set-up";
  json["time_ns"] = in_ns(set_up_.time);
  json["mapping_ns"] = in_ns(set_up_.mapping);
  json["loading_ns"] = in_ns(set_up_.loading);
  json["queues_ns"] = in_ns(set_up_.queues);
  json["waiting_ns"] = in_ns(set_up_.waiting);
}

std::string TpTimes::set_up_text() const {
  return fmt::format("# set-up (ns): mapping {:.3f}, loading {:.3f}, queues {:.3f}\n", in_ns(set_up_.mapping),
                     in_ns(set_up_.loading), in_ns(set_up_.queues));
}

}  // namespace kernbench
