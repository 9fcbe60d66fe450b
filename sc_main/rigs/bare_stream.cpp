#include "sc_main/rigs/bare_stream.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <stdexcept>
#include <systemc>
#include <tlm>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_tracks.h"
#include "models/hbm/hbm.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/rigs/stream_pattern.h"
#include "tlm/machine/address.h"
#include "tlm/sim/annotation.h"

namespace kernbench {

namespace {

/// A burst on its way, without an extension: what a foreign initiator would send.
class Burst : public tlm::tlm_generic_payload {
 public:
  std::uint64_t request = 0;
};

/// The mapping in the words of HbmConfig: every field named, the pseudo channel on top where the stream names none.
std::string full_mapping(const std::string& mapping) {
  std::string full = mapping.empty() ? "RoSiBaCoBg" : mapping;
  if (full.find("Si") == std::string::npos) full.insert(full.find("Ro") + 2, "Si");
  if (full.find("Pc") == std::string::npos) full.insert(0, "Pc");
  return full;
}

HbmConfig channel_config(const BareStreamConfig& c) {
  HbmConfig hbm = c.hbm;
  hbm.channels = 1;
  hbm.mapping = full_mapping(c.mapping);
  hbm.controller_latency = 0;
  hbm.bytes = std::uint64_t{c.rows} * hbm.row_bytes * hbm.banks_per_group * hbm.bank_groups * hbm.stack_ids *
              hbm.pseudo_channels;
  if (hbm.bytes > PhysicalAddress::kMaxOffset + 1)
    throw std::invalid_argument("a channel of " + std::to_string(hbm.bytes) + " B is beyond a physical address");
  if (c.pseudo_channels == 0 || c.pseudo_channels > hbm.pseudo_channels) {
    throw std::invalid_argument("a scope of " + std::to_string(c.pseudo_channels) +
                                " pseudo channels: the channel has " + std::to_string(hbm.pseudo_channels));
  }
  if (c.queue == 0) throw std::invalid_argument("a queue of 0 bursts");
  hbm.queue_bursts = c.queue;
  return hbm;
}

/// B/s of so many pseudo channels of a channel.
double peak_of(HbmConfig channel, std::uint32_t pseudo_channels) {
  channel.pseudo_channels = pseudo_channels;
  return static_cast<double>(channel.pseudo_channel_peak().bytes_per_second()) * pseudo_channels;
}

}  // namespace

/// The source: offers bursts in order, one after the other, each as soon as the one before has been taken.
struct BareStream::Impl final : sc_core::sc_module, tlm::tlm_bw_transport_if<>, tlm::tlm_mm_interface {
  Impl(const sc_core::sc_module_name& name, const BareStreamConfig& config, EventQueue& queue)
      : sc_module(name),
        config(config),
        channel(channel_config(config)),
        pattern(config.pattern, channel, config.pseudo_channels, config.rows,
                config.mapping.empty() ? default_mapping() : config.mapping, config.request_bytes),
        map(channel, channel.pseudo_channels),
        clock(channel),
        peak(peak_of(channel, config.pseudo_channels)),
        random(config.seed),
        queue(queue),
        hbm("hbm", channel, CubeCoord{0, 0}, 1, timing_only(config.fast), queue, nullptr) {
    if (config.reads + config.writes == 0) throw std::invalid_argument("a mix of no reads and no writes");
    if (config.requests == 0) throw std::invalid_argument("a stream of no requests");
    const bool open =
        config.arrivals == BareStreamConfig::Arrivals::fixed || config.arrivals == BareStreamConfig::Arrivals::poisson;
    if (open && !(config.load > 0 && config.load <= 10)) throw std::invalid_argument("a load that is not above 0");
    if (config.arrivals == BareStreamConfig::Arrivals::closed_loop && config.outstanding == 0)
      throw std::invalid_argument("a closed loop of no requests in flight");
    out.bind(*this);
    out.bind(*hbm.port.front());
    ck = kPsPerSecond / channel.ck_hz + (kPsPerSecond % channel.ck_hz != 0 ? 1 : 0);
  }
  std::string default_mapping() const {
    std::string mapping = config.hbm.stack_ids > 1 ? "RoSiBaCoBg" : "RoBaCoBg";
    return config.pseudo_channels > 1 ? mapping + "Pc" : mapping;
  }

