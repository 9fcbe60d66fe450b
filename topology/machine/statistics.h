#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/observe/usage.h"
#include "topology/machine/energy.h"
#include "topology/machine/repeated_use.h"

namespace kernbench {
class Router;
}

namespace kernbench::topology {

class Machine;
struct Plan;

/// What one resource did from the start of a run to its end; docs/statistics.md.
struct ResourceUse {
  struct Wait {
    const char* reason;
    Ps time;
  };
  /// Of a router port, a channel that packets went through.
  struct Channel {
    std::string name;  ///< its class of messages, set and number: request0.1
    std::uint64_t bytes, messages;
    Ps busy, waiting;
    std::vector<Usage::Slice> slices;  ///< empty without detail
  };
  std::string name;         ///< structural
  const char* kind = "";    ///< link, ucie, pcie, router_port, hbm_channel, sram, tcm, engine, ipcq, cpu
  std::string from, to;     ///< wires, router ports and queues: what they join; empty otherwise
  std::uint64_t rate = 0;   ///< bytes per second; 0: it has none
  std::uint32_t units = 1;  ///< that may be busy at once
  bool has_busy = true;
  Ps busy = 0;
  std::uint64_t bytes = 0, messages = 0;
  std::vector<Wait> waits;
  std::vector<Channel> channels;
  std::uint64_t high_water = 0;
  const char* high_water_unit = "";  ///< empty: no mark
  std::vector<Usage::Slice> slices;
  std::vector<Usage::Waits> reasons;  ///< their waiting, by place in `waits`; empty without detail

  double utilisation(Ps time) const {
    return time == 0 ? 0 : static_cast<double>(busy) / (static_cast<double>(time) * units);
  }
};

/// Sums over all resources of a kind, idle ones among them.
struct KindUse {
  const char* kind = "";
  std::uint64_t resources = 0, used = 0, bytes = 0, messages = 0;
  Ps busy = 0, waiting = 0;
};

struct RunStatistics {
  struct Check {
    const char* what;
    std::uint64_t compared = 0;
  };
  Ps time = 0;              ///< length of the run
  std::uint32_t shift = 0;  ///< slices are 2^shift ps long
  bool repeats = false;     ///< some of it was not simulated
  std::vector<KindUse> totals;
  std::vector<Check> checks;            ///< that were made
  std::vector<std::string> violations;  ///< what did not hold: errors of the simulator
};

/// Compares the sums of a run with the counts of its energy, which are other counters; adds a check, and violations.
/// What repeats did is in both as a mean, here in whole bytes of each resource.
void compare(RunStatistics& statistics, const std::vector<EnergyRow>& energy);

/// Makes every part of a machine book what it does over time; the counters that the parts have anyway are the totals.
/// Costs no simulated time.
class MachineUsage {
 public:
  /// Before the run. `slices`: at most. `detail`: virtual channels and each reason of waiting over time, too. The
  /// machine and its plan outlive it.
  MachineUsage(Machine& machine, const Plan& plan, std::uint32_t slices, bool detail = false);
  /// What was booked, up to `end`, the end of the run. `whole`: the run came to its end, so that nothing is under way
  /// and all that went in somewhere came out.
  /// `take` is handed those that did anything, one after the other, in the order of a walk over the machine; `known`
  /// are the length of the run and that of a slice. `repeated`: what else the run did, which was not simulated.
  RunStatistics collect(Ps end, bool whole,
                        const std::function<void(const RunStatistics& known, const ResourceUse&)>& take,
                        RepeatedUse* repeated = nullptr);
  /// What a SIP has done up to now, by place; marks are those since `since`. Equal places of equal SIPs have one
  /// number.
  /// `links`: of what leaves over links between SIPs; else of all the rest.
  std::vector<PlaceUse> done(std::uint16_t sip, Ps since, bool links);

 private:
  friend class UsageWalk;
  /// A resource, or the virtual channels of a router's port.
  struct Place {
    std::uint32_t number = 0;
    Usage* usage = nullptr;
    const Router* router = nullptr;
    std::uint8_t port = 0;
    std::uint64_t channels = 0;  ///< key of the first one; the next ones follow
    bool between_sips = false;   ///< what leaves there leaves the SIP
  };
  std::uint32_t number_of(std::uint64_t key);

  Machine& machine_;
  const Plan& plan_;
  UsageBook book_;
  std::vector<Place> places_;                                 // in the order of the walk over the machine
  std::vector<std::vector<Place>> by_sip_;                    // all of a SIP that are there from the start
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by key
};

}  // namespace kernbench::topology
