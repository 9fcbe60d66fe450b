#include "ccl/select/candidates.h"

#include <algorithm>
#include <tuple>

namespace kernbench::ccl {
namespace {

/// Models are not finer than this: of two plans nearer to each other, the shorter one is not known.
constexpr double kTie = 1.02;

}  // namespace

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
  const Candidate best = candidates.front();
  if (!best.unfit.empty() || !best.known || best.measured || !best.periodic) return;
  const auto plain = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.unfit.empty() && !c.measured && c.known && !c.periodic && c.ns <= best.ns * kTie;
  });
  if (plain != candidates.end()) std::rotate(candidates.begin(), plain, std::next(plain));
}

void leave_out_little(std::vector<Candidate>& candidates) {
  const auto known = [](const Candidate& c) { return c.unfit.empty() && c.known && c.little.empty(); };
  if (std::none_of(candidates.begin(), candidates.end(), known)) return;
  for (Candidate& c : candidates) {
    if (c.unfit.empty() && !c.little.empty() && !c.measured) c.unfit = c.little + ", which is for little data";
  }
}

}  // namespace kernbench::ccl
