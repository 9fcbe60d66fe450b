#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "ccl/bounds/bounds.h"
#include "ccl/contract/legal.h"
#include "ccl/select/choice.h"
#include "runtime/process_group.h"
#include "runtime/tool_work.h"
#include "sc_main/workloads/collective_memory.h"
#include "sc_main/workloads/collective_options.h"
#include "sc_main/workloads/explain.h"
#include "sc_main/workloads/start_collective.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/json_text.h"
#include "tlm/config/units.h"
#include "tlm/kernel/operations.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// What one process group of a run measures. Ranks take turns, so it needs no lock.
struct Measurement {
  CollectiveData data;
  std::vector<Ps> starts, ends, submits, completions;  ///< of timed iterations: extremes over ranks
  std::string algorithm;
  std::optional<ccl::Choice> choice;  ///< of `auto`

  void reset(std::size_t ranks, int iterations) {
    const auto n = static_cast<std::size_t>(iterations);
    data.inputs.assign(ranks, {});
    data.outputs.assign(ranks, {});
    starts.assign(n, kNever);
    submits.assign(n, kNever);
    ends.assign(n, 0);
    completions.assign(n, 0);
  }
  void add(std::size_t iteration, const Handle& handle) {
    starts[iteration] = std::min(starts[iteration], handle.kernel_start());
    ends[iteration] = std::max(ends[iteration], handle.kernel_end());
    submits[iteration] = std::min(submits[iteration], handle.submitted());
    completions[iteration] = std::max(completions[iteration], handle.completed());
  }
  double mean_ns(const std::vector<Ps>& from, const std::vector<Ps>& to) const {
    double sum = 0;
    for (std::size_t i = 0; i < from.size(); ++i) sum += static_cast<double>(to[i] - from[i]) / 1e3;
    return sum / static_cast<double>(from.size());
  }
};

std::vector<TensorShard> placed(const MachineMap& map, const DPPolicy& policy, Shape shape, DType dtype, int sip) {
  return machine_shards(place_shards(policy, shape, static_cast<int>(size_of(dtype)), placement_units(map), sip));
}

/// What bounds depend on.
ccl::BoundInput bound_input(const MachineMap& map, const CollectiveCase& c, const CollectiveLayout& layout,
                            const std::vector<int>& ranks, std::uint64_t bytes) {
  ccl::BoundInput input;
  input.op = c.op;
  input.bytes = bytes;
  input.scope = c.scope;
  for (const int rank : ranks) input.sips.push_back(static_cast<std::uint16_t>(rank));
  input.shards = placed(map, c.in_policy, layout.in_shape(), c.dtype, ranks.front());
  input.out = placed(map, c.out_policy, layout.out_shape(), c.dtype, ranks.front());
  input.root = c.root;
  input.in_place = c.in_place;
  return input;
}

/// One operation over process groups, sizes in the sense of nccl-tests.
class CollectiveWorkload final : public Workload {
 public:
  explicit CollectiveWorkload(CollectiveOp op) : op_(op), options_(op) {}
  std::string name() const override { return to_string(op_); }
  std::string help() const override { return facts_of(op_).help; }
  std::string example() const override {
    return fmt::format("kernbench run {} --topology default{}", name(), has_data() ? " -b 1K -e 64K -f 4" : "");
  }
  void add_options(po::options_description& options) override { options_.add_to(options); }
  void check_options() const override { options_.request(true); }
  std::vector<std::string> files() const override { return options_.files(); }
  bool may_replay() const override { return false; }
  Report run(Session& session) override;

 private:
  /// A tensor, or two.
  struct Buffers {
    Tensor in, out;
  };
  bool has_data() const { return facts_of(op_).has_data; }
  std::string header(const Session& session, const CollectiveRun& request, int ranks, bool grouped) const;

  void rank_program(Context& ctx, const CollectiveRun& request, const Session& session, Report& report);
  void measure(Context& ctx, const CollectiveRun& request, const Session& session, const std::vector<Group>& groups,
               std::uint64_t bytes, Report& report);
  Buffers make_buffers(Context& ctx, const CollectiveCase& c, const CollectiveLayout& layout, int member) const;
  void fill(const Session& session, const CollectiveCase& c, Buffers& buffers, int member, std::size_t group);
  void refresh(const Session& session, const CollectiveCase& c, Buffers& buffers, int member, std::size_t group);
  Handle start(Context& ctx, const CollectiveCase& c, const CollectiveLayout& layout, const Buffers& buffers,
               const Group& group) const;
  ccl::BoundInput input_of(const Session& session, const CollectiveRun& request, std::size_t group,
                           const CollectiveLayout& layout) const;
  Json row(const Session& session, const CollectiveRun& request, std::size_t group,
           const std::vector<CollectiveLayout>& layouts);
  std::string text_row(const CollectiveRun& request, const Json& result) const;
  void explain(const Session& session, const std::vector<ccl::BoundInput>& inputs, const Measurement& measured,
               int iterations, Json& result);

