#pragma once
#include <algorithm>
#include <cstdint>

#include "models/noc/noc_config.h"
#include "tlm/ext/packet.h"

namespace kernbench {

/// A time or a number of cycles in the unit of the resource it belongs to.
using Cycle = std::uint64_t;
inline constexpr Cycle kNoCycle = ~Cycle{0};

/// Traffic of one direction of a port. Statistic, unit, meaning:
struct PortStats {
  std::uint64_t packets = 0;  ///< packets  that went through
  std::uint64_t bytes = 0;    ///< bytes    of payload in them
  Ps busy = 0;                ///< ps       that the port was held by them
};

/// Commands and credits go before everything else at every arbiter.
constexpr bool has_priority(int virtual_network) {
  const auto of = static_cast<MessageClass>(virtual_network / kVcSets);
  return of == MessageClass::command || of == MessageClass::credit;
}

/// Order of the classes at the routers' arbiters: commands, so that the start of a launch depends on nothing but other
/// commands; credits; everything else.
constexpr unsigned priority_level(int virtual_network) {
  const auto of = static_cast<MessageClass>(virtual_network / kVcSets);
  return of == MessageClass::command ? 0 : of == MessageClass::credit ? 1 : 2;
}
inline constexpr unsigned kOrdinary = 2;

/// Virtual channel of a packet in the network that it enters, where it stays until it leaves that network.
///
/// A function of source and destination, so that packets of one pair follow each other through the same buffers and
/// never overtake; different pairs spread over the channels of their set.
inline std::uint8_t virtual_channel(const Packet& packet, const NocConfig& config) {
  std::uint32_t hash = index(packet.source) * 0x9E3779B1U ^ index(packet.destination) * 0x85EBCA77U;
  hash ^= hash >> 15;
  hash *= 0x2C1B3C6DU;
  const std::uint32_t k = ((hash >> 16) * config.vcs_per_set) >> 16;
  return static_cast<std::uint8_t>(config.first_vc(packet.virtual_network()) + k);
}

/// Number of flits of a packet, without a division where the flit size is a power of two.
class FlitCounter {
 public:
  explicit FlitCounter(std::uint32_t flit_bytes) : flit_bytes_(flit_bytes) {
    if ((flit_bytes & (flit_bytes - 1)) == 0) {
      while ((std::uint32_t{1} << shift_) < flit_bytes) ++shift_;
    } else {
      shift_ = kNone;
    }
  }
  unsigned operator()(std::uint32_t bytes) const {
    if (bytes <= flit_bytes_) return 1;
    return shift_ != kNone ? (bytes + flit_bytes_ - 1) >> shift_ : (bytes + flit_bytes_ - 1) / flit_bytes_;
  }
  unsigned operator()(const Packet& packet) const { return (*this)(packet.bytes); }

 private:
  static constexpr unsigned kNone = 255;
  std::uint32_t flit_bytes_;
  unsigned shift_ = 0;
};

/// Takes the number of a virtual channel apart, without a division where a set has a power of two of them.
class VcSplit {
 public:
  explicit VcSplit(unsigned vcs_per_set) : vcs_per_set_(vcs_per_set) {
    while ((1U << shift_) < vcs_per_set) ++shift_;
    if ((1U << shift_) != vcs_per_set) shift_ = kNone;
  }
  unsigned vcs_per_set() const { return vcs_per_set_; }
  /// Virtual network.
  unsigned network(unsigned vc) const { return shift_ != kNone ? vc >> shift_ : vc / vcs_per_set_; }
  /// Number within the set.
  unsigned channel(unsigned vc) const { return vc - network(vc) * vcs_per_set_; }

 private:
  static constexpr unsigned kNone = 255;
  unsigned vcs_per_set_;
  unsigned shift_ = 0;
};

/// What has gone through a virtual channel of an output; of packets whose head has.
struct alignas(32) VcUse {
  std::uint64_t packets = 0, bytes = 0;
  Ps busy = 0;     ///< a flit of them goes through
  Ps waiting = 0;  ///< of heads, for it
};

/// Longest stretch of a router's pipeline, in cycles: state that is kept per flit looks this far ahead.
inline constexpr std::uint64_t kMaxPipelineCycles = 32;

/// Throws std::invalid_argument if packets cannot travel in a network of this shape.
void check(const NocConfig& config);

/// Flits that a network interface or link port can hold of each virtual channel that it ejects: two packets of
/// `longest` bytes (at most kMaxTrainBytes; longer ones take all places, and their last flits those of the first) or
/// two buffers of a router and the flits under way in a credit round trip, so that an endpoint that
/// takes at once never throttles its router (assumed: the reference model ejects without credits).
inline unsigned ejection_depth(const NocConfig& config, std::uint32_t longest = kMaxPacketBytes) {
  const unsigned packet = FlitCounter(config.flit_bytes)(std::min(longest, kMaxTrainBytes));
  return 2 * std::max(config.vc_depth_flits, packet) + config.sw_alloc_delay + config.switch_delay + config.link_delay +
         config.credit_delay + 1;
}

}  // namespace kernbench
