#include "ccl/run/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ccl/contract/error.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

constexpr std::uint32_t kNone = 0xFFFF'FFFF;

bool is(std::int32_t who, std::int32_t node) { return who == kEveryNode || who == node; }
/// All places are copies behind one address.
bool one_address(const Run& run) {
  return std::all_of(run.places.begin(), run.places.end(),
                     [&](const Place& place) { return place.offset == run.places.front().offset; });
}
/// Calls f(offset) for every address of a run once.
template <class F>
void each_address(const Run& run, F&& f) {
  for (auto place = run.places.begin(); place != run.places.end(); ++place) {
    const auto same = [&](const Place& other) { return other.offset == place->offset; };
    if (std::none_of(run.places.begin(), place, same)) f(place->offset);
  }
}
/// Bytes of the values of a window that are loaded ahead or stored behind; two windows of each are in TCM at a time.
constexpr std::int64_t kWindowBytes = 256 << 10;
/// The same of the window for which the steps wait, where at most every second message that a lane sends is its own
/// node's: few loads are enough then, even of few memories.   assumed: what a DMA queue of 16 takes of messages of
/// 4 KiB; sends behind more would wait for loads that they do not need
constexpr std::int64_t kFirstWindowBytes = 64 << 10;
/// Where more messages need loads, a window of loads has several values of every region, and the first one half of
/// that: large grids have more regions than values in kWindowBytes, which then lie in few memories.   assumed: four,
/// what the window is on a 4 x 4 grid with messages of 4 KiB
constexpr std::size_t kValuesOfRegion = 4;
constexpr std::int64_t kMostWindowBytes = 1 << 20;  ///< assumed: two of them leave most of TCM free
bool receives(StepKind kind) { return kind == StepKind::receive_copy || kind == StepKind::receive_reduce; }
bool reads_other(StepKind kind) { return kind == StepKind::copy || kind == StepKind::reduce; }

/// Fills in the flags that depend on the order in which the entries of one round run.
class Flags {
 public:
  explicit Flags(NodeProgram& program)
      : program_(program), last_use_(program.blocks.size(), kNone), last_change_(last_use_) {}

  void set() {
    std::vector<std::uint32_t> order(program_.entries.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return program_.entries[a].stage < program_.entries[b].stage;
    });
    for (const std::uint32_t i : order) {
      const NodeProgram::Entry& entry = program_.entries[i];
      // What is about to be overwritten is of no use from its last reader on.
      if (entry.kind == StepKind::receive_copy || entry.kind == StepKind::copy) release(entry.block);
      last_use_[entry.block] = i;
      if (reads_other(entry.kind)) last_use_[entry.other] = i;
      if (entry.kind != StepKind::send) last_change_[entry.block] = i;
    }
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      NodeProgram::LocalBlock& block = program_.blocks[b];
      block.used = last_use_[b] != kNone;
      block.changes = last_change_[b] != kNone;
      if (block.changes) program_.entries[last_change_[b]].last_change = true;
      release(b);
    }
  }

 private:
  void release(std::uint32_t block) {
    if (last_use_[block] == kNone) return;
    NodeProgram::Entry& last = program_.entries[last_use_[block]];
    (last.block == block ? last.last_use : last.last_use_other) = true;
  }

  NodeProgram& program_;
  std::vector<std::uint32_t> last_use_, last_change_;  // entry, by block
};

}  // namespace

