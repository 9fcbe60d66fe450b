#include "ccl/candidates.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace kernbench::ccl {
namespace {

/// Models are not finer than this: of two plans nearer to each other, the shorter one is not known.
constexpr double kTie = 1.02;

/// Rehearsals whose times lie no farther apart are of equals.   assumed: a tenth of what they are off
constexpr double kEqual = 1.005;

/// Nothing is tried out unless a second one is expected within this of the first.   assumed: rehearsals were too short
/// by up to 1.39, and by less than 1.05 for most
constexpr double kWorthATrial = 1.25;

/// Where those that were tried took what was expected of them, what is expected within this of the best is tried, too.
/// assumed: they are seldom too long by more than 1.15
constexpr double kWorthTrying = 1.1;

/// Tried out at most: equals are many where operations are simple.
constexpr std::ptrdiff_t kMostTried = 4;

bool fits(const Candidate& c) { return c.unfit.empty() && c.known; }

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
  if (!best.unfit.empty() || !best.known || best.measured || best.rehearsed || !best.periodic) return;
  const auto plain = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.unfit.empty() && !c.measured && !c.rehearsed && c.known && !c.periodic && c.ns <= best.ns * kTie;
  });
  if (plain != candidates.end()) std::rotate(candidates.begin(), plain, std::next(plain));
}

void leave_out_bundled(std::vector<Candidate>& candidates) {
  const auto known = [](const Candidate& c) { return c.unfit.empty() && c.known && !c.bundled; };
  if (std::none_of(candidates.begin(), candidates.end(), known)) return;
  for (Candidate& c : candidates) {
    if (c.unfit.empty() && c.bundled && !c.measured && !c.rehearsed)
      c.unfit = "sends bundles, which are for little data";
  }
}

void prefer_few_ops(std::vector<Candidate>& candidates) {
  const bool periodic = !candidates.empty() && candidates.front().periodic;
  const auto known = [&](const Candidate& c) {
    return c.unfit.empty() && c.rehearsed && c.estimate_ns > 0 && (periodic || !c.periodic);
  };
  if (candidates.empty() || !known(candidates.front())) return;
  const double most = candidates.front().ns * kEqual;
  auto best = candidates.begin();
  for (auto c = candidates.begin(); c != candidates.end(); ++c) {
    if (known(*c) && c->ns <= most && std::pair(c->ops, c->estimate_ns) < std::pair(best->ops, best->estimate_ns))
      best = c;
  }
  std::rotate(candidates.begin(), best, std::next(best));
}

void leave_out_unordered(std::vector<Candidate>& candidates) {
  if (std::none_of(candidates.begin(), candidates.end(), fits)) return;
  for (Candidate& c : candidates) {
    if (c.unfit.empty() && c.unordered && !c.tried) c.unfit = "sends in no order, which is for little data here";
  }
}

void try_near(std::vector<Candidate>& candidates, const std::function<Tried()>& try_out) {
  if (candidates.empty() || !fits(candidates.front())) return;
  const Candidate& first = candidates.front();
  if (first.at_least || first.ns == 0) return;  // ns is 0: nothing happens in it
  const bool exact = first.measured && !first.between;
  const bool alone = candidates.size() < 2 || !fits(candidates[1]) || candidates[1].ns > first.ns * kWorthATrial;
  if (!first.unordered && (exact || alone)) return;
  double best = 0, off = 0;  // off: by how much those that were tried missed what was expected
  std::string too_long;      // the one that was
  for (auto c = candidates.begin(); c != candidates.end() && fits(*c) && !c->at_least; ++c) {
    if (best > 0 && c->ns > best * (kWorthTrying + 2 * off)) break;
    if (c - candidates.begin() >= kMostTried) break;
    const Tried tried = try_out();
    if (tried.in_copy) {
      std::rotate(candidates.begin(), c, std::next(c));
      return;
    }
    if (tried.too_long) {
      too_long = c->name;
      break;
    }
    if (!tried.ns) continue;
    off = std::max(off, std::abs(*tried.ns / c->ns - 1));
    c->ns = *tried.ns;
    c->tried = true;
    best = best > 0 ? std::min(best, c->ns) : c->ns;
  }
  const auto rank = [&](const Candidate& c) {
    const bool counts = c.tried || c.name == too_long;
    return std::pair(!counts, counts ? c.ns : 0);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  leave_out_unordered(candidates);
  std::stable_partition(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.unfit.empty(); });
}

}  // namespace kernbench::ccl
