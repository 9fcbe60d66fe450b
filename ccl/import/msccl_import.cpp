#include "ccl/import/msccl_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "ccl/import/msccl_data.h"
#include "ccl/schedule/check.h"

namespace kernbench::ccl::msccl {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

using Way = std::pair<std::int32_t, std::int32_t>;  // from a gpu to another

/// A part of a step of the file that a schedule has a step for.
struct Micro {
  StepKind kind = StepKind::send;
  Place place, other;          ///< other: of local steps
  bool scratch = false;        ///< `place` is the thread block's own temporary
  std::int32_t file_step = 0;  ///< number in its thread block
  bool nothing = false;        ///< takes a step's time and no more
};

/// What a place of a gpu holds.
struct Held {
  std::int32_t block = -1;              ///< of the schedule; -1: nothing
  Datum datum;                          ///< which part of the data it is
  std::vector<std::uint64_t> summands;  ///< gpus, a bit each
  const FileStep* by = nullptr;         ///< the last that put something here; null: none, it is the gpu's input
};

class Importer {
 public:
  Importer(const File& file, int lambda)
      : file_(file), lambda_(lambda), gpus_(static_cast<std::int32_t>(file.gpus.size())), data_(file, schedule_) {
    schedule_.algorithm = file.name;
    schedule_.op = file.op;
    schedule_.custom = file.custom;
    schedule_.nodes = gpus_;
    const bool whole = !facts_of(file.op).counts_all();
    if (!whole && file.chunks % gpus_ != 0) {
      throw ConfigError(file.where,
                        fmt::format("nchunksperloop is {}, which {} gpus do not divide", file.chunks, gpus_),
                        "give as many chunks for each");
    }
    schedule_.units = whole ? file.chunks : file.chunks / gpus_;
    schedule_.steps.resize(file.gpus.size());
  }

  Schedule run() {
    for (const Gpu& gpu : file_.gpus) {
      for (const ThreadBlock& block : gpu.blocks) {
        workers_.push_back({&gpu, &block, expand(block), 0, -1, {}});
        channels_[{gpu.id, block.send}].insert(block.channel);
      }
    }
    fill_inputs();
    std::int64_t idle = 0;
    for (time_ = 0; !finished(); ++time_) {
      sent_now_.clear();
      bool moved = false;
      for (Worker& worker : workers_) moved = advance(worker) || moved;
      for (Worker& worker : workers_) worker.done = worker.next == 0 ? -1 : done_until(worker);
      idle = moved ? 0 : idle + 1;
      if (idle > lambda_ + 2) stuck();
    }
    check_left_over();
    check_outputs();
    finish();
    return std::move(schedule_);
  }

 private:
  struct Worker {
    const Gpu* gpu;
    const ThreadBlock* block;
    std::vector<Micro> steps;
    std::size_t next;   ///< micro step
    std::int32_t done;  ///< last step of the file that is complete
    Held temporary;
  };
  /// A message that was taken from the queue before its channel's thread block asked for it.
  struct Parked {
    const FileStep* sent_by;
    Held held;
  };
  struct Message {
    const FileStep* sent_by;
    std::int32_t channel;
    std::int64_t arrives;
    Held held;
  };

  static void add(std::vector<Micro>& list, std::int32_t step, StepKind kind, Place place, Place other = {},
                  bool scratch = false) {
    list.push_back({kind, place, other, scratch, step, false});
  }

