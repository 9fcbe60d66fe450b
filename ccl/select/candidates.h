#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ccl/contract/plan_request.h"

namespace kernbench::ccl {

class GroupAlgorithm;

/// An algorithm that might do it.
struct Candidate {
  std::string name;
  std::shared_ptr<const GroupAlgorithm> algorithm{};  ///< null: it cannot be loaded, or is for other groups
  double ns = 0;                                      ///< what it should take
  bool known = false;                                 ///< `ns` is: a call of one rank may well take 0
  bool measured = false;                              ///< from a tuned table
  bool at_least = false;  ///< it takes `ns` or longer, which already is too long: it was not estimated
  std::string unfit;      ///< why it cannot, to be read behind its name; empty: it can
  bool periodic = false;  ///< a list of rounds that overlap
  std::string little;     ///< why the algorithm is for little data only; empty: it is for any
  Plan plan{};            ///< made for the estimate, while a choice is made

  bool usable() const { return unfit.empty() && known; }
};

/// The best first: known before unknown before unfit, then by time, then `preset`, then by name.
///
/// Where estimates decide, what is for little data is out if anything else is known. Rounds of bundles hand all data to
/// few PEs and so to one connection of a bundle of UCIe links, which estimates do not know (fc8, reduce_scatter of 16
/// MiB: 17.4 us expected of `funnel`, 19.2 taken, 17.7 by `direct`). What runs PE to PE sends in no order: messages
/// that stand in line keep others from links that are idle (fc8, reduce_scatter of 16 MiB: 0.62 of the bound, by
/// `direct` 0.92).
///
/// Among estimates within 2 % of the first, that of a plain list goes first: its node runs ahead of what it waits for,
/// where a periodic list keeps the assumed rate (two SIPs, 64 MiB: 0.97 of the bound against 0.80).
void rank_candidates(std::vector<Candidate>& candidates, const std::string& preset);

}  // namespace kernbench::ccl