  bool is_open() const {
    return !config.script.empty() || config.arrivals == BareStreamConfig::Arrivals::fixed ||
           config.arrivals == BareStreamConfig::Arrivals::poisson;
  }
  bool is_write(std::uint64_t i) const {
    if (!config.script.empty()) return config.script[i].write;
    return i % (config.reads + config.writes) >= config.reads;
  }

  Burst& acquire() {
    if (free_bursts.empty()) {
      free_bursts.push_back(&bursts.emplace_back());
      bursts.back().set_mm(this);
      bursts.back().set_data_ptr(data);
    }
    Burst& burst = *free_bursts.back();
    free_bursts.pop_back();
    burst.acquire();
    return burst;
  }
  void free(tlm::tlm_generic_payload* payload) override { free_bursts.push_back(static_cast<Burst*>(payload)); }

  /// When request i arrives at the source; of an open loop.
  Ps arrival_of(std::uint64_t i) {
    if (!config.script.empty()) return config.script[i].time;
    const double spacing = config.request_bytes / (peak * config.load) * 1e12;
    if (config.arrivals == BareStreamConfig::Arrivals::fixed)
      return static_cast<Ps>(std::llround(static_cast<double>(i) * spacing));
    const double uniform = (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;  // 2^53
    arrived += -std::log(uniform) * spacing;
    return static_cast<Ps>(std::llround(arrived));
  }

  /// Sends until the memory holds a burst, or nothing may be sent yet.
  void send() {
    while (!blocked && next < config.requests) {
      if (part == 0) {
        if (config.arrivals == BareStreamConfig::Arrivals::closed_loop && in_flight >= config.outstanding) return;
        if (arrives > queue.now()) return wait_until(arrives);
      }
      if (config.paced && free_at > queue.now()) return wait_until(free_at);
      Burst& burst = acquire();
      const BurstPlace place = config.script.empty() ? pattern.place(next, part) : config.script[next].place;
      burst.request = next;
      burst.set_command(is_write(next) ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
      burst.set_address(base + map.offset(place));
      burst.set_data_length(channel.burst_bytes);
      burst.set_streaming_width(channel.burst_bytes);
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = annotation(queue.now());
      if (out->nb_transport_fw(burst, phase, delay) != tlm::TLM_UPDATED) {
        blocked = true;
        offered = &burst;
        return;
      }
      taken(burst);
    }
  }
  void wait_until(Ps time) {
    if (waiting) return;
    waiting = true;
    queue.at(time, [this] {
      waiting = false;
      send();
    });
  }
  /// The memory has taken a burst.
  void taken(const Burst& burst) {
    free_at = queue.now() + ck;
    if (part == 0) {
      Request& request = requests[burst.request];
      request.accepted = clock.time(clock.at_or_after(queue.now()));
      request.arrived = is_open() ? arrives : request.accepted;
      request.missing = pattern.bursts_per_request();
      ++in_flight;
    }
    if (++part < pattern.bursts_per_request()) return;
    part = 0;
    ++next;
    if (next < config.requests && is_open()) arrives = arrival_of(next);
  }
  void completed(std::uint64_t i) {
    Request& request = requests[i];
    if (--request.missing != 0) return;
    queue.completed();
    --in_flight;
    if (!config.script.empty()) script_ns[i] = static_cast<double>(queue.now() - request.accepted) / 1e3;
    if (is_write(i)) return;
    latencies.push_back(queue.now() - request.accepted);
    from_arrival += static_cast<double>(queue.now() - request.arrived);
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    auto& burst = static_cast<Burst&>(payload);
    if (phase == tlm::END_REQ) {
      sc_assert(offered == &burst);
      blocked = false;
      taken(burst);
      send();
      return tlm::TLM_ACCEPTED;
    }
    if (payload.get_response_status() != tlm::TLM_OK_RESPONSE) SC_REPORT_FATAL("kernbench/stream", "error response");
    const std::uint64_t request = burst.request;
    burst.release();
    completed(request);
    if (config.arrivals == BareStreamConfig::Arrivals::closed_loop && !waiting) {
      // After the response has ended: a target may hold it until this call returns.
      waiting = true;
      queue.at(queue.now(), [this] {
        waiting = false;
        send();
      });
    }
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  void start() {
    requests.resize(config.requests);
    script_ns.resize(config.script.size());
    if (is_open()) arrives = arrival_of(0);
    queue.at(queue.now(), [this] {
      began = process::user_cpu_s();
      send();
    });
  }
  BareStreamResult result() {
    const Ps end = hbm.drain();
    BareStreamResult result;
    result.cpu_s = process::user_cpu_s() - began;
    result.ns = static_cast<double>(end) / 1e3;
    result.clocks = static_cast<double>(end) * 1e-12 * static_cast<double>(channel.ck_hz);
    result.bursts = config.requests * pattern.bursts_per_request();
    result.bytes = result.bursts * channel.burst_bytes;
    result.gbps = static_cast<double>(result.bytes) / result.ns;
    result.fraction_of_peak = result.gbps * 1e9 / peak;
    const Hbm::Stats stats = hbm.stats();
    result.row_hits = stats.row_hits;
    result.row_closed = stats.row_closed;
    result.row_conflicts = stats.row_conflicts;
    result.refreshes = stats.refreshes;
    result.script_ns = script_ns;
    if (latencies.empty()) return result;
    std::sort(latencies.begin(), latencies.end());
    double sum = 0;
    for (const Ps latency : latencies) sum += static_cast<double>(latency);
    const auto count = static_cast<double>(latencies.size());
    const auto quantile = [&](std::size_t percent) {
      return static_cast<double>(latencies[std::min(latencies.size() - 1, latencies.size() * percent / 100)]) / 1e3;
    };
    result.mean_ns = sum / count / 1e3;
    result.mean_from_arrival_ns = from_arrival / count / 1e3;
    result.p50_ns = quantile(50);
    result.p95_ns = quantile(95);
    result.p99_ns = quantile(99);
    return result;
  }

  struct Request {
    Ps accepted = 0, arrived = 0;
    unsigned missing = 0;
  };
  const BareStreamConfig config;
  const HbmConfig channel;
  const StreamPattern pattern;
  const HbmAddressMap map;
  const ChannelClock clock;
  const double peak;  ///< bytes per second
  Ps ck = 0;
  const std::uint64_t base = PhysicalAddress::hbm({0, 0, 0}, 0).encode();
  std::mt19937_64 random;
  EventQueue& queue;
  Hbm hbm;
  tlm::tlm_initiator_socket<> out{"out"};

  std::vector<Request> requests;
  std::vector<Ps> latencies;
  std::vector<double> script_ns;
  double from_arrival = 0, arrived = 0, began = 0;
  std::deque<Burst> bursts;
  std::vector<Burst*> free_bursts;
  unsigned char data[256] = {};
  std::uint64_t next = 0, in_flight = 0;
  unsigned part = 0;
  Burst* offered = nullptr;
  bool blocked = false, waiting = false;
  Ps arrives = 0, free_at = 0;
};

BareStream::BareStream(const BareStreamConfig& config, EventQueue& queue) {
  BareStreamConfig checked = config;
  if (!config.script.empty()) {
    checked.requests = config.script.size();
    checked.request_bytes = config.hbm.burst_bytes;
  }
  impl_ = std::make_unique<Impl>("stream_source", checked, queue);
  impl_->start();
}
BareStream::~BareStream() = default;
BareStreamResult BareStream::result() { return impl_->result(); }

BareStreamResult run_bare_stream(const BareStreamConfig& config) {
  EventQueue queue;
  BareStream stream(config, queue);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  queue.run_all();
  return stream.result();
}

}  // namespace kernbench
