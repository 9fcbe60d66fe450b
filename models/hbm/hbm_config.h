#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench {

// Policies, each with its names in topology.yaml.
enum class PagePolicy : std::uint8_t { open, closed };
inline constexpr const char* kPagePolicies[] = {"open", "closed"};
enum class RefreshPolicy : std::uint8_t { none, all_bank, per_bank };
inline constexpr const char* kRefreshPolicies[] = {"none", "all_bank", "per_bank"};
/// Queues and order of requests, docs/hbm.md: a number of hbm_scheduler_names(). A class and a file each.
enum class HbmScheduler : std::uint8_t {};
/// As in cube.hbm.scheduler of topology.yaml; the first is the default. They are listed in models/hbm/CMakeLists.txt.
std::vector<std::string> hbm_scheduler_names();
/// The one of that name; throws std::invalid_argument if there is none.
HbmScheduler hbm_scheduler(const std::string& name);

/// JEDEC timing, in CK cycles. Names as in the standard (tRCDRD, tRP, ...). Sources: the HBM presets in
/// topology/presets.
struct HbmTiming {
  std::uint32_t t_cl = 0, t_cwl = 0, t_rcd_rd = 0, t_rcd_wr = 0, t_rp = 0, t_ras = 0, t_rc = 0;
  std::uint32_t t_rrd_s = 0, t_rrd_l = 0, t_faw = 0, t_ccd_s = 0, t_ccd_l = 0, t_ccd_r = 0;
  std::uint32_t t_wr = 0, t_wtr_s = 0, t_wtr_l = 0, t_rtp = 0, t_rtw = 0;
  std::uint32_t t_rfc_ab = 0, t_rfc_pb = 0, t_refi = 0, t_refi_pb = 0;
  std::uint32_t t_ppd = 0;    ///< precharge to precharge (HBM3)
  std::uint32_t t_rrefd = 0;  ///< single-bank refresh to activate of another bank
  std::uint32_t t_dqsck = 0;  ///< read data leave so much after RL
};

/// Ticks between two commands at most: what the keys have bits for by which a channel compares its banks.
inline constexpr std::uint64_t kLargestGap = 262'144;
inline constexpr std::uint64_t kMostBanks = 128;  ///< of a channel, which has a bit for each

/// One stack of a cube: its pseudo channels are dealt evenly to the slices of the cube's PEs.
struct HbmConfig {
  std::string generation = "HBM3-6400";
  std::uint64_t ck_hz = 1'600'000'000;  ///< command clock
  std::uint32_t channels = 16;
  std::uint32_t pseudo_channels = 2;                   ///< per channel
  std::uint32_t bank_groups = 4, banks_per_group = 4;  ///< per pseudo channel (and stack ID)
  std::uint32_t stack_ids = 2;
  std::uint32_t row_bytes = 1024;  ///< of one bank of a pseudo channel
  std::uint32_t burst_bytes = 32;
  std::uint32_t burst_ck = 2;            ///< data-bus time of one burst
  std::uint64_t bytes = 0;               ///< capacity of the stack
  std::uint32_t interleave_bytes = 256;  ///< a slice changes its pseudo channel every so many bytes
  std::uint32_t queue_depth = 32;        ///< requests waiting per pseudo channel, in bursts
  std::uint32_t queue_bursts = 0;        ///< places of each queue of a channel; 0: queue_depth * pseudo_channels
  /// Bits of the address of a burst within its pseudo channel, most significant first: each of Ro (row), Si (stack ID),
  /// Ba (bank), Bg (bank group), Co (column) once. With Pc (pseudo channel of the slice) it is the address within the
  /// slice, and there is no interleave beside it.
  std::string mapping = "RoSiBaCoBg";
  bool half_clock_commands = true;  ///< HBM3: ACT takes 1.5 CK of the row bus, PRE and REF 0.5; else 2 and 1
  HbmScheduler scheduler{};
  bool protect_row_hits = true;   ///< batched: a row with an older waiting hit is not closed; off: plain FR-FCFS
  bool forward_writes = false;    ///< reads of a queued write are answered from the queue, equal writes merge
  std::uint32_t write_high = 80;  ///< batched: writes start above so much of the write queue, in percent
  std::uint32_t write_low = 20;   ///< batched: and end below so much when a read waits, in percent
  std::uint32_t grain = 1;        ///< bursts of a row that one decision may take: 1 accurate, 4 fast
  PagePolicy page_policy = PagePolicy::open;
  RefreshPolicy refresh = RefreshPolicy::all_bank;
  HbmTiming timing;
  Ps controller_latency = 0;  ///< front end and back end of the controller together
  // Attojoule. O'Connor et al., "Fine-Grained DRAM", MICRO 2017: HBM2, row of 1 KiB, data path and I/O.
  std::uint64_t activate_aj = 909'000'000;        ///< activate and precharge of a row
  std::uint64_t energy_per_bit_aj = 3'480'000;    ///< read or written: array, die and I/O
  std::uint64_t bank_refresh_aj = 3'636'000'000;  ///< assumed: four rows of a bank per refresh
  std::uint64_t static_uw = 1'000'000;            ///< microwatt of the stack; assumed

  /// Banks of a channel.
  std::uint64_t channel_banks() const {
    return std::uint64_t{pseudo_channels} * stack_ids * bank_groups * banks_per_group;
  }
  /// Refreshes of a channel in an interval. Bank by bank every bank has one in tREFI, whatever number of banks tREFIpb
  /// was derived for.
  std::uint64_t refreshes_due() const {
    if (refresh != RefreshPolicy::per_bank || timing.t_refi == 0) return pseudo_channels;
    return std::max<std::uint64_t>(1, (channel_banks() * timing.t_refi_pb + timing.t_refi / 2) / timing.t_refi);
  }
  /// Places of each queue of a channel, and of what a pseudo channel has of them.
  std::uint32_t queue_places() const { return queue_bursts != 0 ? queue_bursts : queue_depth * pseudo_channels; }
  std::uint32_t queue_places_of_pseudo_channel() const { return queue_places() / pseudo_channels; }
  std::uint32_t total_pseudo_channels() const { return channels * pseudo_channels; }
  /// From one burst of a pseudo channel to the next at best, in CK: the data bus, tCCD_S, and the column command bus,
  /// which takes one command a CK for all pseudo channels of a channel.
  std::uint32_t least_burst_interval() const { return std::max({burst_ck, timing.t_ccd_s, pseudo_channels}); }
  Rate pseudo_channel_peak() const { return Rate(ck_hz / least_burst_interval() * burst_bytes); }
  /// The buses of pseudo channels never wait for the column command bus.
  bool commands_never_bind() const { return pseudo_channels <= std::max(burst_ck, timing.t_ccd_s); }
  /// A queue takes two interleave units of its pseudo channel: one is read while the next one comes.
  bool queues_cover_units() const {
    return std::uint64_t{queue_places_of_pseudo_channel()} * burst_bytes >= 2 * interleave_bytes;
  }
};

}  // namespace kernbench
