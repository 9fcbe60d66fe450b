#include "ccl/select/candidates.h"

#include <algorithm>
#include <tuple>

namespace kernbench::ccl {
namespace {

/// Models are not finer than this: of two plans nearer to each other, the shorter one is not known.
constexpr double kTie = 1.02;

void leave_out_little(std::vector<Candidate>& candidates) {
  const auto any = [](const Candidate& c) { return c.usable() && c.little.empty(); };
  if (std::none_of(candidates.begin(), candidates.end(), any)) return;
  for (Candidate& c : candidates) {
    if (c.unfit.empty() && !c.little.empty()) c.unfit = c.little + ", which is for little data";
  }
}

void sort_by_time(std::vector<Candidate>& candidates, const std::string& preset) {
  const auto rank = [&](const Candidate& c) {
    const int kind = !c.unfit.empty() ? 2 : !c.known ? 1 : 0;
    return std::tuple(kind, c.ns, c.name != preset, c.name);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
}

void prefer_plain(std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  const Candidate& best = candidates.front();
  if (!best.usable() || best.measured || !best.periodic) return;
  const double most = best.ns * kTie;
  const auto plain = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.usable() && !c.measured && !c.periodic && c.ns <= most;
  });
  if (plain != candidates.end()) std::rotate(candidates.begin(), plain, std::next(plain));
}

}  // namespace

void rank_candidates(std::vector<Candidate>& candidates, const std::string& preset) {
  leave_out_little(candidates);
  sort_by_time(candidates, preset);
  prefer_plain(candidates);
}

}  // namespace kernbench::ccl