  const CollectiveOp op_;
  CollectiveOptions options_;
  std::string algorithm_;
  WorkCount before_, after_;           ///< of the timed iterations, for explain
  std::string explanation_;            ///< of the last row
  PlacementUnits units_;               ///< where a rank's tensors may lie
  bool ranks_are_pes_ = false;         ///< world_size in ccl.yaml
  bool custom_ = false;                ///< a schedule that does not say what it does
  std::vector<Measurement> measured_;  ///< by group
};

void CollectiveWorkload::explain(const Session& session, const std::vector<ccl::BoundInput>& inputs,
                                 const Measurement& measured, int iterations, Json& result) {
  const Explanation explanation(*session.options().plan, inputs, result["time_ns"].get<double>(), before_, after_,
                                static_cast<unsigned>(iterations));
  const ccl::Choice* choice = measured.choice ? &*measured.choice : nullptr;
  result["explain"] = explanation.json(measured.algorithm, choice);
  explanation_ = explanation.text(measured.algorithm, choice);
}

Report CollectiveWorkload::run(Session& session) {
  CollectiveRun wanted = options_.request(session.options().run.data);
  ProcessGroupOptions options{options_.algorithm(), session.options().ccl_file, wanted.what.scope, {}};
  options.install_at_once = false;  // as `auto`: what it chooses takes the time that it takes by its name
  const ccl::Registry& registry = *ccl::Registry::of(options.ccl_file);
  options.algorithm = algorithm_ = ProcessGroup::algorithm(options, registry);
  const int ranks = session.runtime().world_size(options);
  if (algorithm_ != ccl::kAuto) {
    const ccl::AlgorithmEntry entry = registry.load(algorithm_, {}, ranks);
    ccl::check_serves(entry, has_data() ? op_ : CollectiveOp::all_reduce);
    custom_ = entry.schedule && entry.schedule->custom;
    if (custom_) wanted.check = false;
  }
  if (ProcessGroup::world_size(options, registry)) {  // a rank is a PE; which one makes no difference here
    ranks_are_pes_ = true;
    units_ = {{0}, {{0}}, false};
  } else {
    units_ = placement_units(session.map());
  }
  wanted.groups = options_.groups(ranks);
  const bool grouped = !wanted.groups.empty();
  if (!grouped) {
    std::vector<int>& all = wanted.groups.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  }
  const std::string& entry = algorithm_ == ccl::kAuto ? registry.default_algorithm() : algorithm_;
  if (const auto n_elem = registry.n_elem(entry); n_elem && !wanted.sized) {
    CollectiveCase c = wanted.what;
    c.ranks = static_cast<int>(wanted.groups.front().size());
    wanted.sizes = {size_of_shards(c, units_, *n_elem)};
  }
  measured_.resize(wanted.groups.size());
  wanted.check_layouts(units_);
  check_host_memory(session, name(), wanted, units_);
  ProcessGroupOptions whole = options;
  if (grouped && !ranks_are_pes_) whole.algorithm = ccl::kAuto;  // what serves the groups may not serve all ranks
  session.runtime().init_process_group(ProcessGroup::world_size(whole, registry) ? options : whole);
  Report report;
  report.text = header(session, wanted, ranks, grouped);
  run_collectives(session, ranks, [&](Context& ctx) {
    std::vector<Group> groups;
    for (const std::vector<int>& members : wanted.groups) {
      groups.push_back(grouped ? ctx.new_group(members, options) : Group());
    }
    for (const std::uint64_t bytes : wanted.sizes) measure(ctx, wanted, session, groups, bytes, report);
  });
  std::uint64_t wrong = 0;
  double busbw = 0;
  for (const Json& result : report.results) {
    wrong += result.at("mismatches").is_number() ? result.at("mismatches").get<std::uint64_t>() : 0;
    busbw += result.at("busbw_gbps").get<double>();
  }
  report.wrong = wrong > 0;
  report.text += fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.3f} GB/s\n", wrong,
                             !wanted.check ? "NOT CHECKED"
                             : wrong == 0  ? "OK"
                                           : "FAILED",
                             busbw / static_cast<double>(report.results.size()));
  return report;
}