NodeProgram make_program(const Schedule& schedule, std::int32_t node, std::size_t variant,
                         const std::function<Direction(std::int32_t)>& to) {
  NodeProgram program;
  std::vector<std::uint32_t> local(schedule.blocks.size(), kNone);
  const auto index_of = [&](std::int32_t block) {
    std::uint32_t& index = local.at(static_cast<std::size_t>(block));
    if (index != kNone) return index;
    index = static_cast<std::uint32_t>(program.blocks.size());
    const Block& b = schedule.blocks[static_cast<std::size_t>(block)];
    program.blocks.push_back(
        {static_cast<std::uint32_t>(block), is(b.contributor, node), is(b.holder, node), false, false});
    return index;
  };
  std::map<std::int32_t, Direction> directions;
  for (const Step& step : schedule.lists(variant)[static_cast<std::size_t>(node)]) {
    NodeProgram::Entry entry;
    entry.kind = step.kind;
    entry.completes = step.completes;
    entry.block = index_of(step.block);
    entry.stage = schedule.period > 0 ? static_cast<std::uint32_t>(step.time / schedule.period) : 0;
    program.stages = std::max(program.stages, entry.stage + 1);
    if (reads_other(step.kind)) {
      entry.other = index_of(step.peer);
    } else {
      const auto found = directions.find(step.peer);
      entry.direction = found != directions.end() ? found->second : directions[step.peer] = to(step.peer);
    }
    program.entries.push_back(entry);
  }
  // Blocks that no step touches, but whose place is elsewhere in `out` than in `in`.
  for (std::size_t b = 0; b < schedule.blocks.size(); ++b) {
    const Block& block = schedule.blocks[b];
    if (local[b] != kNone || !is(block.holder, node)) continue;
    if (!is(block.contributor, node)) {
      throw Error(fmt::format("schedule '{}': node {} is to hold block {}, which never comes there", schedule.algorithm,
                              node, b));
    }
    index_of(static_cast<std::int32_t>(b));
  }
  Flags(program).set();
  return program;
}

Executor::Executor(const ExecutionPlan& plan, const NodeProgram& program, const Lane& lane, std::int32_t node,
                   bool in_place, Verbs& verbs)
    : plan_(plan),
      program_(program),
      lane_(lane),
      in_place_(in_place),
      in_(plan.maps->in[static_cast<std::size_t>(node % plan.maps->nodes_per_rank())]),
      out_(plan.maps->out[static_cast<std::size_t>(node % plan.maps->nodes_per_rank())]),
      verbs_(verbs),
      stages_(program.stages),
      values_(program.blocks.size() * stages_),
      outstanding_(static_cast<std::size_t>(plan.schedule->outstanding)) {
  // Lanes that take several lists in turn are at different memories as it is.
  const bool one_list = plan.schedule->variants.empty();
  if (plan.lanes->in_turns() && stages_ == 1 && one_list) plan_turns();
}

void Executor::plan_turns() {
  in_turns_ = true;
  stagger_ = {0, plan_.lanes->all().size()};
  for (const auto& [id, lane] : plan_.lanes->all()) {
    if (&lane == &lane_) break;
    ++stagger_.number;
  }
  std::int64_t largest = 1, stores = 0;
  for (const NodeProgram::LocalBlock& local : program_.blocks) {
    const Piece range = piece(plan_.schedule->blocks[local.block], 0);
    largest = std::max(largest, range.count * static_cast<std::int64_t>(verbs_.item()));
    if (local.holds && (local.changes || (local.used && keeps(local, range)))) ++stores;
  }
  const auto values = [&](std::int64_t bytes) {
    return static_cast<std::size_t>(std::max<std::int64_t>(bytes / largest, 4));
  };
  window_ = values(kWindowBytes);
  stores_left_ = stores * lane_.rounds();
  const std::vector<FirstUse> uses = first_uses();
  const auto sends = std::count_if(program_.entries.begin(), program_.entries.end(),
                                   [](const NodeProgram::Entry& entry) { return entry.kind == StepKind::send; });
  const bool few_loads = 2 * uses.size() <= static_cast<std::size_t>(sends);
  Windows windows{values(kFirstWindowBytes), window_};
  if (!few_loads) {
    std::set<std::int32_t> regions;
    for (const FirstUse& use : uses) regions.insert(use.region);
    const std::size_t wanted = std::min(kValuesOfRegion * regions.size(), values(kMostWindowBytes));
    windows.most = std::max(window_, wanted);
    windows.first = std::max(window_, wanted / 2);
  }
  loads_ = plan_loads(uses, windows, stagger_);
}

