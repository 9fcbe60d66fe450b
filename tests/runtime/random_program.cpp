#include "tests/runtime/random_program.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace kernbench::testing {

namespace {
using Kind = Step::Kind;
using Collective = Step::Collective;

constexpr int kMostCalls =
    8;  ///< collectives of a program: a sum of 3 ranks grows 3-fold, and f32 has to hold it exactly

/// Makes the steps in one order over all ranks in which they can be carried out one by one, and carries them out on
/// plain numbers meanwhile. Any other order that the program allows has to give the same.
///
/// A tensor has one holder at a time, who alone uses it; with a promise it passes it on, often with launches on it
/// still under way. What a rank has in its default stream is a queue: a collective is over when every rank has it in
/// front. A rank whose step has to wait for that gets no more steps until then; so the order stays one that can be
/// carried out.
class Generator {
 public:
  Generator(std::uint64_t seed, int ranks, bool reduces_only)
      : random_(seed), reduces_only_(reduces_only), n_(static_cast<std::size_t>(ranks)), ranks_(n_) {
    program_.ranks = ranks;
    program_.steps.resize(n_);
    program_.tensors.resize(n_);
    for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) {
      const RandomProgram::Spec shared = spec();
      for (std::size_t r = 0; r < n_; ++r) {
        program_.tensors[r].push_back(t < RandomProgram::kShared ? shared : spec());
        Held& tensor = ranks_[r].tensors[t];
        tensor.holder = r;
        tensor.values.assign(static_cast<std::size_t>(program_.tensors[r][t].shape.count()), start(r, t));
      }
    }
  }

