#include "topology/spec/hbm_presets.h"
#include "topology/spec/schema_sections.h"

namespace kernbench::topology {

namespace {

Section hbm_timing() {
  const auto t = [](SectionOf<HbmTiming>& section, const char* key, std::uint32_t HbmTiming::*member, const char* doc,
                    Marks marks = kLess) { section.integer(key, member, kTiming, doc, marks); };
  SectionOf<HbmTiming> s;
  t(s, "t_cl", &HbmTiming::t_cl, "JEDEC RL: read command to data, in command clock cycles (as all of these).");
  t(s, "t_cwl", &HbmTiming::t_cwl, "JEDEC WL: write command to data.");
  t(s, "t_rcd_rd", &HbmTiming::t_rcd_rd, "JEDEC tRCDRD: activate to read.");
  t(s, "t_rcd_wr", &HbmTiming::t_rcd_wr, "JEDEC tRCDWR: activate to write.");
  t(s, "t_rp", &HbmTiming::t_rp, "JEDEC tRP: precharge to activate.");
  t(s, "t_ras", &HbmTiming::t_ras, "JEDEC tRAS: activate to precharge.");
  t(s, "t_rc", &HbmTiming::t_rc, "JEDEC tRC: activate to activate of one bank.");
  t(s, "t_rrd_s", &HbmTiming::t_rrd_s, "JEDEC tRRD_S: activate to activate of another bank group.");
  t(s, "t_rrd_l", &HbmTiming::t_rrd_l, "JEDEC tRRD_L: activate to activate of the same bank group.");
  t(s, "t_faw", &HbmTiming::t_faw, "JEDEC tFAW: window of four activates.");
  t(s, "t_ccd_s", &HbmTiming::t_ccd_s, "JEDEC tCCD_S: column command to column command, other bank group.");
  t(s, "t_ccd_l", &HbmTiming::t_ccd_l, "JEDEC tCCD_L: column command to column command, same bank group.");
  t(s, "t_ccd_r", &HbmTiming::t_ccd_r, "JEDEC tCCD_R: column command to column command, other stack ID.");
  t(s, "t_wr", &HbmTiming::t_wr, "JEDEC tWR: end of write data to precharge.");
  t(s, "t_wtr_s", &HbmTiming::t_wtr_s, "JEDEC tWTR_S: end of write data to read, other bank group.");
  t(s, "t_wtr_l", &HbmTiming::t_wtr_l, "JEDEC tWTR_L: end of write data to read, same bank group.");
  t(s, "t_rtp", &HbmTiming::t_rtp, "JEDEC tRTP: read to precharge.");
  t(s, "t_rtw", &HbmTiming::t_rtw, "Read command to write command.");
  t(s, "t_rfc_ab", &HbmTiming::t_rfc_ab, "JEDEC tRFCab: all-bank refresh.");
  t(s, "t_rfc_pb", &HbmTiming::t_rfc_pb, "JEDEC tRFCpb: single-bank refresh.");
  t(s, "t_refi", &HbmTiming::t_refi, "JEDEC tREFI: interval of all-bank refreshes.", kMore);
  t(s, "t_refi_pb", &HbmTiming::t_refi_pb, "Interval of single-bank refreshes.", kMore);
  t(s, "t_ppd", &HbmTiming::t_ppd, "JEDEC tPPD: precharge to precharge; 0 where the device has none.");
  t(s, "t_rrefd", &HbmTiming::t_rrefd, "JEDEC tRREFD: single-bank refresh to activate of another bank.");
  t(s, "t_dqsck", &HbmTiming::t_dqsck, "Read data leave so much after RL.");
  return s;
}

/// The config keeps the generation's name.
Field hbm_generation_field() {
  const std::vector<std::string> names = hbm_generation_names();
  Field field;
  field.key = "generation";
  field.kind = FieldKind::enumeration;
  field.names = names;
  field.doc =
      "Device that gives clock, organisation, size and timing; keys beside it change single values. 'custom' gives "
      "nothing.";
  field.get = [names](const void* object) -> FieldValue {
    const auto found = std::find(names.begin(), names.end(), static_cast<const HbmConfig*>(object)->generation);
    return static_cast<std::uint64_t>(found - names.begin());
  };
  field.set = [names](void* object, const FieldValue& value) {
    static_cast<HbmConfig*>(object)->generation = names.at(std::get<std::uint64_t>(value));
  };
  return field;
}

Section hbm() {
  return SectionOf<HbmConfig>()
      .custom(hbm_generation_field())
      .quantity("clock", &HbmConfig::ck_hz, Dimension::frequency, kAnyClock, "Command clock CK.")
      .integer("channels", &HbmConfig::channels, {1, 1'024}, "Channels of the stack.", kMore)
      .integer("pseudo_channels", &HbmConfig::pseudo_channels, {1, 16}, "Pseudo channels per channel.", kMore)
      .integer("bank_groups", &HbmConfig::bank_groups, {1, 64, true}, "Bank groups per pseudo channel and stack ID.",
               kMore)
      .integer("banks_per_group", &HbmConfig::banks_per_group, {1, 64, true}, "Banks per bank group.", kMore)
      .integer("stack_ids", &HbmConfig::stack_ids, {1, 16}, "Stack IDs (height of the stack in groups of dies).")
      .quantity("row_size", &HbmConfig::row_bytes, Dimension::bytes, {64, 65'536, true},
                "Row of one bank of a pseudo channel.")
      .quantity("burst_size", &HbmConfig::burst_bytes, Dimension::bytes, {8, 256, true}, "Data of one column command.")
      .integer("burst_cycles", &HbmConfig::burst_ck, {1, 64}, "Data-bus time of one burst, in CK.", kLess)
      .boolean("half_clock_commands", &HbmConfig::half_clock_commands,
               "HBM3: activate takes 1.5 CK of the row bus, precharge and refresh 0.5; else 2 and 1.")
      .quantity("size", &HbmConfig::bytes, Dimension::bytes, {kMiB, 1024 * kGiB},
                "Capacity of the stack; every PE owns an equal slice.", kUniform)
      .quantity("interleave", &HbmConfig::interleave_bytes, Dimension::bytes, {32, kMiB, true},
                "A slice changes its pseudo channel every so many bytes.")
      .text("mapping", &HbmConfig::mapping,
            "Bits of a burst's address in its pseudo channel, most significant first: row, stack ID, bank, bank group, "
            "column.",
            kMandatory)
      .quantity("activate_energy", &HbmConfig::activate_aj, Dimension::energy, kAnyEnergy,
                "Of activating and precharging a row.")
      .quantity("energy_per_bit", &HbmConfig::energy_per_bit_aj, Dimension::energy, kAnyEnergy,
                "Per bit read or written: array, die and I/O.")
      .quantity("bank_refresh_energy", &HbmConfig::bank_refresh_aj, Dimension::energy, kAnyEnergy,
                "Of refreshing one bank once.")
      .quantity("static_power", &HbmConfig::static_uw, Dimension::power, kAnyPower, "Of the stack.")
      .integer("queue_depth", &HbmConfig::queue_depth, kQueue, "Requests waiting per pseudo channel, in bursts.", kMore)
      .enumeration("page_policy", &HbmConfig::page_policy, kPagePolicies, "What happens to a row after an access.")
      .enumeration("refresh", &HbmConfig::refresh, kRefreshPolicies, "Refresh mode.")
      .enumeration("scheduler", &HbmConfig::scheduler, hbm_scheduler_names(),
                   "Queues and order: read and write queue with batches of writes, or one queue for both.")
      .boolean("protect_row_hits", &HbmConfig::protect_row_hits,
               "A row with an older waiting hit is not closed; false: plain FR-FCFS.")
      .boolean("forward_writes", &HbmConfig::forward_writes,
               "Reads of a queued write are answered from the queue, equal writes merge; not with fidelity hbm=fast.")
      .integer("write_high", &HbmConfig::write_high, {1, 100},
               "Batches of writes start above so much of the write queue, in percent.")
      .integer("write_low", &HbmConfig::write_low, {0, 99},
               "Batches of writes end below so much of the write queue when a read waits, in percent.")
      .time("controller_latency", &HbmConfig::controller_latency, "Front end and back end of the controller together.")
      .section("timing", &HbmConfig::timing, hbm_timing(), "Timing of the device, in CK cycles.");
}

}  // namespace

Section cube() {
  const Section m_cpu = SectionOf<MCpuConfig>().time("command", &MCpuConfig::command, "Handling of one command.");
  const Section sram =
      SectionOf<SramConfig>()
          .quantity("size", &SramConfig::bytes, Dimension::bytes, {64 * kKiB, kUnitBytes}, "Capacity.", kUniform)
          .integer("banks", &SramConfig::banks, {1, 4'096, true}, "Banks.", kMore)
          .quantity("interleave", &SramConfig::bank_interleave_bytes, Dimension::bytes, {32, kMiB, true},
                    "The bank changes every so many bytes.")
          .quantity("bandwidth", &SramConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "All banks together.")
          .time("latency", &SramConfig::latency, "Access time of a bank.")
          .integer("queue_depth", &SramConfig::queue_depth, kQueue, "Requests waiting.", kMore)
          .quantity("energy_per_byte", &SramConfig::energy_per_byte_aj, Dimension::energy, kAnyEnergy,
                    "Per byte read or written.")
          .quantity("static_power", &SramConfig::static_uw, Dimension::power, kAnyPower, "Of the whole SRAM.");
  const Section placement =
      SectionOf<PlacementHints>()
          .points("holes", FieldKind::grid_points, &PlacementHints::holes, "Positions without a router.")
          .points("exclusion", FieldKind::grid_points, &PlacementHints::exclusion,
                  "Routers without attachments (zone of the HBM PHY).")
          .points("pes", FieldKind::grid_points, &PlacementHints::pes,
                  "Router of each PE; without it they are spread over the mesh.")
          .points("m_cpu", FieldKind::grid_point, &PlacementHints::m_cpu,
                  "Router of the M_CPU; without it one near the middle.")
          .points("sram", FieldKind::grid_point, &PlacementHints::sram,
                  "Router of the SRAM; without it one near the middle.");
  return SectionOf<CubeSpec>()
      .integer("pes", &CubeSpec::pes, {1, 256}, "PEs per cube.", kRequired | kUniform)
      .section("noc", &CubeSpec::noc, noc(), "Router network.")
      .section("placement", &CubeSpec::placement, placement, "What is attached where.")
      .section("m_cpu", &CubeSpec::m_cpu, m_cpu, "Management CPU.")
      .section("sram", &CubeSpec::sram, sram, "Shared SRAM.")
      .section("hbm", &CubeSpec::hbm, hbm(), "HBM stack.")
      .section("ucie", &CubeSpec::ucie, ucie(), "UCIe ports to the neighbouring cubes.");
}

}  // namespace kernbench::topology
