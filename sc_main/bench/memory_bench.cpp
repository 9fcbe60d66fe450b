#include <string>
#include <systemc>
#include <tlm>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_timing.h"
#include "models/hbm/hbm.h"
#include "sc_main/bench/bench.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/rigs/stream_pattern.h"
#include "tlm/machine/address.h"
#include "tlm/sim/annotation.h"

namespace kernbench::bench {
namespace {

/// Speed of the HBM model on one HBM2-2000 channel (both pseudo channels, queue of 32 bursts, bank groups interleaved),
/// saturated with reads. What `kernbench bench` times; none of them touches contents.
struct HbmBench {
  const char* name;  ///< e.g. "hbm_engine_sequential"
  const char* unit;  ///< what run() counts: "request of 32 B", "burst of 32 B"
  double loops;      ///< at most so many calibration loops per unit (spec, Speed to reach)
  /// Makes at least `requests` requests; returns the units. Once per process where it needs SystemC.
  std::uint64_t (*run)(std::uint64_t requests);
  Peer peer{};
};

/// Source of the timing: bench/reference/hbm/timing.yaml, ramulator21_hbm2_2000.
HbmConfig bench_channel(bool fast) {
  HbmConfig c;
  c.ck_hz = 1'000'000'000;
  c.channels = 1;
  c.stack_ids = 1;
  c.half_clock_commands = false;
  c.refresh = RefreshPolicy::none;
  c.bytes = std::uint64_t{1} << 31;  // 65536 rows
  c.mapping = "RoSiBaCoBgPc";
  c.queue_bursts = 32;
  c.grain = fast ? 4 : 1;
  HbmTiming& t = c.timing;
  t.t_cl = 14, t.t_cwl = 5, t.t_rcd_rd = 14, t.t_rcd_wr = 12, t.t_rp = 14, t.t_ras = 34, t.t_rc = 48;
  t.t_rrd_s = 4, t.t_rrd_l = 4, t.t_faw = 15, t.t_ccd_s = 2, t.t_ccd_l = 4;
  t.t_wr = 16, t.t_wtr_s = 6, t.t_wtr_l = 8, t.t_rtp = 5, t.t_rtw = 13;
  t.t_rfc_ab = 350, t.t_rfc_pb = 160, t.t_rrefd = 8, t.t_refi = 3900, t.t_refi_pb = 122;
  return c;
}

/// Offset of request i.
template <bool kRandom>
std::uint64_t offset_of(std::uint64_t i, std::uint64_t bytes, std::uint64_t capacity) {
  return (kRandom ? StreamPattern::mix(1, i) * bytes : i * bytes) & (capacity - 1);
}

/// The timing engine alone, with its address map, a burst at a time.
template <bool kRandom>
std::uint64_t engine(std::uint64_t requests) {
  const HbmConfig config = bench_channel(false);
  const HbmAddressMap map(config, config.pseudo_channels);
  const auto owner = ChannelTiming::make(config, config.queue_bursts);
  ChannelTiming& channel = *owner;
  std::uint64_t offered = 0, done = 0;
  for (Tick now = 0; done < requests;) {
    for (; offered < requests && channel.room(false) > 0; ++offered)
      channel.accept(now, map.place(offset_of<kRandom>(offered, 32, config.bytes)), false, 0);
    channel.advance(now = channel.next());
    for (const ChannelTiming::Decided& burst : channel.decided()) done += burst.count;
    channel.decided().clear();
  }
  return done;
}

/// The engine with grain 4, in chunks as a slice of one pseudo channel has them: four groups, runs of columns.
template <std::uint64_t kBytes>
std::uint64_t engine_fast(std::uint64_t requests) {
  HbmConfig config = bench_channel(true);
  config.mapping = "RoSiBaCoBg";
  config.interleave_bytes = kBytes;
  const HbmAddressMap map(config, config.pseudo_channels);
  const auto owner = ChannelTiming::make(config, config.queue_bursts);
  ChannelTiming& channel = *owner;
  constexpr std::uint64_t kBursts = kBytes / 32, kPart = 16;
  const std::uint64_t total = requests * kBursts;
  std::uint64_t offered = 0, done = 0;
  const unsigned part = static_cast<unsigned>(std::min(kBursts, kPart));
  const auto stride = static_cast<unsigned>(map.column_stride());
  for (Tick now = 0; done < total;) {
    for (; offered < total && channel.room(false) >= part; offered += part) {
      for (unsigned i = 0; i < stride; ++i)
        channel.accept(now, map.place((offered + i) * 32 & (config.bytes - 1)), false, 0, part / stride);
    }
    channel.advance(now = channel.next());
    for (const ChannelTiming::Decided& burst : channel.decided()) done += burst.count;
    channel.decided().clear();
  }
  return done;
}

/// Reads of one size, as fast as the module takes them.
class Source : public sc_core::sc_module, public tlm::tlm_bw_transport_if<>, public tlm::tlm_mm_interface {
 public:
  tlm::tlm_initiator_socket<> out{"out"};
  Source(const sc_core::sc_module_name& name, bool fast, std::uint64_t interleave)
      : sc_module(name),
        config_(make_config(interleave)),
        hbm_("hbm", config_, {0, 0}, 1, timing_only(fast), queue_, nullptr) {
    out.bind(*this);
    out.bind(*hbm_.port.front());
  }
  static HbmConfig make_config(std::uint64_t interleave) {
    HbmConfig config = bench_channel(false);
    if (interleave != 0) {
      config.mapping = "RoSiBaCoBg";
      config.interleave_bytes = static_cast<std::uint32_t>(interleave);
    }
    return config;
  }
  template <bool kRandom>
  void approximately_timed(std::uint64_t requests, unsigned bytes) {
    requests_ = requests;
    bytes_ = bytes;
    random_ = kRandom;
    queue_.at(0, [this] { send(); });
    queue_.run_all();
  }
  template <bool kRandom>
  void loosely_timed(std::uint64_t requests, unsigned bytes) {
    tlm::tlm_generic_payload& payload = take_payload(bytes);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    for (std::uint64_t i = 0; i < requests; ++i) {
      payload.set_address(base_ + offset_of<kRandom>(i, bytes, config_.bytes));
      payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
      out->b_transport(payload, delay);
    }
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    if (phase == tlm::END_REQ) {
      blocked_ = false;
      send();
      return tlm::TLM_ACCEPTED;
    }
    payload.release();
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  void free(tlm::tlm_generic_payload* payload) override { idle_.push_back(payload); }

 private:
  tlm::tlm_generic_payload& take_payload(unsigned bytes) {
    if (idle_.empty()) {
      payloads_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
      idle_.push_back(payloads_.back().get());
    }
    tlm::tlm_generic_payload& payload = *idle_.back();
    idle_.pop_back();
    payload.acquire();
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_data_ptr(data_);
    payload.set_data_length(bytes);
    payload.set_streaming_width(bytes);
    return payload;
  }
  void send() {
    while (!blocked_ && sent_ < requests_) {
      tlm::tlm_generic_payload& payload = take_payload(bytes_);
      payload.set_address(base_ + (random_ ? offset_of<true>(sent_, bytes_, config_.bytes)
                                           : offset_of<false>(sent_, bytes_, config_.bytes)));
      ++sent_;
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = annotation(queue_.now());
      blocked_ = out->nb_transport_fw(payload, phase, delay) != tlm::TLM_UPDATED;
    }
  }

  const HbmConfig config_;
  EventQueue queue_;
  Hbm hbm_;
  const std::uint64_t base_ = PhysicalAddress::hbm({0, 0, 0}, 0).encode();
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> payloads_;
  std::vector<tlm::tlm_generic_payload*> idle_;
  unsigned char data_[4096] = {};
  std::uint64_t sent_ = 0, requests_ = 0;
  unsigned bytes_ = 32;
  bool blocked_ = false, random_ = false;
};

enum class Style { approximately, loosely };

template <Style kStyle, bool kRandom, unsigned kBytes = 32, bool kFast = false>
std::uint64_t socket(std::uint64_t requests) {
  Source source("source", kFast, kFast ? kBytes : 0);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  kStyle == Style::loosely ? source.loosely_timed<kRandom>(requests, kBytes)
                           : source.approximately_timed<kRandom>(requests, kBytes);
  return requests * (kFast ? kBytes / 32 : 1);
}

const HbmBench kHbmBenches[] = {
    {"hbm_engine_sequential", "request of 32 B", 4, &engine<false>, {"Ramulator2", 49}},
    {"hbm_engine_random", "request of 32 B", 16, &engine<true>, {"Ramulator2", 195}},
    {"hbm_engine_fast_256B", "burst of 32 B", 1, &engine_fast<256>},
    {"hbm_engine_fast_1KiB", "burst of 32 B", 1, &engine_fast<1024>},
    {"hbm_socket_sequential", "request of 32 B", 8, &socket<Style::approximately, false>},
    {"hbm_socket_random", "request of 32 B", 20, &socket<Style::approximately, true>},
    {"hbm_socket_fast_256B", "burst of 32 B", 3, &socket<Style::approximately, false, 256, true>},
    {"hbm_b_transport_sequential", "request of 32 B", 8, &socket<Style::loosely, false>},
    {"hbm_b_transport_random", "request of 32 B", 20, &socket<Style::loosely, true>},
    {"hbm_b_transport_fast_256B", "burst of 32 B", 3, &socket<Style::loosely, false, 256, true>},
};

constexpr std::uint64_t kRequests = 2'000'000;

Measured run_hbm(const HbmBench& bench) {
  const double begin = process::user_cpu_s();
  const std::uint64_t units = bench.run(kRequests);
  return {static_cast<double>(units), process::user_cpu_s() - begin, 0, peak_bytes()};
}

}  // namespace

std::vector<Bench> memory_benches(Grade grade) {
  std::vector<Bench> list;
  for (const HbmBench& one : kHbmBenches) {
    const std::string name = one.name;
    const bool fast = name.find("_fast_") != std::string::npos;
    if (fast != (grade == Grade::fast)) continue;
    list.push_back(
        {name, one.unit, "", {{Bound::Of::loops_per_unit, one.loops}}, [one] { return run_hbm(one); }, true, one.peer});
  }
  return list;
}

}  // namespace kernbench::bench