std::string CollectiveWorkload::header(const Session& session, const CollectiveRun& request, int ranks,
                                       bool grouped) const {
  const CollectiveCase& c = request.what;
  const bool one = grouped && request.groups.size() == 1;
  std::string text = fmt::format("# {} on {} ({}){}, scope {}, {}{}{}\n", name(),
                                 counted(ranks, ranks_are_pes_ ? "PE" : "SIP"), to_string(session.map().sip_topology),
                                 one ? fmt::format(", group {}", fmt::join(request.groups.front(), ",")) : "",
                                 to_string(c.scope), to_string(c.in_policy),
                                 c.in_place                     ? ", in place"
                                 : !options_.placed_elsewhere() ? ", out of place"
                                                                : ", out " + to_string(c.out_policy),
                                 ccl::rooted(op_) ? fmt::format(", root {}", c.root) : "");
  text += fmt::format(
      "# warm-up {}, iterations {}, seed {}; sizes as in nccl-tests ({}), GB/s = 10^9 B/s, bound = share of the "
      "topology's bound\n",
      request.warmup, request.iterations, session.options().seed,
      blocks_in_size(op_, 2) == 1 ? "of one contribution" : "the whole array, one block for each contribution");
  const char* const kLine = "#{:>11} {:>12} {:>8} {:>6} {:>10} {:>8} {:>8} {:>6} {:>7}  {}\n";
  text += fmt::format(kLine, "size", "count", "type", "redop", "time", "algbw", "busbw", "bound", "#wrong",
                      "algorithm; largest bound");
  text += fmt::format(kLine, "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "", "",
                      request.groups.size() > 1 ? "group" : "");
  return text;
}

void CollectiveWorkload::refresh(const Session& session, const CollectiveCase& c, Buffers& buffers, int member,
                                 std::size_t group) {
  if (!makes_copies(session)) return;
  if (c.in_place) {
    buffers.in.write_bytes(measured_[group].data.inputs[static_cast<std::size_t>(member)]);
  } else if (buffers.out) {  // what is not written shows
    const Pattern junk(~session.options().seed, c.dtype, Pattern::Range::unit);
    buffers.out.write_bytes(
        junk.bytes(static_cast<std::uint64_t>(member), static_cast<std::size_t>(buffers.out.shape().count())));
  }
}

CollectiveWorkload::Buffers CollectiveWorkload::make_buffers(Context& ctx, const CollectiveCase& c,
                                                             const CollectiveLayout& layout, int member) const {
  Buffers buffers;
  if (layout.has_in(member)) buffers.in = ctx.empty(layout.in_shape(), c.dtype, c.in_policy, name());
  if (c.in_place) {
    buffers.out = buffers.in;
  } else if (layout.has_out(member)) {
    buffers.out = ctx.empty(layout.out_shape(), c.dtype, c.out_policy, name() + "_out");
  }
  return buffers;
}

void CollectiveWorkload::fill(const Session& session, const CollectiveCase& c, Buffers& buffers, int member,
                              std::size_t group) {
  if (!makes_copies(session) || !buffers.in) return;
  auto& input = measured_[group].data.inputs[static_cast<std::size_t>(member)];
  const std::uint64_t stream = static_cast<std::uint64_t>(group) << 32 | static_cast<std::uint64_t>(member);
  const Pattern pattern = input_pattern(c, units_, session.options().seed);
  input = pattern.bytes(stream, static_cast<std::size_t>(buffers.in.shape().count()));
  buffers.in.write_bytes(input);
}

Handle CollectiveWorkload::start(Context& ctx, const CollectiveCase& c, const CollectiveLayout& layout,
                                 const Buffers& buffers, const Group& group) const {
  if (facts_of(op_).parties == Parties::pairs) return ctx.shift_async(buffers.in, buffers.out, 1, group);
  return start_collective(ctx, op_, c, layout, buffers.in, buffers.out, group);
}

