#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "tlm/observe/cause.h"

namespace kernbench {

/// The chains of causes of repeats: each goes on where the host was when it began to wait, with the parts of the chain
/// of the last occurrence that was simulated, its largest first, in the time that the repeat took. Places are those of
/// its own SIP.
class ReplayCauses final : public ReplayRecord {
 public:
  /// `log` outlives it. `now`: of the host.
  ReplayCauses(CauseLog& log, std::function<Ps()> now) : log_(log), now_(std::move(now)) {}
  std::unique_ptr<Done> begin(const Batch& batch) override;
  void end(int sip, Done& done) override;
  void simulated(Work work, const Done& done, Ps from, bool afresh) override;
  void repeated(Work, const Batch&, Ps, Ps) override {}
  void waits(std::uint64_t message) override;
  void hears(std::uint64_t message, Work work, int sip) override;

 private:
  using Segments = std::vector<CauseLog::Segment>;
  struct Chain;
  struct Known {
    int sip = 0;
    Segments parts;  ///< as CauseLog::sums
    Ps time = 0;     ///< their sum
  };
  std::uint32_t place_on(std::uint32_t place, int from, int to);

  CauseLog& log_;
  const std::function<Ps()> now_;
  CausePlace host_;
  std::map<std::pair<std::size_t, std::size_t>, Known> known_;           // by kind and part
  std::unordered_map<std::uint64_t, Cause> waiting_;                     // by message
  std::map<std::tuple<std::uint32_t, int, int>, std::uint32_t> places_;  // place, its SIP, the other one
};

}  // namespace kernbench
