#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tlm/kernel/direction.h"

namespace kernbench::pe {

struct QueuePair;  // models/pe/ipcq/ipcq.h

/// The queue pairs of a PE by process group and direction, as its special function registers hold them.
class DirectionTable {
 public:
  void set(std::uint16_t group, Direction direction, QueuePair* pair) { pairs_[{group, direction}] = pair; }
  /// Null if the group has no neighbour there.
  QueuePair* find(std::uint16_t group, Direction direction) const {
    const auto found = pairs_.find({group, direction});
    return found == pairs_.end() ? nullptr : found->second;
  }
  /// "N, E, global_W"; empty for a group without neighbours.
  std::string list(std::uint16_t group) const {
    std::string text;
    for (const auto& [key, pair] : pairs_) {
      if (key.first == group) text += (text.empty() ? "" : ", ") + key.second.str();
    }
    return text;
  }

 private:
  std::map<std::pair<std::uint16_t, Direction>, QueuePair*> pairs_;
};

}  // namespace kernbench::pe
