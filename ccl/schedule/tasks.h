#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "ccl/contract/schedule.h"
#include "ccl/schedule/index.h"
#include "ccl/schedule/lattice.h"
#include "tlm/kernel/operations.h"

/// From trees and paths to lists: messages with what each waits for, times for them, and the lists of all nodes.
namespace kernbench::ccl {

/// Who can send to whom, and what messages share.
class Fabric {
 public:
  struct Link {
    std::int32_t a = 0, b = 0;  ///< nodes, a < b
    std::int32_t width = 1;     ///< ticks of a unit
    std::int32_t resource = 0;  ///< links of one resource share its two directions
    std::int32_t lambda = 0;    ///< assumed latency, ticks
    bool between_sips = true;
  };
  explicit Fabric(std::int32_t nodes) : adjacency_(static_cast<std::size_t>(nodes)) {}

  std::int32_t nodes() const { return static_cast<std::int32_t>(adjacency_.size()); }
  /// A link with a resource of its own, or with that of an earlier link. Returns its number.
  std::int32_t add(std::int32_t a, std::int32_t b, std::int32_t width = 1, bool between_sips = true,
                   std::int32_t resource = -1);
  /// Twice the link's number, plus one from b to a. Throws std::invalid_argument if there is none.
  std::int32_t arc(std::int32_t from, std::int32_t to) const;
  const Link& link(std::int32_t arc) const { return links_[static_cast<std::size_t>(arc / 2)]; }
  const std::vector<Link>& links() const { return links_; }
  std::int32_t resources() const { return resources_; }

  /// Assumes a latency of `chunks` times `units` units on every link.
  void assume(std::int32_t chunks, std::int32_t units);
  /// Assumes latencies in ticks, by level.
  void assume_ticks(std::int32_t sip, std::int32_t cube);
  /// Assumes a latency in ticks on one link.
  void assume_way(std::int32_t arc, std::int32_t ticks);

  static Fabric of(const Graph& graph);

 private:
  std::vector<Link> links_;
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> adjacency_;  ///< (other node, arc), by node
  std::int32_t resources_ = 0;
};

/// One message, or one local step.
struct Task {
  std::int32_t arc = -1;  ///< of the fabric; -1: local
  std::int32_t from = 0, to = 0;
  std::int32_t block = 0;
  std::int32_t source = 0;    ///< local: the other block
  bool reduce = false;        ///< adds at the receiver
  std::int64_t priority = 0;  ///< of those that are ready, the smallest goes first
  std::int64_t release = 0;   ///< ticks: does not start before; list_schedule only, for what waits for no other task
};

/// Messages of an operation, and which must have arrived before which may leave. Keeps a reference to the fabric.
class TaskGraph {
 public:
  TaskGraph(const Fabric& fabric, CollectiveOp op) : fabric_(fabric), op_(op) {}

  std::int32_t add_block(const Block& block);
  /// What one node gives to all, gets from all, or both.
  std::int32_t add_block_of(std::int32_t owner, std::int32_t begin, std::int32_t end);
  /// What one node alone gets from another.
  std::int32_t add_block_between(std::int32_t from, std::int32_t to, std::int32_t begin, std::int32_t end);
  std::int32_t add(std::int32_t from, std::int32_t to, std::int32_t block, bool reduce, std::int64_t priority);
  /// Steps on one node; they take no time.
  std::int32_t add_local(std::int32_t node, std::int32_t block, std::int32_t source, bool reduce);
  void order(std::int32_t before, std::int32_t after) { edges_.emplace_back(before, after); }

  static constexpr std::int64_t kLevel = std::int64_t{1} << 32;  ///< priority of a hop; `base` orders those alike
  static constexpr std::int64_t kSecond = kLevel << 12;          ///< of what follows after all hops of a first half
  static constexpr std::int64_t kGroup = kSecond << 2;           ///< of a group of pieces

  /// Pieces of one group go by distance, groups one after the other: all regions are read and written in turn, and
  /// the memories that hold them with them. The first and the last groups are single pieces, since nothing else is
  /// under way while the first values are loaded and the last ones are stored.
  static std::int64_t base_of_piece(std::int32_t piece, std::int32_t pieces) {
    const auto from_end = [](std::int32_t i) { return i < 2 ? i : 1 + i / kPiecesOfGroup; };
    if (pieces < kManyPieces) return piece / (kManyPieces / 2) * kGroup;
    return (2 * piece < pieces ? from_end(piece) : kLastGroup - from_end(pieces - 1 - piece)) * kGroup;
  }
  /// The same where each piece is a number of groups, one for each of its parts.
  static std::int64_t base_of_part(std::int32_t piece, std::int32_t part, std::int32_t parts) {
    return (std::int64_t{piece} * parts + part) * kGroup;
  }
  /// Even, for the two ways round to a ring's opposite node; few, so that what a lane loads ahead is of all regions.
  static constexpr std::int32_t kPiecesOfGroup = 2;
  static constexpr std::int32_t kManyPieces = 8;  ///< fewer are one group or two: pieces one after the other only wait
  static constexpr std::int64_t kLastGroup = 1 << 14;

  /// Up the tree, adding. `base` is added to every priority: largest distance to the root first.
  /// Returns the tasks that reach the root.
  std::vector<std::int32_t> reduce_up(const Tree& tree, std::int32_t block, std::int64_t base);
  /// Down the tree, copying, after `before`: largest remaining height first.
  void copy_down(const Tree& tree, std::int32_t block, std::int64_t base, const std::vector<std::int32_t>& before);
  /// Up what is combined, then down what all get.
  void up_and_down(const Tree& tree, std::int32_t block, std::int64_t up, std::int64_t down);
  /// Along a path of nodes, copying: largest remaining distance first.
  void along(const std::vector<std::int32_t>& path, std::int32_t block, std::int64_t base);

  /// Holds back what nodes give to a group until the busiest link comes to the group before it. Links with less to do
  /// would run ahead with the data of few nodes, and all that receive those write to few memories.
  void hold_back_groups();

  const Fabric& fabric() const { return fabric_; }
  CollectiveOp op() const { return op_; }
  const OperationFacts& facts() const { return facts_of(op_); }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<std::pair<std::int32_t, std::int32_t>>& edges() const { return edges_; }
  std::int64_t ticks(std::int32_t task) const;  ///< on its link

 private:
  const Fabric& fabric_;
  CollectiveOp op_;
  std::vector<Block> blocks_;
  std::vector<Task> tasks_;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
};

/// Start of every task.
struct Times {
  std::vector<std::int64_t> start;
  std::int64_t period = 0;
  std::int64_t length = 0;
};

/// Each link takes, of the messages that are ready, the one with the smallest priority. `ports`: a node sends one
/// message at a time and receives one at a time, over all its links.
Times list_schedule(const TaskGraph& graph, bool ports = false);

/// A schedule of one round that can begin again every `period` ticks, period = the load of the busiest link
/// (docs/constructions.md, Packings), or `least_period` if that is more. `tries`: random orders of ties, of which the
/// shortest is kept.
Times modulo_schedule(const TaskGraph& graph, int tries, std::int64_t least_period = 0);

/// Lists of all nodes from the times of all messages. Marks completions and finds the queue slots that are needed.
Schedule assemble(const TaskGraph& graph, const Times& times, std::int32_t units);

}  // namespace kernbench::ccl
