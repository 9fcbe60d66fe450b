// A plug-in: rows of the collective matrix on one machine, many in one process.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <systemc>
#include <tuple>
#include <utility>

#include "ccl/select/registry.h"
#include "sc_main/workloads/plugin.h"
#include "sc_main/workloads/start_collective.h"
#include "tests/acceptance/collective_matrix.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;

constexpr int kScopeCount = 3;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// One row on one group of ranks, as all of its members see it.
struct Call {
  std::size_t group;  ///< of its scope
  CollectiveCase what;
  CollectiveLayout layout;
  CollectiveData data;
};
struct RowRun {
  std::size_t number;  ///< among the rows of this process
  std::vector<Call> calls;
};

class CollectiveRows final : public Workload {
 public:
  std::string name() const override { return "collective_rows"; }
  std::string help() const override { return "rows of the collective matrix, each element of each compared"; }
  std::string example() const override {
    return "kernbench run --plugin FILE collective_rows --ranks 4 --kind ring_1d";
  }
  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("ranks", po::value(&machine_.ranks)->default_value(4), "of the rows");
    add("kind", po::value(&machine_.kind)->default_value("ring_1d"), "of machine, as the rows name it");
    add("part", po::value(&part_)->default_value("0/1"), "I/N: rows I, I + N, ...");
    add("first", po::value(&first_)->default_value(0), "the row to begin with, of this part");
    add("least", po::value(&least_)->default_value(1), "elements of a rank's tensor");
    add("most", po::value(&most_)->default_value(1 << 20), "elements of a rank's tensor");
    add("groups", po::value(&groups_)->default_value("whole"),
        "whole: all ranks; alternate: every other rank, and the rest; overlapping: all but the last, backwards, and "
        "all "
        "but the first");
    add("spoil", po::value(&spoil_), "a row of this part whose result is made wrong by one bit: the check has to tell");
    add("algorithm", po::value(&algorithm_)->default_value("auto"),
        "for all rows of its operations and scopes; rows that it refuses are counted");
    add("of-each", po::value(&of_each_)->default_value(0),
        "so many rows of each operation, scope and placement, all else in turn; 0: all rows");
    add("in-flight", po::value(&in_flight_)->default_value(1), "rows that are started before the first is waited for");
  }
  Report run(Session& session) override;

 private:
  std::vector<std::vector<int>> members() const;
  void select_rows(const std::string& ccl_file);
  void prepare(std::size_t first);
  void rank_program(Context& ctx, Session& session);
  void run_batch(Context& ctx, std::uint64_t seed, const std::array<std::vector<Group>, kScopeCount>& groups);
  void judge(Report& report);
  void thin_out();
  std::string served() const;

  matrix::Machine machine_;
  std::string part_, groups_, algorithm_;
  std::size_t first_ = 0, in_flight_ = 1, spoil_ = kNone, of_each_ = 0;
  std::int64_t least_ = 1, most_ = 1;

  PlacementUnits units_;
  std::vector<std::vector<int>> members_;
  std::vector<Row> rows_;
  std::vector<RowRun> batch_;                   ///< what runs now; ranks take turns, so it needs no lock
  std::string refusal_;                         ///< why the algorithm does not serve the batch; empty: it does
  std::map<std::string, std::size_t> refused_;  ///< rows, by reason
  std::map<std::pair<CollectiveOp, Scope>, int> served_;  ///< rows
  Report report_;
};

