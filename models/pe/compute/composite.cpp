#include "models/pe/compute/composite.h"

#include <algorithm>

#include "models/pe/cpu/kernel_context.h"
#include "models/pe/op_log.h"

namespace kernbench::pe {

Composite::~Composite() {
  for (Op* tile : in_flight_) delete tile;
}

void Composite::enqueue(Op& op) {
  waiting_.push(op);
  advance();
}

void Composite::advance() {
  if (advancing_) return;
  advancing_ = true;
  if (active_ == nullptr && waiting_.head != nullptr && waiting_.head->pending == 0) {
    active_ = &waiting_.pop();
    active_->started = services_.now();
    plan_.emplace(services_.config, active_->detail->gemm, active_->detail->workspace.tcm);
    sink_.room();
  }
  while (plan_ && !active_->aborted) {
    if (next_ == nullptr) {
      next_ = std::make_unique<Op>();
      next_->id = active_->id;
      next_->context = active_->context;
      next_->composite = this;
      if (!plan_->next(*next_)) {
        next_ = nullptr;
        plan_.reset();
        break;
      }
    }
    if (!engines_.tile_fits(*next_)) break;
    issue(*next_.release());
  }
  finish_when_done();
  advancing_ = false;
}

void Composite::issue(Op& tile) {
  Range ranges[4];
  std::size_t count = 0;
  for (std::size_t i = 0; i < tile.inputs; ++i) {
    if (i == 2 && tile.kind == OpKind::dot && !tile.accumulates) continue;
    ranges[count++] = Range::of(Range::Space::tcm, tile.in[i].tcm, tile.in[i].bytes(), false);
  }
  ranges[count++] = Range::of(Range::Space::tcm, tile.out.tcm, tile.out.bytes(), true);
  scoreboard_.enter(tile, ranges, count);
  in_flight_.push_back(&tile);
  engines_.issue_tile(tile);
}

void Composite::tile_reads_done(Op& tile, std::vector<Hazard*>& ready) {
  scoreboard_.release(tile, Scoreboard::What::reads, ready);
}

void Composite::tile_completed(Op& tile, std::vector<Hazard*>& ready) {
  scoreboard_.release(tile, Scoreboard::What::all, ready);
  in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), &tile));
  delete &tile;
}

void Composite::finish_when_done() {
  if (active_ == nullptr || !in_flight_.empty() || finishing_) return;
  if (plan_ && !active_->aborted) return;
  finishing_ = true;
  active_->cause = services_.cause();
  services_.queue.at(services_.now(), [this] {
    services_.follow(active_->cause);
    Op& op = *active_;
    active_ = nullptr;
    next_ = nullptr;
    plan_.reset();
    finishing_ = false;
    log_op(services_, op, "composite");
    sink_.completed(op);
    advance();
  });
}

void Composite::abandon(const KernelContext& context, std::vector<Op*>& removed) {
  waiting_.remove(context, removed);
  scoreboard_.clear();
  advance();
}

}  // namespace kernbench::pe
