#pragma once
#include "topology/spec/spec.h"

/// Machines made in code, so that a test does not depend on the presets' figures.
namespace kernbench::topology {

inline SystemSpec small_machine(std::uint16_t sips = 2, std::uint16_t w = 2, std::uint16_t h = 2) {
  SystemSpec spec;
  spec.name = "test";
  spec.sips = sips;
  spec.topology = SipTopology::ring_1d;
  spec.sip.cube_w = w;
  spec.sip.cube_h = h;
  spec.sip.io.crossbar.rows = spec.sip.io.crossbar.cols = 1;
  spec.links.switch_crossbar.rows = spec.links.switch_crossbar.cols = 1;
  spec.links.link.latency = 400'000;
  spec.links.link.header_bytes = 16;
  spec.cube.hbm.bytes = std::uint64_t{16} << 30;
  spec.cube.hbm.refresh = RefreshPolicy::none;
  HbmTiming& t = spec.cube.hbm.timing;  // round numbers: these tests are not about the HBM
  t.t_cl = t.t_cwl = t.t_rcd_rd = t.t_rcd_wr = t.t_rp = 20;
  t.t_ras = 40;
  t.t_rc = 60;
  t.t_rrd_s = t.t_rrd_l = 4;
  t.t_faw = 16;
  t.t_ccd_s = t.t_ccd_r = 2;
  t.t_ccd_l = 4;
  t.t_wr = 20;
  t.t_wtr_s = t.t_wtr_l = t.t_rtp = t.t_rtw = 8;
  return spec;
}

inline SystemSpec grid_machine(SipTopology topology, std::uint16_t w, std::uint16_t h, std::uint16_t cubes_w = 1,
                               std::uint16_t cubes_h = 1) {
  SystemSpec spec = small_machine(static_cast<std::uint16_t>(w * h), cubes_w, cubes_h);
  spec.topology = topology;
  spec.sip_w = w;
  spec.sip_h = h;
  return spec;
}

/// 6 x 6 routers without the four in the middle, PEs where the Python KernBench has them.
inline CubeSpec holey_cube() {
  CubeSpec cube;
  cube.noc.rows = cube.noc.cols = 6;
  cube.noc.routing = RoutingAlgorithm::table;
  cube.placement.holes = {{2, 2}, {2, 3}, {3, 2}, {3, 3}};
  cube.placement.pes = {{0, 0}, {0, 1}, {1, 4}, {1, 5}, {4, 0}, {4, 1}, {5, 4}, {5, 5}};
  return cube;
}

}  // namespace kernbench::topology
