#pragma once
#include <optional>
#include <vector>

#include "models/pe/compute/composite_plan.h"
#include "models/pe/engine_queues.h"
#include "models/pe/services.h"

namespace kernbench::pe {

/// Where the sequencer puts its tiles: the engines.
class TileSink {
 public:
  virtual ~TileSink() = default;
  virtual bool tile_fits(const Op& tile) const = 0;
  virtual void issue_tile(Op& tile) = 0;
};

/// Runs the composite GEMMs of one kernel context, one after another: expands each into tile ops and feeds them to the
/// engines' queues in program order, as far as they have room, at no dispatch cost. A scoreboard of its own on the
/// composite's buffers keeps the tiles in order; the composite as a whole holds its operands in the kernel's
/// scoreboard.
class Composite {
 public:
  Composite(Services& services, OpSink& sink, TileSink& engines)
      : services_(services), sink_(sink), engines_(engines) {}
  ~Composite();
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;

  bool full() const { return waiting_.size >= services_.config.gemm.queue_depth; }
  void enqueue(Op& op);
  void advance();  ///< an op may have become ready, or an engine has room
  void tile_reads_done(Op& tile, std::vector<Hazard*>& ready);
  void tile_completed(Op& tile, std::vector<Hazard*>& ready);  ///< deletes the tile
  /// Of a failed kernel: takes out what is queued; the composite under way issues no more tiles.
  void abandon(const KernelContext& context, std::vector<Op*>& removed);
  bool busy() const { return active_ != nullptr; }

 private:
  void issue(Op& tile);
  void finish_when_done();

  Services& services_;
  OpSink& sink_;
  TileSink& engines_;
  OpQueue waiting_;
  Op* active_ = nullptr;
  std::optional<CompositePlan> plan_;
  std::unique_ptr<Op> next_;  // that has no room yet
  Scoreboard scoreboard_;
  std::vector<Op*> in_flight_;
  bool advancing_ = false, finishing_ = false;
};

}  // namespace kernbench::pe
