#include "runtime/host_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/call_order.h"
#include "runtime/runtime_impl.h"
#include "tlm/observe/find_cycle.h"

namespace kernbench {

namespace {

/// Vertices are the ranks, then the pending messages in order of submission.
class HostWaits {
 public:
  explicit HostWaits(const RuntimeImpl& runtime) : ranks_(runtime.program.scheduler().workers().size()) {
    for (const auto& [id, state] : runtime.messages.pending()) states_.push_back(state.get());
    next_.resize(ranks_ + states_.size());
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (const int other : runtime.groups.absent_at_barrier(static_cast<int>(rank)))
        wait_for_rank(rank, other, "reached the barrier");
    }
    waits_of_ranks(runtime.messages);
    streams();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i]->order != nullptr) call(i);
    }
  }

  std::vector<std::string> cycle() const {
    std::vector<std::size_t> vertices = find_cycle(next_);
    std::rotate(vertices.begin(), std::min_element(vertices.begin(), vertices.end()), vertices.end());
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::size_t from = vertices[i], to = vertices[(i + 1) % vertices.size()];
      lines.push_back(fmt::format("{} waits for {}", name(from), texts_.at({from, to})));
    }
    return lines;
  }

 private:
  void wait(std::size_t from, std::size_t to, std::string text) {
    if (texts_.emplace(std::pair(from, to), std::move(text)).second) next_[from].push_back(to);
  }
  void wait_for_rank(std::size_t from, int rank, const char* done) {
    const auto to = static_cast<std::size_t>(rank);
    if (to < ranks_) wait(from, to, fmt::format("rank {}, which has not {}", rank, done));
  }

  std::string name(std::size_t vertex) const {
    if (vertex < ranks_) return fmt::format("rank {}", vertex);
    const Handle::State& state = *states_[vertex - ranks_];
    return state.describe() + (state.order == nullptr ? "" : fmt::format(" ({})", state.order->name(state.call)));
  }

  /// The message that each rank waits for, if it waits for one alone.
  void waits_of_ranks(const Messages& messages) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto awaited = std::find(states_.begin(), states_.end(), messages.awaited_by(static_cast<int>(rank)));
      if (awaited == states_.end()) continue;
      const std::size_t to = ranks_ + static_cast<std::size_t>(awaited - states_.begin());
      wait(rank, to, name(to));
    }
  }

  void streams() {
    std::map<Scheduling::Line, std::size_t> heads;
    behind_.resize(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i]->message == nullptr) continue;
      const auto [head, is_head] = heads.emplace(Scheduling::Line{states_[i]->sip, states_[i]->message->stream}, i);
      if (is_head) continue;
      wait(ranks_ + i, ranks_ + head->second, "what stands before it in its stream");
      behind_[i] = true;
    }
  }

  void call(std::size_t i) {
    const Handle::State& state = *states_[i];
    for (const int rank : state.order->absent(state.call)) wait_for_rank(ranks_ + i, rank, "called it");
    if (!state.order->complete(state.call)) return;
    for (std::size_t other = 0; other < states_.size(); ++other) {
      const bool part = states_[other]->order == state.order && states_[other]->call == state.call;
      if (part && other != i && behind_[other])
        wait(ranks_ + i, ranks_ + other, fmt::format("its part on sip{}, which has not begun", states_[other]->sip));
    }
  }

  const std::size_t ranks_;
  std::vector<const Handle::State*> states_;
  std::vector<bool> behind_;  // by message: another one stands before it
  std::vector<std::vector<std::size_t>> next_;
  std::map<std::pair<std::size_t, std::size_t>, std::string> texts_;  // of the edges
};

}  // namespace

std::vector<std::string> host_cycle(const RuntimeImpl& runtime) { return HostWaits(runtime).cycle(); }

}  // namespace kernbench
