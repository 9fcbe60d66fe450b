#include "topology/machine/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tlm/machine/names.h"
#include "topology/machine/machine.h"
#include "topology/machine/place_key.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

namespace {

constexpr const char* kUtilisation = "busy is at most the time of the run";
constexpr const char* kSlices = "slices add up to the totals";
constexpr const char* kDetail = "slices of virtual channels and reasons of waiting add up to theirs";
constexpr const char* kWires = "bytes into a wire are the bytes out of it";
constexpr const char* kQueues = "bytes sent over queues are the bytes received";
constexpr const char* kChannels = "bytes and busy times of the virtual channels of a router port add up to it";
constexpr const char* kStacks = "channels of a stack add up to it";

using Reasons = std::vector<const char*>;

constexpr unsigned kPeUsages = 8;
constexpr std::uint32_t kNoLimit = 1 << 20;  // units: a channel is busy where its heads go, which may be ahead of it

}  // namespace

/// One walk over the resources of a machine, always in the same order: the first makes their usages, the second
/// collects what they hold.
class UsageWalk {
 public:
  explicit UsageWalk(MachineUsage& usage)
      : owner_(usage), machine_(usage.machine_), plan_(usage.plan_), book_(usage.book_) {}

  void observe() {
    observing_ = true;
    all();
  }
  using Take = std::function<void(const RunStatistics&, const ResourceUse&)>;
  RunStatistics collect(Ps end, bool whole, const Take& take, RepeatedUse* repeated) {
    whole_ = whole;
    take_ = &take;
    repeated_ = repeated != nullptr && !repeated->empty() ? repeated : nullptr;
    for_cubes([&](CubeCoord at) { machine_.hbm(at).flush(); });
    result_.time = end;
    result_.shift = book_.shift(end);
    result_.repeats = repeated_ != nullptr;
    if (repeated_ != nullptr) result_.shift = repeated_->prepare(result_.shift, end);
    all();
    if (whole)
      hold(kQueues, sent_ == received_,
           [&] { return fmt::format("{} B were sent and {} received", sent_, received_); });
    return std::move(result_);
  }

 private:
  template <class Body>
  void for_cubes(const Body& body) {
    for (std::uint16_t sip = 0; sip < plan_.map.sips; ++sip) {
      for (std::uint16_t cube = 0; cube < plan_.map.cubes_per_sip(); ++cube) body(CubeCoord{sip, cube});
    }
  }

  template <class What>
  void hold(const char* check, bool ok, const What& what) {
    auto found = std::find_if(result_.checks.begin(), result_.checks.end(),
                              [&](const RunStatistics::Check& known) { return known.what == check; });
    if (found == result_.checks.end()) found = result_.checks.insert(found, {check, 0});
    ++found->compared;
    if (!ok) result_.violations.push_back(fmt::format("statistics: that {} does not hold: {}", check, what()));
  }
  KindUse& total(const char* kind) {
    for (KindUse& known : result_.totals) {
      if (std::string_view(known.kind) == kind) return known;
    }
    result_.totals.emplace_back().kind = kind;
    return result_.totals.back();
  }