  /// A step of several chunks handles one after the other.
  std::vector<Micro> expand(const ThreadBlock& block) const {
    std::vector<Micro> list;
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      const FileStep& step = block.steps[s];
      const auto number = static_cast<std::int32_t>(s);
      if (step.action == Action::nothing) {
        list.push_back({StepKind::copy, {}, {}, false, number, true});
        continue;
      }
      for (std::int32_t j = 0; j < step.count; ++j) {
        const Place from{step.from.buffer, step.from.chunk + j}, to{step.to.buffer, step.to.chunk + j};
        const bool moves = from.buffer != to.buffer || from.chunk != to.chunk;
        switch (step.action) {
          case Action::send:
            add(list, number, StepKind::send, from);
            break;
          case Action::receive_copy_send:
          case Action::receive:
            add(list, number, StepKind::receive_copy, to);
            if (step.action == Action::receive_copy_send) add(list, number, StepKind::send, to);
            break;
          case Action::receive_reduce_send:  // what it adds to stays as it is
            add(list, number, StepKind::copy, {}, from, true);
            add(list, number, StepKind::receive_reduce, {}, {}, true);
            add(list, number, StepKind::send, {}, {}, true);
            break;
          case Action::receive_reduce_copy:
          case Action::receive_reduce_copy_send:
            if (moves) add(list, number, StepKind::copy, to, from);
            add(list, number, StepKind::receive_reduce, to);
            if (step.action == Action::receive_reduce_copy_send) add(list, number, StepKind::send, to);
            break;
          case Action::copy:
            add(list, number, StepKind::copy, to, from);
            break;
          case Action::reduce:
            add(list, number, StepKind::reduce, to, from);
            break;
          case Action::nothing:
            break;
        }
      }
    }
    return list;
  }

  void fill_inputs() {
    const bool gathered = file_.in_place && facts_of(file_.op).longer_out();
    for (std::int32_t gpu = 0; gpu < gpus_; ++gpu) {
      for (std::int32_t chunk = 0; chunk < data_.chunks_of(Buffer::input); ++chunk) {
        const Datum datum = data_.in(gpu, chunk);
        if (datum.origin != kEveryNode && datum.origin != gpu) continue;
        Held held{data_.input_block(datum), datum, std::vector<std::uint64_t>(at((gpus_ + 63) / 64)), nullptr};
        held.summands[at(gpu / 64)] |= std::uint64_t{1} << (gpu % 64);
        const Place place =
            gathered ? Place{Buffer::output, gpu * schedule_.units + chunk} : Place{Buffer::input, chunk};
        places_[{gpu, place.buffer, place.chunk}] = std::move(held);
      }
    }
  }

  static const FileStep& step_of(const Worker& worker) {
    return worker.block->steps[at(worker.steps[worker.next].file_step)];
  }
  [[noreturn]] static void fail(const Worker& worker, const std::string& text, const std::string& hint = "") {
    throw ConfigError(step_of(worker).where, text, hint);
  }

  Held& held(Worker& worker, Place place, bool scratch) {
    if (scratch) return worker.temporary;
    place = data_.resolve(worker.gpu->id, place);
    if (place.chunk < 0 || place.chunk >= data_.chunks_of(place.buffer)) {
      fail(worker, fmt::format("chunk {} of a buffer of {}", place.chunk, data_.chunks_of(place.buffer)));
    }
    return places_[{worker.gpu->id, place.buffer, place.chunk}];
  }

  /// The block under which what is put into a place is known from then on.
  std::int32_t block_for(const Worker& worker, const Micro& micro, const Datum& datum) {
    if (micro.scratch)
      return data_.temporary_block(static_cast<std::int32_t>(worker.block - worker.gpu->blocks.data()), datum);
    return data_.block_at(worker.gpu->id, micro.place, datum);
  }

  // ---- Execution in steps of time ----