/// What the list reads of `in`, in the order in which it does.
std::vector<FirstUse> Executor::first_uses() const {
  std::vector<bool> seen(program_.blocks.size(), false);
  std::vector<FirstUse> uses;
  for (std::size_t i = 0; i < program_.entries.size(); ++i) {
    const NodeProgram::Entry& entry = program_.entries[i];
    const auto use = [&](std::uint32_t b, bool reads) {
      if (seen[b]) return;
      seen[b] = true;
      if (!reads || !program_.blocks[b].contributes) return;
      const Block& block = plan_.schedule->blocks[program_.blocks[b].block];
      uses.push_back({b, plan_.lanes->in_region(block), memory_of(block), i});
    };
    if (reads_other(entry.kind)) use(entry.other, true);
    use(entry.block, entry.kind != StepKind::receive_copy && entry.kind != StepKind::copy);
  }
  return uses;
}

/// The memory in which the lane's part of a block of `in` begins, as a number.
std::int32_t Executor::memory_of(const Block& block) const {
  const Run& run = run_at(in_[static_cast<std::size_t>(plan_.lanes->in_region(block))], piece(block, 0).begin);
  if (run.places.empty()) return -1;
  return run.places.front().cube << 16 | run.places.front().pe;
}

/// What is to be loaded once the list has come to an entry.
void Executor::load_ahead(std::size_t entry, std::int64_t round) {
  for (; reached_ < loads_.from.size() && loads_.from[reached_].entry <= entry; ++reached_) {
    for (; loaded_ < loads_.from[reached_].until; ++loaded_) {
      const std::uint32_t b = loads_.loads[loaded_];
      const Piece range = piece(plan_.schedule->blocks[program_.blocks[b].block], round);
      if (range.count > 0) need(b, round, range);
    }
  }
}

void Executor::store_behind(const Block& block, const Piece& range, const Tile& tile) {
  behind_.push_back({&block, range, tile});
  --stores_left_;
  // The last windows are smaller, so that not much is left to store in the end.
  const std::size_t left = static_cast<std::size_t>(std::max<std::int64_t>(stores_left_, 0));
  if (behind_.size() >= std::min(window_, std::max<std::size_t>(left / 2, 1))) {
    store_window();
  }
  store_next(1);
}

/// Goes on to the window that is full.
void Executor::store_window() {
  store_next(due_.size());
  due_.swap(behind_);
  begin_staggered(due_.begin(), due_.end(), stagger_);
}

void Executor::store_next(std::size_t count) {
  for (; count > 0 && stored_ < due_.size(); --count, ++stored_) {
    const Store& next = due_[stored_];
    store(*next.block, next.piece, next.tile);
    due_[stored_].tile = Tile();
  }
  if (stored_ < due_.size()) return;
  due_.clear();
  stored_ = 0;
}

/// Blocks that no step works on only change place; there is time for them between the steps, from the second one on,
/// and they take turns with what the steps load and store. A list that begins by waiting has time before, for a single
/// one.
void Executor::run() {
  const std::int64_t rounds = lane_.rounds();
  const std::size_t entries = program_.entries.size();
  std::vector<std::uint32_t> idle;
  for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
    if (!program_.blocks[b].used) idle.push_back(b);
  }
  const bool waits = idle.size() == 1 && entries > 0 && receives(program_.entries.front().kind);
  for (std::int64_t first = 0; first < rounds + static_cast<std::int64_t>(stages_) - 1; ++first) {
    if (first < rounds) begin_round(first);
    loaded_ = reached_ = 0;
    const std::size_t before = waits && first == 0 ? 1 : 0;
    std::size_t moved = 0;
    for (std::size_t i = 0; i <= entries; ++i) {
      if (in_turns_ && i < entries) load_ahead(i, first);
      const auto due = [&] { return i == entries || moved * entries < (i + before) * idle.size(); };
      for (; first < rounds && moved < idle.size() && due(); ++moved) move(idle[moved], first);
      if (i == entries) break;
      const NodeProgram::Entry& entry = program_.entries[i];
      const std::int64_t round = first - entry.stage;
      if (round >= 0 && round < rounds) step(entry, round);
    }
  }
  store_window();
  store_next(due_.size());
}

void Executor::move(std::uint32_t b, std::int64_t round) {
  const NodeProgram::LocalBlock& local = program_.blocks[b];
  const Block& block = plan_.schedule->blocks[local.block];
  const Piece range = piece(block, round);
  if (range.count == 0 || !local.contributes || !local.holds || stays(block, range)) return;
  store(block, range, load(block, range));
}