  /// The usage of the resource that the walk has come to; a new one, which attach(usage) gives it, in the first walk.
  /// Null if nothing is to be told of it: describe(use) fills in the rest.
  template <class Attach, class Describe>
  void resource(const char* kind, std::uint16_t sip, std::uint64_t key, std::uint32_t units, const Reasons& reasons,
                const Attach& attach, const Describe& describe) {
    if (observing_) {
      Usage* const usage = book_.add(units, reasons.size());
      put(sip, key, usage);
      attach(usage);
    } else {
      const MachineUsage::Place& place = owner_.places_[next_++];
      report(kind, sip, place.number, *place.usage, reasons, describe);
    }
  }
  void put(std::uint16_t sip, std::uint64_t key, Usage* usage) {
    owner_.places_.push_back({owner_.number_of(key), usage, nullptr, 0, 0, leaves_});
    if (sip < owner_.by_sip_.size()) owner_.by_sip_[sip].push_back(owner_.places_.back());
  }
  template <class Describe>
  void report(const char* kind, std::uint16_t sip, std::uint32_t place, const Usage& usage, const Reasons& reasons,
              const Describe& describe) {
    KindUse& sum = total(kind);
    ++sum.resources;
    RepeatedUse::Sum did;
    did.slices = usage.slices(result_.shift, result_.time);
    did.reasons = usage.reasons(result_.shift, result_.time);
    const bool again = repeated_ != nullptr && repeated_->add(sip, place, usage.units(), did);
    if (!usage.used() && !again) return;
    ResourceUse use;
    use.kind = kind;
    use.units = usage.units();
    use.slices = std::move(did.slices);
    use.reasons = std::move(did.reasons);
    Usage::Slice all;
    for (const Usage::Slice& slice : use.slices) all += slice;
    use.high_water = all.mark;
    describe(use);
    use.busy += did.total.busy;
    use.bytes += did.total.bytes;
    use.messages += did.total.messages;
    use.high_water = std::max<std::uint64_t>(use.high_water, did.total.mark);
    Ps waiting = 0;
    for (unsigned i = 0; i < reasons.size(); ++i) {
      use.waits.push_back({reasons[i], usage.waited(i) + did.total.waited[i]});
      waiting += use.waits.back().time;
    }
    hold(kSlices,
         all.busy == use.busy && all.waiting == waiting && all.bytes == use.bytes && all.messages == use.messages &&
             all.mark == use.high_water,
         [&] {
           return fmt::format("{}: busy {}, waiting {}, {} B, {} messages, at most {}; its slices {}, {}, {}, {}, {}",
                              use.name, use.busy, waiting, use.bytes, use.messages, use.high_water, all.busy,
                              all.waiting, all.bytes, all.messages, all.mark);
         });
    if (!use.reasons.empty()) hold_reasons(use);
    if (whole_) {
      hold(kUtilisation, use.busy <= result_.time * use.units,
           [&] { return fmt::format("{}: {} ps of {}", use.name, use.busy, result_.time * use.units); });
    }
    ++sum.used;
    sum.busy += use.busy;
    sum.waiting += waiting;
    sum.bytes += use.bytes;
    sum.messages += use.messages;
    (*take_)(result_, use);
  }

  void hold_reasons(const ResourceUse& use) {
    Usage::Waits sums{};
    for (const Usage::Waits& slice : use.reasons) {
      for (unsigned i = 0; i < Usage::kReasons; ++i) sums[i] += slice[i];
    }
    for (std::size_t i = 0; i < use.waits.size(); ++i) {
      hold(kDetail, sums[i] == use.waits[i].time, [&] {
        return fmt::format("{}: {} ps of {}, its slices {}", use.name, use.waits[i].time, use.waits[i].reason, sums[i]);
      });
    }
  }

  void all() {
    wires();
    host_links();
    router_ports();
    leaves_ = false;
    for_cubes([&](CubeCoord at) { stack(at); });
    for_cubes([&](CubeCoord at) { sram(at); });
    for (std::uint16_t sip = 0; sip < plan_.map.sips; ++sip) {
      for (const PeCoord at : plan_.map.pes(sip)) pe(at);
    }
    for_cubes([&](CubeCoord at) {
      server(machine_.m_cpu(at).served(), names::m_cpu(at), at.sip, key_of(Where::m_cpu, at.cube));
    });
    for (std::uint16_t sip = 0; sip < plan_.map.sips; ++sip)
      server(machine_.io_cpu(sip).served(), names::io_cpu(sip), sip, key_of(Where::io_cpu, 0));
  }

