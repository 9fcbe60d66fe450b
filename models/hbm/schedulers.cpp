#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "hbm/schedulers.inc"

namespace kernbench {

std::vector<std::string> hbm_scheduler_names() { return {std::begin(kSchedulerNames), std::end(kSchedulerNames)}; }

HbmScheduler hbm_scheduler(const std::string& name) {
  const auto found = std::find(std::begin(kSchedulerNames), std::end(kSchedulerNames), name);
  if (found == std::end(kSchedulerNames)) throw std::invalid_argument("hbm: there is no scheduler '" + name + "'");
  return HbmScheduler{static_cast<std::uint8_t>(found - std::begin(kSchedulerNames))};
}

std::unique_ptr<ChannelTiming> ChannelTiming::make(const HbmConfig& config, unsigned queue_bursts,
                                                   const ChannelGaps& gaps) {
  return kSchedulers[static_cast<std::size_t>(config.scheduler)](config, queue_bursts, gaps);
}

}  // namespace kernbench
