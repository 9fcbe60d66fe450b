#include "ccl/message_estimate.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ccl/grid.h"
#include "ccl/legal.h"
#include "ccl/level_cost.h"
#include "ccl/schedule/machine.h"

namespace kernbench::ccl {
namespace {

/// Ops that PE_CPU issues for a message: its load and send, or its receive and store.
constexpr double kOpsOfEnd = 2;

/// Bytes of packets whose way is asked for.   assumed: a message is several, the last of which comes behind the others
constexpr std::uint32_t kMostPacket = 256;

class MessageLoads {
 public:
  MessageLoads(const MachineMap& map, const Group& group, const PlanRequest& machine, const PeMessages& messages,
               std::size_t item)
      : map_(map),
        group_(group),
        r_(machine),
        messages_(messages),
        item_(static_cast<double>(item)),
        ranks_(static_cast<int>(group.sips.size())),
        pes_(index(ranks_) * map.pes_per_sip(), 0) {}

  void add(int from, int to) {
    double bytes = 0, count = 0;
    for (const PeMessage& m : messages_.between(from, to)) {
      const double its = static_cast<double>(m.count) * item_;
      bytes += its;
      ++count;
      at_pe(from, m.from, its);
      at_pe(to, m.to, its);
      if (r_.column_bytes_per_second <= 0) continue;
      column(kOut, from, m.from) += its / r_.column_bytes_per_second;
      column(kIn, to, m.to) += its / r_.column_bytes_per_second;
    }
    const double takes = bytes / r_.sip.bytes_per_second + count * r_.sip.message_seconds;
    if (r_.kind == kSwitch) {
      shared_[{kPortOut, from, 0}] += takes;
      shared_[{kPortIn, to, 0}] += takes;
      return;
    }
    const std::vector<std::int32_t> way = sip_way(r_, from, to);
    for (std::size_t i = 0; i + 1 < way.size(); ++i) shared_[{kLink, way[i], way[i + 1]}] += takes;
  }

  double busiest() const {
    double most = pes_.empty() ? 0 : *std::max_element(pes_.begin(), pes_.end());
    for (const auto& [what, seconds] : shared_) most = std::max(most, seconds);
    return most;
  }

  /// Of a message on its own: the longest.
  double way(int from, int to) const {
    double most = 0;
    if (!map_.packet_latency) return r_.sip.hop_seconds;
    for (const PeMessage& m : messages_.between(from, to)) {
      const auto bytes = static_cast<double>(m.count) * item_;
      const auto packet = static_cast<std::uint32_t>(std::min<double>(bytes, kMostPacket));
      const double rest = (bytes - packet) / r_.sip.bytes_per_second;
      most = std::max(most, rest + seconds(map_.packet_latency(node(from, m.from), node(to, m.to), packet)));
    }
    return most;
  }

 private:
  enum Kind : std::int32_t { kOut, kIn, kLink, kPortOut, kPortIn };
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  void at_pe(int rank, std::int32_t place, double bytes) {
    const double moved = r_.lane_bytes_per_second > 0 ? bytes / r_.lane_bytes_per_second : 0;
    pes_[index(rank) * map_.pes_per_sip() + index(place)] += std::max(kOpsOfEnd * r_.issue_seconds, moved);
  }
  double& column(Kind kind, int rank, std::int32_t place) {
    return shared_[{kind, rank, place / map_.pes_per_cube % map_.cube_w}];
  }
  NodeId node(int rank, std::int32_t place) const {
    return map_.pe({group_.sips[index(rank)], static_cast<std::uint16_t>(place / map_.pes_per_cube),
                    static_cast<std::uint16_t>(place % map_.pes_per_cube)});
  }

  const MachineMap& map_;
  const Group& group_;
  const PlanRequest& r_;
  const PeMessages& messages_;
  const double item_;
  const int ranks_;
  std::vector<double> pes_;                                                        // by rank and PE
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, double> shared_;  // columns, links, ports
};

}  // namespace

double estimate_messages(const MachineMap& map, const Group& group, Scope scope, const PlanRequest& machine,
                         const CallTensors& tensors) {
  const CollectiveCall& call = tensors.call;
  const int ranks = static_cast<int>(group.sips.size());
  const std::size_t item = size_of(call.dtype);
  const bool in_place = tensors.in.base == tensors.out.base && same_geometry(tensors.in, tensors.out);
  const PeMessages messages(map, group, make_call_maps(map, call.op, scope, ranks, tensors.in, tensors.out, item), call,
                            in_place);
  MessageLoads loads(map, group, machine, messages, item);
  // On grids without ends all ranks are alike; on others the first is a corner.
  const int end = rooted(call.op) ? call.root : 0;
  double way = 0;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (!messages.sends(from, to)) continue;
      loads.add(from, to);
      if (from == end || to == end) way = std::max(way, loads.way(from, to));
    }
  }
  const double engines = machine.send_seconds + machine.receive_seconds + 2 * kOpsOfEnd * machine.issue_seconds;
  return machine.load_seconds + machine.store_seconds + engines + way + loads.busiest();
}

}  // namespace kernbench::ccl
