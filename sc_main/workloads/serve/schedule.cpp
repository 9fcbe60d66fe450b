#include "sc_main/workloads/serve/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/tp/kv_cache.h"

namespace kernbench::serve {

std::int64_t Step::prompt_tokens() const {
  std::int64_t sum = 0;
  for (const Chunk& chunk : prompts) sum += chunk.tokens;
  return sum;
}

Cost Cost::joined(const Cost& a, const Cost& b, const std::function<double(double, double)>& join) {
  Cost cost{join(a.time, b.time), join(a.flops, b.flops), join(a.bytes, b.bytes), join(a.pj, b.pj), {}};
  for (std::size_t part = 0; part < cost.busy.size(); ++part) cost.busy[part] = join(a.busy[part], b.busy[part]);
  return cost;
}

Cost& Cost::operator+=(const Cost& other) {
  return *this = joined(*this, other, [](double mine, double more) { return mine + more; });
}

Cost StepCost::all() const {
  Cost sum = layers;
  sum += embedding;
  sum += logits;
  return sum;
}

double Limits::fullest(const std::vector<std::int64_t>& lengths) const {
  const std::int64_t sequences = static_cast<std::int64_t>(lengths.size()) * heads;
  if (sequences == 0) return 0;
  if (pes == 0 || sequences <= pes) return static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
  const tp::CacheLayout layout = tp::cache_layout(sequences, pes, 1, 1);
  std::vector<std::int64_t> kept(static_cast<std::size_t>(pes));
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    kept[static_cast<std::size_t>(layout.pe_of(sequence, 0))] += lengths[static_cast<std::size_t>(sequence / heads)];
  }
  return static_cast<double>(*std::max_element(kept.begin(), kept.end())) / static_cast<double>(layout.of_each_pe);
}

std::int64_t Limits::taken_by(const Request& request) const {
  return (request.prompt + request.output + granule - 1) / granule * granule;
}

std::optional<std::size_t> without_room(const std::vector<Request>& requests, const Limits& limits) {
  const auto longest = std::max_element(requests.begin(), requests.end(), [](const Request& one, const Request& other) {
    return one.prompt + one.output < other.prompt + other.output;
  });
  if (longest == requests.end() || limits.taken_by(*longest) <= limits.positions) return std::nullopt;
  return static_cast<std::size_t>(longest - requests.begin());
}

namespace {
/// A sequence that runs.
struct Running {
  std::size_t request;
  std::int64_t positions;  ///< in its cache
  std::int64_t prompt;     ///< tokens of it to come
  std::int64_t left;       ///< tokens to give
  std::int64_t taken = 0;  ///< tokens in the step that is under way
};

struct Replica {
  std::int64_t held = 0;  ///< positions, of all that run
  std::vector<Ps> free;   ///< by stage: from when on
};

/// Steps that follow each other.
struct Flow {
  std::size_t replica;
  std::vector<Running> running;
  Ps ready = 0;            ///< the last step's end, or when to look again
  bool under_way = false;  ///< a step whose end has not been seen
  bool done = false;
};

class Server {
 public:
  Server(const std::vector<Request>& requests, const Limits& limits,
         const std::function<StepCost(const Step&)>& cost_of)
      : requests_(requests),
        limits_(limits),
        cost_of_(cost_of),
        places_(static_cast<std::size_t>(limits.batch / limits.stages)),
        replicas_(static_cast<std::size_t>(limits.replicas)) {
    schedule_.served.resize(requests.size());
    for (Replica& replica : replicas_) replica.free.resize(static_cast<std::size_t>(limits.stages));
    for (std::size_t stage = 0; stage < static_cast<std::size_t>(limits.stages); ++stage) {
      for (std::size_t replica = 0; replica < replicas_.size(); ++replica) flows_.push_back({replica, {}});
    }
  }

  Schedule run() {
    while (Flow* flow = next()) begin(*flow, begin_of(*flow));
    return std::move(schedule_);
  }

 private:
  Ps begin_of(const Flow& flow) const { return std::max(flow.ready, replicas_[flow.replica].free.front()); }

  /// The flow that can begin first, after the ends of all steps until then.
  Flow* next() {
    const auto rank = [this](const Flow& flow) { return std::pair(begin_of(flow), flow.running.empty()); };
    for (;;) {
      Flow* first = nullptr;
      for (Flow& flow : flows_) {
        if (!flow.done && (first == nullptr || rank(flow) < rank(*first))) first = &flow;
      }
      if (first == nullptr) return nullptr;
      const Ps now = begin_of(*first);
      bool ended = false;
      for (Flow& flow : flows_) {
        if (!flow.under_way || flow.ready > now) continue;
        end(flow);
        ended = true;
      }
      if (!ended) return first;
    }
  }

