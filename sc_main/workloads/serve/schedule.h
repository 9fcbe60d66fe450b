#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "sc_main/workloads/serve/requests.h"

namespace kernbench::serve {

/// What the machine does in one go: a whole prompt, or one token more for each running sequence.
struct Step {
  bool prefill = false;
  std::int64_t batch = 1;  ///< sequences
  double positions = 0;    ///< prefill: of the prompt. Decode: that a sequence has before, mean over the batch
};

/// What a step takes.
struct Cost {
  double time = 0;   ///< ps
  double flops = 0;  ///< of one rank's launches: additions and multiplications
  double bytes = 0;  ///< likewise: that memories have to give or take at least
};

struct Limits {
  std::int64_t batch = 1;      ///< sequences that run at once
  std::int64_t positions = 0;  ///< that all their KV caches hold together
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
  Cost cost;
};

struct Schedule {
  std::vector<Served> served;
  std::vector<Taken> steps;
  Ps end = 0;  ///< last token of all
};

/// Continuous batching, the simplest: first come first served, prefill before decode.
///
/// Whenever a step ends, the longest waiting request that has arrived is admitted if `limits.batch` leaves a place and
/// the caches have room for its prompt and output beside those of all that run; nobody overtakes it. Its whole prompt
/// is the next step, which ends with its first token. If nobody is admitted, one step gives each running sequence a
/// token. A request leaves with its last one. If nothing runs, time passes until the next arrives.
/// REQUIRES: check_room.
Schedule serve(const std::vector<Request>& requests, const Limits& limits,
               const std::function<Cost(const Step&)>& cost_of);

/// Throws std::invalid_argument naming the first request that does not fit into the caches alone.
void check_room(const std::vector<Request>& requests, const Limits& limits);

}  // namespace kernbench::serve
