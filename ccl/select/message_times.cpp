#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ccl/contract/grid.h"
#include "ccl/run/pe_to_pe.h"
#include "ccl/schedule/level_cost.h"
#include "ccl/schedule/machine.h"
#include "ccl/select/source.h"

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
    const double way = head_way(from, to);
    double bytes = 0, count = 0;
    for (const PeMessage& m : messages_.between(from, to)) {
      const double its = static_cast<double>(m.count) * item_;
      bytes += its;
      ++count;
      at_pe(from, m.from, its);
      at_pe(to, m.to, its);
      last_ = std::max(last_, way + its / r_.sip.bytes_per_second);
      if (r_.column_bytes_per_second <= 0) continue;
      column(kOut, from, m.from).push_back({way, its / r_.column_bytes_per_second});
      column(kIn, to, m.to).push_back({way, its / r_.column_bytes_per_second});
    }
    const Passage passage{way, bytes / r_.sip.bytes_per_second + count * r_.sip.message_seconds};
    if (r_.kind == kSwitch) {
      shared_[{kPortOut, from, 0}].push_back(passage);
      shared_[{kPortIn, to, 0}].push_back(passage);
      return;
    }
    const std::vector<std::int32_t> sips = sip_way(r_, from, to);
    for (std::size_t i = 0; i + 1 < sips.size(); ++i) shared_[{kLink, sips[i], sips[i + 1]}].push_back(passage);
  }

  /// Something that several share is busy for longer than the longest way takes.
  bool crowded() const {
    double way = 0, most = 0;
    for (const auto& [what, passages] : shared_) {
      double takes = 0;
      for (const Passage& passage : passages) {
        takes += passage.takes;
        way = std::max(way, passage.way);
      }
      most = std::max(most, takes);
    }
    return most > way;
  }

  /// When the last message is there, by whatever keeps it the longest.
  double seconds() {
    double last = last_;
    for (auto& [what, passages] : shared_) last = std::max(last, end_of(passages));
    const auto busiest = std::max_element(pes_.begin(), pes_.end());
    return busiest == pes_.end() ? last : std::max(last, *busiest);
  }

 private:
  enum Kind : std::int32_t { kOut, kIn, kLink, kPortOut, kPortIn };
  /// Of messages through something that several share: on an idle network the first byte would reach its end at `way`.
  struct Passage {
    double way = 0, takes = 0;
  };
  using Passages = std::vector<Passage>;

  /// Those that come from near pass before those from far arrive.
  static double end_of(Passages& passages) {
    std::sort(passages.begin(), passages.end(), [](const Passage& a, const Passage& b) { return a.way < b.way; });
    double end = 0;
    for (const Passage& passage : passages) end = std::max(end, passage.way) + passage.takes;
    return end;
  }

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  void at_pe(int rank, std::int32_t place, double bytes) {
    const double moved = r_.lane_bytes_per_second > 0 ? bytes / r_.lane_bytes_per_second : 0;
    pes_[index(rank) * map_.pes_per_sip() + index(place)] += std::max(kOpsOfEnd * r_.issue_seconds, moved);
  }
  /// Of a packet on its own between two ranks: the longer one of the first message's PEs and of the last one's.
  double head_way(int from, int to) const {
    if (!map_.packet_latency) return r_.sip.hop_seconds;
    const std::vector<PeMessage>& all = messages_.between(from, to);
    const auto way = [&](const PeMessage& m) {
      const auto packet =
          static_cast<std::uint32_t>(std::min<double>(static_cast<double>(m.count) * item_, kMostPacket));
      return ccl::seconds(map_.packet_latency(node(from, m.from), node(to, m.to), packet));
    };
    return all.empty() ? 0 : std::max(way(all.front()), way(all.back()));
  }
  Passages& column(Kind kind, int rank, std::int32_t place) {
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
  double last_ = 0;          ///< of messages that meet no others
  std::vector<double> pes_;  // by rank and PE
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Passages> shared_;  // columns, links, ports
};

class MessageTimes final : public TimeSource {
 public:
  explicit MessageTimes(const CallBinder& calls)
      : map_(calls.map()), group_(calls.group()), machine_(calls.machine()) {}

  void predict(const GroupAlgorithm& algorithm, const TimeQuery& query, Candidate& candidate) override {
    const int ranks = static_cast<int>(group_.sips.size());
    const PeMessages& messages = *pe_messages(map_, group_, query.call);
    const PlanRequest machine = algorithm.seen(machine_);
    MessageLoads loads(map_, group_, machine, messages, size_of(query.call.tensors.call.dtype));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (messages.sends(from, to)) loads.add(from, to);
      }
    }
    candidate.known = true;
    const double moving = loads.seconds();
    if (query.call.in_place && moving <= 0) return;
    const double engines = machine.send_seconds + machine.receive_seconds + 2 * kOpsOfEnd * machine.issue_seconds;
    candidate.ns = (machine.load_seconds + machine.store_seconds + engines + moving) * 1e9;
    if (loads.crowded()) candidate.little = "sends in no order";
  }

 private:
  const MachineMap& map_;
  const Group& group_;
  const PlanRequest& machine_;
};

}  // namespace

std::unique_ptr<TimeSource> message_times(const CallBinder& calls) { return std::make_unique<MessageTimes>(calls); }

}  // namespace kernbench::ccl