  bool finished() const {
    return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.next == w.steps.size(); });
  }
  static std::int32_t done_until(const Worker& worker) {
    if (worker.next == worker.steps.size()) return static_cast<std::int32_t>(worker.block->steps.size()) - 1;
    return worker.steps[worker.next].file_step - 1;
  }

  bool waits_for_step(const Worker& worker) const {
    const FileStep& file = step_of(worker);
    if (file.after_block < 0) return false;
    const Worker& other = *std::find_if(workers_.begin(), workers_.end(), [&](const Worker& w) {
      return w.gpu == worker.gpu && w.block->id == file.after_block;
    });
    return &other != &worker && other.done < file.after_step;
  }

  bool advance(Worker& worker) {
    if (worker.next == worker.steps.size()) return false;
    const Micro& micro = worker.steps[worker.next];
    if (waits_for_step(worker)) return false;
    if (!micro.nothing && !execute(worker, micro)) return false;
    ++worker.next;
    return true;
  }

  void record(Worker& worker, StepKind kind, std::int32_t peer, std::int32_t block, bool completes = false) {
    schedule_.steps[at(worker.gpu->id)].push_back({time_, peer, block, kind, completes});
  }

  bool execute(Worker& worker, const Micro& micro) {
    if (micro.kind == StepKind::send) return send(worker, micro);
    if (micro.kind == StepKind::copy || micro.kind == StepKind::reduce) {
      const Held from = held(worker, micro.other, false);
      if (from.block < 0) fail(worker, "reads what its gpu does not have");
      put(worker, micro, from, micro.kind, from.block);
      return true;
    }
    return receive(worker, micro);
  }

  /// A message takes a place of its channel, and of the queue that the channels of two gpus share here.
  bool send(Worker& worker, const Micro& micro) {
    const Way way(worker.gpu->id, worker.block->send);
    std::size_t& on_channel = sent_[{way, worker.block->channel}];
    if (on_channel > at(lambda_) || sent_now_.count(way) != 0) return false;
    std::deque<Message>& queue = queues_[way];
    if (queue.size() > at(lambda_) && !park(way)) return false;
    const Held& what = held(worker, micro.place, micro.scratch);
    if (what.block < 0) fail(worker, "sends what its gpu does not have");
    sent_now_.insert(way);
    ++on_channel;
    queue.push_back({&step_of(worker), worker.block->channel, time_ + 1 + lambda_, what});
    record(worker, StepKind::send, worker.block->send, what.block);
    return true;
  }

  /// The first message of a queue makes room: its gpu takes it and keeps it until its channel's turn. False where it is
  /// not there yet, or where the queue has one channel only, which nobody else waits for.
  bool park(const Way& way) {
    std::deque<Message>& queue = queues_[way];
    if (queue.empty() || queue.front().arrives > time_ || channels_.at(way).size() < 2) return false;
    Held held = queue.front().held;
    const std::int32_t from = way.first, block = data_.passing_block(held.datum);
    schedule_.steps[at(way.second)].push_back({time_, from, block, StepKind::receive_copy, false});
    held.block = block;
    parked_[{way, queue.front().channel}].push_back({queue.front().sent_by, std::move(held)});
    queue.pop_front();
    return true;
  }

  /// The next message of the thread block's channel: one that was put aside, or one of the queue, before which those of
  /// other channels are put aside.
  bool receive(Worker& worker, const Micro& micro) {
    const bool adds = micro.kind == StepKind::receive_reduce;
    const Way way(worker.block->receive, worker.gpu->id);
    const std::pair key(way, worker.block->channel);
    if (std::deque<Parked>& mine = parked_[key]; !mine.empty()) {
      const Held message = mine.front().held;
      mine.pop_front();
      --sent_[key];
      put(worker, micro, message, adds ? StepKind::reduce : StepKind::copy, message.block);
      return true;
    }
    std::deque<Message>& queue = queues_[way];
    const auto next =
        std::find_if(queue.begin(), queue.end(), [&](const Message& m) { return m.channel == worker.block->channel; });
    if (next == queue.end() || next->arrives > time_) return false;
    for (auto others = next - queue.begin(); others > 0; --others) park(way);
    const Held message = queue.front().held;
    queue.pop_front();
    --sent_[key];
    put(worker, micro, message, micro.kind, worker.block->receive);
    return true;
  }

  void put(Worker& worker, const Micro& micro, const Held& what, StepKind kind, std::int32_t peer) {
    Held& mine = held(worker, micro.place, micro.scratch);
    if (kind == StepKind::copy || kind == StepKind::receive_copy) {
      mine = {block_for(worker, micro, what.datum), what.datum, what.summands, &step_of(worker)};
      record(worker, kind, peer, mine.block);
      return;
    }
    if (mine.block < 0) fail(worker, "adds to what its gpu does not have");
    if (file_.custom ? mine.datum.unit != what.datum.unit : !(mine.datum == what.datum)) {
      fail(worker, mine.datum.origin == kEveryNode || file_.custom
                       ? fmt::format("adds part {} of the data to part {}", data_.part_of(what.datum),
                                     data_.part_of(mine.datum))
                       : fmt::format("adds, but {} does not reduce", to_string(file_.op)));
    }
    std::int32_t summands = 0;
    for (std::size_t i = 0; i < mine.summands.size(); ++i) {
      if ((mine.summands[i] & what.summands[i]) != 0 && !file_.custom)
        fail(worker, "adds what some gpu has given twice");
      mine.summands[i] |= what.summands[i];
      summands += __builtin_popcountll(mine.summands[i]);
    }
    mine.by = &step_of(worker);
    record(worker, kind, peer, mine.block, summands == gpus_ && !file_.custom);
  }

  [[noreturn]] void stuck() const {
    Problems problems;
    std::optional<Location> no_room;
    for (const Worker& worker : workers_) {
      if (!no_room && waits_for_room(worker)) no_room = step_of(worker).where;
      if (worker.next == worker.steps.size() || problems.size() >= kMostProblems) continue;
      problems.add(step_of(worker).where, "waits for ever: " + awaited_by(worker));
    }
    if (problems.empty()) throw std::logic_error("import of a schedule: nobody waits");
    throw Stuck(problems, no_room);
  }

  bool waits_for_room(const Worker& worker) const {
    return worker.next < worker.steps.size() && !waits_for_step(worker) &&
           worker.steps[worker.next].kind == StepKind::send;
  }

  std::string awaited_by(const Worker& worker) const {
    const FileStep& file = step_of(worker);
    if (waits_for_step(worker)) return fmt::format("for step {} of thread block {}", file.after_step, file.after_block);
    if (waits_for_room(worker)) return fmt::format("for room for its message to gpu {}", worker.block->send);
    return fmt::format("for a message of gpu {}", worker.block->receive);
  }

  void check_left_over() const {
    const auto refuse = [](const Way& way, const FileStep& sent_by) {
      throw ConfigError(sent_by.where,
                        fmt::format("gpu {} does not receive this message of gpu {}", way.second, way.first));
    };
    for (const auto& [way, queue] : queues_) {
      if (!queue.empty()) refuse(way, *queue.front().sent_by);
    }
    for (const auto& [key, messages] : parked_) {
      if (!messages.empty()) refuse(key.first, *messages.front().sent_by);
    }
  }

  /// What is wrong with an output chunk that holds `held`; empty: nothing.
  std::string wrong_with(const Held& held, const Datum& wanted) const {
    if (file_.custom) {
      if (held.block < 0 || held.datum.unit == wanted.unit) return {};
      return fmt::format("gets part {}: here a custom file's chunks stay in their places", held.datum.unit);
    }
    if (held.block < 0) return "never gets a value";
    const auto said = [this](const Datum& d) {
      return fmt::format("part {} of {}", data_.part_of(d),
                         d.origin == kEveryNode ? "the data" : fmt::format("gpu {}'s input", d.origin));
    };
    if (!(held.datum == wanted)) return fmt::format("gets {} and not {}", said(held.datum), said(wanted));
    for (std::int32_t gpu = 0; gpu < gpus_ && wanted.origin == kEveryNode; ++gpu) {
      const bool has = ((held.summands[at(gpu / 64)] >> (gpu % 64)) & 1) != 0;
      if (!has) return fmt::format("lacks gpu {}'s contribution", gpu);
    }
    return {};
  }

  /// Names the step that wrote last what is wrong, or the gpu if none did: of each the first chunk.
  void check_outputs() {
    Problems problems;
    std::set<const void*> named;
    for (const Gpu& gpu : file_.gpus) {
      for (std::int32_t chunk = 0; chunk < data_.chunks_of(Buffer::output); ++chunk) {
        const Place place = data_.resolve(gpu.id, {Buffer::output, chunk});
        const Held& held = places_[{gpu.id, place.buffer, place.chunk}];
        const std::string wrong = wrong_with(held, data_.out(gpu.id, chunk));
        const void* culprit = held.by != nullptr ? static_cast<const void*>(held.by) : &gpu;
        if (wrong.empty() || !named.insert(culprit).second) continue;
        problems.add(held.by != nullptr ? held.by->where : gpu.where,
                     fmt::format("chunk {} of gpu {}'s output {}", chunk, gpu.id, wrong),
                     "its result would be wrong; nothing was run");
        if (problems.size() >= kMostProblems) problems.throw_if_any();
      }
    }
    problems.throw_if_any();
  }

  /// In place a block may stay where it is, which no step says; here the output of an all-to-all lies apart.
  void copy_what_stays() {
    if (!file_.in_place || !facts_of(file_.op).exchanges()) return;
    for (const Gpu& gpu : file_.gpus) {
      for (std::int32_t chunk = 0; chunk < data_.chunks_of(Buffer::output); ++chunk) {
        const Place place = data_.resolve(gpu.id, {Buffer::output, chunk});
        const Held& held = places_[{gpu.id, place.buffer, place.chunk}];
        if (held.by != nullptr) continue;
        schedule_.steps[at(gpu.id)].push_back({0, held.block, data_.output_block(held.datum), StepKind::copy, false});
      }
    }
  }

  /// At equal times receives stand before local steps and those before sends.
  void finish() {
    copy_what_stays();
    const auto rank = [](const Step& step) {
      return step.kind == StepKind::send ? 2 : step.kind == StepKind::copy || step.kind == StepKind::reduce ? 1 : 0;
    };
    for (auto& list : schedule_.steps) {
      std::stable_sort(list.begin(), list.end(), [&](const Step& a, const Step& b) {
        return std::pair(a.time, rank(a)) < std::pair(b.time, rank(b));
      });
    }
    schedule_.length = time_;
    std::map<std::pair<std::int32_t, std::int32_t>, bool> pairs;
    for (const auto& entry : queues_) pairs[std::minmax(entry.first.first, entry.first.second)] = true;
    for (const auto& entry : pairs)
      schedule_.links.push_back({entry.first.first, entry.first.second, 1, lambda_, slots_for(lambda_, 1)});
    for (std::int32_t gpu = 0; gpu < gpus_ && !file_.custom; ++gpu) {  // also what no step touches
      for (std::int32_t chunk = 0; chunk < data_.chunks_of(Buffer::output); ++chunk)
        data_.output_block(data_.out(gpu, chunk));
    }
  }

  const File& file_;
  const std::int32_t lambda_, gpus_;
  Schedule schedule_;
  DataMap data_;
  std::vector<Worker> workers_;
  std::map<std::tuple<std::int32_t, Buffer, std::int32_t>, Held> places_;
  std::map<Way, std::deque<Message>> queues_;
  std::map<Way, std::set<std::int32_t>> channels_;                     ///< that the file sends on
  std::map<std::pair<Way, std::int32_t>, std::size_t> sent_;           ///< by channel: and not yet received
  std::map<std::pair<Way, std::int32_t>, std::deque<Parked>> parked_;  ///< by channel
  std::set<Way> sent_now_;
  std::int64_t time_ = 0;
};

}  // namespace

Schedule import_file(const File& file, int lambda) { return Importer(file, lambda).run(); }

}  // namespace kernbench::ccl::msccl
