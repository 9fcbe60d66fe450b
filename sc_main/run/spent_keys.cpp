#include "sc_main/run/launch_table.h"

namespace kernbench {
namespace {
using Keys = std::vector<std::string>;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

Keys under(const std::string& section, const Keys& keys) {
  Keys all;
  for (const std::string& key : keys) all.push_back(section + "." + key);
  return all;
}

// What a place is decides its keys; of many places together (no name) there are none to tell.

/// Of a link's end: between SIPs, of the IO chiplet, or between cubes.
Keys of_link(const std::string& place, const Keys& between_sips, const Keys& of_ucie) {
  if (place.empty()) return {};
  if (!has(place, ".ucie")) return under("system.links", between_sips);
  return under(has(place, ".io") ? "sip.io.ucie" : "cube.ucie", of_ucie);
}

Keys of_network(const std::string& place, const Keys& keys) {
  if (place.empty()) return {};
  return under(has(place, ".cube") ? "cube.noc" : has(place, ".io") ? "sip.io.crossbar" : "system.links.switch", keys);
}

Keys of_memory(const std::string& place, const Keys& of_hbm, const Keys& of_sram) {
  if (place.empty()) return {};
  return has(place, ".sram")  ? under("cube.sram", of_sram)
         : has(place, ".hbm") ? under("cube.hbm", of_hbm)
                              : Keys{"pe.tcm.bandwidth", "pe.tcm.banks"};
}

Keys of_command(const std::string& place) {
  if (place.empty()) return {};
  if (has(place, ".m_cpu")) return {"cube.m_cpu.command"};
  if (has(place, ".io_cpu")) return {"sip.io.cpu.command"};
  return has(place, ".pcie_ep") ? Keys{"sip.io.pcie.doorbell"} : Keys{"pe.cpu.command"};
}
}  // namespace

std::vector<std::string> keys_of(Spent spent, const std::string& place) {
  switch (spent) {
    case Spent::other:
    case Spent::host:
      return {};
    case Spent::pcie:
      return {"sip.io.pcie.latency", "sip.io.pcie.bandwidth"};
    case Spent::command:
    case Spent::command_wait:
      return of_command(place);
    case Spent::start:  // allowed for the slowest way of the commands
      return {"sip.io.cpu.command", "cube.m_cpu.command", "cube.noc.clock"};
    case Spent::dispatch:
      return {"pe.cpu.dispatch"};
    case Spent::setup:
      return {"pe.dma.setup", "pe.mmu.walk"};
    case Spent::gemm:
      return {"pe.gemm.cols", "pe.gemm.rows", "pe.gemm.clock", "pe.gemm.f16_rate", "pe.gemm.f8_rate"};
    case Spent::gemm_fill:  // fewer and longer products, where tiles are smaller than operands for want of TCM
      return {"pe.tcm.size", "pe.gemm.clock"};
    case Spent::math:
      return {"pe.math.lanes", "pe.math.clock"};
    case Spent::tcm:
      return {"pe.tcm.bandwidth", "pe.tcm.banks", "pe.tcm.clock"};
    case Spent::noc:
      return of_network(place, {"flit_size", "clock", "pipeline.link"});
    case Spent::noc_wait:
      return of_network(place, {"flit_size", "clock", "vcs_per_set"});
    case Spent::wire:
    case Spent::wire_wait:
      return of_link(place, {"bandwidth", "per_neighbour"}, {"lane_rate", "lanes", "connections"});
    case Spent::wire_credit:
      return of_link(place, {"buffer_packets"}, {"buffer_packets"});
    case Spent::wire_latency:
      return of_link(place, {"latency"}, {"latency_per_side"});
    case Spent::detour:
      return {"overrides.link"};
    case Spent::memory:
      return of_memory(place, {"controller_latency", "timing.t_cl", "clock"}, {"latency", "bandwidth"});
    case Spent::memory_wait:
      return of_memory(place, {"clock", "channels", "pseudo_channels", "queue_depth"}, {"bandwidth", "banks"});
    case Spent::slots:
      return {"pe.ipcq.slots", "pe.ipcq.slot_size"};
  }
  return {};
}

}  // namespace kernbench