  void wires() {
    for (std::uint32_t id = 0; id < plan_.ends.size(); ++id) {
      const LinkEnd& end = plan_.ends[id];
      LinkPort &port = machine_.link_port(id), &peer = machine_.link_port(end.peer);
      const Network& network = plan_.networks[end.network];
      const std::uint16_t side = network.kind == NetworkKind::fabric ? std::uint16_t{0} : end.number;
      const bool to_sip = leaves_ = end.kind->between_sips;  // sides and columns are numbered apart from link ports
      const std::uint64_t key = key_of(to_sip ? Where::sip_wire : Where::wire, place_of(network), side);
      for (unsigned i = 0; i < port.connections(); ++i) {
        resource(
            end.kind->statistics, plan_.sip_of(end), key + i, 1, {"wire", "credit"},
            [&](Usage* usage) { port.observe_usage(i, usage); },
            [&](ResourceUse& use) {
              const WireStats& stats = port.wire_stats(i);
              use.from = plan_.end_name(id);
              use.to = plan_.end_name(end.peer);
              use.name = fmt::format("{}.wire{}", use.from, i);
              use.rate = end.link.rate().bytes_per_second();
              use.busy = stats.busy;
              use.bytes = stats.bytes;
              use.messages = stats.packets;
              use.high_water_unit = "packets";
            });
        if (observing_ || !whole_) continue;
        const std::uint64_t in = port.wire_stats(i).bytes, out = peer.received_bytes(i);
        if (in != 0 || out != 0)
          hold(kWires, in == out,
               [&] { return fmt::format("{}.wire{}: {} B in, {} B out", plan_.end_name(id), i, in, out); });
      }
    }
  }

  void host_links() {
    leaves_ = false;
    for (std::uint16_t sip = 0; sip < plan_.map.sips; ++sip) {
      PcieEp& endpoint = machine_.pcie_ep(sip);
      Usage* down = nullptr;
      for (const bool up : {false, true}) {
        resource(
            "pcie", sip, key_of(Where::pcie, 0, up ? 1 : 0), 1, {"wire"},
            [&](Usage* usage) { up ? endpoint.observe_usage(down, usage) : static_cast<void>(down = usage); },
            [&](ResourceUse& use) {
              const PcieStats& stats = up ? endpoint.up_stats() : endpoint.down_stats();
              use.name = names::pcie_ep(sip) + (up ? ".up" : ".down");
              use.from = up ? names::pcie_ep(sip) : "host";
              use.to = up ? "host" : names::pcie_ep(sip);
              use.rate = plan_.spec.sip.io.pcie.bytes_per_second;
              use.busy = stats.busy;
              use.bytes = stats.bytes;
              use.messages = stats.tlps;
            });
      }
    }
  }

