#include "models/noc/noc_config.h"

#include <stdexcept>
#include <string>

#include "models/noc/virtual_channel.h"

namespace kernbench {

void check(const NocConfig& config) {
  const auto require = [](bool ok, const std::string& what) {
    if (!ok) throw std::invalid_argument("NocConfig: " + what);
  };
  require(config.flit_bytes >= 1, "flit_bytes is 0");
  require(config.clock_hz >= 1, "clock_hz is 0");
  require(config.link_delay >= 1, "link_delay is 0; give at least 1 cycle");
  require(config.credit_delay >= 1, "credit_delay is 0; give at least 1 cycle");
  require(config.vc_depth_flits >= 1, "vc_depth_flits is 0; give at least 1 flit");
  require(config.vcs_per_set >= 1 && config.vcs() <= 255,
          "vcs_per_set is " + std::to_string(config.vcs_per_set) + "; give 1 to 25");
  const auto short_enough = [&](std::uint64_t cycles, const char* what) {
    require(cycles <= kMaxPipelineCycles,
            std::string(what) + " takes " + std::to_string(cycles) + " cycles; at most 32 are modelled");
  };
  const std::uint64_t allocation = config.sw_alloc_delay;
  short_enough(std::uint64_t{config.routing_delay} + config.vc_alloc_delay, "routing and virtual channel allocation");
  short_enough(allocation + config.switch_delay + config.link_delay,
               "the way from switch allocation to the next buffer");
  short_enough(allocation + config.credit_delay, "the way of a credit");
}

}  // namespace kernbench
