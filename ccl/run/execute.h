#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ccl/contract/schedule.h"
#include "ccl/contract/verbs.h"
#include "ccl/data/lanes.h"
#include "ccl/data/load_windows.h"
#include "ccl/data/region_map.h"

namespace kernbench::ccl {

/// One node's list, ready to run: the same for all of its lanes and rounds.
struct NodeProgram {
  struct Entry {
    StepKind kind = StepKind::send;
    bool completes = false;
    bool last_change = false;     ///< holders store the value after it
    bool last_use = false;        ///< of the block's value in a round
    bool last_use_other = false;  ///< copy, reduce: of `other`'s
    std::uint32_t block = 0;      ///< index into `blocks`
    std::uint32_t other = 0;      ///< copy, reduce: the block read
    std::uint32_t stage = 0;      ///< in pass R it does round R - stage
    Direction direction;          ///< send, receive
  };
  struct LocalBlock {
    std::uint32_t block = 0;  ///< index into Schedule::blocks
    bool contributes = false, holds = false;
    bool changes = false;  ///< some step makes a new value of it
    bool used = false;     ///< some step works on it
  };
  std::vector<Entry> entries;
  std::vector<LocalBlock> blocks;
  std::uint32_t stages = 1;  ///< rounds in flight

  bool empty() const { return entries.empty() && blocks.empty(); }
};

/// `variant`: see Schedule::variants, at most as many as there are. `to`: the queue to a node. Throws Error where the
/// node is to store a block that it neither has nor gets; other mistakes of lists are check()'s to find.
NodeProgram make_program(const Schedule& schedule, std::int32_t node, std::size_t variant,
                         const std::function<Direction(std::int32_t)>& to);

/// What all lanes of all ranks share. Without elements there is neither schedule nor lane, and nothing to execute.
struct ExecutionPlan {
  std::shared_ptr<const CallMaps> maps;
  std::shared_ptr<const Schedule> schedule;
  std::optional<Lanes> lanes;
};

/// Runs a node's list on one lane.
///
/// A block's value is a tile from its first use to its last: what is received goes on from TCM, and memory is read once
/// per contribution and written once per result. Loads stand where their value is first needed; the PE runs ahead of
/// what it waits for, so they are early.
///
/// Where regions lie on few PEs each and every lane has a part of all of them (docs/collective_algorithms.md, Lanes),
/// lanes take turns at those PEs: a lane loads ahead of its steps and stores behind them, window by window, each in an
/// order of its own (decision 0170).
class Executor {
 public:
  /// `lane`: one of plan.lanes. `node`: of the schedule. `in_place`: `in` and `out` are one tensor. `verbs` know where
  /// the call's tensors are on this rank. All outlive it. REQUIRES: the plan has a schedule and lanes.
  Executor(const ExecutionPlan& plan, const NodeProgram& program, const Lane& lane, std::int32_t node, bool in_place,
           Verbs& verbs);
  void run();

 private:
  struct Piece {
    std::int64_t begin = 0, count = 0;  ///< elements from the block's first region on
  };
  Piece piece(const Block& block, std::int64_t round) const;
  Piece part_of_row(const Block& block, const std::vector<Lane::Interval>& intervals, std::int64_t round) const;
  Tile copy(const NodeProgram::Entry& entry, std::int64_t round, const Piece& range);
  const Run& run_of(const Block& block, const Piece& range) const;
  void step(const NodeProgram::Entry& entry, std::int64_t round);
  void begin_round(std::int64_t round);
  void move(std::uint32_t block, std::int64_t round);
  Tile& value(std::uint32_t block, std::int64_t round) {
    return values_[block * stages_ + static_cast<std::size_t>(round) % stages_];
  }
  /// The block's value, loaded if it is this node's contribution and was not needed before.
  const Tile& need(std::uint32_t block, std::int64_t round, const Piece& piece);
  bool keeps(const NodeProgram::LocalBlock& local, const Piece& piece) const;
  void end_use(std::uint32_t block, std::int64_t round);
  Tile load(const Block& block, const Piece& piece);
  void store(const Block& block, const Piece& piece, const Tile& tile);
  bool stays(const Block& block, const Piece& piece) const;
  Tile receive(const NodeProgram::Entry& entry, std::int64_t count);
  void keep_pace();

  // Loads ahead and stores behind, where lanes take turns.
  void plan_turns();
  std::vector<FirstUse> first_uses() const;
  std::int32_t memory_of(const Block& block) const;
  void load_ahead(std::size_t entry, std::int64_t round);
  void store_behind(const Block& block, const Piece& piece, const Tile& tile);
  void store_window();
  void store_next(std::size_t count);

  const ExecutionPlan& plan_;
  const NodeProgram& program_;
  const Lane& lane_;
  const bool in_place_;
  const std::vector<RegionMap>&in_, &out_;
  Verbs& verbs_;
  std::size_t stages_;
  std::vector<Tile> values_;       // by block, then round
  const std::size_t outstanding_;  // Schedule::outstanding
  std::deque<Tile> expected_;      // messages that may not have come yet

  struct Store {
    const Block* block = nullptr;
    Piece piece;
    Tile tile;
  };
  bool in_turns_ = false;
  Stagger stagger_;
  std::size_t window_ = 0;                // values of a window
  LoadPlan loads_;                        // of blocks of the program
  std::size_t loaded_ = 0, reached_ = 0;  // of loads_.loads, of loads_.from
  std::vector<Store> behind_, due_;       // the window that fills, the one that is being stored
  std::size_t stored_ = 0;                // of due_
  std::int64_t stores_left_ = 0;
};

}  // namespace kernbench::ccl
