#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "ccl/schedule/schedule.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

inline constexpr double kPacket = 256;  ///< bytes; a longer message is several

/// Something that bytes pass one after the other: a port, a link, a bundle of links.
struct Passage {
  double bytes_per_second = 0;  ///< 0: no limit
  double least = 0;             ///< seconds that a packet keeps it, however short
  double free = 0;              ///< seconds
  double packets = 0;           ///< that the receiver has credits for; 0: no limit
  double round_trip = 0;        ///< seconds after which a packet's credit is back, if nothing holds it up

  /// Bytes whose head is there at `time`: when they begin to pass. Credits that have come by then go before them.
  double pass(double time, double bytes) {
    double head = time > free ? time : free;
    while (!credits_.empty() && credits_.front() <= head) {
      free = std::max(free, credits_.front()) + least;
      credits_.pop_front();
      head = std::max(head, free);
    }
    if (packets > 0) head = with_credits(head, bytes);
    if (bytes_per_second > 0) free = head + bytes / bytes_per_second;
    if (least > 0) free = std::max(free, head + least * packets_of(bytes));
    return head;
  }
  /// The credit of a message, which passes here at `time` on its way back.
  void credit(double time) {
    if (least > 0) credits_.push_back(time);
  }

 private:
  struct Sent {
    double time = 0, packets = 0;
  };
  static double packets_of(double bytes) { return std::ceil(bytes / kPacket); }
  double with_credits(double head, double bytes);

  std::deque<double> credits_;  ///< that have not passed yet
  std::deque<Sent> sent_;       ///< whose credits are not known to be back
  double under_way_ = 0;        ///< packets of these
};

/// How bytes get from one PE to another, on an idle machine.
struct Way {
  double seconds = 0;                 ///< of a minimal packet
  double out_seconds = 0;             ///< of these: up to the first link between SIPs
  double least_bytes_per_second = 0;  ///< of what they pass
  std::vector<std::uint32_t> out;     ///< passages up to the first link between SIPs
  std::vector<std::uint32_t> links;   ///< links between SIPs
  std::vector<std::uint32_t> in;      ///< passages after the last one
};

/// Ways of a machine, and what they have in common. XY inside a SIP; straight up to the IO chiplet and down from it;
/// between SIPs along the row, then the column (docs/routing.md). Of the links between rows of cubes, and to the IO
/// chiplet, a PE's packets take one; other bundles are taken whole, networks of cubes as free.
class WayBook {
 public:
  explicit WayBook(const MachineMap& map);

  Way way(PeCoord from, PeCoord to);
  /// Those between SIPs of such a way.
  std::vector<std::uint32_t> links(std::uint16_t from, std::uint16_t to);
  std::uint32_t port_out(PeCoord pe) { return passage({kPortOut, number(pe), 0, kWhole}); }
  std::uint32_t port_in(PeCoord pe) { return passage({kPortIn, number(pe), 0, kWhole}); }
  Passage& operator[](std::uint32_t passage) { return passages_[passage]; }
  double to_io(PeCoord from) const;
  double further_link_seconds() const { return request_.sip.pass_seconds; }

 private:
  enum Kind : std::int64_t { kPortOut, kPortIn, kCubeLink, kColumnOut, kColumnIn, kSipLink, kSwitchOut, kSwitchIn };
  static constexpr std::int64_t kWhole = -1;
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;  // kind, from, to, link of a bundle
  struct Bundle {
    Passage whole;
    std::int64_t links = 1;
  };
  std::int64_t number(PeCoord pe) const {
    return (std::int64_t{pe.sip} * map_.cubes_per_sip() + pe.cube) * map_.pes_per_cube + pe.pe;
  }
  PeCoord pe(std::int64_t number) const {
    const std::int64_t cube = number / map_.pes_per_cube, cubes = map_.cubes_per_sip();
    return {static_cast<std::uint16_t>(cube / cubes), static_cast<std::uint16_t>(cube % cubes),
            static_cast<std::uint16_t>(number % map_.pes_per_cube)};
  }
  std::uint32_t passage(const Key& key);
  Passage fresh(const Key& key) const;
  void cube_link(std::vector<std::uint32_t>& way, int sip, int from, int to, std::int64_t link);
  std::int64_t link_of(PeCoord pe) const;

  const MachineMap& map_;
  PlanRequest request_;
  std::map<Key, Bundle> bundles_;  // both directions, as they are before anything has passed
  std::map<Key, std::uint32_t> numbers_;
  std::vector<Passage> passages_;
};

}  // namespace kernbench::ccl