  void router_ports() {
    for (std::uint32_t id = 0; id < plan_.networks.size(); ++id) {
      const Network& network = plan_.networks[id];
      for (std::uint16_t at = 0; at < network.routers(); ++at) {
        Router& router = machine_.router(id, at);
        for (std::uint8_t port = 0; port < network.ports(at); ++port) {
          if (router.out[port] == nullptr) continue;
          const Beyond beyond = plan_.beyond(id, at, port);
          const bool inside = beyond.kind == Beyond::Kind::router;
          const std::uint16_t sip = plan_.sip_of(id, at, port);
          const bool fabric = network.kind == NetworkKind::fabric;
          const std::uint64_t key = port_key(network, at, fabric ? beyond.connection : port);
          leaves_ = plan_.leads_between_sips(id, at, port);
          resource(
              "router_port", sip, key, 1, {"contention"},
              [&](Usage* usage) {
                router.observe_usage(port, usage, book_.detail() ? &book_ : nullptr);
                if (sip < owner_.by_sip_.size())
                  owner_.by_sip_[sip].push_back({0, nullptr, &router, port, channel_key(key, 0), leaves_});
                if (inside) machine_.router(id, beyond.router).observe_level(beyond.in_port, usage);
              },
              [&](ResourceUse& use) {
                const PortStats& stats = router.output_stats(port);
                use.name = router.out[port]->name();
                use.from = plan_.router_name(id, at);
                use.to = beyond_name(id, at, port);
                use.rate = network.noc->clock_hz * network.noc->flit_bytes;
                use.busy = stats.busy;
                use.bytes = stats.bytes;
                use.messages = stats.packets;
                channels(router, port, network.noc->vcs_per_set, sip, key, use);
                if (use.high_water != 0) use.high_water_unit = "packets";
              });
          if (observing_ || !whole_ || !inside) continue;
          const std::uint64_t in = router.output_stats(port).bytes;
          const std::uint64_t out = machine_.router(id, beyond.router).input_bytes(beyond.in_port);
          if (in != 0 || out != 0)
            hold(kWires, in == out,
                 [&] { return fmt::format("{}: {} B in, {} B out", router.out[port]->name(), in, out); });
        }
      }
    }
  }
  static std::uint64_t port_key(const Network& network, std::uint16_t router, unsigned port) {
    constexpr unsigned kChannels = 512;  // and the port itself
    return key_of(Where::router_port, place_of(network), router, std::uint64_t{port} * kChannels);
  }
  static std::uint64_t channel_key(std::uint64_t port, std::size_t vc) { return port + 1 + vc; }
  static std::string channel_name(std::size_t vc, unsigned vcs_per_set) {
    static constexpr std::array<const char*, kMessageClasses> kClasses{"command", "data", "request", "response",
                                                                       "credit"};
    const std::size_t network = vc / vcs_per_set;
    return fmt::format("{}{}.{}", kClasses[network / kVcSets], network % kVcSets, vc % vcs_per_set);
  }
  /// Those that were used. What has gone through all of them is what has gone through the port.
  void channels(const Router& router, std::uint8_t port, unsigned vcs_per_set, std::uint16_t sip, std::uint64_t key,
                ResourceUse& use) {
    const std::vector<VcUse> all = router.virtual_channels(port);
    std::uint64_t bytes = 0;
    Ps busy = 0;
    for (std::size_t vc = 0; vc < all.size(); ++vc) {
      RepeatedUse::Sum again;
      const Usage* over_time = router.channel_over_time(port, vc);
      if (over_time != nullptr) again.slices = over_time->slices(result_.shift, result_.time);
      if (repeated_ != nullptr) {
        again.slices.resize(use.slices.size());
        repeated_->add(sip, owner_.number_of(channel_key(key, vc)), kNoLimit, again);
      }
      bytes += all[vc].bytes;
      busy += all[vc].busy;
      const PlaceUse& more = again.total;
      if (all[vc].packets + more.messages == 0) continue;
      use.channels.push_back({channel_name(vc, vcs_per_set),
                              all[vc].bytes + more.bytes,
                              all[vc].packets + more.messages,
                              all[vc].busy + more.busy,
                              all[vc].waiting + more.waited[0],
                              {}});
      if (over_time != nullptr) use.channels.back().slices = std::move(again.slices);
      if (book_.detail()) hold_slices(use, use.channels.back());
    }
    if (whole_) {
      hold(kChannels, bytes == use.bytes && busy == use.busy, [&] {
        return fmt::format("{}: {} B in {} ps, of its virtual channels {} B in {} ps", use.name, use.bytes, use.busy,
                           bytes, busy);
      });
    }
  }
  void hold_slices(const ResourceUse& use, const ResourceUse::Channel& channel) {
    Usage::Slice sum;
    for (const Usage::Slice& slice : channel.slices) sum += slice;
    hold(kDetail,
         sum.busy == channel.busy && sum.waiting == channel.waiting && sum.bytes == channel.bytes &&
             sum.messages == channel.messages,
         [&] {
           return fmt::format("{}, {}: busy {}, waiting {}, {} B, {} messages; its slices {}, {}, {}, {}", use.name,
                              channel.name, channel.busy, channel.waiting, channel.bytes, channel.messages, sum.busy,
                              sum.waiting, sum.bytes, sum.messages);
         });
  }
  std::string beyond_name(std::uint32_t id, std::uint16_t router, std::uint8_t port) const {
    const Beyond beyond = plan_.beyond(id, router, port);
    return beyond.kind == Beyond::Kind::router ? plan_.router_name(id, beyond.router)
           : beyond.kind == Beyond::Kind::node ? plan_.map.name(beyond.node)
           : beyond.kind == Beyond::Kind::end  ? plan_.end_name(beyond.end)
                                               : std::string();
  }

