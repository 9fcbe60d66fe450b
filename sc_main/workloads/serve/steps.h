#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "sc_main/workloads/serve/schedule.h"

namespace kernbench::serve {

/// A part of a step that the machine can be asked for: whole numbers.
struct Part {
  enum class Kind {
    embedding,  ///< of `size` tokens
    dense,      ///< all of the layers but the middle of the attention: goes by the number of tokens alone
    prompt,     ///< that middle (rotary embedding, scores), of `size` tokens behind `past` others
    decode,     ///< the same of `size` sequences with a token each behind `past` others
    logits,     ///< of `size` rows
    send        ///< `size` rows from a stage to the next
  };
  Kind kind = Kind::dense;
  std::int64_t size = 0, past = 0;
  friend bool operator<(const Part& a, const Part& b) {
    return std::tie(a.kind, a.size, a.past) < std::tie(b.kind, b.size, b.past);
  }
};

/// What steps can have, beforehand.
struct StepRange {
  std::int64_t tokens = 1;     ///< of a step, at most
  std::int64_t positions = 1;  ///< of a sequence, at most
  bool ends = true;            ///< embedding and logits
  bool sends = false;          ///< there are stages
  std::int64_t pes = 0;        ///< Limits::pes
  std::int64_t heads = 1;      ///< Limits::heads
};

/// What steps cost, out of parts that are simulated when first needed, few of them.
///
/// Launches of a layer follow each other, so that a step takes what its parts take. A part's size is simulated at 1, 2,
/// 3, 4, 6, 8, ..., 64, 128, 256, ... and at the largest that can come; between two of these cost is linear, that of
/// prompts' attention for each token (it has a constant, a part in proportion and one to the square, of which the last
/// two are exact). Likewise positions: 0, 64, 128, ... Decode is simulated at sizes, too, where its PEs come to keep
/// more sequences, or a sequence has fewer PEs (tp::CacheLayout): what the fullest PE keeps leaps
/// there, while these are few.
class StepCosts {
 public:
  using Measure = std::function<Cost(const Part&)>;
  StepCosts(const StepRange& range, Measure measure) : range_(range), measure_(std::move(measure)) {}
  StepCost of(const Step& step);
  /// Every part as it is, but positions in whole numbers.
  StepCost exactly(const Step& step);
  /// Parts that were simulated, for `of`.
  std::size_t simulated() const { return known_.size(); }

 private:
  using CostOf = std::function<Cost(Part::Kind, double size, double past)>;
  StepCost sum(const Step& step, const CostOf& cost_of) const;
  const Cost& at(const Part& part);
  Cost between(Part::Kind kind, double size, double past);
  /// Simulated sizes on both sides of one.
  std::pair<std::int64_t, std::int64_t> sides_of(Part::Kind kind, double size) const;
  Cost along(Part::Kind kind, std::int64_t size, double past);

  const StepRange range_;
  const Measure measure_;
  std::map<Part, Cost> known_;
};

}  // namespace kernbench::serve
