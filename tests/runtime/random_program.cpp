#include "tests/runtime/random_program.h"

namespace kernbench::testing {

namespace {
class Generator {
 public:
  Generator(std::uint64_t seed, int ranks) : random_(seed) {
    program_.ranks = ranks;
    const auto n = static_cast<std::size_t>(ranks);
    program_.steps.resize(n);
    program_.tensors.resize(n);
    values_.resize(n);
    launches_.assign(n, 0);
    for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) {
      const RandomProgram::Spec shared = spec();
      for (std::size_t r = 0; r < n; ++r) {
        program_.tensors[r].push_back(t < RandomProgram::kShared ? shared : spec());
        values_[r].push_back(std::vector<double>(count(r, t), start(r, t)));
      }
    }
  }

  RandomProgram make(bool may_fail) {
    const int segments = pick(2, 5);
    const int fails_in = may_fail ? pick(0, segments - 1) : -1;
    for (int segment = 0; segment < segments; ++segment) {
      for (std::size_t r = 0; r < values_.size(); ++r) {
        for (int i = pick(0, 5); i > 0; --i) local(r);
      }
      if (segment == fails_in) {
        program_.fails = pick(0, program_.ranks - 1);
        const auto r = static_cast<std::size_t>(program_.fails);
        program_.steps[r].emplace_back(Step::Kind::fail);
        return program_;
      }
      together();
    }
    for (std::size_t r = 0; r < values_.size(); ++r) {
      for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) read(r, static_cast<int>(r), t);
    }
    return program_;
  }

  static double start(std::size_t rank, std::size_t tensor) {
    return static_cast<double>(rank + 1) + 4 * static_cast<double>(tensor);
  }

 private:
  int pick(int low, int high) {  // the same on every platform
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  RandomProgram::Spec spec() { return {{pick(1, 3), pick(1, 24)}, pick(0, 2)}; }
  std::size_t count(std::size_t r, std::size_t t) const {
    return static_cast<std::size_t>(program_.tensors[r][t].shape.count());
  }
  void read(std::size_t reader, int owner, std::size_t t) {
    Step step{Step::Kind::read, t, static_cast<std::size_t>(pick(0, 3)), owner};
    step.expected = values_[static_cast<std::size_t>(owner)][t];
    program_.steps[reader].push_back(std::move(step));
  }

  void local(std::size_t r) {
    const auto t = static_cast<std::size_t>(pick(0, RandomProgram::kTensors - 1));
    std::vector<Step>& steps = program_.steps[r];
    switch (pick(0, 9)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        Step step{pick(0, 2) == 0 ? Step::Kind::launch : Step::Kind::launch_async, t};
        step.scale = pick(0, 1) == 0 ? 1 : -1;
        step.shift = pick(-3, 3);
        for (double& x : values_[r][t]) x = step.scale * x + step.shift;
        ++launches_[r];
        steps.push_back(step);
        return;
      }
      case 4:
        if (launches_[r] == 0) return;
        steps.emplace_back(Step::Kind::wait, 0, static_cast<std::size_t>(pick(0, launches_[r] - 1)));
        return;
      case 5:
      case 6:
        read(r, static_cast<int>(r), t);
        return;
      case 7: {
        const auto from = static_cast<std::size_t>(pick(0, RandomProgram::kTensors - 1));
        if (from == t || program_.tensors[r][from].shape != program_.tensors[r][t].shape) return;
        values_[r][t] = values_[r][from];
        steps.emplace_back(Step::Kind::copy, t, from);
        return;
      }
      case 8: {
        Step step{Step::Kind::renew, t};
        step.shift = pick(-9, 9);
        values_[r][t].assign(values_[r][t].size(), step.shift);
        steps.push_back(step);
        return;
      }
      default:
        steps.emplace_back(Step::Kind::fault);
    }
  }

  /// What all ranks do at one place of the program.
  void together() {
    const std::size_t n = values_.size();
    const int what = pick(0, 3);
    if (what < 2) {
      const auto t = static_cast<std::size_t>(pick(0, RandomProgram::kShared - 1));
      std::vector<double> sum(count(0, t), 0);
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values_[r][t][i];
      }
      for (std::size_t r = 0; r < n; ++r) {
        values_[r][t] = sum;
        program_.steps[r].emplace_back(what == 0 ? Step::Kind::reduce : Step::Kind::reduce_async, t);
      }
      return;
    }
    for (std::size_t r = 0; r < n; ++r) program_.steps[r].emplace_back(Step::Kind::barrier);
    if (what == 2) return;
    const auto t = static_cast<std::size_t>(pick(0, RandomProgram::kTensors - 1));
    for (std::size_t r = 0; r < n; ++r) read(r, pick(0, static_cast<int>(n) - 1), t);
    for (std::size_t r = 0; r < n; ++r) program_.steps[r].emplace_back(Step::Kind::barrier);
  }

  std::mt19937_64 random_;
  RandomProgram program_;
  std::vector<std::vector<std::vector<double>>> values_;  // by rank and tensor
  std::vector<int> launches_;
};
}  // namespace

RandomProgram make_random_program(std::uint64_t seed, int ranks, bool may_fail) {
  return Generator(seed, ranks).make(may_fail);
}

}  // namespace kernbench::testing