  RandomProgram make(bool may_fail) {
    const int length = pick(40, 120);
    const int fails_at = may_fail ? pick(0, length - 1) : -1;
    for (int i = 0; i < length; ++i) {
      const std::size_t r = someone_free();
      if (i == fails_at) {
        program_.fails = static_cast<int>(r);
        add(r, Kind::fail);
        return program_;
      }
      something(r);
    }
    free_all();
    for (std::size_t r = 0; r < n_; ++r) {
      for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) pass(ranks_[r].tensors[t].holder, r, r, t);
    }
    for (std::size_t r = 0; r < n_; ++r) {
      while (ranks_[r].called < calls_.size()) {
        if (ranks_[r].blocked) free_all();
        call_next(r);
      }
    }
    free_all();
    for (std::size_t r = 0; r < n_; ++r) {
      for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) read(r, r, t);
    }
    return program_;
  }

 private:
  struct Call {
    Collective what;
    std::size_t tensor, root;
  };
  struct Entry {  ///< of a default stream
    std::size_t tensor;
    bool call;            ///< a collective
    double scale, shift;  ///< otherwise
    std::size_t launch;   ///< its number
  };
  struct Held {
    std::vector<double> values;  ///< when its default stream has come so far
    std::size_t holder = 0;
    std::optional<std::size_t> writer;  ///< whose launches may be under way on it: others have to read it first
    std::size_t needs = 0;              ///< collectives that precede what was last put on it in the default stream
  };
  struct Blocked {
    std::function<bool()> until;
    std::function<void()> then;
  };
  struct Rank {
    std::array<Held, RandomProgram::kTensors> tensors;
    std::deque<Entry> stream;
    std::size_t called = 0;    ///< collectives
    std::size_t known = 0;     ///< of them: all have called it, and everybody knows that
    std::size_t waited = 0;    ///< of them: complete, and the rank has waited for that
    std::size_t launches = 0;  ///< handles
    std::optional<Blocked> blocked;
  };

  static double start(std::size_t rank, std::size_t tensor) {
    return static_cast<double>(rank + 1) + 4 * static_cast<double>(tensor);
  }
  int pick(int low, int high) {  // the same on every platform
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(pick(0, static_cast<int>(count) - 1)); }
  RandomProgram::Spec spec() { return {{pick(1, 3), pick(1, 24)}, pick(0, 2)}; }
  Step& add(std::size_t r, Kind kind, std::size_t owner = 0, std::size_t t = 0) {
    Step step{};
    step.kind = kind;
    step.owner = static_cast<int>(owner);
    step.tensor = t;
    program_.steps[r].push_back(std::move(step));
    return program_.steps[r].back();
  }

  // The model.

  /// Carries out what stands in front of the default streams, and lets ranks go on, until nothing changes.
  void settle() {
    for (bool again = true; again;) {
      again = false;
      for (Rank& rank : ranks_) {
        while (!rank.stream.empty() && !rank.stream.front().call) {
          const Entry& entry = rank.stream.front();
          apply(rank.tensors[entry.tensor].values, entry.scale, entry.shift);
          rank.stream.pop_front();
        }
      }
      const bool all_call =
          std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.stream.empty(); });
      if (all_call) {  // the same one: they call in the same order
        carry_out(calls_[over_++]);
        for (Rank& rank : ranks_) rank.stream.pop_front();
        again = true;
        continue;
      }
      for (Rank& rank : ranks_) {
        if (!rank.blocked || !rank.blocked->until()) continue;
        const Blocked done = *std::exchange(rank.blocked, {});
        done.then();
        again = true;
      }
    }
  }
  void carry_out(const Call& call) {
    std::vector<double> result = ranks_[call.root].tensors[call.tensor].values;
    for (std::size_t r = 0; r < n_ && call.what != Collective::broadcast; ++r) {
      if (r == call.root) continue;
      const std::vector<double>& other = ranks_[r].tensors[call.tensor].values;
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = call.what == Collective::max ? std::max(result[i], other[i]) : result[i] + other[i];
    }
    for (Rank& rank : ranks_) rank.tensors[call.tensor].values = result;
  }
  static void apply(std::vector<double>& values, double scale, double shift) {
    for (double& x : values) x = scale * x + shift;
  }

  /// The rank goes on when `until` holds, and `then` happens.
  void block(std::size_t r, std::function<bool()> until, std::function<void()> then) {
    ranks_[r].blocked = Blocked{std::move(until), std::move(then)};
    settle();
  }

  /// Rank r may touch a tensor: nothing of its own is held up that has to come before. A launch behind a collective may
  /// write anything, a collective only its own tensor.
  bool may_touch(std::size_t r, std::size_t owner, std::size_t t) const {
    const auto& stream = ranks_[r].stream;
    return std::none_of(stream.begin(), stream.end(),
                        [&](const Entry& entry) { return !entry.call || (owner == r && entry.tensor == t); });
  }
  void has_waited(std::size_t r, std::size_t calls) {
    ranks_[r].waited = std::max(ranks_[r].waited, calls);
    ranks_[r].known = std::max(ranks_[r].known, calls);
  }
  /// The holder r touches it on the host, and `then` happens.
  void touch(std::size_t r, std::size_t owner, std::size_t t, std::function<void()> then) {
    if (!may_touch(r, owner, t)) ++program_.held_reads;
    if (owner != r && ranks_[owner].tensors[t].needs > ranks_[owner].waited) ++program_.far_in_flight;
    block(
        r, [=] { return may_touch(r, owner, t); },
        [=, then = std::move(then)] {
          Held& tensor = ranks_[owner].tensors[t];
          tensor.writer.reset();
          if (owner == r) has_waited(r, tensor.needs);
          tensor.needs = 0;
          then();
        });
  }

  // Steps.

  std::size_t someone_free() {
    for (;;) {
      const std::size_t r = below(n_);
      if (!ranks_[r].blocked) return r;
      if (pick(0, 3) == 0) call_next(most_behind());  // sooner or later this is what the others wait for
    }
  }
  /// Has made the fewest calls, all of which the others have made too: it is never blocked.
  std::size_t most_behind() const {
    const auto least = std::min_element(ranks_.begin(), ranks_.end(),
                                        [](const Rank& a, const Rank& b) { return a.called < b.called; });
    return static_cast<std::size_t>(least - ranks_.begin());
  }
  void free_all() {
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.blocked.has_value(); })) {
      call_next(most_behind());
    }
  }

  void read(std::size_t r, std::size_t owner, std::size_t t) {
    static constexpr HostAccess kWays[] = {HostAccess::to_host,       HostAccess::data,      HostAccess::at,
                                           HostAccess::call_operator, HostAccess::to_string, HostAccess::stream_output,
                                           HostAccess::bytes_to_host};
    add(r, Kind::read, owner, t).access = kWays[below(std::size(kWays))];
    if (owner != r) ++program_.far_reads;
    const std::size_t place = program_.steps[r].size() - 1;
    touch(r, owner, t, [=] { program_.steps[r][place].expected = ranks_[owner].tensors[t].values; });
  }

  /// Nobody else's launch may be under way on what a launch of r writes: it reads first. False: it is blocked now.
  bool ready_for_launch(std::size_t r, std::size_t owner, std::size_t t) {
    if (ranks_[owner].tensors[t].writer.value_or(r) != r) read(r, owner, t);
    return !ranks_[r].blocked;
  }

  /// The next collective that others have called and rank r has not. REQUIRES: r is not blocked.
  void call_next(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.called == calls_.size()) return;
    const Call call = calls_[rank.called];
    const std::size_t t = call.tensor;
    if (!ready_for_launch(r, r, t)) return;
    const bool waits = pick(0, 3) == 0;
    Step& step = add(r, waits ? Kind::collective : Kind::collective_async, r, t);
    step.what = call.what;
    step.from = static_cast<int>(call.root);
    const std::size_t number = ++rank.called;
    rank.tensors[t].needs = number;
    rank.tensors[t].writer = r;
    rank.stream.push_back({t, true, 1, 0, 0});
    if (!waits) {
      settle();
      if (pick(0, 2) == 0) touch_somehow(r, r, t);
      return;
    }
    block(
        r, [this, r, number] { return completed(r) >= number; }, [this, r, number] { has_waited(r, number); });
  }
  /// Collectives of rank r that are over.
  std::size_t completed(std::size_t r) const {
    const auto& stream = ranks_[r].stream;
    return ranks_[r].called - static_cast<std::size_t>(std::count_if(stream.begin(), stream.end(),
                                                                     [](const Entry& entry) { return entry.call; }));
  }

  /// A new collective; everybody's tensor is at home until they have called it.
  void new_call(std::size_t r) {
    const std::size_t t = below(RandomProgram::kShared);
    if (calls_.size() == kMostCalls || ranks_[r].called < calls_.size()) return call_next(r);
    for (std::size_t i = 0; i < n_; ++i) {
      if (ranks_[i].tensors[t].holder != i) return;
    }
    const auto what = static_cast<Collective>(pick(0, reduces_only_ ? 1 : 2));
    if (what == Collective::broadcast) ++program_.broadcasts;
    calls_.push_back({what, t, below(n_)});
    call_next(r);
  }
  bool to_be_called(std::size_t r, std::size_t t) const {
    return std::any_of(calls_.begin() + static_cast<std::ptrdiff_t>(ranks_[r].called), calls_.end(),
                       [&](const Call& call) { return call.tensor == t; });
  }

  /// The tensor goes from its holder to another rank.
  void pass(std::size_t giver, std::size_t taker, std::size_t owner, std::size_t t) {
    if (giver == taker || ranks_[giver].blocked || ranks_[taker].blocked) return;
    Rank& rank = ranks_[owner];
    if (giver == owner) {
      if (to_be_called(owner, t)) return;
      // Others do not wait for what is held up; the owner does, before it lets go. They do for what all have called.
      if (rank.tensors[t].needs > rank.known) read(owner, owner, t);
      if (rank.blocked) return;
    }
    add(giver, Kind::give).index = program_.promises;
    add(taker, Kind::take).index = program_.promises++;
    rank.tensors[t].holder = taker;
  }

  void launch(std::size_t r, std::size_t owner, std::size_t t) {
    if (!ready_for_launch(r, owner, t)) return;
    const bool waits = owner == r && pick(0, 2) == 0;
    Step& step = add(r, owner != r ? Kind::launch_far : waits ? Kind::launch : Kind::launch_async, owner, t);
    step.scale = pick(0, 1) == 0 ? 1 : -1;
    step.shift = pick(-3, 3);
    Rank& rank = ranks_[r];
    Held& tensor = ranks_[owner].tensors[t];
    const std::size_t number = rank.launches++;
    tensor.writer = r;
    if (owner != r) {
      ++program_.far_launches;
      return apply(tensor.values, step.scale, step.shift);
    }
    if (t == RandomProgram::kStreamed) return apply(tensor.values, step.scale, step.shift);
    tensor.needs = rank.called;
    rank.stream.push_back({t, false, step.scale, step.shift, number});
    if (!waits) return settle();
    wait_for(r, number);
  }
  void wait_for(std::size_t r, std::size_t launch) {
    block(
        r,
        [this, r, launch] {
          const auto& stream = ranks_[r].stream;
          return std::none_of(stream.begin(), stream.end(),
                              [&](const Entry& entry) { return !entry.call && entry.launch == launch; });
        },
        [] {});
  }

  void renew(std::size_t r) {
    const std::size_t t = RandomProgram::kStreamed;
    if (ranks_[r].tensors[t].holder != r) return;
    const double value = pick(-9, 9);
    add(r, Kind::renew, r, t).shift = value;
    // The map message of a new tensor stands in the default stream.
    block(
        r, [this, r] { return ranks_[r].stream.empty(); },
        [this, r, t, value] {
          Held& tensor = ranks_[r].tensors[t];
          tensor.values.assign(tensor.values.size(), value);
          tensor.writer.reset();
          has_waited(r, ranks_[r].called);
        });
  }

  void copy(std::size_t r, std::size_t owner, std::size_t t) {
    const std::size_t from = below(n_), source = below(RandomProgram::kTensors);
    if (ranks_[from].tensors[source].holder != r || (from == owner && source == t)) return;
    if (program_.tensors[from][source].shape != program_.tensors[owner][t].shape) return;
    Step& step = add(r, Kind::copy, owner, t);
    step.from = static_cast<int>(from);
    step.index = source;
    if (from != owner) ++program_.far_writes;
    touch(r, from, source, [] {});
    if (ranks_[r].blocked) {  // both have to be free of what is held up
      const Blocked first = *ranks_[r].blocked;
      ranks_[r].blocked->until = [=] { return first.until() && may_touch(r, owner, t); };
      ranks_[r].blocked->then = [=] {
        first.then();
        finish_copy(r, from, source, owner, t);
      };
      return settle();
    }
    touch(r, owner, t, [=] { finish_copy(r, from, source, owner, t); });
  }
  void finish_copy(std::size_t r, std::size_t from, std::size_t source, std::size_t owner, std::size_t t) {
    Held& target = ranks_[owner].tensors[t];
    target.values = ranks_[from].tensors[source].values;
    target.writer.reset();
    if (owner == r) has_waited(r, target.needs);
    target.needs = 0;
  }

  void write(std::size_t r, std::size_t owner, std::size_t t) {
    const double value = pick(-9, 9);
    add(r, Kind::write, owner, t).shift = value;
    if (owner != r) ++program_.far_writes;
    if (!may_touch(r, owner, t)) ++program_.held_writes;
    touch(r, owner, t, [=] {
      Held& tensor = ranks_[owner].tensors[t];
      tensor.values.assign(tensor.values.size(), value);
    });
  }

  void peek(std::size_t r, std::size_t owner, std::size_t t) {
    if (owner == r || t == RandomProgram::kStreamed) return;  // that one may be freed meanwhile
    add(r, Kind::peek, owner, t);
    block(
        r, [=] { return may_touch(r, owner, t); }, [] {});
  }

  void together() {
    if (pick(0, 1) == 0) new_call(most_behind());
    for (std::size_t r = 0; r < n_; ++r) {
      if (!ranks_[r].blocked) call_next(r);
    }
    free_all();  // collectives that nobody waits for stay under way
    for (std::size_t r = 0; r < n_; ++r) add(r, Kind::barrier);
    const std::size_t all_called = ranks_[most_behind()].called;
    for (Rank& rank : ranks_) rank.known = std::max(rank.known, all_called);
    for (std::size_t r = 0; r < n_; ++r) meet_under_way(r);
  }
  /// Others use what rank r has under way.
  void meet_under_way(std::size_t r) {
    for (std::size_t t = 0; t < RandomProgram::kShared; ++t) {
      const Held& tensor = ranks_[r].tensors[t];
      const std::size_t other = below(n_);
      if (tensor.holder != r || tensor.needs <= ranks_[r].waited || other == r) continue;
      pass(r, other, r, t);
      if (tensor.holder == other) touch_somehow(other, r, t);
    }
  }

  void touch_somehow(std::size_t r, std::size_t owner, std::size_t t) {
    switch (pick(0, 4)) {
      case 0:
        return write(r, owner, t);
      case 1:
        return copy(r, owner, t);
      default:
        return read(r, owner, t);
    }
  }

  /// Something that rank r holds: half of the time another rank's, if there is any. Nothing, if there is nothing.
  std::optional<std::pair<std::size_t, std::size_t>> held_by(std::size_t r) {
    std::vector<std::pair<std::size_t, std::size_t>> own, far;
    for (std::size_t owner = 0; owner < n_; ++owner) {
      for (std::size_t t = 0; t < RandomProgram::kTensors; ++t) {
        if (ranks_[owner].tensors[t].holder == r) (owner == r ? own : far).emplace_back(owner, t);
      }
    }
    if (!far.empty() && (own.empty() || pick(0, 1) == 0)) return far[below(far.size())];
    if (own.empty()) return {};
    return own[below(own.size())];
  }

  void something(std::size_t r) {
    const int what = pick(0, 15);
    if (what == 0) {
      add(r, Kind::fault);
      return;
    }
    if (what == 1) return pick(0, 1) == 0 ? together() : renew(r);
    if (what == 2) return peek(r, below(n_), below(RandomProgram::kTensors));
    if (what < 5) return new_call(r);
    if (what == 5) {
      if (ranks_[r].launches == 0) return;
      const std::size_t number = below(ranks_[r].launches);
      add(r, Kind::wait).index = number;
      return wait_for(r, number);
    }
    const auto held = held_by(r);
    if (!held) return;
    const auto [owner, t] = *held;
    if (what < 8) return pass(r, below(n_), owner, t);
    if (what < 12) return launch(r, owner, t);
    touch_somehow(r, owner, t);
  }

  std::mt19937_64 random_;
  const bool reduces_only_;
  const std::size_t n_;
  RandomProgram program_;
  std::vector<Rank> ranks_;
  std::vector<Call> calls_;  ///< collectives so far
  std::size_t over_ = 0;     ///< of them
};
}  // namespace

RandomProgram make_random_program(std::uint64_t seed, int ranks, bool reduces_only, bool may_fail) {
  return Generator(seed, ranks, reduces_only).make(may_fail);
}

}  // namespace kernbench::testing