  void end(Flow& flow) {
    flow.under_way = false;
    for (Running& one : flow.running) {
      if (one.taken == 0) continue;
      const bool prompted = one.prompt > 0;
      one.positions += one.taken;
      if (prompted) one.prompt -= one.taken;
      one.taken = 0;
      if (one.prompt > 0) continue;
      Served& served = schedule_.served[one.request];
      if (prompted) served.first = flow.ready;
      if (--one.left > 0) continue;
      served.last = flow.ready;
      replicas_[flow.replica].held -= limits_.taken_by(requests_[one.request]);
    }
    flow.running.erase(
        std::remove_if(flow.running.begin(), flow.running.end(), [](const Running& one) { return one.left == 0; }),
        flow.running.end());
    schedule_.end = std::max(schedule_.end, flow.ready);
  }

  bool admits(const Flow& flow) const {
    if (next_ >= arrived_ || flow.running.size() >= places_) return false;
    const Request& request = requests_[next_];
    return replicas_[flow.replica].held + limits_.taken_by(request) <= limits_.positions;
  }
  Running& admit(Flow& flow) {
    const Request& request = requests_[next_];
    replicas_[flow.replica].held += limits_.taken_by(request);
    flow.running.push_back({next_++, 0, request.prompt, request.output});
    return flow.running.back();
  }
  void take(Step& step, Running& one, std::int64_t most) {
    one.taken = std::min(one.prompt, most);
    step.prompts.push_back({one.taken, one.positions});
    if (one.taken == one.prompt) ++step.ends;
  }
  void add_decode(Step& step, Flow& flow) const {
    std::vector<std::int64_t> lengths;
    for (Running& one : flow.running) {
      if (one.prompt > 0) continue;
      one.taken = 1;
      lengths.push_back(one.positions);
      step.positions += static_cast<double>(one.positions);
    }
    step.batch = static_cast<std::int64_t>(lengths.size());
    if (step.batch > 0) step.positions /= static_cast<double>(step.batch);
    step.fullest = limits_.fullest(lengths);
  }

  Step prefill_first(Flow& flow) {
    Step step;
    if (admits(flow)) {
      Running& one = admit(flow);
      take(step, one, one.prompt);
    } else {
      add_decode(step, flow);
    }
    return step;
  }

  Step chunked(Flow& flow) {
    Step step;
    add_decode(step, flow);
    std::int64_t left = limits_.chunk - step.batch;
    const auto fill = [&](Running& one) {
      take(step, one, left);
      left -= one.taken;
    };
    for (Running& one : flow.running) {
      if (one.prompt > 0 && left > 0) fill(one);
    }
    while (left > 0 && admits(flow)) fill(admit(flow));
    return step;
  }

  void begin(Flow& flow, Ps now) {
    while (arrived_ < requests_.size() && requests_[arrived_].arrival <= now) ++arrived_;
    Step step = limits_.chunk > 0 ? chunked(flow) : prefill_first(flow);
    if (step.tokens() == 0) return idle(flow, now);
    Taken taken{std::move(step), now, now, 0, static_cast<std::int64_t>(flow.replica), {}};
    taken.cost = cost_of_(taken.step);
    taken.waiting = static_cast<std::int64_t>(arrived_ - next_);
    std::vector<Ps>& free = replicas_[flow.replica].free;
    const double share = taken.cost.layers.time / static_cast<double>(free.size());
    Ps at = now;
    for (std::size_t stage = 0; stage < free.size(); ++stage) {
      const double takes = share + (stage == 0 ? taken.cost.embedding.time : 0) +
                           (stage + 1 == free.size() ? taken.cost.logits.time : 0);
      if (stage > 0) at += static_cast<Ps>(std::llround(taken.cost.send.time));
      at = std::max(at, free[stage]) + static_cast<Ps>(std::llround(takes));
      free[stage] = at;
    }
    taken.end = flow.ready = at;
    flow.under_way = true;
    schedule_.steps.push_back(std::move(taken));
  }

  /// Nothing to do: until the next request comes, or another flow's step ends and makes room.
  void idle(Flow& flow, Ps now) {
    if (next_ >= requests_.size()) {
      flow.done = true;
    } else if (next_ == arrived_) {
      flow.ready = std::max(now, requests_[next_].arrival);
    } else {
      // Room is what is missing, and those that hold it are under way: flows with work come first.
      flow.ready = std::numeric_limits<Ps>::max();
      for (const Flow& other : flows_) {
        if (other.replica == flow.replica && other.under_way) flow.ready = std::min(flow.ready, other.ready);
      }
    }
  }

  const std::vector<Request>& requests_;
  const Limits& limits_;
  const std::function<StepCost(const Step&)>& cost_of_;
  const std::size_t places_;
  std::vector<Replica> replicas_;
  std::vector<Flow> flows_;
  std::size_t next_ = 0, arrived_ = 0;
  Schedule schedule_;
};
}  // namespace

Schedule serve(const std::vector<Request>& requests, const Limits& limits,
               const std::function<StepCost(const Step&)>& cost_of) {
  return Server(requests, limits, cost_of).run();
}

}  // namespace kernbench::serve