std::vector<std::vector<int>> CollectiveRows::members() const {
  std::vector<int> all(static_cast<std::size_t>(machine_.ranks));
  for (int rank = 0; rank < machine_.ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  if (groups_ == "whole" || machine_.ranks == 1) return {all};
  if (groups_ == "alternate") {
    std::vector<int> even, odd;
    for (const int rank : all) (rank % 2 == 0 ? even : odd).push_back(rank);
    return {odd, even};
  }
  if (groups_ != "overlapping") throw std::invalid_argument("--groups: give whole, alternate or overlapping");
  return {{all.rbegin() + 1, all.rend()}, {all.begin() + 1, all.end()}};
}

void CollectiveRows::select_rows(const std::string& ccl_file) {
  std::size_t index = 0, parts = 1, number = 0;
  if (std::sscanf(part_.c_str(), "%zu/%zu", &index, &parts) != 2 || index >= parts) {
    throw std::invalid_argument("--part: give I/N");
  }
  const std::shared_ptr<const ccl::Algorithm> algorithm =
      algorithm_ == "auto" ? nullptr : ccl::Registry(ccl_file).load(algorithm_).algorithm;
  matrix::for_each_row([&](const Row& row) {
    if (!(matrix::machine(row) == machine_) || matrix::elements(row) < least_ || matrix::elements(row) > most_) return;
    CollectiveCase c = matrix::what(row);
    if (algorithm && !(algorithm->operations & ccl::bit(c.op) && algorithm->scopes & ccl::bit(c.scope))) return;
    const bool kernel = algorithm && algorithm->kind() == ccl::AlgorithmKind::kernel;
    if (kernel && !c.in_place) return;  // they work in place only
    for (const std::vector<int>& group : members_) {
      c.ranks = static_cast<int>(group.size());
      if (c.reduce_op == ReduceOp::avg && !matrix::divisor_is_exact(c.dtype, contributions_of(c, units_))) return;
    }
    if (number++ % parts == index) rows_.push_back(row);
  });
  if (of_each_ > 0) thin_out();
}

void CollectiveRows::thin_out() {
  std::map<std::tuple<CollectiveOp, Scope, std::string>, std::vector<Row>> kinds;
  for (const Row& row : rows_) {
    const CollectiveCase c = matrix::what(row);
    kinds[{c.op, c.scope, to_string(c.in_policy)}].push_back(row);
  }
  rows_.clear();
  constexpr std::size_t kStride = 7919;  // a prime: types, reduce ops, sizes and outputs come in turn
  std::size_t at = 0;
  for (const auto& [kind, rows] : kinds) {
    for (std::size_t i = 0; i < std::min(of_each_, rows.size()); ++i, at += kStride)
      rows_.push_back(rows[at % rows.size()]);
  }
}

/// "all_reduce/sip all_reduce/cube ...", in order.
std::string CollectiveRows::served() const {
  std::string text;
  for (const auto& [what, rows] : served_)
    text += fmt::format("{}{}/{}", text.empty() ? "" : " ", to_string(what.first), to_string(what.second));
  return text;
}

/// The rows from `first` on that run together.
void CollectiveRows::prepare(std::size_t first) {
  batch_.clear();
  refusal_.clear();
  for (std::size_t r = first; r < std::min(first + in_flight_, rows_.size()); ++r) {
    RowRun& run = batch_.emplace_back();
    run.number = r;
    for (std::size_t g = 0; g < members_.size(); ++g) {
      CollectiveCase c = matrix::what(rows_[r]);
      c.ranks = static_cast<int>(members_[g].size());
      c.root %= c.ranks;
      CollectiveLayout layout(c, units_, matrix::block(rows_[r], c));
      run.calls.push_back({g, c, std::move(layout), {}});
      run.calls.back().data.inputs.resize(members_[g].size());
      run.calls.back().data.outputs.resize(members_[g].size());
    }
  }
}

void CollectiveRows::run_batch(Context& ctx, std::uint64_t seed,
                               const std::array<std::vector<Group>, kScopeCount>& groups) {
  struct Part {
    Call& call;
    std::size_t member;
    Tensor in, out;
    Handle handle;
  };
  std::vector<Part> parts;
  for (RowRun& run : batch_) {
    for (Call& call : run.calls) {
      const std::vector<int>& ranks = members_[call.group];
      const auto found = std::find(ranks.begin(), ranks.end(), ctx.rank());
      if (found == ranks.end()) continue;
      const auto member = static_cast<std::size_t>(found - ranks.begin());
      Part& part = parts.emplace_back(Part{call, member, {}, {}, {}});
      const CollectiveCase& c = call.what;
      const Pattern pattern = input_pattern(c, units_, seed);
      const Pattern junk(~seed, c.dtype, Pattern::Range::unit);  // what is not written shows
      const std::uint64_t stream = (run.number * members_.size() + call.group) << 8 | member;
      if (call.layout.has_in(static_cast<int>(member))) {
        const Shape shape = call.layout.in_shape();
        call.data.inputs[member] = pattern.bytes(stream, static_cast<std::size_t>(shape.count()));
        part.in = ctx.from_bytes(call.data.inputs[member], shape, c.dtype, c.in_policy, "in");
      }
      if (c.in_place) {
        part.out = part.in;
      } else if (call.layout.has_out(static_cast<int>(member))) {
        const Shape shape = call.layout.out_shape();
        part.out = ctx.from_bytes(junk.bytes(stream, static_cast<std::size_t>(shape.count())), shape, c.dtype,
                                  c.out_policy, "out");
      }
    }
  }
  const auto start = [&](Part& part) {
    const CollectiveCase& c = part.call.what;
    const Group& group = groups[static_cast<std::size_t>(c.scope)][part.call.group];
    part.handle = c.op == CollectiveOp::send_recv
                      ? ctx.shift_async(part.in, part.out, 1, group)
                      : start_collective(ctx, c.op, c, part.call.layout, part.in, part.out, group);
  };
  try {
    for (Part& part : parts) start(part);
  } catch (const ccl::Error& error) {  // on all ranks alike: nobody waits
    if (algorithm_ == "auto" || in_flight_ > 1 || !(refusal_.empty() || refusal_ == error.what())) throw;
    refusal_ = error.what();
    return;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) ctx.wait(part->handle);
  for (Part& part : parts) {
    if (!part.out) continue;
    for (std::size_t copy = 0; copy < part.out.copies(); ++copy) {
      part.call.data.outputs[part.member].push_back(part.out.bytes_to_host(copy));
    }
  }
}

void CollectiveRows::judge(Report& report) {
  if (!refusal_.empty()) {
    ++refused_[refusal_];
    return;
  }
  for (const RowRun& run : batch_) {
    const CollectiveCase c = matrix::what(rows_[run.number]);
    ++served_[{c.op, c.scope}];
  }
  for (RowRun& run : batch_) {
    for (Call& call : run.calls) {
      if (run.number == spoil_) call.data.outputs[0].at(0).at(0) ^= 1;
      const Comparison comparison = compare_collective(call.what, call.layout, call.data);
      if (comparison.mismatches == 0) continue;
      report.wrong = true;
      report.text += fmt::format("row {} {} of {} ranks: {} elements wrong, by up to {}\n", run.number,
                                 matrix::name(rows_[run.number]), call.what.ranks, comparison.mismatches,
                                 comparison.max_abs_error);
    }
  }
}

void CollectiveRows::rank_program(Context& ctx, Session& session) {
  std::array<std::vector<Group>, kScopeCount> groups;
  for (std::size_t scope = 0; scope < kScopeCount; ++scope) {
    const bool used = std::any_of(rows_.begin(), rows_.end(),
                                  [&](const Row& row) { return matrix::what(row).scope == static_cast<Scope>(scope); });
    if (!used) continue;
    const ProcessGroupOptions options{algorithm_, session.options().ccl_file, static_cast<Scope>(scope), {}};
    for (const std::vector<int>& ranks : members_) groups[scope].push_back(ctx.new_group(ranks, options));
  }
  for (std::size_t first = first_; first < rows_.size(); first += in_flight_) {
    try {
      if (ctx.rank() == 0) prepare(first);
      ctx.barrier();
      run_batch(ctx, session.options().seed, groups);
    } catch (const sc_core::sc_unwind_exception&) {
      throw;  // another rank failed, and this one is ended
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("row {} {}: {}", first, matrix::name(rows_[first]), error.what()));
    }
    ctx.barrier();
    if (ctx.rank() == 0) judge(report_);
    ctx.barrier();
  }
}

Report CollectiveRows::run(Session& session) {
  if (machine_.ranks != session.map().sips) throw std::invalid_argument("--ranks: the machine has as many SIPs");
  if (in_flight_ == 0) throw std::invalid_argument("--in-flight: at least 1");
  machine_.scheduling = session.options().run.scheduling;
  members_ = members();
  units_ = placement_units(session.map());
  select_rows(session.options().ccl_file);
  session.runtime().init_process_group({"auto", session.options().ccl_file, Scope::sip, {}});
  session.run(machine_.ranks, [&](Context& ctx) { rank_program(ctx, session); });
  report_.text +=
      fmt::format("{} rows on {} {}\n", rows_.size() - std::min(first_, rows_.size()), machine_.ranks, machine_.kind);
  for (const auto& [why, rows] : refused_) report_.text += fmt::format("{} rows refused: {}\n", rows, why);
  report_.text += fmt::format("served: {}\n", served());
  report_.results.push_back({{"rows", rows_.size()}});
  return std::move(report_);
}

}  // namespace
}  // namespace kernbench

using kernbench::CollectiveRows;
KERNBENCH_WORKLOAD_PLUGIN(CollectiveRows)
