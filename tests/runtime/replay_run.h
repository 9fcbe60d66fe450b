#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/replay_kind.h"
#include "tests/runtime/machine_run.h"
#include "tlm/ext/page_table.h"

/// Programs with replay and without, each in a process of its own.
namespace kernbench::testing {

/// Twice what is there, by each PE on its own shard.
inline void twice(Va va, double factor, Tl& tl) {
  const ShardView shard = tl.shard(va);
  const Shape flat{1, shard.count()};
  tl.store(shard.va, tl.math(MathOp::mul, {tl.load(shard.va, flat, DType::f16), tl.fill(flat, DType::f16, factor)}));
}

/// The same again and again.
inline void often(Va base, double factor, Tl& tl) {
  for (int i = 0; i < 4; ++i) twice(base, factor, tl);
}

inline LaunchOptions alone(std::uint16_t stream = 0) {
  LaunchOptions options;
  options.alone = true;
  options.stream = stream;
  return options;
}

inline DPPolicy rows() { return DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise); }

/// Counts what replay tells of simulated work and of repeats.
class Listener final : public ReplayRecord {
 public:
  struct Begun final : Done {
    Ps begin = 0;
    bool links = false;
  };
  explicit Listener(const Dispatcher& dispatcher) : dispatcher_(dispatcher) {}
  std::unique_ptr<Done> begin(const Batch& batch) override {
    if (batch.links && ++open_[batch.sip] > 1) ++links_met;
    auto begun = std::make_unique<Begun>();
    begun->begin = dispatcher_.now();
    begun->links = batch.links;
    return begun;
  }
  void end(int sip, Done& done) override {
    if (static_cast<Begun&>(done).links) --open_[sip];
  }
  void simulated(Work work, const Done& done, Ps from, bool) override {
    const Ps begin = static_cast<const Begun&>(done).begin;
    if (static_cast<const Begun&>(done).links) return;
    if (work.part == 1) {
      from_later += first_ < begin && from == begin ? 1 : 0;
      from_first += first_ < begin && from == first_ ? 1 : 0;
    }
    first_ = begin;
  }
  void repeated(Work work, const Batch& batch, Ps begin, Ps end) override {
    if (batch.links) {
      ++link_repeats;
      links_met += begin > call_.first || end < call_.second ? 1 : 0;
      return;
    }
    if (work.part == 0) call_ = {begin, end};
    call_ = {std::min(call_.first, begin), std::max(call_.second, end)};
    ++repeats;
    backwards += end <= begin ? 1 : 0;
  }
  std::uint64_t repeats = 0, backwards = 0;
  std::uint64_t from_later = 0, from_first = 0;  ///< of collectives to which their second member comes later
  std::uint64_t link_repeats = 0;
  std::uint64_t links_met = 0;  ///< two at once of a SIP, or not as long as the collective

 private:
  const Dispatcher& dispatcher_;
  Ps first_ = 0;
  std::map<int, int> open_;       // by SIP
  std::pair<Ps, Ps> call_{0, 0};  // the collective that is told
};

/// What a run says, as it goes through a pipe.
struct Outcome {
  std::array<Ps, 8> ends{};  ///< of the last entry of the host trace, by SIP
  std::uint64_t launches = 0, repeated_launches = 0, repeated_collectives = 0, repeated_mappings = 0, shared = 0,
                samples = 0, refused = 0, disturbed = 0, entries = 0, marked = 0, last_marked = 0;
  std::uint64_t told_repeats = 0, told_backwards = 0;  ///< to a Listener: of batches and parts of collectives
  std::uint64_t from_later = 0, from_first = 0, link_repeats = 0, links_met = 0;
  std::array<Ps, 4> last_took{};  ///< what the last entries of SIP 0 took, the last one at the end
};
static_assert(std::is_trivially_copyable_v<Outcome>);

struct How {
  topology::SystemSpec spec = machine_of(2, 2, 2);
  std::vector<std::uint32_t> alike{0, 0};
  std::uint64_t sample = 64;
  bool replay = true;
  Grade grade = Grade::fast;
  bool refreshes = false;
  ReplayRefresh said = {};  ///< what replay is told of refreshes, without any
  ReplayLong long_work = {};
};