  void stack(CubeCoord at) {
    Hbm& hbm = machine_.hbm(at);
    const HbmConfig& config = plan_.spec.cube_at(at).hbm;
    const unsigned channels = config.channels / hbm.usages();  // of a usage
    std::uint64_t bursts = 0;
    for (unsigned unit = 0; unit < hbm.usages(); ++unit) {
      resource(
          "hbm_channel", at.sip, key_of(Where::stack, at.cube, unit), hbm.pseudo_channels_of_usage(), {"queue"},
          [&](Usage* usage) { hbm.observe_usage(unit, usage); },
          [&](ResourceUse& use) {
            use.name = hbm.by_slice() ? names::hbm_port({at.sip, at.cube, static_cast<std::uint16_t>(unit)})
                                      : names::parent(names::pseudo_channel(at, static_cast<int>(unit), 0));
            use.rate = config.pseudo_channel_peak().bytes_per_second() * hbm.pseudo_channels_of_usage();
            use.high_water_unit = "bursts";
            for (unsigned i = 0; i < channels; ++i) {
              const Hbm::Stats stats = hbm.channel_stats(unit * channels + i);
              use.busy += stats.busy;
              use.bytes += stats.bytes;
              use.messages += stats.reads + stats.writes;
            }
            bursts += use.messages;
          });
    }
    if (observing_) return;
    const Hbm::Stats all = hbm.stats();
    if (all.reads + all.writes != 0)
      hold(kStacks, bursts == all.reads + all.writes, [&] {
        return fmt::format("{}: {} bursts, its channels {}", names::hbm(at), all.reads + all.writes, bursts);
      });
  }

  void sram(CubeCoord at) {
    Sram& memory = machine_.sram(at);
    const SramConfig& config = plan_.spec.cube_at(at).sram;
    resource(
        "sram", at.sip, key_of(Where::sram, at.cube), config.banks, {"bank"},
        [&](Usage* usage) { memory.observe_usage(usage); },
        [&](ResourceUse& use) {
          use.name = names::sram(at);
          use.rate = config.bytes_per_second;
          use.busy = memory.served().busy;
          use.bytes = memory.served().bytes;
          use.messages = memory.served().requests;
          use.high_water_unit = "requests";
        });
  }

