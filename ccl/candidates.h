#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kernbench::ccl {

/// An algorithm that might do it.
struct Candidate {
  std::string name;
  double ns = 0;           ///< what it should take
  bool known = false;      ///< `ns` is: a call of one rank may well take 0
  bool measured = false;   ///< from a tuned table
  bool between = false;    ///< measured, but at sizes on both sides of this one
  bool rehearsed = false;  ///< `ns` is that of a rehearsal
  bool tried = false;      ///< `ns` is what it took in a copy of the machine
  bool at_least = false;   ///< it takes `ns` or longer, which already is too long: it was not estimated
  std::string unfit;       ///< why it cannot, to be read behind its name; empty: it can
  bool periodic = false;   ///< a list of rounds that overlap
  bool bundled = false;    ///< several rounds of bundles (schedule.h)
  bool unordered = false;  ///< runs PE to PE, with more data than a rehearsal is right for
  double estimate_ns = 0;  ///< by its own model; 0: none was asked for, or one rank has nothing to do
  double ops = 0;          ///< of its list on all lanes; 0: a kernel
};

/// What came of trying an algorithm out.
struct Tried {
  bool in_copy = false;      ///< this is the copy of the process in which it is tried: it is to be taken
  std::optional<double> ns;  ///< what the call took there; nothing: it did not end
  bool too_long = false;     ///< it might have, had it been given the time
};

/// The best first: known before unknown before unfit, then by time, then `preset`, then by name.
void sort_by_time(std::vector<Candidate>& candidates, const std::string& preset);

/// Among estimates as good as the first, that of a plain list goes first: its node runs ahead of what it waits for,
/// where a periodic list keeps the assumed pace (two SIPs, 64 MiB: 0.97 of the bound against 0.80). Rehearsals know.
void prefer_plain(std::vector<Candidate>& candidates);

/// Of rehearsals that are equal, that of the fewest ops goes first, and between as many the plans' own estimates decide
/// (the same messages in other order: an all_gather of 64 MiB on fc8 took 0.96 or 0.94 of the bound). A periodic list
/// does not go before a plain one by its ops: it runs at its period, however few they are.
void prefer_few_ops(std::vector<Candidate>& candidates);

/// Where estimates decide, several rounds of bundles are out if anything else is known: bundles hand all data to few
/// PEs and so to one connection of a bundle of UCIe links, which estimates do not know (fc8, reduce_scatter of 16
/// MiB: 17.4 us expected of `funnel`, 19.2 taken, 17.7 by `direct`).
void leave_out_bundled(std::vector<Candidate>& candidates);

/// What rehearsals are not right for, and what was not tried, is out if anything else is known.
void leave_out_unordered(std::vector<Candidate>& candidates);

/// Tries those near the best out, the best first. They go before the others, by what they took; in a copy of the
/// process the one that is tried there goes first. When one takes too long to try, no more are tried, and it goes by
/// what was expected of it. REQUIRES: the best is first.
void try_near(std::vector<Candidate>& candidates, const std::function<Tried()>& try_out);

}  // namespace kernbench::ccl
