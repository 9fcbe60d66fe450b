#include <algorithm>

#include "tlm/ext/packet.h"
#include "tlm/machine/address.h"
#include "topology/hbm_presets.h"
#include "topology/schema.h"

namespace kernbench::topology {

namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
constexpr std::uint64_t kMegabyte = 1'000'000, kTerabyte = 1'000'000'000'000;
constexpr std::uint64_t kMillisecond = 1'000'000'000;  // ps
constexpr std::uint64_t kMHz = 1'000'000, kGHz = 1'000'000'000;

constexpr IntegerRange kAnyTime{0, kMillisecond};
constexpr IntegerRange kAnyClock{kMHz, 100 * kGHz};
constexpr IntegerRange kAnyBandwidth{kMegabyte, 1000 * kTerabyte};
constexpr IntegerRange kQueue{1, 65'536};
constexpr IntegerRange kAnyEnergy{0, 1'000'000'000'000};  // 1 uJ
constexpr IntegerRange kAnyPower{0, 1'000'000'000};       // 1 kW
constexpr IntegerRange kCycles{0, 1'000};
constexpr IntegerRange kTiming{0, 1'000'000};
constexpr IntegerRange kErrors{0, 1'000'000'000'000'000};  // 10^-3
constexpr IntegerRange kBitEnergy{0, 1'000'000'000};       // 1 nJ
/// An offset within one unit of the physical address has 33 bits.
constexpr std::uint64_t kUnitBytes = PhysicalAddress::kMaxOffset + 1;

/// Builds the table of one struct. `member`: a pointer to member, or a callable from the struct to a reference.
template <class Struct>
class SectionOf {
 public:
  template <class Member>
  SectionOf& integer(const char* key, Member member, IntegerRange range, const char* doc) {
    Field& field = add<Member>(key, FieldKind::integer, member, doc);
    field.range = range;
    return *this;
  }
  template <class Member>
  SectionOf& quantity(const char* key, Member member, Dimension dimension, IntegerRange range, const char* doc) {
    Field& field = add<Member>(key, FieldKind::quantity, member, doc);
    field.dimension = dimension;
    field.range = range;
    return *this;
  }
  template <class Member>
  SectionOf& time(const char* key, Member member, const char* doc) {
    return quantity(key, member, Dimension::time, kAnyTime, doc);
  }
  template <class Member>
  SectionOf& boolean(const char* key, Member member, const char* doc) {
    add<Member>(key, FieldKind::boolean, member, doc);
    return *this;
  }
  /// Enumerators must count from 0 in the order of `names`.
  template <class Member>
  SectionOf& enumeration(const char* key, Member member, std::vector<std::string> names, const char* doc) {
    add<Member>(key, FieldKind::enumeration, member, doc).names = std::move(names);
    return *this;
  }
  template <class Parts, class Whole>
  SectionOf& ratio(const char* key, Parts parts, Whole whole, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::ratio;
    field.doc = doc;
    field.get = [=](const void* object) -> FieldValue {
      const auto& source = *static_cast<const Struct*>(object);
      return Ratio{std::invoke(parts, source), std::invoke(whole, source)};
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = *static_cast<Struct*>(object);
      std::invoke(parts, target) = std::get<Ratio>(value).parts;
      std::invoke(whole, target) = std::get<Ratio>(value).whole;
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  template <class Member>
  SectionOf& points(const char* key, FieldKind kind, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.optional = true;
    field.uniform = true;
    field.get = [=](const void* object) -> FieldValue {
      return std::invoke(member, *static_cast<const Struct*>(object));
    };
    field.set = [=](void* object, const FieldValue& value) {
      std::invoke(member, *static_cast<Struct*>(object)) = std::get<std::vector<GridPoint>>(value);
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  template <class Member>
  SectionOf& text(const char* key, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::text;
    field.doc = doc;
    field.optional = true;
    field.get = [=](const void* object) -> FieldValue {
      return std::invoke(member, *static_cast<const Struct*>(object));
    };
    field.set = [=](void* object, const FieldValue& value) {
      std::invoke(member, *static_cast<Struct*>(object)) = std::get<std::string>(value);
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  SectionOf& custom(Field field) { return section_.fields.push_back(std::move(field)), *this; }
  /// A key of the file that binds no struct: `extends`, `overrides`.
  SectionOf& unbound(const char* key, FieldKind kind, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.optional = true;
    section_.fields.push_back(std::move(field));
    return *this;
  }
  /// A nested map that binds a member of this struct.
  template <class Member>
  SectionOf& section(const char* key, Member member, Section nested, const char* doc) {
    return enter(
        key, [=](void* object) -> void* { return &std::invoke(member, *static_cast<Struct*>(object)); },
        std::move(nested), doc);
  }
  /// A nested map whose keys are members of this same struct.
  SectionOf& group(const char* key, const SectionOf& nested, const char* doc) {
    return enter(
        key, [](void* object) { return object; }, nested, doc);
  }
  SectionOf& mandatory() { return section_.fields.back().optional = false, *this; }
  SectionOf& required() { return section_.fields.back().required = true, *this; }
  SectionOf& optional() { return section_.fields.back().optional = true, *this; }
  SectionOf& uniform() { return section_.fields.back().uniform = true, *this; }
  operator Section() const { return section_; }  // NOLINT(google-explicit-constructor): ends the chain

 private:
  template <class Member>
  Field& add(const char* key, FieldKind kind, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.get = [=](const void* object) -> FieldValue {
      return static_cast<std::uint64_t>(std::invoke(member, *static_cast<const Struct*>(object)));
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = std::invoke(member, *static_cast<Struct*>(object));
      target = static_cast<std::decay_t<decltype(target)>>(std::get<std::uint64_t>(value));
    };
    section_.fields.push_back(std::move(field));
    return section_.fields.back();
  }
  SectionOf& enter(const char* key, std::function<void*(void*)> enter, Section nested, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::section;
    field.doc = doc;
    field.enter = std::move(enter);
    field.section = std::make_shared<const Section>(std::move(nested));
    section_.fields.push_back(std::move(field));
    return *this;
  }

  Section section_;
};

// A stage of a router's pipeline, in cycles.
constexpr IntegerRange kStage{0, 32};

SectionOf<NocConfig> noc_pipeline() {
  return SectionOf<NocConfig>()
      .integer("routing", &NocConfig::routing_delay, kStage, "Route computation, in cycles; 0 with look-ahead routing.")
      .integer("vc_allocation", &NocConfig::vc_alloc_delay, kStage, "Virtual channel allocation, in cycles.")
      .integer("switch_allocation", &NocConfig::sw_alloc_delay, kStage, "Switch allocation, in cycles.")
      .integer("switch_traversal", &NocConfig::switch_delay, kStage, "Switch traversal, in cycles.")
      .integer("link", &NocConfig::link_delay, {1, 32}, "Wire to the next router or network interface, in cycles.")
      .integer("credit", &NocConfig::credit_delay, {1, 32},
               "From a freed buffer slot to a usable credit upstream, in cycles.");
}

SectionOf<NocConfig> crossbar() {
  return SectionOf<NocConfig>()
      .quantity("flit_size", &NocConfig::flit_bytes, Dimension::bytes, {8, 256, true},
                "Bytes that move per cycle on one port.")
      .quantity("clock", &NocConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the routers and their links.")
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
      .integer("vcs_per_set", &NocConfig::vcs_per_set, {1, 16}, "Virtual channels of each message class and VC set.")
      .integer("vc_depth", &NocConfig::vc_depth_flits, {1, 4'096},
               "Buffer of one virtual channel at an input port, in flits.")
      .group("pipeline", noc_pipeline(), "Router pipeline.")
      .quantity("energy_per_bit", &NocConfig::energy_per_bit_aj, Dimension::energy, kAnyEnergy,
                "Per bit of payload and router: buffer, switch and the wire to the next hop.")
      .quantity("static_power", &NocConfig::static_uw, Dimension::power, kAnyPower, "Of each router.");
}

Section noc() {
  Section section = SectionOf<NocConfig>()
                        .integer("rows", &NocConfig::rows, {1, 64}, "Rows of the router grid.")
                        .required()
                        .uniform()
                        .integer("cols", &NocConfig::cols, {1, 64}, "Columns of the router grid.")
                        .required()
                        .uniform()
                        .enumeration("routing", &NocConfig::routing, {"xy", "yx", "table"},
                                     "Routing inside a cube; a mesh with holes needs 'table'.")
                        .uniform();
  const Section common = crossbar();
  section.fields.insert(section.fields.end(), common.fields.begin(), common.fields.end());
  return section;
}

Section ucie() {
  return SectionOf<UcieConfig>()
      .integer("connections", &UcieConfig::connections, {1, 64},
               "Connections per side, spread over the routers of the edge.")
      .uniform()
      .integer("lanes", &UcieConfig::lanes, {1, 1'024}, "Lanes per connection and direction.")
      .quantity("lane_rate", &UcieConfig::transfers_per_second, Dimension::transfers, {kMHz, 1000 * kGHz},
                "Transfer rate of a lane; one bit per transfer.")
      .enumeration("width", &UcieConfig::width, {"full", "half", "quarter"},
                   "Lanes in use: failed ones are given up by halves. A connection has the lower rate of its two ends.")
      .enumeration("flit", &UcieConfig::flit, {"68B", "256B", "256B_latency_optimised", "raw"},
                   "Flit format: the share of the raw rate that carries packets, and what is checked at a time; raw: "
                   "neither flits nor checks.")
      .time("latency_per_side", &UcieConfig::latency_per_side, "PHY and adapter of one side; a hop has two sides.")
      .quantity("header_size", &UcieConfig::header_bytes, Dimension::bytes, {0, 4'096}, "Added to every packet.")
      .integer("buffer_packets", &UcieConfig::buffer_packets, {2, 4'096},
               "Receiver's room for whole packets, per message class and VC set.")
      .integer("bit_errors", &UcieConfig::bit_errors, kErrors, "Bit errors per 10^18 bits; a bad flit is sent again.")
      .integer("error_seed", &UcieConfig::error_seed, {0, ~std::uint32_t{0}}, "Which bits; with the wire's name.")
      .quantity("energy_per_bit", &UcieConfig::energy_per_bit_aj, Dimension::energy, kBitEnergy,
                "Per raw bit, both sides together.");
}

Section io() {
  const Section cpu = SectionOf<IoCpuConfig>().time("command", &IoCpuConfig::command, "Handling of one command.");
  const Section pcie =
      SectionOf<PcieConfig>()
          .integer("generation", &PcieConfig::generation, {3, 6}, "PCIe generation.")
          .integer("lanes", &PcieConfig::lanes, {1, 32, true}, "Lanes.")
          .quantity("bandwidth", &PcieConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "One direction, after line encoding; without it, what generation and lanes give.")
          .optional()
          .quantity("tlp_payload", &PcieConfig::tlp_payload_bytes, Dimension::bytes, {64, 4'096, true},
                    "Largest payload of a transaction layer packet.")
          .quantity("tlp_overhead", &PcieConfig::tlp_overhead_bytes, Dimension::bytes, {0, 256},
                    "Framing, sequence number, header and CRC of each packet.")
          .time("latency", &PcieConfig::latency, "One way, host to endpoint.")
          .time("doorbell", &PcieConfig::doorbell, "Endpoint's handling of one message.")
          .integer("credits", &PcieConfig::credits, {1, 65'536},
                   "TLPs that the receiver holds; a credit is back after a round trip.")
          .integer("outstanding", &PcieConfig::outstanding, {1, 4'096}, "Bursts of host copies in flight.")
          .quantity("energy_per_bit", &PcieConfig::energy_per_bit_aj, Dimension::energy, kBitEnergy,
                    "Per bit of TLPs, both ends together.");
  return SectionOf<IoSpec>()
      .section("crossbar", &IoSpec::crossbar, crossbar(), "Crossbar of the IO chiplet.")
      .section("ucie", &IoSpec::ucie, ucie(), "UCIe ports to the north edges of the row-0 cubes.")
      .section("pcie", &IoSpec::pcie, pcie, "Host link.")
      .section("cpu", &IoSpec::cpu, cpu, "IO_CPU.");
}

Section system() {
  const auto sips =
      SectionOf<SystemSpec>()
          .integer("count", &SystemSpec::sips, {1, 4'096}, "Number of SIPs (packages, ranks).")
          .required()
          .enumeration("topology", &SystemSpec::topology,
                       {"ring_1d", "torus_2d", "mesh_2d_no_wrap", "switch", "fully_connected"},
                       "How the SIPs are joined.")
          .required()
          .integer("w", &SystemSpec::sip_w, {1, 4'096}, "Width of the grid of SIPs; torus_2d and mesh_2d_no_wrap only.")
          .optional()
          .integer("h", &SystemSpec::sip_h, {1, 4'096},
                   "Height of the grid of SIPs; torus_2d and mesh_2d_no_wrap only.")
          .optional();
  const auto link = [](auto member) {
    return [member](auto& spec) -> auto& { return std::invoke(member, spec.link); };
  };
  const Section links = SectionOf<InterSipSpec>()
                            .integer("lanes", &InterSipSpec::lanes, {1, 1'024}, "Lanes of a link, each way.")
                            .quantity("lane_rate", &InterSipSpec::transfers_per_second, Dimension::transfers,
                                      {kMHz, 1000 * kGHz}, "Transfer rate of a lane; one bit per transfer.")
                            .quantity("bandwidth", link(&LinkConfig::bytes_per_second), Dimension::bandwidth,
                                      kAnyBandwidth, "Raw rate of one link, each way; without it, lanes x lane_rate.")
                            .optional()
                            .ratio("efficiency", link(&LinkConfig::payload_parts), link(&LinkConfig::raw_parts),
                                   "Share of the raw rate that carries packets: line code and flits.")
                            .quantity("flit_size", link(&LinkConfig::flit_bytes), Dimension::bytes, {0, 4'096},
                                      "Flit with one CRC, which the receiver passes on whole; 0 B: bytes pass on as "
                                      "they come, unchecked.")
                            .quantity("header_size", link(&LinkConfig::header_bytes), Dimension::bytes, {0, 4'096},
                                      "Added to every packet.")
                            .time("serdes", &InterSipSpec::serdes_per_side, "PHY, FEC and link layer of one end.")
                            .time("propagation", &InterSipSpec::propagation, "Board or cable.")
                            .quantity("latency", link(&LinkConfig::latency), Dimension::time, {1, kMillisecond},
                                      "Bit in to bit out, both ends together; without it, 2 serdes + propagation.")
                            .optional()
                            .integer("buffer_packets", link(&LinkConfig::buffer_packets), {2, 65'536},
                                     "Receiver's room for whole packets, per message class and VC set.")
                            .integer("bit_errors", link(&LinkConfig::bit_errors), kErrors,
                                     "Bit errors per 10^18 bits; a bad flit is sent again.")
                            .integer("error_seed", link(&LinkConfig::error_seed), {0, ~std::uint32_t{0}},
                                     "Which bits; with the wire's name.")
                            .quantity("energy_per_bit", link(&LinkConfig::energy_per_bit_aj), Dimension::energy,
                                      kBitEnergy, "Per raw bit, both ends together.")
                            .integer("per_neighbour", &InterSipSpec::links_per_neighbour, {1, 64},
                                     "Parallel links between two neighbours.")
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
                        .integer("w", &SipSpec::cube_w, {1, 256}, "Cubes in a row.")
                        .required()
                        .integer("h", &SipSpec::cube_h, {1, 256}, "Rows of cubes.")
                        .required();
  return SectionOf<SipSpec>()
      .group("cube_mesh", mesh, "Grid of cubes of one SIP.")
      .section("io", &SipSpec::io, io(), "IO chiplet.");
}

Section hbm_timing() {
  const auto t = [](SectionOf<HbmTiming>& section, const char* key, std::uint32_t HbmTiming::*member, const char* doc) {
    section.integer(key, member, kTiming, doc);
  };
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
  t(s, "t_refi", &HbmTiming::t_refi, "JEDEC tREFI: interval of all-bank refreshes.");
  t(s, "t_refi_pb", &HbmTiming::t_refi_pb, "Interval of single-bank refreshes.");
  t(s, "t_ppd", &HbmTiming::t_ppd, "JEDEC tPPD: precharge to precharge; 0 where the device has none.");
  t(s, "t_rrefd", &HbmTiming::t_rrefd, "JEDEC tRREFD: single-bank refresh to activate of another bank.");
  t(s, "t_dqsck", &HbmTiming::t_dqsck, "Read data leave so much after RL.");
  return s;
}

/// The config keeps the generation's name.
Field hbm_generation() {
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
      .custom(hbm_generation())
      .quantity("clock", &HbmConfig::ck_hz, Dimension::frequency, kAnyClock, "Command clock CK.")
      .integer("channels", &HbmConfig::channels, {1, 1'024}, "Channels of the stack.")
      .integer("pseudo_channels", &HbmConfig::pseudo_channels, {1, 16}, "Pseudo channels per channel.")
      .integer("bank_groups", &HbmConfig::bank_groups, {1, 64, true}, "Bank groups per pseudo channel and stack ID.")
      .integer("banks_per_group", &HbmConfig::banks_per_group, {1, 64, true}, "Banks per bank group.")
      .integer("stack_ids", &HbmConfig::stack_ids, {1, 16}, "Stack IDs (height of the stack in groups of dies).")
      .quantity("row_size", &HbmConfig::row_bytes, Dimension::bytes, {64, 65'536, true},
                "Row of one bank of a pseudo channel.")
      .quantity("burst_size", &HbmConfig::burst_bytes, Dimension::bytes, {8, 256, true}, "Data of one column command.")
      .integer("burst_cycles", &HbmConfig::burst_ck, {1, 64}, "Data-bus time of one burst, in CK.")
      .boolean("half_clock_commands", &HbmConfig::half_clock_commands,
               "HBM3: activate takes 1.5 CK of the row bus, precharge and refresh 0.5; else 2 and 1.")
      .quantity("size", &HbmConfig::bytes, Dimension::bytes, {kMiB, 1024 * kGiB},
                "Capacity of the stack; every PE owns an equal slice.")
      .uniform()
      .quantity("interleave", &HbmConfig::interleave_bytes, Dimension::bytes, {32, kMiB, true},
                "A slice changes its pseudo channel every so many bytes.")
      .text("mapping", &HbmConfig::mapping,
            "Bits of a burst's address in its pseudo channel, most significant first: row, stack ID, bank, bank group, "
            "column.")
      .mandatory()
      .quantity("activate_energy", &HbmConfig::activate_aj, Dimension::energy, kAnyEnergy,
                "Of activating and precharging a row.")
      .quantity("energy_per_bit", &HbmConfig::energy_per_bit_aj, Dimension::energy, kAnyEnergy,
                "Per bit read or written: array, die and I/O.")
      .quantity("bank_refresh_energy", &HbmConfig::bank_refresh_aj, Dimension::energy, kAnyEnergy,
                "Of refreshing one bank once.")
      .quantity("static_power", &HbmConfig::static_uw, Dimension::power, kAnyPower, "Of the stack.")
      .integer("queue_depth", &HbmConfig::queue_depth, kQueue, "Requests waiting per pseudo channel, in bursts.")
      .enumeration("page_policy", &HbmConfig::page_policy, {"open", "closed"}, "What happens to a row after an access.")
      .enumeration("refresh", &HbmConfig::refresh, {"none", "all_bank", "per_bank"}, "Refresh mode.")
      .enumeration("scheduler", &HbmConfig::scheduler, {"batched", "shared"},
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

Section cube() {
  const Section m_cpu = SectionOf<MCpuConfig>().time("command", &MCpuConfig::command, "Handling of one command.");
  const Section sram =
      SectionOf<SramConfig>()
          .quantity("size", &SramConfig::bytes, Dimension::bytes, {64 * kKiB, kUnitBytes}, "Capacity.")
          .uniform()
          .integer("banks", &SramConfig::banks, {1, 4'096, true}, "Banks.")
          .quantity("interleave", &SramConfig::bank_interleave_bytes, Dimension::bytes, {32, kMiB, true},
                    "The bank changes every so many bytes.")
          .quantity("bandwidth", &SramConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "All banks together.")
          .time("latency", &SramConfig::latency, "Access time of a bank.")
          .integer("queue_depth", &SramConfig::queue_depth, kQueue, "Requests waiting.")
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
      .integer("pes", &CubeSpec::pes, {1, 256}, "PEs per cube.")
      .required()
      .uniform()
      .section("noc", &CubeSpec::noc, noc(), "Router network.")
      .section("placement", &CubeSpec::placement, placement, "What is attached where.")
      .section("m_cpu", &CubeSpec::m_cpu, m_cpu, "Management CPU.")
      .section("sram", &CubeSpec::sram, sram, "Shared SRAM.")
      .section("hbm", &CubeSpec::hbm, hbm(), "HBM stack.")
      .section("ucie", &CubeSpec::ucie, ucie(), "UCIe ports to the neighbouring cubes.");
}

Section gemm() {
  const auto tile = SectionOf<GemmConfig>()
                        .integer("m", &GemmConfig::tile_m, {0, 4'096}, "Rows of a tile; 0: chosen by array and TCM.")
                        .integer("n", &GemmConfig::tile_n, {0, 4'096}, "Columns of a tile; 0: chosen.")
                        .integer("k", &GemmConfig::tile_k, {0, 65'536}, "Depth of a tile; 0: chosen.");
  return SectionOf<GemmConfig>()
      .quantity("clock", &GemmConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the array.")
      .integer("rows", &GemmConfig::rows, {1, 1'024}, "Rows of multiply-accumulators.")
      .integer("cols", &GemmConfig::cols, {1, 1'024}, "Columns of multiply-accumulators.")
      .enumeration("dataflow", &GemmConfig::dataflow, {"output_stationary", "weight_stationary"},
                   "What stays in the array.")
      .integer("f8_rate", &GemmConfig::f8_rate, {1, 64}, "8-bit MACs per cell and cycle.")
      .integer("f16_rate", &GemmConfig::f16_rate, {1, 64}, "16-bit MACs per cell and cycle.")
      .integer("f32_cycles", &GemmConfig::f32_cycles, {1, 64}, "Cycles per 32-bit MAC of a cell.")
      .integer("queue_depth", &GemmConfig::queue_depth, kQueue, "Ops waiting.")
      .group("tile", tile, "Tile of composite_gemm.");
}

Section pe() {
  const Section cpu =
      SectionOf<PeCpuConfig>()
          .time("dispatch", &PeCpuConfig::dispatch, "Per op issued.")
          .time("command", &PeCpuConfig::command, "Handling of one command.")
          .integer("kernel_contexts", &PeCpuConfig::kernel_contexts, {1, 256}, "Launches that a PE holds at once.");
  const Section dma =
      SectionOf<DmaConfig>()
          .integer("outstanding", &DmaConfig::outstanding, {1, 4'096}, "Bursts in flight, each of read and write.")
          .quantity("burst_size", &DmaConfig::burst_bytes, Dimension::bytes, {32, kMaxPacketBytes, true},
                    "Largest burst; bursts never cross a multiple of it.")
          .time("setup", &DmaConfig::setup, "Per op.")
          .integer("queue_depth", &DmaConfig::queue_depth, kQueue, "Ops waiting.");
  const Section math =
      SectionOf<MathConfig>()
          .quantity("clock", &MathConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the lanes.")
          .integer("lanes", &MathConfig::lanes, {1, 65'536}, "Elements per cycle in simple ops, up to 32 bits each.")
          .integer("divide_cycles", &MathConfig::divide_cycles, {1, 1'000}, "Cycles per group of elements for div.")
          .integer("sqrt_cycles", &MathConfig::sqrt_cycles, {1, 1'000}, "The same for sqrt and rsqrt.")
          .integer("transcendental_cycles", &MathConfig::transcendental_cycles, {1, 1'000}, "The same for exp and log.")
          .integer("activation_cycles", &MathConfig::activation_cycles, {1, 1'000},
                   "The same for tanh, sigmoid, gelu and silu.")
          .integer("pipeline_cycles", &MathConfig::pipeline_cycles, kCycles, "Fill of the pipeline.")
          .integer("queue_depth", &MathConfig::queue_depth, kQueue, "Ops waiting.");
  const Section tcm =
      SectionOf<TcmConfig>()
          .quantity("size", &TcmConfig::bytes, Dimension::bytes, {64 * kKiB, kUnitBytes}, "Capacity.")
          .uniform()
          .quantity("bandwidth", &TcmConfig::bytes_per_second, Dimension::bandwidth, kAnyBandwidth,
                    "Of the port of DMA and IPCQ, reads and writes each.")
          .time("latency", &TcmConfig::latency, "Access time.")
          .quantity("clock", &TcmConfig::clock_hz, Dimension::frequency, kAnyClock, "Clock of the banks.")
          .integer("banks", &TcmConfig::banks, {1, 1'024}, "Banks; neighbouring words lie in neighbouring ones.")
          .quantity("bank_width", &TcmConfig::bank_bytes, Dimension::bytes, {4, 1'024, true},
                    "What a bank reads or writes per cycle.")
          .integer("queue_depth", &TcmConfig::queue_depth, kQueue, "Accesses from outside in service.");
  const Section energy =
      SectionOf<PeEnergyConfig>()
          .quantity("mac_8bit", &PeEnergyConfig::mac_8bit_aj, Dimension::energy, kAnyEnergy, "Per 8-bit MAC.")
          .quantity("mac_16bit", &PeEnergyConfig::mac_16bit_aj, Dimension::energy, kAnyEnergy, "Per 16-bit MAC.")
          .quantity("mac_32bit", &PeEnergyConfig::mac_32bit_aj, Dimension::energy, kAnyEnergy, "Per 32-bit MAC.")
          .quantity("mac_64bit", &PeEnergyConfig::mac_64bit_aj, Dimension::energy, kAnyEnergy, "Per 64-bit MAC.")
          .quantity("math", &PeEnergyConfig::math_aj, Dimension::energy, kAnyEnergy, "Per element and cycle of a lane.")
          .quantity("tcm_byte", &PeEnergyConfig::tcm_aj_per_byte, Dimension::energy, kAnyEnergy,
                    "Per byte read from or written to TCM.")
          .quantity("dma_byte", &PeEnergyConfig::dma_aj_per_byte, Dimension::energy, kAnyEnergy,
                    "Per byte that the DMA engine moves.")
          .quantity("static", &PeEnergyConfig::static_uw, Dimension::power, kAnyPower, "Of the whole PE.");
  const Section mmu = SectionOf<MmuConfig>()
                          .quantity("page_size", &MmuConfig::page_bytes, Dimension::bytes, {4 * kKiB, kGiB, true},
                                    "Reach of one TLB entry.")
                          .integer("tlb_entries", &MmuConfig::tlb_entries, {1, 65'536}, "TLB entries.")
                          .time("walk", &MmuConfig::walk, "On a TLB miss.");
  const Section ipcq =
      SectionOf<IpcqConfig>()
          .integer("slots", &IpcqConfig::slots, {1, 4'096}, "Slots per direction.")
          .uniform()
          .quantity("slot_size", &IpcqConfig::slot_bytes, Dimension::bytes, {64, 16 * kMiB, true}, "Bytes per slot.")
          .uniform()
          .enumeration("buffer", &IpcqConfig::buffer, {"tcm", "sram", "hbm"}, "Memory that holds the slots.")
          .uniform()
          .quantity("credit_size", &IpcqConfig::credit_bytes, Dimension::bytes, {1, kMaxPacketBytes},
                    "Bytes of a credit message.")
          .integer("queue_depth", &IpcqConfig::queue_depth, kQueue, "Ops waiting per direction, send or receive.");
  return SectionOf<PeConfig>()
      .section("cpu", &PeConfig::cpu, cpu, "PE_CPU.")
      .section("dma", &PeConfig::dma, dma, "DMA engine.")
      .section("gemm", &PeConfig::gemm, gemm(), "GEMM engine.")
      .section("math", &PeConfig::math, math, "Vector engine.")
      .section("tcm", &PeConfig::tcm, tcm, "Scratchpad.")
      .section("mmu", &PeConfig::mmu, mmu, "MMU.")
      .section("ipcq", &PeConfig::ipcq, ipcq, "Inter-PE communication queues.")
      .section("energy", &PeConfig::energy, energy, "Energy of its work.");
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
