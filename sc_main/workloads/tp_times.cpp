#include "sc_main/workloads/tp_times.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "ccl/bounds/bounds.h"

namespace kernbench {

CollectiveBounds::CollectiveBounds(const MachineMap& map, int ranks) : map_(map), groups_(1) {
  for (int rank = 0; rank < ranks; ++rank) groups_.front().push_back(static_cast<std::uint16_t>(rank));
}

namespace {
/// Times between SIPs, and of all PEs and slices together: of those that go by where a part lies, the largest of
/// tensors that lie on few PEs may be less than that of spread ones.
bool holds_anywhere(const ccl::Bound& bound) {
  return bound.name != "cube_partition" && bound.name != "cube_in" && bound.name != "latency";
}
}  // namespace

Ps CollectiveBounds::of(const std::string& operation, std::uint64_t bytes, bool spread) {
  const auto [known, fresh] = known_.emplace(std::tuple(operation, bytes, spread), 0);
  if (!fresh) return known->second;
  ccl::BoundInput input;
  if (operation == "send" || operation == "recv") return 0;  // of the waiting for the other stage nothing is known
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}) {
    if (operation == to_string(op)) input.op = op;
  }
  input.bytes = bytes;
  for (const std::vector<std::uint16_t>& group : groups_) {
    input.sips = group;
    std::vector<ccl::Bound> all = ccl::collective_bounds(map_, input);
    const auto holds = [&](const ccl::Bound& one) { return spread || holds_anywhere(one); };
    all.erase(std::stable_partition(all.begin(), all.end(), holds), all.end());
    const auto bound = static_cast<Ps>(ccl::largest(all).ns * 1e3);
    known->second = &group == &groups_.front() ? bound : std::min(known->second, bound);
  }
  return known->second;
}

TpTimes::Row& TpTimes::Row::operator+=(const Row& other) {
  time += other.time;
  mapping += other.mapping;
  loading += other.loading;
  queues += other.queues;
  launch += other.launch;
  collective += other.collective;
  hidden += other.hidden;
  waiting += other.waiting;
  launches += other.launches;
  collectives += other.collectives;
  kernel += other.kernel;
  launch_bound += other.launch_bound;
  collective_bound += other.collective_bound;
  for (const auto& [name, time_of] : other.by) by[name] += time_of;
  flops += other.flops;
  bytes += other.bytes;
  for (const Launches& one : other.details) add_details(one);
  return *this;
}

void TpTimes::Row::add_details(const Launches& one) {
  const auto found =
      std::find_if(details.begin(), details.end(), [&](const Launches& own) { return own.name == one.name; });
  if (found == details.end()) {
    details.push_back(one);
    return;
  }
  found->bound.time += one.bound.time;
  found->bound.flops += one.bound.flops;
  found->bound.bytes += one.bound.bytes;
  found->kernel += one.kernel;
  found->count += one.count;
  for (const auto& [name, time_of] : one.by) found->by[name] += time_of;
}

void TpTimes::Row::join_layers() {
  std::vector<Launches> all;
  all.swap(details);
  for (Launches& one : all) {
    const std::size_t dot = one.name.find('.');
    if (one.name.rfind("layer", 0) == 0 && dot != std::string::npos) one.name.erase(0, dot + 1);
    add_details(one);
  }
}

