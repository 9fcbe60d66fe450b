#include "topology/spec/schema_sections.h"

namespace kernbench::topology {

namespace {

// A stage of a router's pipeline, in cycles.
constexpr IntegerRange kStage{0, 32};

SectionOf<NocConfig> noc_pipeline() {
  return SectionOf<NocConfig>()
      .integer("routing", &NocConfig::routing_delay, kStage, "Route computation, in cycles; 0 with look-ahead routing.",
               kLess)
      .integer("vc_allocation", &NocConfig::vc_alloc_delay, kStage, "Virtual channel allocation, in cycles.", kLess)
      .integer("switch_allocation", &NocConfig::sw_alloc_delay, kStage, "Switch allocation, in cycles.", kLess)
      .integer("switch_traversal", &NocConfig::switch_delay, kStage, "Switch traversal, in cycles.", kLess)
      .integer("link", &NocConfig::link_delay, {1, 32}, "Wire to the next router or network interface, in cycles.",
               kLess)
      .integer("credit", &NocConfig::credit_delay, {1, 32},
               "From a freed buffer slot to a usable credit upstream, in cycles.", kLess);
}

SectionOf<NocConfig> crossbar() {
  return SectionOf<NocConfig>()
      .quantity("flit_size", &NocConfig::flit_bytes, Dimension::bytes, {8, 256, true},
                "Bytes that move per cycle on one port.", kMore)
      .quantity("clock", &NocConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the routers and their links.",
                kPaces)
      .enumeration("arbitration", &NocConfig::arbitration, {"round_robin", "weighted_round_robin"},
                   "Per-output arbitration.")
      .enumeration("vc_choice", &NocConfig::vc_choice, {"per_flow", "any"},
                   "Virtual channel of a packet: by its source and destination, so that a flow stays in order, or any "
                   "free one at each router.")
      .enumeration("switch_policy", &NocConfig::switch_policy, {"interleave", "hold"},
                   "Whether packets of several virtual channels share a link flit by flit, or a packet keeps it.")
      .boolean("packet_chaining", &NocConfig::packet_chaining,
               "Whether a packet takes over the output channel of the one before it; off: one channel idles a cycle "
               "between packets.")
      .integer("vcs_per_set", &NocConfig::vcs_per_set, {1, 16}, "Virtual channels of each message class and VC set.",
               kMore)
      .integer("vc_depth", &NocConfig::vc_depth_flits, {1, 4'096},
               "Buffer of one virtual channel at an input port, in flits.", kMore)
      .group("pipeline", noc_pipeline(), "Router pipeline.")
      .quantity("energy_per_bit", &NocConfig::energy_per_bit_aj, Dimension::energy, kAnyEnergy,
                "Per bit of payload and router: buffer, switch and the wire to the next hop.")
      .quantity("static_power", &NocConfig::static_uw, Dimension::power, kAnyPower, "Of each router.");
}

}  // namespace

Section noc() {
  Section section = SectionOf<NocConfig>()
                        .integer("rows", &NocConfig::rows, {1, 64}, "Rows of the router grid.", kRequired | kUniform)
                        .integer("cols", &NocConfig::cols, {1, 64}, "Columns of the router grid.", kRequired | kUniform)
                        .enumeration("routing", &NocConfig::routing, {"xy", "yx", "table"},
                                     "Routing inside a cube; a mesh with holes needs 'table'.", kUniform);
  const Section common = crossbar();
  section.fields.insert(section.fields.end(), common.fields.begin(), common.fields.end());
  return section;
}

Section ucie() {
  return SectionOf<UcieConfig>()
      .integer("connections", &UcieConfig::connections, {1, 64},
               "Connections per side, spread over the routers of the edge.", kMore | kUniform)
      .integer("lanes", &UcieConfig::lanes, {1, 1'024}, "Lanes per connection and direction.", kMore)
      .quantity("lane_rate", &UcieConfig::transfers_per_second, Dimension::transfers, {kMHz, 1000 * kGHz},
                "Transfer rate of a lane; one bit per transfer.")
      .enumeration("width", &UcieConfig::width, {"full", "half", "quarter"},
                   "Lanes in use: failed ones are given up by halves. A connection has the lower rate of its two ends.")
      .enumeration("flit", &UcieConfig::flit, {"68B", "256B", "256B_latency_optimised", "raw"},
                   "Flit format: the share of the raw rate that carries packets, and what is checked at a time; raw: "
                   "neither flits nor checks.")
      .time("latency_per_side", &UcieConfig::latency_per_side, "PHY and adapter of one side; a hop has two sides.")
      .quantity("header_size", &UcieConfig::header_bytes, Dimension::bytes, {0, 4'096}, "Added to every packet.", kLess)
      .integer("buffer_packets", &UcieConfig::buffer_packets, {2, 4'096},
               "Receiver's room for whole packets, per message class and VC set.", kMore)
      .integer("bit_errors", &UcieConfig::bit_errors, kErrors, "Bit errors per 10^18 bits; a bad flit is sent again.",
               kLess)
      .integer("error_seed", &UcieConfig::error_seed, {0, ~std::uint32_t{0}}, "Which bits; with the wire's name.")
      .quantity("energy_per_bit", &UcieConfig::energy_per_bit_aj, Dimension::energy, kBitEnergy,
                "Per raw bit, both sides together.");
}

namespace {

Section io() {
  const Section cpu = SectionOf<IoCpuConfig>().time("command", &IoCpuConfig::command, "Handling of one command.");
  const Section pcie =
      SectionOf<PcieConfig>()
          .integer("generation", &PcieConfig::generation, {3, 6}, "PCIe generation.")
          .integer("lanes", &PcieConfig::lanes, {1, 32, true}, "Lanes.", kMore)
          .quantity("bandwidth", &PcieConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "One direction, after line encoding; without it, what generation and lanes give.", kOptional)
          .quantity("tlp_payload", &PcieConfig::tlp_payload_bytes, Dimension::bytes, {64, 4'096, true},
                    "Largest payload of a transaction layer packet.", kMore)
          .quantity("tlp_overhead", &PcieConfig::tlp_overhead_bytes, Dimension::bytes, {0, 256},
                    "Framing, sequence number, header and CRC of each packet.", kLess)
          .time("latency", &PcieConfig::latency, "One way, host to endpoint.")
          .time("doorbell", &PcieConfig::doorbell, "Endpoint's handling of one message.")
          .integer("credits", &PcieConfig::credits, {1, 65'536},
                   "TLPs that the receiver holds; a credit is back after a round trip.", kMore)
          .integer("outstanding", &PcieConfig::outstanding, {1, 4'096}, "Bursts of host copies in flight.", kMore)
          .quantity("energy_per_bit", &PcieConfig::energy_per_bit_aj, Dimension::energy, kBitEnergy,
                    "Per bit of TLPs, both ends together.");
  return SectionOf<IoSpec>()
      .section("crossbar", &IoSpec::crossbar, crossbar(), "Crossbar of the IO chiplet.")
      .section("ucie", &IoSpec::ucie, ucie(), "UCIe ports to the north edges of the row-0 cubes.")
      .section("pcie", &IoSpec::pcie, pcie, "Host link.")
      .section("cpu", &IoSpec::cpu, cpu, "IO_CPU.");
}

Section system() {
  const auto sips = SectionOf<SystemSpec>()
                        .integer("count", &SystemSpec::sips, {1, 4'096}, "Number of SIPs (packages, ranks).", kRequired)
                        .enumeration("topology", &SystemSpec::topology,
                                     {"ring_1d", "torus_2d", "mesh_2d_no_wrap", "switch", "fully_connected"},
                                     "How the SIPs are joined.", kRequired)
                        .integer("w", &SystemSpec::sip_w, {1, 4'096},
                                 "Width of the grid of SIPs; torus_2d and mesh_2d_no_wrap only.", kOptional)
                        .integer("h", &SystemSpec::sip_h, {1, 4'096},
                                 "Height of the grid of SIPs; torus_2d and mesh_2d_no_wrap only.", kOptional);
  const auto link = [](auto member) {
    return [member](auto& spec) -> auto& { return std::invoke(member, spec.link); };
  };
  const Section links =
      SectionOf<InterSipSpec>()
          .integer("lanes", &InterSipSpec::lanes, {1, 1'024}, "Lanes of a link, each way.", kMore)
          .quantity("lane_rate", &InterSipSpec::transfers_per_second, Dimension::transfers, {kMHz, 1000 * kGHz},
                    "Transfer rate of a lane; one bit per transfer.")
          .quantity("bandwidth", link(&LinkConfig::bytes_per_second), Dimension::bandwidth, kAnyBandwidth,
                    "Raw rate of one link, each way; without it, lanes x lane_rate.", kOptional)
          .ratio("efficiency", link(&LinkConfig::payload_parts), link(&LinkConfig::raw_parts),
                 "Share of the raw rate that carries packets: line code and flits.")
          .quantity("flit_size", link(&LinkConfig::flit_bytes), Dimension::bytes, {0, 4'096},
                    "Flit with one CRC, which the receiver passes on whole; 0 B: bytes pass on as "
                    "they come, unchecked.")
          .quantity("header_size", link(&LinkConfig::header_bytes), Dimension::bytes, {0, 4'096},
                    "Added to every packet.", kLess)
          .time("serdes", &InterSipSpec::serdes_per_side, "PHY, FEC and link layer of one end.")
          .time("propagation", &InterSipSpec::propagation, "Board or cable.")
          .quantity("latency", link(&LinkConfig::latency), Dimension::time, {1, kMillisecond},
                    "Bit in to bit out, both ends together; without it, 2 serdes + propagation.", kOptional)
          .integer("buffer_packets", link(&LinkConfig::buffer_packets), {2, 65'536},
                   "Receiver's room for whole packets, per message class and VC set.", kMore)
          .integer("send_packets", link(&LinkConfig::send_packets), {0, 65'536},
                   "Sender's room for packets that wait for the wire, per message class and VC "
                   "set, shared by its VCs; each has room for two of the longest packets at least.",
                   kMore)
          .integer("bit_errors", link(&LinkConfig::bit_errors), kErrors,
                   "Bit errors per 10^18 bits; a bad flit is sent again.", kLess)
          .integer("error_seed", link(&LinkConfig::error_seed), {0, ~std::uint32_t{0}},
                   "Which bits; with the wire's name.")
          .quantity("energy_per_bit", link(&LinkConfig::energy_per_bit_aj), Dimension::energy, kBitEnergy,
                    "Per raw bit, both ends together.")
          .integer("per_neighbour", &InterSipSpec::links_per_neighbour, {1, 64},
                   "Parallel links between two neighbours.", kMore)
          .time("switch_latency", &InterSipSpec::switch_latency,
                "What the fabric switch takes beside its crossbar; topology 'switch' only.")
          .section("switch", &InterSipSpec::switch_crossbar, crossbar(),
                   "Crossbar of the fabric switch; topology 'switch' only.");
  return SectionOf<SystemSpec>()
      .group("sips", sips, "The SIPs.")
      .section("links", &SystemSpec::links, links, "Links between SIPs.");
}

Section sip() {
  const auto mesh = SectionOf<SipSpec>()
                        .integer("w", &SipSpec::cube_w, {1, 256}, "Cubes in a row.", kRequired)
                        .integer("h", &SipSpec::cube_h, {1, 256}, "Rows of cubes.", kRequired);
  return SectionOf<SipSpec>()
      .group("cube_mesh", mesh, "Grid of cubes of one SIP.")
      .section("io", &SipSpec::io, io(), "IO chiplet.");
}

Section root() {
  const auto pe_of_cube = [](auto& spec) -> auto& { return spec.cube.pe; };
  return SectionOf<SystemSpec>()
      .unbound("extends", FieldKind::text, "Preset, or file relative to this one, whose values this file changes.")
      .section(
          "system", [](auto& spec) -> auto& { return spec; }, system(), "The SIPs and the links between them.")
      .section("sip", &SystemSpec::sip, sip(), "One SIP.")
      .section("cube", &SystemSpec::cube, cube_section(), "One cube.")
      .section("pe", pe_of_cube, pe_section(), "One PE.")
      .text("cube_mesh", &SystemSpec::cube_mesh,
            "File with a pinned cube layout, relative to this one (see 'topology export').")
      .unbound("overrides", FieldKind::overrides, "Changes to single SIPs, cubes or PEs, and broken links.");
}

}  // namespace

const Section& cube_section() {
  static const Section section = cube();
  return section;
}
const Section& pe_section() {
  static const Section section = pe();
  return section;
}
const Section& root_section() {
  static const Section section = root();
  return section;
}

}  // namespace kernbench::topology
