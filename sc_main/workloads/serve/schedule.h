#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sc_main/workloads/machine_work.h"
#include "sc_main/workloads/serve/requests.h"

namespace kernbench::serve {

/// A part of a prompt, or all of it: so many tokens behind so many others.
struct Chunk {
  std::int64_t tokens = 0, past = 0;
};

/// What a model does in one go: parts of prompts, and one token more for each sequence whose prompt is done.
struct Step {
  std::vector<Chunk> prompts;
  std::int64_t batch = 0;  ///< sequences that get a token
  double positions = 0;    ///< that such a sequence has before, mean over them: by these go bytes and energy
  double fullest = 0;      ///< by these goes the time: Limits::fullest
  std::int64_t ends = 0;   ///< prompts that end with the step, which gives their first tokens

  std::int64_t prompt_tokens() const;
  std::int64_t tokens() const { return prompt_tokens() + batch; }
};

/// What a part of a step takes.
struct Cost {
  double time = 0;             ///< ps
  double flops = 0;            ///< of a rank's launches, mean over them: additions and multiplications
  double bytes = 0;            ///< likewise: that memories have to give or take at least
  double pj = 0;               ///< of the machine, but for what it draws all the time
  MachineWork::Shares busy{};  ///< ps that the machine's parts would take for their work at the most that they can
  Cost& operator+=(const Cost& other);
  /// Each figure of both.
  static Cost joined(const Cost& a, const Cost& b, const std::function<double(double, double)>& join);
};

/// What a step takes, by what the stages of a pipeline share.
struct StepCost {
  Cost layers;       ///< of all stages, which share them equally
  Cost embedding;    ///< of the first stage
  Cost logits;       ///< of the last one
  Cost send;         ///< from a stage to the next
  Cost all() const;  ///< but for sends
};

struct Limits {
  std::int64_t batch = 1;      ///< sequences that a replica runs at once
  std::int64_t positions = 0;  ///< that all KV caches of a replica hold together
  std::int64_t chunk = 0;      ///< tokens of a step, at most, at least `batch`; 0: whole prompts, before decode
  std::int64_t replicas = 1;   ///< of the model, with machines of their own
  std::int64_t stages = 1;     ///< of each, a pipeline
  std::int64_t pes = 0;        ///< that the caches of a rank spread over (tp::CacheLayout); 0: enough
  std::int64_t heads = 1;      ///< key/value heads of a rank
  std::int64_t granule = 1;    ///< positions that a sequence's cache grows by: a page on each of its PEs

  /// Positions that a request takes, from its admission on: of prompt and output, in whole granules.
  std::int64_t taken_by(const Request& request) const;
  /// Positions that each of as many equal sequences would have, if their fullest PE had as many as that of these. Every
  /// PE reads its own, and the last one ends a step: where sequences have PEs of their own that is the longest one;
  /// where there are more than PEs it is what a PE keeps of all its sequences, divided by the most that a PE keeps.
  double fullest(const std::vector<std::int64_t>& lengths) const;
};

/// What became of a request; the same order as the requests.
struct Served {
  Ps first = 0;  ///< first token
  Ps last = 0;   ///< last token
};

/// A step that was taken.
struct Taken {
  Step step;
  Ps begin = 0, end = 0;
  std::int64_t waiting = 0;  ///< requests that have arrived and do not run
  std::int64_t replica = 0;
  StepCost cost;
};

struct Schedule {
  std::vector<Served> served;
  std::vector<Taken> steps;
  Ps end = 0;  ///< last token of all
};

/// Continuous batching, first come first served, one queue before all replicas.
///
/// A replica admits the longest waiting request whenever a step is to begin, if `limits.batch` leaves a place and the
/// caches have room for its prompt and output (taken_by) beside those of all that run; nobody overtakes it. With chunk
/// 0 its whole prompt is the next step, and if nobody is admitted, a step gives each running sequence a token (prefill
/// first). Otherwise a step gives each sequence whose prompt is done a token, and fills up to `chunk` tokens with
/// prompts, the oldest first, in parts where they are longer (chunked). A prompt's last part gives the first token. A
/// request leaves with its last one. If nothing runs, time passes until the next arrives.
///
/// A pipeline of P stages has P flows of steps with `batch / P` places each: the steps of a flow follow each other,
/// those of different flows are in different stages at once. A stage takes them in the order of their beginning. Of
/// replicas that could begin, the one that can first does; of several the one that has work, then the first. REQUIRES:
/// check_room; `stages` divides `batch`.
Schedule serve(const std::vector<Request>& requests, const Limits& limits,
               const std::function<StepCost(const Step&)>& cost_of);

/// Number, from 0, of the longest request, if it does not fit into the caches alone; otherwise nothing.
std::optional<std::size_t> without_room(const std::vector<Request>& requests, const Limits& limits);

}  // namespace kernbench::serve