/// Where an all_to_all, or what is custom, writes over what it still has to send: all loads of the round.
void Executor::begin_round(std::int64_t round) {
  if (!in_place_ || (!facts_of(plan_.schedule->op).exchanges() && !plan_.schedule->custom)) return;
  for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
    const NodeProgram::LocalBlock& local = program_.blocks[b];
    if (!local.used || !local.contributes) continue;
    const Piece range = piece(plan_.schedule->blocks[local.block], round);
    if (range.count > 0) need(b, round, range);
  }
}

Executor::Piece Executor::piece(const Block& block, std::int64_t round) const {
  if (plan_.schedule->bundles) {
    // What the round has of the row of all regions, as far as it belongs to the block.
    const Piece row = part_of_row({}, lane_.bundle, round);
    const std::int64_t first = block.in_region * plan_.maps->elements;
    const std::int64_t begin = std::max(row.begin, first);
    const std::int64_t end = std::min(row.begin + row.count, first + block.regions * plan_.maps->elements);
    return begin < end ? Piece{begin - first, end - begin} : Piece{};
  }
  const auto found = lane_.regions.find(plan_.lanes->key_of(block));
  return found == lane_.regions.end() ? Piece{} : part_of_row(block, found->second, round);
}

/// What the round has of the block's units of a row.
Executor::Piece Executor::part_of_row(const Block& block, const std::vector<Lane::Interval>& intervals,
                                      std::int64_t round) const {
  const Lane::Segment& segment = lane_.segments[lane_.segment_of[static_cast<std::size_t>(round)]];
  const std::int64_t length = std::min(segment.end, intervals.back().at + intervals.back().count) - segment.begin;
  if (length <= 0) return {};
  const auto border = [&](std::int64_t unit) {
    return segment.begin + unit_border(length, segment.rounds, round - segment.first, plan_.schedule->units, unit);
  };
  const std::int64_t begin = border(block.begin), end = border(block.end);
  if (begin >= end) return {};
  const auto after = std::upper_bound(intervals.begin(), intervals.end(), begin,
                                      [](std::int64_t at, const Lane::Interval& i) { return at < i.at; });
  const Lane::Interval& interval = *std::prev(after);
  return {interval.begin + begin - interval.at, end - begin};
}

void Executor::step(const NodeProgram::Entry& entry, std::int64_t round) {
  const NodeProgram::LocalBlock& local = program_.blocks[entry.block];
  const Block& block = plan_.schedule->blocks[local.block];
  const Piece range = piece(block, round);
  if (range.count == 0) {
    // A round may have something of a bundle and nothing of the part of it that is cut out last.
    if (plan_.schedule->bundles && entry.last_use_other) end_use(entry.other, round);
    return;
  }
  Tile& tile = value(entry.block, round);
  switch (entry.kind) {
    case StepKind::send:
      keep_pace();
      verbs_.send(entry.direction, need(entry.block, round, range));
      break;
    case StepKind::receive_copy:
      tile = receive(entry, range.count);
      break;
    case StepKind::copy:
      tile = copy(entry, round, range);
      break;
    case StepKind::receive_reduce:
    case StepKind::reduce: {
      const Tile other = entry.kind == StepKind::reduce ? need(entry.other, round, range) : receive(entry, range.count);
      const Tile& own = need(entry.block, round, range);
      tile = own ? verbs_.combine(own, other) : other;
      break;
    }
  }
  if (entry.completes) tile = verbs_.finish(tile);
  if (local.holds && entry.last_change) in_turns_ ? store_behind(block, range, tile) : store(block, range, tile);
  if (entry.last_use) end_use(entry.block, round);
  if (entry.last_use_other) end_use(entry.other, round);
}

Tile Executor::copy(const NodeProgram::Entry& entry, std::int64_t round, const Piece& range) {
  const std::vector<Block>& blocks = plan_.schedule->blocks;
  const Block &block = blocks[program_.blocks[entry.block].block], &other = blocks[program_.blocks[entry.other].block];
  const Piece whole = piece(other, round);
  const Tile& tile = need(entry.other, round, whole);
  if (whole.count == range.count) return tile;
  const std::int64_t shift = (block.in_region - other.in_region) * plan_.maps->elements;
  return verbs_.slice(tile, shift + range.begin - whole.begin, range.count);
}