  void pe(PeCoord at) {
    Pe& pe = machine_.pe(at);
    if (observing_) {
      pe.observe_usage(book_);
      unsigned part = 0;
      for (Usage* usage : usages_of(pe)) put(at.sip, key_of(Where::pe, at.cube, at.pe, part++), usage);
      return;
    }
    const PeConfig& config = plan_.spec.pe_at(at);
    const PeStatistics done = pe.statistics();
    const PeUsages& usages = pe.usages();
    const auto part = [&](const char* kind, const char* name, const Usage* usage, const Reasons& reasons, Ps busy,
                          std::uint64_t bytes, std::uint64_t messages, std::uint64_t rate = 0) {
      report(kind, at.sip, owner_.places_[next_++].number, *usage, reasons, [&](ResourceUse& use) {
        use.name = names::pe_part(at, name);
        use.rate = rate;
        use.busy = busy;
        use.bytes = bytes;
        use.messages = messages;
        if (std::string_view(kind) == "engine") use.high_water_unit = "ops";
        if (std::string_view(name) == "tcm.write") {
          use.high_water = done.tcm_held;
          use.high_water_unit = "bytes";
        }
      });
    };
    const Reasons engine{"operands", "engine"};
    part("cpu", "cpu", usages.cpu, {"full", "op", "fence"}, done.cpu_busy, 0, done.dispatches + done.commands);
    part("engine", "dma_r", usages.dma_r, engine, done.dma_read_busy, done.dma_read_bytes, done.dma_reads);
    part("engine", "dma_w", usages.dma_w, engine, done.dma_write_busy, done.dma_write_bytes, done.dma_writes);
    part("engine", "gemm", usages.gemm, engine, done.gemm_busy, 0, done.gemm_ops);
    part("engine", "math", usages.math, engine, done.math_busy, 0, done.math_ops);
    const auto memory = [&](const char* name, Pe::TcmPart which, std::uint64_t rate) {
      const TcmTraffic& passed = pe.tcm_traffic(which);
      part("tcm", name, passed.usage, {"port", "bank"}, passed.busy, passed.bytes, passed.accesses, rate);
    };
    const TcmConfig& tcm = config.tcm;
    memory("tcm.read", Pe::TcmPart::read, tcm.bytes_per_second);
    memory("tcm.write", Pe::TcmPart::write, tcm.bytes_per_second);
    memory("tcm.engines", Pe::TcmPart::stream, tcm.clock_hz * tcm.bank_bytes * tcm.banks);
    std::uint32_t ordinal = 0;
    for (const QueueStatistics& queue : pe.ipcq_statistics()) {
      sent_ += queue.bytes_sent;
      received_ += queue.bytes_received;
      const std::uint32_t number = owner_.number_of(key_of(Where::ipcq, at.cube, at.pe, ordinal++));
      report("ipcq", at.sip, number, *queue.usage, {"credit", "data"}, [&](ResourceUse& use) {
        use.name = names::pe_part(at, fmt::format("ipcq.{}.{}", queue.group, queue.direction.str()));
        use.from = names::pe(at);
        use.to = names::pe(queue.peer);
        use.has_busy = false;
        use.bytes = queue.bytes_sent;
        use.messages = queue.messages_sent;
        use.high_water = queue.high_water;
        use.high_water_unit = "slots";
      });
    }
  }

  /// Those of a PE, in the order in which they are told of.
  static std::array<Usage*, kPeUsages> usages_of(Pe& pe) {
    const PeUsages& usages = pe.usages();
    return {usages.cpu,
            usages.dma_r,
            usages.dma_w,
            usages.gemm,
            usages.math,
            pe.tcm_traffic(Pe::TcmPart::read).usage,
            pe.tcm_traffic(Pe::TcmPart::write).usage,
            pe.tcm_traffic(Pe::TcmPart::stream).usage};
  }

  void server(SerialServer::Served& served, const std::string& name, std::uint16_t sip, std::uint64_t key) {
    resource(
        "cpu", sip, key, 1, {"busy"}, [&](Usage* usage) { served.usage = usage; },
        [&](ResourceUse& use) {
          use.name = name;
          use.busy = served.busy;
          use.messages = served.jobs;
          use.high_water = served.most_waiting;
          use.high_water_unit = "commands";
        });
  }

  MachineUsage& owner_;
  Machine& machine_;
  const Plan& plan_;
  UsageBook& book_;
  RepeatedUse* repeated_ = nullptr;
  bool observing_ = false, whole_ = false;
  bool leaves_ = false;  // what leaves the resource that the walk has come to leaves the SIP
  const Take* take_ = nullptr;
  std::size_t next_ = 0;
  RunStatistics result_;
  std::uint64_t sent_ = 0, received_ = 0;
};

MachineUsage::MachineUsage(Machine& machine, const Plan& plan, std::uint32_t slices, bool detail)
    : machine_(machine), plan_(plan), book_(slices, detail), by_sip_(plan.map.sips) {
  UsageWalk(*this).observe();
}

RunStatistics MachineUsage::collect(Ps end, bool whole,
                                    const std::function<void(const RunStatistics&, const ResourceUse&)>& take,
                                    RepeatedUse* repeated) {
  return UsageWalk(*this).collect(end, whole, take, repeated);
}

}  // namespace kernbench::topology