void CollectiveWorkload::measure(Context& ctx, const CollectiveRun& request, const Session& session,
                                 const std::vector<Group>& groups, std::uint64_t bytes, Report& report) {
  struct Part {
    std::size_t group;
    int member;
    CollectiveCase what;
    CollectiveLayout layout;
    Buffers buffers;
  };
  std::vector<Part> parts;  // of this rank, in order of the groups: all ranks submit in that order
  std::vector<CollectiveLayout> layouts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int>& ranks = request.groups[g];
    CollectiveCase c = request.what;
    c.ranks = static_cast<int>(ranks.size());
    layouts.emplace_back(c, units_, request.block(c.ranks, units_, bytes));
    if (ctx.rank() == 0) measured_[g].reset(ranks.size(), request.iterations);
    const auto found = std::find(ranks.begin(), ranks.end(), ctx.rank());
    if (found == ranks.end()) continue;
    parts.push_back({g, static_cast<int>(found - ranks.begin()), c, layouts.back(), {}});
  }
  ctx.barrier();
  // The device is asked before the host makes data for it: what does not fit there may not fit here either.
  for (Part& part : parts) part.buffers = make_buffers(ctx, part.what, part.layout, part.member);
  for (Part& part : parts) {
    const ToolWork filling(ctx);
    fill(session, part.what, part.buffers, part.member, part.group);
  }
  const int total = request.warmup + request.iterations;
  for (int i = 0; i < total; ++i) {
    ctx.barrier();
    // What is checked starts from fresh data: sums in place would grow from iteration to iteration.
    if (i + 1 == total) {
      const ToolWork filling(ctx);
      for (Part& part : parts) refresh(session, part.what, part.buffers, part.member, part.group);
    }
    ctx.barrier();
    const bool timed = i >= request.warmup;
    ctx.begin_stretch(
        fmt::format("{} B, {} {}", bytes, timed ? "iteration" : "warm-up", timed ? i - request.warmup + 1 : i + 1),
        timed);
    if (session.options().explain && ctx.rank() == 0 && i == request.warmup)
      before_ = count_work(*session.options().plan, *session.options().machine);
    std::vector<Handle> handles;
    handles.reserve(parts.size());
    for (const Part& part : parts)
      handles.push_back(start(ctx, part.what, part.layout, part.buffers, groups[part.group]));
    for (std::size_t k = 0; k < parts.size(); ++k) {
      ctx.wait(handles[k]);
      measured_[parts[k].group].algorithm = handles[k].name();
      if (const ccl::Choice* choice = handles[k].choice()) measured_[parts[k].group].choice = *choice;
      if (i >= request.warmup) {
        measured_[parts[k].group].add(static_cast<std::size_t>(i - request.warmup), handles[k]);
      }
    }
  }
  ctx.barrier();
  ctx.begin_stretch("");
  if (session.options().explain && ctx.rank() == 0)
    after_ = count_work(*session.options().plan, *session.options().machine);
  ctx.barrier();
  const bool reads = makes_copies(session) && options_.request(true).check;
  for (const Part& part : parts) {
    if (!reads || !part.buffers.out) continue;
    const ToolWork reading(ctx);
    for (std::size_t copy = 0; copy < part.buffers.out.copies(); ++copy) {
      std::vector<std::uint8_t> bytes = part.buffers.out.bytes_to_host(copy);
      if (request.check)
        measured_[part.group].data.outputs[static_cast<std::size_t>(part.member)].push_back(std::move(bytes));
    }
  }
  ctx.barrier();
  if (ctx.rank() == 0) {
    const ToolWork checking(ctx);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Json result = row(session, request, g, layouts);
      report.text += text_row(request, result);
      report.results.push_back(std::move(result));
    }
  }
  ctx.barrier();  // nobody touches what the rows are made of before they are made
}

std::string CollectiveWorkload::text_row(const CollectiveRun& request, const Json& result) const {
  const Json& fraction = result["bound_fraction"];
  const std::string wrong = request.check ? std::to_string(result["mismatches"].get<std::uint64_t>()) : "N/A";
  std::string text = fmt::format(
      " {:>11} {:>12} {:>8} {:>6} {:>10.2f} {:>8.3f} {:>8.3f} {:>6} {:>7}  {}", result["bytes"].get<std::uint64_t>(),
      result["count"].get<std::int64_t>(), result["dtype"].get<std::string>(), result["redop"].get<std::string>(),
      result["time_ns"].get<double>() / 1e3, result["algbw_gbps"].get<double>(), result["busbw_gbps"].get<double>(),
      fraction.is_number() ? fmt::format("{:.3f}", fraction.get<double>()) : "-", wrong,
      result["algorithm"].get<std::string>());
  if (result["limited_by"].is_string()) text += "; " + result["limited_by"].get<std::string>();
  if (request.groups.size() > 1) text += fmt::format("  {}", json_text(result["group"]));
  return text + "\n" + explanation_;
}