namespace {
std::string most_of(const std::map<std::string, Ps>& by) {
  const auto most =
      std::max_element(by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == by.end() ? "nothing" : most->first;
}

/// Adds the time in which launches, collectives or both of `entries`, all inside [begin, end), are under way.
void add_spans(const std::vector<const HostTraceEntry*>& entries, Ps begin, Ps end, TpTimes::Row& row) {
  std::vector<std::pair<Ps, std::pair<int, int>>> changes{{end, {0, 0}}};  // of launches, of collectives
  for (const HostTraceEntry* entry : entries) {
    const bool launch = entry->kind == "launch";
    changes.push_back({entry->t_submit, {launch ? 1 : 0, launch ? 0 : 1}});
    changes.push_back({entry->t_complete, {launch ? -1 : 0, launch ? 0 : -1}});
  }
  std::sort(changes.begin(), changes.end());
  Ps last = begin;
  int launches = 0, collectives = 0;
  for (const auto& [time, change] : changes) {
    const Ps span = time - last;
    (launches > 0 ? row.launch : collectives > 0 ? row.collective : row.waiting) += span;
    if (launches > 0 && collectives > 0) row.hidden += span;
    last = time;
    launches += change.first;
    collectives += change.second;
  }
}
}  // namespace

std::string TpTimes::Row::binds() const { return most_of(by); }

void TpTimes::add(Context& ctx, SetUp what, Ps begin) {
  if (ctx.rank() != 0) return;
  // Nothing else takes the time of the host's program: what lies between two pieces of work is waiting, too.
  set_up_.waiting += begin - begin_;
  (what == SetUp::mapping   ? set_up_.mapping
   : what == SetUp::loading ? set_up_.loading
                            : set_up_.queues) += ctx.now() - begin;
  begin_ = ctx.now();
}

void TpTimes::begin(Context& ctx, int pass, std::size_t layer) const {
  const bool timed = pass >= warmup_;
  ctx.begin_stretch(
      fmt::format("{} {}, layer {}", timed ? "pass" : "warm-up", timed ? pass - warmup_ + 1 : pass + 1, layer), timed);
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

std::vector<TpTimes::Row> TpTimes::of_layers(const std::vector<HostTraceEntry>& trace, CollectiveBounds& bounds) const {
  std::vector<Row> rows(layers_);
  auto entry = trace.begin();  // in order of completion, as the passes are
  for (const Pass& pass : made_) {
    Row one;
    std::vector<const HostTraceEntry*> own;
    for (; entry != trace.end() && entry->t_complete <= pass.end; ++entry) {
      if (entry->rank != 0 || entry->t_submit < pass.begin) continue;
      own.push_back(&*entry);
      const LaunchBound& bound = entry->bound;
      if (entry->kind != "launch") {
        const Ps least = bounds.of(entry->operation, static_cast<std::uint64_t>(bound.bytes),
                                   std::string_view(bound.kind) == "spread");
        ++one.collectives;
        one.collective_bound += least;
        one.by["communication"] += least;
        continue;
      }
      const Ps kernel = entry->kernel_end - entry->kernel_start;
      Row launch;
      launch.launches = 1;
      launch.kernel = kernel;
      launch.launch_bound = bound.time;
      launch.by[bound.by] = bound.time;
      launch.flops = bound.flops;
      launch.bytes = bound.bytes;
      launch.details.push_back({entry->name, bound, kernel, 1, {{bound.by, bound.time}}});
      one += launch;
    }
    add_spans(own, pass.begin, pass.end, one);
    one.time = pass.end - pass.begin;
    if (one.bound() > one.time) {
      throw std::logic_error(
          fmt::format("a layer took {:.3f} ns, less than its bound of {:.3f} ns", in_ns(one.time), in_ns(one.bound())));
    }
    rows[pass.layer] += one;
  }
  return rows;
}

TpTimes::Row TpTimes::between(const std::vector<HostTraceEntry>& trace, Ps begin, Ps end) {
  std::vector<const HostTraceEntry*> own;
  auto entry = std::lower_bound(trace.begin(), trace.end(), begin,
                                [](const HostTraceEntry& one, Ps time) { return one.t_complete < time; });
  for (; entry != trace.end() && entry->t_complete <= end; ++entry) {
    if (entry->rank == 0 && entry->t_submit >= begin) own.push_back(&*entry);
  }
  Row row;
  add_spans(own, begin, end, row);
  row.time = end - begin;
  return row;
}

void TpTimes::add_to(const Row& row, int passes, nlohmann::ordered_json& json) {
  const auto count = static_cast<std::size_t>(passes);
  const auto mean = [&](Ps sum) { return static_cast<double>(sum) / passes / 1e3; };
  json["launches"] = row.launches / count;
  json["launch_ns"] = mean(row.launch);
  json["collectives"] = row.collectives / count;
  json["collective_ns"] = mean(row.collective);
  json["hidden_ns"] = mean(row.hidden);
  json["communication_ns"] = mean(row.collective + row.hidden);
  json["waiting_ns"] = mean(row.waiting);
  json["kernel_ns"] = mean(row.kernel);
  json["bound_ns"] = mean(row.bound());
  json["bound_share"] = row.time > 0 ? static_cast<double>(row.bound()) / static_cast<double>(row.time) : 0;
  json["bound_binds"] = row.binds();
  auto& list = json["kernels"] = nlohmann::ordered_json::array();
  for (const Launches& one : row.details) {
    const auto calls = static_cast<double>(one.count);
    nlohmann::ordered_json kernel;
    kernel["name"] = one.name;
    kernel["kind"] = one.bound.kind;
    kernel["launches"] = calls / passes;
    if (one.bound.m > 0) {
      kernel["m"] = one.bound.m;
      kernel["n"] = one.bound.n;
      kernel["k"] = one.bound.k;
      kernel["mapping"] = one.bound.mapping;
    }
    kernel["kernel_ns"] = mean(one.kernel);
    kernel["bound_ns"] = mean(one.bound.time);
    kernel["bound_share"] = one.kernel > 0 ? static_cast<double>(one.bound.time) / static_cast<double>(one.kernel) : 0;
    kernel["bound_binds"] = most_of(one.by);
    kernel["flops"] = one.bound.flops / passes;
    kernel["bytes"] = one.bound.bytes / passes;
    list.push_back(std::move(kernel));
  }
}

void TpTimes::add_set_up_to(nlohmann::ordered_json& json) const {
  json["layer"] = "set-up";
  json["time_ns"] = in_ns(set_up_.time);
  json["mapping_ns"] = in_ns(set_up_.mapping);
  json["loading_ns"] = in_ns(set_up_.loading);
  json["queues_ns"] = in_ns(set_up_.queues);
  json["waiting_ns"] = in_ns(set_up_.waiting);
}

std::string TpTimes::overlap_text(const nlohmann::ordered_json& row) {
  const double whole = row["communication_ns"].get<double>();
  if (whole <= 0) return "";
  const double hidden = row["hidden_ns"].get<double>();
  return fmt::format("# communication (ns): {:.3f}, hidden behind launches {:.3f} ({:.1f}%), exposed {:.3f}\n", whole,
                     hidden, 100 * hidden / whole, row["collective_ns"].get<double>());
}

std::string TpTimes::kernels_text(const nlohmann::ordered_json& row) {
  std::string text =
      fmt::format("# {:>24} {:>8} {:>18} {:>14} {:>14} {:>6} {:>9} {:>9}  {:<8}  {}\n", "kernels", "launches",
                  "m x n x k", "kernel", "bound", "share", "TFLOP/s", "FLOP/B", "bound by", "mapping");
  for (const auto& one : row["kernels"]) {
    const double ns = one["kernel_ns"].get<double>(), flops = one["flops"].get<double>();
    const double bytes = one["bytes"].get<double>();
    const std::string shape = one.contains("m")
                                  ? fmt::format("{}x{}x{}", one["m"].get<std::int64_t>(), one["n"].get<std::int64_t>(),
                                                one["k"].get<std::int64_t>())
                                  : std::string("-");
    text +=
        fmt::format("# {:>24} {:>8} {:>18} {:>14.3f} {:>14.3f} {:>6.3f} {:>9.3f} {:>9.2f}  {:<8}  {}\n",
                    one["name"].get<std::string>(), one["launches"].get<double>(), shape, ns,
                    one["bound_ns"].get<double>(), one["bound_share"].get<double>(), ns > 0 ? flops / ns / 1e3 : 0,
                    bytes > 0 ? flops / bytes : 0, one["bound_binds"].get<std::string>(), one.value("mapping", "-"));
  }
  return text;
}

std::string TpTimes::set_up_text() const {
  return fmt::format("# set-up (ns): mapping {:.3f}, loading {:.3f}, queues {:.3f}\n", in_ns(set_up_.mapping),
                     in_ns(set_up_.loading), in_ns(set_up_.queues));
}

}  // namespace kernbench
