#pragma once
#include <cstdint>

#include "models/hbm/hbm_config.h"

namespace kernbench {

/// Ticks of a channel: CK, or half a CK where row commands start on both edges (HBM3).
using Tick = std::uint64_t;
inline constexpr Tick kNoTick = ~Tick{0};

/// Bank, row and column of one burst.
struct BurstPlace {
  std::uint32_t pseudo_channel = 0, stack_id = 0, bank_group = 0, bank = 0, row = 0, column = 0;
};

enum class DramCommand : std::uint8_t { activate, precharge, precharge_all, read, write, refresh_all, refresh_bank };

/// Sees every command that a channel issues, in order of time; for traces and tests.
class CommandListener {
 public:
  virtual ~CommandListener() = default;
  /// `place.bank*` is meaningless for precharge_all and refresh_all, `place.row` for all but activate. `bursts`: of a
  /// column command, one per tCCD_L (more than one with a grain above 1).
  virtual void command(DramCommand command, const BurstPlace& place, Tick at, unsigned bursts) = 0;
  /// Bursts that wait in both queues together, from `at` on.
  virtual void queued(unsigned bursts, Tick at) = 0;
};

/// What the configuration amounts to in ticks: minimum gaps between the starts of two commands.
/// A JEDEC time t between P and F is a gap of m*t + length(P) - length(F), m ticks per CK. docs/hbm.md derives it.
struct ChannelGaps {
  explicit ChannelGaps(const HbmConfig& config);
  Tick m;                                 ///< ticks per CK
  Tick act, pre;                          ///< lengths of ACT, and of PRE and REF, on the row bus
  Tick act_rd, act_wr, act_act, act_pre;  // one bank
  Tick rd_pre, wr_pre, pre_act, pre_ref;  // one bank
  Tick rrd_s, rrd_l, faw, ppd;            // activates and precharges of one pseudo channel
  Tick ccd_s, ccd_l, ccd_r, rd_wr, wr_rd_s, wr_rd_l;
  Tick refab_act, refpb_act, refpb_other, refab_ref, refpb_ref, refi;
  Tick read_data, write_data;  ///< command to the end of its data
  Tick burst;                  ///< data bus per burst
};

}  // namespace kernbench