ccl::BoundInput CollectiveWorkload::input_of(const Session& session, const CollectiveRun& request, std::size_t group,
                                             const CollectiveLayout& layout) const {
  CollectiveCase c = request.what;
  c.ranks = static_cast<int>(request.groups[group].size());
  const auto bytes = static_cast<std::uint64_t>(layout.block()) * size_of(c.dtype) *
                     static_cast<std::uint64_t>(blocks_in_size(op_, layout.contributions()));
  return bound_input(session.map(), c, layout, request.groups[group], bytes);
}

Json CollectiveWorkload::row(const Session& session, const CollectiveRun& request, std::size_t group,
                             const std::vector<CollectiveLayout>& layouts) {
  const Measurement& measured = measured_[group];
  const CollectiveLayout& layout = layouts[group];
  CollectiveCase c = request.what;
  c.ranks = static_cast<int>(request.groups[group].size());
  const int p = layout.contributions();
  const auto bytes = static_cast<std::uint64_t>(layout.block()) * size_of(c.dtype) *
                     static_cast<std::uint64_t>(blocks_in_size(op_, p));
  const double time = measured.mean_ns(measured.starts, measured.ends);
  const double algbw = time > 0 ? static_cast<double>(bytes) / time : 0;
  std::vector<ccl::BoundInput> inputs;  // bounds are of groups of SIPs
  std::optional<ccl::Bound> bound;
  if (!ranks_are_pes_ && !custom_) {
    for (std::size_t i = 0; i < layouts.size(); ++i) inputs.push_back(input_of(session, request, i, layouts[i]));
    std::swap(inputs.front(), inputs[group]);
    bound = ccl::largest(ccl::collective_bounds(session.map(), inputs.front()));
  }
  const Comparison comparison = request.check ? compare_collective(c, layout, measured.data) : Comparison{};

  Json result;
  result["op"] = name();
  result["bytes"] = bytes;
  result["count"] = layout.block();
  result["dtype"] = to_string(c.dtype);
  result["redop"] = ccl::reduces(op_) ? to_string(c.reduce_op) : "none";
  result["algorithm"] = measured.algorithm;
  result["topology"] = to_string(session.map().sip_topology);
  result["ranks"] = c.ranks;
  result["scope"] = to_string(c.scope);
  result["placement"] = to_string(c.in_policy);
  result["contributions"] = p;
  result["time_ns"] = time;
  result["host_time_ns"] = measured.mean_ns(measured.submits, measured.completions);
  result["algbw_gbps"] = algbw;
  result["busbw_gbps"] = custom_ ? algbw : algbw * bus_factor(op_, p);
  result["bound_ns"] = bound ? Json(bound->ns) : Json();
  result["bound_name"] = bound ? Json(bound->name) : Json();
  result["bound_fraction"] = bound && time > 0 && bound->ns > 0 ? Json(bound->ns / time) : Json();
  result["limited_by"] = bound ? Json(bound->limited_by) : Json();
  result["check"] = !request.check ? "skipped" : comparison.mismatches == 0 ? "ok" : "wrong";
  result["mismatches"] = request.check ? Json(comparison.mismatches) : Json();
  result["max_abs_err"] = request.check ? Json(comparison.max_abs_error) : Json();
  result["in_place"] = c.in_place;
  if (!c.in_place) result["out_placement"] = to_string(c.out_policy);
  if (ccl::rooted(op_)) result["root"] = c.root;
  result["group"] = request.groups[group];
  if (session.options().explain && !inputs.empty()) explain(session, inputs, measured, request.iterations, result);
  if (session.options().explain && inputs.empty()) {
    const ccl::Choice* choice = measured.choice ? &*measured.choice : nullptr;
    add_choice(measured.algorithm, choice, result["explain"]);
    explanation_ =
        (custom_ ? "#   the schedule is custom: there is no bound for what nobody has said\n"
                 : "#   ranks are PEs (world_size in ccl.yaml): there are bounds for ranks that are SIPs only\n") +
        choice_text(measured.algorithm, choice);
  }
  return result;
}

template <std::size_t... op>
constexpr std::array<WorkloadFactory, sizeof...(op)> makers(std::index_sequence<op...>) {
  return {[]() -> std::unique_ptr<Workload> {
    return std::make_unique<CollectiveWorkload>(static_cast<CollectiveOp>(op));
  }...};
}
constexpr auto kMakersOfCollectives = makers(std::make_index_sequence<std::size_t{kCollectiveOps}>());

}  // namespace

std::vector<WorkloadFactory> collective_workloads() {
  return {kMakersOfCollectives.begin(), kMakersOfCollectives.end()};
}

}  // namespace kernbench
