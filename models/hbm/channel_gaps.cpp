#include "models/hbm/channel_gaps.h"

#include <algorithm>

namespace kernbench {

ChannelGaps::ChannelGaps(const HbmConfig& c) {
  const HbmTiming& t = c.timing;
  m = c.half_clock_commands ? 2 : 1;
  act = c.half_clock_commands ? 3 : 2;
  pre = 1;
  const Tick column = m;
  act_rd = m * t.t_rcd_rd + act - column;
  act_wr = m * t.t_rcd_wr + act - column;
  act_act = m * t.t_rc;
  act_pre = m * t.t_ras + act - pre;
  rd_pre = m * t.t_rtp + column - pre;
  wr_pre = m * (t.t_cwl + c.burst_ck + t.t_wr) + column - pre;
  pre_act = m * t.t_rp + pre - act;
  pre_ref = m * t.t_rp;
  rrd_s = m * t.t_rrd_s;
  rrd_l = m * t.t_rrd_l;
  faw = m * t.t_faw;
  ppd = m * t.t_ppd;
  ccd_s = m * std::max(c.burst_ck, t.t_ccd_s);
  ccd_l = m * t.t_ccd_l;
  ccd_r = m * t.t_ccd_r;
  rd_wr = m * t.t_rtw;
  wr_rd_s = m * (t.t_cwl + c.burst_ck + t.t_wtr_s);
  wr_rd_l = m * (t.t_cwl + c.burst_ck + t.t_wtr_l);
  refab_act = m * t.t_rfc_ab + pre - act;
  refpb_act = m * t.t_rfc_pb + pre - act;
  refpb_other = m * t.t_rrefd + pre - act;
  refab_ref = m * t.t_rfc_ab;
  refpb_ref = m * t.t_rfc_pb;
  refi = c.refresh == RefreshPolicy::none ? 0 : m * (c.refresh == RefreshPolicy::all_bank ? t.t_refi : t.t_refi_pb);
  read_data = m * (t.t_cl + t.t_dqsck + c.burst_ck);
  write_data = m * (t.t_cwl + c.burst_ck);
  burst = m * c.burst_ck;
}

}  // namespace kernbench