/// As HBM3's all-bank refresh: 350 ns every 3.9 us.
inline constexpr ReplayRefresh kRefresh{3'900'000, 350'000};
inline void refresh(HbmConfig& hbm) {
  const auto clocks = [&](double ps) { return static_cast<unsigned>(ps * 1e-12 * static_cast<double>(hbm.ck_hz)); };
  hbm.refresh = RefreshPolicy::all_bank;
  hbm.timing.t_refi = clocks(kRefresh.every);
  hbm.timing.t_rfc_ab = clocks(kRefresh.takes);
}

inline Outcome outcome_of(const How& how, const std::function<void(Context&)>& program) {
  RunOptions options;
  options.data = false;
  options.fidelity = Fidelity::all(how.grade);
  MachineRun run(how.spec, options);
  Listener listener(run.machine.dispatcher());
  if (how.replay) {
    const auto map = [&](int sip, const MapEntry& entry) {
      run.machine.page_table(static_cast<std::uint16_t>(sip)).map(entry);
    };
    run.runtime.set_replay(
        {how.sample, 1, how.alike, {&listener}, {}, how.refreshes ? kRefresh : how.said, map, how.long_work});
  }
  run.runtime.spawn(program, std::tuple<>(), how.spec.sips);
  Outcome outcome;
  for (const HostTraceEntry& entry : run.runtime.host_trace()) {
    Ps& end = outcome.ends.at(static_cast<std::size_t>(entry.sip));
    end = std::max(end, entry.t_complete);
    ++outcome.entries;
    outcome.marked += entry.repeated ? 1 : 0;
    outcome.last_marked = entry.repeated ? 1 : 0;
    if (entry.sip != 0) continue;
    std::rotate(outcome.last_took.begin(), outcome.last_took.begin() + 1, outcome.last_took.end());
    outcome.last_took.back() = entry.t_complete - entry.t_submit;
  }
  if (!how.replay) return outcome;
  outcome.told_repeats = listener.repeats;
  outcome.told_backwards = listener.backwards;
  outcome.from_later = listener.from_later;
  outcome.from_first = listener.from_first;
  outcome.link_repeats = listener.link_repeats;
  outcome.links_met = listener.links_met;
  const ReplayReport report = run.runtime.replay_report();
  outcome.launches = report.launches;
  outcome.repeated_launches = report.repeated_launches;
  outcome.repeated_collectives = report.repeated_collectives;
  outcome.repeated_mappings = report.repeated_mappings;
  outcome.shared = report.shared;
  outcome.samples = report.samples;
  outcome.refused = report.refused;
  outcome.disturbed = report.disturbed;
  return outcome;
}

/// In a process of its own: SystemC elaborates once in each.
inline Outcome run_apart(const How& how, const std::function<void(Context&)>& program) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const Outcome outcome = outcome_of(how, program);
    const bool written = write(ends[1], &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Outcome outcome;
  EXPECT_EQ(read(ends[0], &outcome, sizeof outcome), static_cast<ssize_t>(sizeof outcome));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return outcome;
}

/// Ends of each SIP without replay: the least, and the largest. Where there are refreshes that is a range, since how
/// many a program meets goes by when it begins: at eighths of their interval.
struct Range {
  Outcome least, largest;
};
inline Range without_replay(How how, const std::function<void(Context&)>& program) {
  how.replay = false;
  Range range{run_apart(how, program), {}};
  range.largest = range.least;
  constexpr int kPhases = 8;
  for (int i = 1; how.refreshes && i < kPhases; ++i) {
    const auto late = static_cast<Ps>(kRefresh.every) * static_cast<Ps>(i) / kPhases;
    const Outcome later = run_apart(how, [&program, late](Context& context) {
      context.wait(context.timer(late, "late"));
      program(context);
    });
    for (std::size_t sip = 0; sip < how.spec.sips; ++sip) {
      range.least.ends[sip] = std::min(range.least.ends[sip], later.ends[sip] - late);
      range.largest.ends[sip] = std::max(range.largest.ends[sip], later.ends[sip] - late);
    }
  }
  return range;
}

/// Runs with and without; the times of each SIP differ by half a percent at most, and by a refresh where there are
/// some.
inline Outcome replayed(How how, const std::function<void(Context&)>& program) {
  if (how.refreshes) refresh(how.spec.cube.hbm);
  const Outcome with = run_apart(how, program);
  const auto [least, largest] = without_replay(how, program);
  for (std::size_t sip = 0; sip < how.spec.sips; ++sip) {
    const auto end = static_cast<double>(with.ends[sip]), low = static_cast<double>(least.ends[sip]),
               high = static_cast<double>(largest.ends[sip]);
    const double besides = how.refreshes ? kRefresh.takes : 0;
    EXPECT_GT(low, 0) << "SIP " << sip << " did nothing";
    EXPECT_GE(end, low - 0.005 * low - besides) << "SIP " << sip;
    EXPECT_LE(end, high + 0.005 * high + besides) << "SIP " << sip;
  }
  if (std::getenv("KERNBENCH_RANDOM_PROGRAMS") != nullptr) {
    const auto last = [](const Outcome& outcome) {
      return static_cast<double>(*std::max_element(outcome.ends.begin(), outcome.ends.end()));
    };
    std::printf("%+.4f %% to %+.4f %% %llu of %llu repeated\n", 100 * (last(with) / last(largest) - 1),
                100 * (last(with) / last(least) - 1), static_cast<unsigned long long>(with.marked),
                static_cast<unsigned long long>(with.entries));
    std::fflush(stdout);
  }
  EXPECT_EQ(with.entries, least.entries) << "the host trace is as complete";
  EXPECT_EQ(with.marked, with.repeated_launches + with.repeated_collectives);
  return with;
}

inline constexpr std::int64_t kColumns = 32 * 1024;
inline constexpr std::uint64_t kFew = 32;  ///< occurrences that are more than enough for work that is always the same

}  // namespace kernbench::testing