Tile Executor::receive(const NodeProgram::Entry& entry, std::int64_t count) {
  Tile tile = verbs_.receive(entry.direction, count);
  if (outstanding_ > 0) expected_.push_back(tile);
  return tile;
}

void Executor::keep_pace() {
  if (outstanding_ == 0) return;
  for (; expected_.size() > outstanding_; expected_.pop_front()) verbs_.wait(expected_.front());
}

/// The block's result is the node's own contribution, and lies elsewhere.
bool Executor::keeps(const NodeProgram::LocalBlock& local, const Piece& range) const {
  return local.contributes && local.holds && !local.changes && !stays(plan_.schedule->blocks[local.block], range);
}

void Executor::end_use(std::uint32_t b, std::int64_t round) {
  const NodeProgram::LocalBlock& local = program_.blocks[b];
  Tile& tile = value(b, round);
  if (in_turns_ && local.contributes && local.holds) {
    const Block& block = plan_.schedule->blocks[local.block];
    const Piece range = piece(block, round);
    if (keeps(local, range)) store_behind(block, range, tile);
  }
  tile = Tile();
}

const Tile& Executor::need(std::uint32_t b, std::int64_t round, const Piece& range) {
  Tile& tile = value(b, round);
  const NodeProgram::LocalBlock& local = program_.blocks[b];
  if (tile || !local.contributes) return tile;
  const Block& block = plan_.schedule->blocks[local.block];
  tile = load(block, range);
  if (!in_turns_ && keeps(local, range)) store(block, range, tile);
  return tile;
}

/// Where the first of these elements lies in `in`; the others follow it.
const Run& Executor::run_of(const Block& block, const Piece& range) const {
  const std::int64_t region = plan_.lanes->in_region(block) + range.begin / plan_.maps->elements;
  return run_at(in_[static_cast<std::size_t>(region)], range.begin % plan_.maps->elements);
}

Tile Executor::load(const Block& block, const Piece& range) {
  const Run& run = run_of(block, range);
  const std::int64_t begin = range.begin % plan_.maps->elements - run.begin;
  const std::uint64_t skip = static_cast<std::uint64_t>(begin) * verbs_.item();
  Tile sum;
  each_address(run, [&](std::uint64_t offset) {
    const Tile term = verbs_.load(verbs_.in() + offset + skip, range.count);
    sum = sum ? verbs_.combine(sum, term) : term;
  });
  return plan_.schedule->nodes == 1 ? verbs_.finish(sum) : sum;
}

void Executor::store(const Block& block, const Piece& range, const Tile& tile) {
  const RegionMap& out = out_[static_cast<std::size_t>(plan_.lanes->out_region(block))];
  for (std::int64_t at = range.begin; at < range.begin + range.count;) {
    const Run& run = run_at(out, at);
    const std::int64_t count = std::min(run.end(), range.begin + range.count) - at;
    const Tile part = count == range.count ? tile : verbs_.slice(tile, at - range.begin, count);
    const std::uint64_t skip = static_cast<std::uint64_t>(at - run.begin) * verbs_.item();
    each_address(run, [&](std::uint64_t offset) { verbs_.store(verbs_.out() + offset + skip, part); });
    at += count;
  }
}

/// Whether the block's part of `out` is where its part of `in` is.
bool Executor::stays(const Block& block, const Piece& range) const {
  if (!in_place_) return false;
  const Run& in = run_at(in_[static_cast<std::size_t>(plan_.lanes->in_region(block))], range.begin);
  const Run& out = run_at(out_[static_cast<std::size_t>(plan_.lanes->out_region(block))], range.begin);
  const auto address = [&](const Run& run) {
    return run.places.front().offset + static_cast<std::uint64_t>(range.begin - run.begin) * verbs_.item();
  };
  if (out.places.empty()) return true;
  return one_address(in) && one_address(out) && address(in) == address(out);
}

}  // namespace kernbench::ccl
