#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "tlm/base/time.h"

namespace kernbench {

/// When things of a launch happen, from its submission on.
struct ReplayTimes {
  Ps start = 0, end = 0;  ///< of its kernels: first, last
  Ps completed = 0;       ///< the host knows
};

/// Kinds of work that differ in the numbers alone that the work depends on (LaunchOptions::work).
struct ReplayFamily {
  std::uint64_t samples = 0;  ///< of all of them
};

/// By how much occurrences of kinds of work differ, as a share of their time.
struct ReplayScatter {
  double squares = 0, weight = 0;  ///< ps^2, sums: of deviations; of means, each as often as it has degrees of freedom
  ReplayScatter& operator+=(const ReplayScatter& other) {
    squares += other.squares;
    weight += other.weight;
    return *this;
  }
  ReplayScatter operator-() const { return {-squares, -weight}; }
  /// Standard deviation, of 1.
  double share() const;
};

/// By how many standard deviations the last of `count` is later than their mean.
double last_of(std::uint64_t count);

/// What is known of one kind of work: how long its occurrences take that were simulated, and whether that says enough.
///
/// The first occurrence of short work finds rows closed and other things that later ones find open: it is not in the
/// mean. Refreshes make equal work differ, so that repeats take the mean, and what it is off adds up over them: error()
/// says by how much, out of what occurrences differed by and, as few of them may not show it, of what refreshes can
/// make them differ by. Replay simulates another one where that is too much of the run, up to `kMost`. Some repeats are
/// simulated as well: they correct the mean, and where they lie further from it than the spread of the others explains,
/// and by more than `kTolerance`, the kind is refused: simulated from then on.
class ReplayKind {
 public:
  static constexpr unsigned kLeast = 4, kMost = 1024;
  static constexpr unsigned kTelling =
      12;                               ///< of so many the deviation tells enough to count at once (Replay::learned)
  static constexpr unsigned kTold = 4;  ///< so many kinds of long work say by how much occurrences differ
  /// So many samples of a family that agree make further ones rarer by as much.
  static constexpr std::uint64_t kManySamples = 16;
  /// What refreshes can make occurrences differ by says as much as so many occurrences.
  static constexpr double kOccurrencesOfRefresh = 4;
  static constexpr double kTolerance = 0.005;  ///< spec: tensor_parallel.md, "Whole models in seconds"

  /// `family`: null: it is one of its own. `id`: of all kinds.
  ReplayKind(std::string name, std::uint64_t number, const ReplayRefresh& refresh = {},
             std::shared_ptr<ReplayFamily> family = nullptr, std::size_t id = 0, const ReplayLong& long_work = {})
      : name_(std::move(name)),
        id_(id),
        number_(number),
        refresh_(refresh),
        long_work_(long_work),
        family_(family ? std::move(family) : std::make_shared<ReplayFamily>()) {}

  const std::string& name() const { return name_; }
  std::size_t id() const { return id_; }
  std::uint64_t number() const { return number_; }  ///< in the order in which kinds were made, from 1 on
  /// Its work is no launch: it is there before the program's time begins, and touches no memory.
  bool is_set_up() const { return number_ == 0; }

  /// An occurrence that was simulated, `times` of each of its messages. Of its time `waited` ps went before it began:
  /// work that waits for others is not long by that, nor by being `launches` in a row. True: those before it count no
  /// more.
  bool add(const std::vector<ReplayTimes>& times, Ps waited = 0, std::size_t launches = 1);
  /// Repeats may take the mean. `twice`: of long work, only if two occurrences are known.
  bool known(bool twice = false) const {
    const std::uint64_t least_long = std::max<std::uint64_t>(long_work_.least, twice ? 2 : 1);
    return simulated_ >= (is_long() ? least_long : kLeast) && !refused_;
  }
  /// It must be simulated from now on.
  void refuse() { refused_ = true; }
  bool refused() const { return refused_; }
  std::vector<ReplayTimes> mean() const;
  bool is_long() const { return long_; }      ///< as its first occurrence was
  double mean_time() const { return mean_; }  ///< ps, from the first submission to the last completion

  /// A repeat that was simulated as well; add() is called, too. Refuses the kind if it differs too much.
  void check(double took);
  std::uint64_t next_repeat() { return repeats_++; }
  std::uint64_t repeats() const { return repeats_; }  ///< those of equal SIPs at once are one
  /// Repeats of equal SIPs at once are one: a sample is all of theirs, too, so that they are drawn together.
  void under_way(Ps until) { until_ = std::max(until_, until); }
  Ps under_way_until() const { return until_; }
  /// So many more take the mean.
  void repeat(std::uint64_t count) { of_mean_ += count; }
  /// So many equal SIPs did it at once.
  void at_once(std::uint64_t sips) { width_ = std::max(width_, sips); }
  std::uint64_t width() const { return width_; }
  /// What its occurrences differ by beside refreshes, which equal SIPs meet together.
  ReplayScatter scatter() const;
  /// Standard error of what the repeats of the mean have taken in all, ps.
  double error() const;

  std::uint64_t simulated() const { return simulated_; }
  std::uint64_t samples() const { return samples_; }
  bool family_agrees() const { return family_->samples >= kManySamples; }
  double sampled_time() const { return sampled_; }    ///< ps, sum
  double expected_time() const { return expected_; }  ///< ps: what repeats would have taken in their place
  double difference() const;                          ///< of the two, as a share; 0 without samples

 private:
  double seen() const;      ///< how occurrences have differed, ps^2
  double variance() const;  ///< of what occurrences take, ps^2: of few, also what refreshes may make

  struct Sums {
    double start = 0, end = 0, completed = 0;
  };
  const std::string name_;
  const std::size_t id_;
  const std::uint64_t number_;
  const ReplayRefresh refresh_;
  const ReplayLong long_work_;
  const std::shared_ptr<ReplayFamily> family_;
  std::vector<Sums> sums_;     // by message
  Ps until_ = 0;               // a repeat of the mean is under way
  std::uint64_t width_ = 1;    // at_once()
  std::uint64_t in_mean_ = 0;  // occurrences: all but the first, where that is short
  std::uint64_t simulated_ = 0, repeats_ = 0, of_mean_ = 0, samples_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford
  double sampled_ = 0, expected_ = 0;
  bool refused_ = false, long_ = false;
};

}  // namespace kernbench
