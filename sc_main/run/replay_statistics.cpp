#include "sc_main/run/replay_statistics.h"

#include <utility>
#include <vector>

namespace kernbench {

struct ReplayStatistics::Use final : ReplayRecord::Done {
  Ps since = 0;
  bool links = false;
  std::vector<topology::PlaceUse> places;
};

std::unique_ptr<ReplayRecord::Done> ReplayStatistics::begin(const Batch& batch) {
  auto use = std::make_unique<Use>();
  use->since = now_();
  use->links = batch.links;
  use->places = usage_.done(static_cast<std::uint16_t>(batch.sip), use->since, batch.links);
  return use;
}

void ReplayStatistics::end(int sip, Done& done) {
  Use& use = static_cast<Use&>(done);
  std::vector<topology::PlaceUse> now = usage_.done(static_cast<std::uint16_t>(sip), use.since, use.links);
  for (std::size_t i = 0; i < use.places.size(); ++i) {
    const topology::PlaceUse& before = use.places[i];
    now[i].busy -= before.busy;
    now[i].bytes -= before.bytes;
    now[i].messages -= before.messages;
    for (std::size_t reason = 0; reason < before.waited.size(); ++reason)
      now[i].waited[reason] -= before.waited[reason];
  }
  use.places = std::move(now);
}

void ReplayStatistics::simulated(Work work, const Done& done, Ps, bool afresh) {
  repeated_.simulated({work.kind, work.part}, static_cast<const Use&>(done).places, afresh);
}

void ReplayStatistics::repeated(Work work, const Batch& batch, Ps begin, Ps end) {
  repeated_.repeated({work.kind, work.part}, static_cast<std::uint16_t>(batch.sip), begin, end);
}

}  // namespace kernbench
