#include "ccl/import/msccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "ccl/import/msccl_file.h"
#include "ccl/schedule/check.h"
#include "tlm/config/bounded_text.h"
#include "tlm/config/json_text.h"

namespace kernbench::ccl {
namespace {
using namespace msccl;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// A part of a step of the file that a schedule has a step for.
struct Micro {
  StepKind kind = StepKind::send;
  msccl::Place place, other;   ///< other: of local steps
  bool scratch = false;        ///< `place` is the thread block's own temporary
  std::int32_t file_step = 0;  ///< number in its thread block
  bool nothing = false;        ///< takes a step's time and no more
};

/// A part of the data, wherever it is: a unit of a region of the input, of one gpu or, where it is reduced, of all. Its
/// blocks lie in that region of the input and in one of the output, also where they only pass through.
struct Datum {
  std::int32_t origin = kEveryNode;  ///< whose input it is
  std::int32_t in_region = 0, out_region = 0, unit = 0;
  auto key() const { return std::tuple(origin, in_region, out_region, unit); }
  bool operator==(const Datum& other) const { return key() == other.key(); }
};

/// What a place of a gpu holds.
struct Held {
  std::int32_t block = -1;              ///< of the schedule; -1: nothing
  Datum datum;                          ///< which part of the data it is
  std::vector<std::uint64_t> summands;  ///< gpus, a bit each
  const FileStep* by = nullptr;         ///< the last that put something here; null: none, it is the gpu's input
};

/// Thread blocks that wait for each other; with more slots perhaps not.
class Stuck : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

class Importer {
 public:
  Importer(const File& file, int lambda)
      : file_(file), lambda_(lambda), gpus_(static_cast<std::int32_t>(file.gpus.size())) {
    schedule_.algorithm = file.name;
    schedule_.op = file.op;
    schedule_.nodes = gpus_;
    const bool whole = file.op == CollectiveOp::all_reduce || file.op == CollectiveOp::broadcast;
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
      for (const ThreadBlock& block : gpu.blocks) workers_.push_back({&gpu, &block, expand(block), 0, -1, {}});
    }
    fill_inputs();
    std::int64_t idle = 0;
    for (time_ = 0; !finished(); ++time_) {
      sent_now_.clear();
      bool moved = false;
      for (Worker& worker : workers_) moved = turn(worker) || moved;
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
  struct Message {
    const FileStep* sent_by;
    std::int32_t channel;
    std::int64_t arrives;
    Held held;
  };

  static void add(std::vector<Micro>& list, std::int32_t step, StepKind kind, msccl::Place place,
                  msccl::Place other = {}, bool scratch = false) {
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
        const msccl::Place from{step.from.buffer, step.from.chunk + j}, to{step.to.buffer, step.to.chunk + j};
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

  // ---- Places ----

  /// In place some buffers are parts of others.
  msccl::Place resolve(std::int32_t gpu, msccl::Place place) const {
    if (!file_.in_place || place.buffer == Buffer::scratch) return place;
    const std::int32_t own = gpu * schedule_.units;
    switch (file_.op) {
      case CollectiveOp::all_gather:
        return place.buffer == Buffer::input ? msccl::Place{Buffer::output, own + place.chunk} : place;
      case CollectiveOp::reduce_scatter:
        return place.buffer == Buffer::output ? msccl::Place{Buffer::input, own + place.chunk} : place;
      default:
        return {Buffer::input, place.chunk};
    }
  }

  std::int32_t chunks_of(Buffer buffer) const {
    if (buffer == Buffer::scratch) return 1 << 16;
    const bool part = (file_.op == CollectiveOp::all_gather && buffer == Buffer::input) ||
                      (file_.op == CollectiveOp::reduce_scatter && buffer == Buffer::output);
    return part ? schedule_.units : file_.chunks;
  }

  /// What lies in chunk `chunk` of a gpu's input, and what has to lie in a chunk of its output.
  Datum datum_in(std::int32_t gpu, std::int32_t chunk) const {
    const std::int32_t region = chunk / schedule_.units, unit = chunk % schedule_.units;
    switch (file_.op) {
      case CollectiveOp::all_gather:
        return {gpu, 0, gpu, unit};
      case CollectiveOp::reduce_scatter:
        return {kEveryNode, region, 0, unit};
      case CollectiveOp::all_to_all:
        return {gpu, region, gpu, unit};
      case CollectiveOp::broadcast:
        return {schedule_.root, 0, 0, unit};
      default:
        return {kEveryNode, 0, 0, unit};
    }
  }
  Datum datum_out(std::int32_t gpu, std::int32_t chunk) const {
    const std::int32_t region = chunk / schedule_.units, unit = chunk % schedule_.units;
    switch (file_.op) {
      case CollectiveOp::all_gather:
        return {region, 0, region, unit};
      case CollectiveOp::reduce_scatter:
        return {kEveryNode, gpu, 0, unit};
      case CollectiveOp::all_to_all:
        return {region, gpu, region, unit};
      case CollectiveOp::broadcast:
        return {schedule_.root, 0, 0, unit};
      default:
        return {kEveryNode, 0, 0, unit};
    }
  }
  /// Who has a datum in the end.
  std::int32_t holder_of(const Datum& datum) const {
    const bool one = file_.op == CollectiveOp::reduce_scatter || file_.op == CollectiveOp::all_to_all;
    return one ? datum.in_region : kEveryNode;
  }

  std::int32_t new_block(const Datum& datum, std::int32_t contributor, std::int32_t holder) {
    schedule_.blocks.push_back({contributor, holder, datum.in_region, datum.out_region, datum.unit, datum.unit + 1});
    return static_cast<std::int32_t>(schedule_.blocks.size()) - 1;
  }
  /// Where a datum is in the input; in the output; both in one if the operation is in place and leaves it there.
  std::int32_t input_block(const Datum& datum) {
    const auto found = inputs_.find(datum.key());
    if (found != inputs_.end()) return found->second;
    const bool stays = file_.in_place && file_.op != CollectiveOp::all_to_all;
    const std::int32_t block = new_block(datum, datum.origin, stays ? holder_of(datum) : kNobody);
    inputs_[datum.key()] = block;
    if (stays) outputs_[datum.key()] = block;
    return block;
  }
  std::int32_t output_block(const Datum& datum) {
    if (file_.in_place && file_.op != CollectiveOp::all_to_all) return input_block(datum);
    const auto found = outputs_.find(datum.key());
    if (found != outputs_.end()) return found->second;
    return outputs_[datum.key()] = new_block(datum, kNobody, holder_of(datum));
  }
  /// Somewhere else.
  std::int32_t scratch_block(bool temporary, const msccl::Place& place, const Datum& datum) {
    const auto key = std::tuple(temporary, place.buffer, place.chunk, datum.key());
    const auto found = scratch_.find(key);
    if (found != scratch_.end()) return found->second;
    return scratch_[key] = new_block(datum, kNobody, kNobody);
  }

  void fill_inputs() {
    const bool gathered = file_.in_place && file_.op == CollectiveOp::all_gather;
    for (std::int32_t gpu = 0; gpu < gpus_; ++gpu) {
      for (std::int32_t chunk = 0; chunk < chunks_of(Buffer::input); ++chunk) {
        const Datum datum = datum_in(gpu, chunk);
        if (datum.origin != kEveryNode && datum.origin != gpu) continue;
        Held held{input_block(datum), datum, std::vector<std::uint64_t>(at((gpus_ + 63) / 64)), nullptr};
        held.summands[at(gpu / 64)] |= std::uint64_t{1} << (gpu % 64);
        const msccl::Place place =
            gathered ? msccl::Place{Buffer::output, gpu * schedule_.units + chunk} : msccl::Place{Buffer::input, chunk};
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

  Held& held(Worker& worker, msccl::Place place, bool scratch) {
    if (scratch) return worker.temporary;
    place = resolve(worker.gpu->id, place);
    if (place.chunk < 0 || place.chunk >= chunks_of(place.buffer)) {
      fail(worker, fmt::format("chunk {} of a buffer of {}", place.chunk, chunks_of(place.buffer)));
    }
    return places_[{worker.gpu->id, place.buffer, place.chunk}];
  }

  /// The block under which what is put into a place is known from then on.
  std::int32_t block_for(Worker& worker, const Micro& micro, const Datum& datum) {
    const auto number = static_cast<std::int32_t>(worker.block - worker.gpu->blocks.data());
    const std::int32_t gpu = worker.gpu->id;
    if (micro.scratch) return scratch_block(true, {Buffer::scratch, number}, datum);
    const msccl::Place place = resolve(gpu, micro.place);
    if (place.buffer == Buffer::scratch) return scratch_block(false, place, datum);
    // In place the output of a reduce-scatter is part of the input, the input of an all-gather part of the output.
    const bool parts = file_.in_place && file_.op == CollectiveOp::reduce_scatter;
    if (place.buffer == Buffer::output && datum == datum_out(gpu, place.chunk)) return output_block(datum);
    if (place.buffer == Buffer::input && file_.in_place && !parts && datum == datum_out(gpu, place.chunk))
      return output_block(datum);
    if (place.buffer == Buffer::input && datum == datum_in(gpu, place.chunk)) return input_block(datum);
    return scratch_block(false, place, datum);
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

  bool turn(Worker& worker) {
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
    const std::int32_t self = worker.gpu->id;
    if (micro.kind == StepKind::send) {
      const std::pair way(self, worker.block->send);
      std::deque<Message>& queue = queues_[way];
      if (static_cast<int>(queue.size()) > lambda_ || !sent_now_.insert({way, true}).second) return false;
      const Held& what = held(worker, micro.place, micro.scratch);
      if (what.block < 0) fail(worker, "sends what its gpu does not have");
      queue.push_back({&step_of(worker), worker.block->channel, time_ + 1 + lambda_, what});
      record(worker, StepKind::send, worker.block->send, what.block);
      return true;
    }
    if (micro.kind == StepKind::copy || micro.kind == StepKind::reduce) {
      const Held from = held(worker, micro.other, false);
      if (from.block < 0) fail(worker, "reads what its gpu does not have");
      put(worker, micro, from, micro.kind == StepKind::reduce, from.block);
      return true;
    }
    std::deque<Message>& queue = queues_[{worker.block->receive, self}];
    if (queue.empty() || queue.front().arrives > time_ || queue.front().channel != worker.block->channel) return false;
    const Held message = queue.front().held;
    queue.pop_front();
    put(worker, micro, message, micro.kind == StepKind::receive_reduce, worker.block->receive);
    return true;
  }

  void put(Worker& worker, const Micro& micro, const Held& what, bool adds, std::int32_t peer) {
    Held& mine = held(worker, micro.place, micro.scratch);
    if (!adds) {
      mine = {block_for(worker, micro, what.datum), what.datum, what.summands, &step_of(worker)};
      record(worker, micro.kind, peer, mine.block);
      return;
    }
    if (mine.block < 0) fail(worker, "adds to what its gpu does not have");
    if (!(mine.datum == what.datum)) {
      fail(worker, mine.datum.origin == kEveryNode
                       ? fmt::format("adds part {} of the data to part {}", part_of(what.datum), part_of(mine.datum))
                       : fmt::format("adds, but {} does not reduce", to_string(file_.op)));
    }
    std::int32_t summands = 0;
    for (std::size_t i = 0; i < mine.summands.size(); ++i) {
      if ((mine.summands[i] & what.summands[i]) != 0) fail(worker, "adds what some gpu has given twice");
      mine.summands[i] |= what.summands[i];
      summands += __builtin_popcountll(mine.summands[i]);
    }
    mine.by = &step_of(worker);
    record(worker, micro.kind, peer, mine.block, summands == gpus_);
  }

  [[noreturn]] void stuck() const {
    for (const Worker& worker : workers_) {
      if (worker.next == worker.steps.size()) continue;
      const Micro& micro = worker.steps[worker.next];
      const auto found = queues_.find({worker.block->receive, worker.gpu->id});
      const bool receives = micro.kind == StepKind::receive_copy || micro.kind == StepKind::receive_reduce;
      if (receives && found != queues_.end() && !found->second.empty()) {
        fail(worker,
             fmt::format("waits for a message on channel {} behind one on channel {}: messages between two gpus "
                         "share a queue here",
                         worker.block->channel, found->second.front().channel));
      }
    }
    Problems problems;
    for (const Worker& worker : workers_) {
      if (worker.next == worker.steps.size() || problems.size() >= kMostProblems) continue;
      problems.add(step_of(worker).where, "waits for ever: " + awaited_by(worker));
    }
    if (problems.empty()) throw std::logic_error("import of a schedule: nobody waits");
    throw Stuck(problems);
  }

  std::string awaited_by(const Worker& worker) const {
    const FileStep& file = step_of(worker);
    if (waits_for_step(worker)) return fmt::format("for step {} of thread block {}", file.after_step, file.after_block);
    if (worker.steps[worker.next].kind == StepKind::send)
      return fmt::format("for room for its message to gpu {}", worker.block->send);
    return fmt::format("for a message of gpu {}", worker.block->receive);
  }

  void check_left_over() const {
    for (const auto& [way, queue] : queues_) {
      if (queue.empty()) continue;
      throw ConfigError(queue.front().sent_by->where,
                        fmt::format("gpu {} does not receive this message of gpu {}", way.second, way.first));
    }
  }

  std::int32_t part_of(const Datum& d) const { return d.in_region * schedule_.units + d.unit; }

  /// What is wrong with an output chunk that holds `held`; empty: nothing.
  std::string wrong_with(const Held& held, const Datum& wanted) const {
    if (held.block < 0) return "never gets a value";
    const auto said = [this](const Datum& d) {
      return fmt::format("part {} of {}", part_of(d),
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
      for (std::int32_t chunk = 0; chunk < chunks_of(Buffer::output); ++chunk) {
        const msccl::Place place = resolve(gpu.id, {Buffer::output, chunk});
        const Held& held = places_[{gpu.id, place.buffer, place.chunk}];
        const std::string wrong = wrong_with(held, datum_out(gpu.id, chunk));
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

  /// At equal times receives stand before local steps and those before sends.
  void finish() {
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
    for (std::int32_t gpu = 0; gpu < gpus_; ++gpu) {  // also what no step touches
      for (std::int32_t chunk = 0; chunk < chunks_of(Buffer::output); ++chunk) output_block(datum_out(gpu, chunk));
    }
  }

  const File& file_;
  const std::int32_t lambda_, gpus_;
  Schedule schedule_;
  std::vector<Worker> workers_;
  std::map<std::tuple<std::int32_t, Buffer, std::int32_t>, Held> places_;
  using Key = decltype(Datum().key());
  std::map<Key, std::int32_t> inputs_, outputs_;
  std::map<std::tuple<bool, Buffer, std::int32_t, Key>, std::int32_t> scratch_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::deque<Message>> queues_;
  std::map<std::pair<std::int32_t, std::int32_t>, bool> sent_now_;
  std::int64_t time_ = 0;
};

}  // namespace

/// assumed: what a machine may be given; MSCCL's own runtime has 8 slots of 512 KiB, which hold many small messages
constexpr int kMostSlots = 64;

Schedule parse_msccl(const std::string& text, const std::string& name, std::optional<int> ranks, int lambda) {
  const File file = parse(text, name);
  static std::set<std::string> said;  // a file is read for each group that uses it
  for (const std::string& warning : file.ignored) {
    if (said.insert(warning).second) std::fputs((printable(warning) + "\n").c_str(), stderr);
  }
  const auto gpus = static_cast<std::int32_t>(file.gpus.size());
  if (ranks && *ranks != gpus) {
    Schedule head;
    head.algorithm = file.name;
    head.op = file.op;
    head.nodes = gpus;
    return head;
  }
  // With more slots a file waits no longer: as few as it needs, found by halving.
  std::optional<Schedule> found;
  int too_few = lambda - 1, enough = lambda;
  std::optional<Stuck> stuck;
  while (!found) {
    try {
      found = Importer(file, enough).run();
    } catch (const Stuck& error) {
      if (!stuck) stuck = error;
      too_few = enough;
      if (enough + 1 >= kMostSlots) throw ConfigError(*stuck);
      enough = std::min(2 * enough + 1, kMostSlots - 1);
    }
  }
  while (enough - too_few > 1) {
    const int middle = (enough + too_few) / 2;
    try {
      found = Importer(file, middle).run();
      enough = middle;
    } catch (const Stuck&) {
      too_few = middle;
    }
  }
  return std::move(*found);
}

/// assumed: the largest public file has 4 MiB
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Schedule read_msccl(const std::string& file, std::optional<int> ranks, int lambda) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError(Location{file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
  const std::optional<std::string> text = bounded_text(in, kMostBytes);
  if (in.bad() || std::filesystem::is_directory(file)) {
    throw ConfigError(Location{file, 0, 0}, "cannot be read: it is no file");
  }
  if (!text) throw ConfigError(Location{file, 0, 0}, fmt::format("is larger than {} MiB", kMostBytes >> 20));
  if (text->empty()) throw ConfigError(Location{file, 0, 0}, "the file is empty", "give an MSCCL algorithm file");
  return parse_msccl(*text, file, ranks, lambda);
}

}  // namespace kernbench::ccl
