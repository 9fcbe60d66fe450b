#pragma once
#include "models/hbm/hbm_config.h"

/// Devices of the reference tables. Source of the timing: Ramulator 2.1, python/ramulator/dram/hbm{2,3}.py, commit
/// c5b1c3a.
namespace kernbench {

inline HbmConfig hbm2_device(std::uint64_t ck_hz) {
  HbmConfig c;
  c.ck_hz = ck_hz;
  c.channels = 8;
  c.stack_ids = 1;
  c.bytes = std::uint64_t{8} << 30;
  c.half_clock_commands = false;
  c.refresh = RefreshPolicy::none;
  return c;
}

inline HbmConfig hbm2_1600() {
  HbmConfig c = hbm2_device(800'000'000);
  HbmTiming& t = c.timing;
  t.t_cl = 10, t.t_cwl = 4, t.t_rcd_rd = 10, t.t_rcd_wr = 8, t.t_rp = 10, t.t_ras = 24, t.t_rc = 34;
  t.t_rrd_s = 4, t.t_rrd_l = 4, t.t_faw = 12, t.t_ccd_s = 2, t.t_ccd_l = 4;
  t.t_wr = 12, t.t_wtr_s = 5, t.t_wtr_l = 6, t.t_rtp = 4, t.t_rtw = 10;
  t.t_rfc_ab = 280, t.t_rfc_pb = 128, t.t_rrefd = 7, t.t_refi = 3120, t.t_refi_pb = 98;
  return c;
}

inline HbmConfig hbm2_2000() {
  HbmConfig c = hbm2_device(1'000'000'000);
  HbmTiming& t = c.timing;
  t.t_cl = 14, t.t_cwl = 5, t.t_rcd_rd = 14, t.t_rcd_wr = 12, t.t_rp = 14, t.t_ras = 34, t.t_rc = 48;
  t.t_rrd_s = 4, t.t_rrd_l = 4, t.t_faw = 15, t.t_ccd_s = 2, t.t_ccd_l = 4;
  t.t_wr = 16, t.t_wtr_s = 6, t.t_wtr_l = 8, t.t_rtp = 5, t.t_rtw = 13;
  t.t_rfc_ab = 350, t.t_rfc_pb = 160, t.t_rrefd = 8, t.t_refi = 3900, t.t_refi_pb = 122;
  return c;
}

inline HbmConfig hbm3_6400() {
  HbmConfig c;
  c.ck_hz = 1'600'000'000;
  c.channels = 16;
  c.stack_ids = 2;
  c.bytes = std::uint64_t{16} << 30;
  c.refresh = RefreshPolicy::none;
  HbmTiming& t = c.timing;
  t.t_cl = 20, t.t_cwl = 10, t.t_rcd_rd = 31, t.t_rcd_wr = 15, t.t_rp = 26, t.t_ras = 45, t.t_rc = 72;
  t.t_rrd_s = 4, t.t_rrd_l = 5, t.t_faw = 24, t.t_ccd_s = 2, t.t_ccd_l = 4, t.t_ccd_r = 3;
  t.t_wr = 33, t.t_wtr_s = 7, t.t_wtr_l = 10, t.t_rtp = 9, t.t_rtw = 20, t.t_ppd = 2;
  t.t_rfc_ab = 560, t.t_rfc_pb = 320, t.t_rrefd = 8, t.t_refi = 6240, t.t_refi_pb = 195;
  return c;
}

inline HbmConfig hbm3_6400_1sid() {
  HbmConfig c = hbm3_6400();
  c.stack_ids = 1;
  c.bytes = std::uint64_t{4} << 30;
  c.timing.t_rfc_ab = 416, c.timing.t_refi_pb = 390;
  return c;
}

}  // namespace kernbench
