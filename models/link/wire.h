#pragma once
#include <algorithm>
#include <cstdint>

#include "models/link/bit_errors.h"
#include "models/link/link_config.h"

namespace kernbench {

/// What one direction of a wire has sent. Statistic, unit, meaning:
struct WireStats {
  std::uint64_t packets = 0;    ///< packets  that were sent
  std::uint64_t bytes = 0;      ///< bytes    of payload in them
  Ps busy = 0;                  ///< ps       that packets held the wire
  std::uint64_t flits = 0;      ///< flits    that were started, each counted once
  std::uint64_t raw_bytes = 0;  ///< bytes    on the wire: flits, headers, encoding, replays
  std::uint64_t replays = 0;    ///< times    that the sender went back to a flit that arrived badly
};

/// When a packet crosses a wire, in one direction; the rule, without SystemC.
///
/// A packet of n bytes needs the wire for (n + header) / rate, where rate = raw rate x efficiency. With flits, packets
/// follow each other without gaps in a stream of flits ("packed"): one that comes while the last flit is under way and
/// not full goes on in it, otherwise a flit begins with it; the rest of a flit stays empty. The receiver checks a CRC
/// per `check_bytes` (a flit, or half of a latency-optimised one) and passes on what has been checked: a byte is there
/// `latency` after the end of its piece. Without flits it is there `latency` after it was sent.
///
/// Errors: a flit that arrives badly is asked for again and the sender goes back to it (go-back-N), so that the stream
/// from this flit on is late by flit time + 2 latency; what was sent meanwhile was in vain. Order is kept.
class Wire {
 public:
  /// `far_flit_bytes`: flit of the network behind the far end, which injects a head when its first flit is there.
  Wire(const LinkConfig& link, std::uint32_t far_flit_bytes, std::uint64_t seed = 0)
      : link_(link),
        rate_(link.rate()),
        raw_rate_(link.bytes_per_second),
        far_flit_bytes_(far_flit_bytes),
        errors_(link.flit_bytes == 0 ? 0 : link.bit_errors, link.flit_bytes, seed ^ link.error_seed) {
    if (link.flit_bytes == 0) return;
    pieces_per_flit_ = link.flit_bytes / link.check_bytes;
    if (raw_rate_.time_for(link.check_bytes) * link.bytes_per_second == link.check_bytes * kPsPerSecond)
      piece_time_ = raw_rate_.time_for(link.check_bytes);
  }

  struct Passage {
    Ps start = 0;     ///< it begins
    Ps end = 0;       ///< the packet's last byte has left: the next one may go
    Ps head = 0;      ///< its first network flit is at the far end
    Ps tail = 0;      ///< all of it is
    Ps replayed = 0;  ///< of the time to `head`: spent going back
    unsigned replays = 0;
  };
  /// A packet of `bytes` starts at `start`; its last byte is not here before `complete`.
  /// REQUIRES: start >= free().
  Passage send(std::uint32_t bytes, Ps start, Ps complete) {
    const std::uint64_t framed = this->framed(bytes);
    const Ps first = start + rate_.time_for(std::min(bytes, far_flit_bytes_) + link_.header_bytes);
    Passage passage;
    passage.start = start;
    passage.end = std::max(start + rate_.time_for(framed), complete);
    stats_.packets += packets_of(bytes);
    stats_.bytes += bytes;
    cross(passage, framed, start, std::min(first, passage.end));
    stats_.busy += passage.end - start;
    began_ = start;
    free_ = passage.end;
    return passage;
  }

  /// The same of a packet of a class that goes first, which slips in between two packets of the train that is under way
  /// and makes the wire free so much later. The train's own times, which are known at the far end, stay as they are.
  Passage slip_in(std::uint32_t bytes, Ps now, Ps complete) {
    if (free_ <= now) return send(bytes, now, complete);
    const Ps packet = held(kMaxPacketBytes);
    // What replays have moved on lies behind them, this packet too.
    const Ps between = now <= began_ ? began_ : began_ + (now - began_ + packet - 1) / packet * packet;
    const Ps start = std::max(std::min(free_, between), epoch_);
    const std::uint64_t framed = this->framed(bytes);
    Passage passage;
    passage.start = start;
    passage.end = std::max(start + rate_.time_for(framed), complete);
    ++stats_.packets;
    stats_.bytes += bytes;
    cross(passage, framed, start,
          std::min(start + rate_.time_for(std::min(bytes, far_flit_bytes_) + link_.header_bytes), passage.end));
    stats_.busy += passage.end - start;
    free_ += passage.end - start;
    return passage;
  }

  // What a train is counted as beyond what it takes; none of this changes a time.

  /// Of its packets, `headers` - 1 have no data in this direction: their headers, `apart` of each other, beside the one
  /// that is sent at `start`, which is to follow. One that comes while flits are under way goes on in them, another
  /// begins a flit; how busy the wire is while they come is taken from the time before.
  void count_headers(std::uint32_t headers, Ps apart, Ps start) {
    const std::uint64_t others = headers - 1;
    if (others == 0) return;
    stats_.packets += others;
    if (link_.flit_bytes == 0) {
      stats_.raw_bytes += others * raw(link_.header_bytes);
      return;
    }
    const Ps window = others * apart, end = flits_ == 0 ? 0 : piece_end(flits_ * pieces_per_flit_);
    const Ps from = std::max(start - std::min(start, window), epoch_), to = std::min(start, end);
    const std::uint64_t within = window == 0 || to <= from ? 0 : others * (to - from) / window;
    stats_.raw_bytes += within * raw(link_.header_bytes);
    add_flits(flits_for(others - within + 1, apart, held(0)) - 1);
  }
  /// The packets of a train of `bytes` come over so long a time, `span`, that the wire pauses between them: the flits
  /// that stay empty in part.
  void count_pauses(std::uint32_t bytes, Ps span) {
    const std::uint64_t packets = packets_of(bytes);
    const Ps packet = held(kMaxPacketBytes);
    if (link_.flit_bytes == 0 || packets == 1 || span <= packets * packet) return;
    const Ps apart = (span - packet) / (packets - 1);
    add_flits(flits_for(packets, apart, packet) - flits_for(packets, packet, packet));
  }

  Ps free() const { return free_; }  ///< from when on the next packet may start
  /// Time that a packet of `bytes` needs the wire for.
  Ps held(std::uint32_t bytes) const { return rate_.time_for(framed(bytes)); }
  Ps time_for(std::uint64_t bytes) const { return rate_.time_for(bytes); }
  const LinkConfig& config() const { return link_; }
  const WireStats& stats() const { return stats_; }
  /// Attojoule that the raw bits took.
  std::uint64_t energy_aj() const { return stats_.raw_bytes * 8 * link_.energy_per_bit_aj; }

  /// Expected share of the rate that remains with errors, when the wire is never idle: a flit takes its time and, for
  /// each bad copy of it, a flit time and a round trip more.
  static double goodput(const LinkConfig& link) {
    if (link.flit_bytes == 0 || link.bit_errors == 0) return 1;
    const double bad = BitErrors(link.bit_errors, link.flit_bytes, 0).flit_error_rate();
    double copies = 0, power = 1;
    for (unsigned i = 0; i < BitErrors::kMaxReplays; ++i) copies += power *= bad;
    const double flit = 1e12 * link.flit_bytes / static_cast<double>(link.bytes_per_second);
    return flit / (flit + copies * (flit + 2 * static_cast<double>(link.latency)));
  }
  /// What one bad flit costs.
  static Ps replay_time(const LinkConfig& link) { return link.flit_time() + 2 * link.latency; }

 private:
  void cross(Passage& passage, std::uint64_t framed, Ps start, Ps first) {
    if (link_.flit_bytes != 0) return send_in_flits(passage, start, first);
    passage.head = first + link_.latency;
    passage.tail = passage.end + link_.latency;
    // Of a train: of each of its packets.
    const std::uint64_t packet = kMaxPacketBytes + link_.header_bytes, full = framed / packet;
    stats_.raw_bytes += full * raw(packet) + raw(framed - full * packet);
  }
  /// Bytes that `framed` take on a wire without flits.
  std::uint64_t raw(std::uint64_t framed) const {
    return (framed * link_.raw_parts + link_.payload_parts - 1) / link_.payload_parts;
  }
  /// That packets begin which start `apart` and hold the wire for `held` each: theirs alone, or those of one stream.
  std::uint64_t flits_for(std::uint64_t packets, Ps apart, Ps held) const {
    const Ps flit = link_.flit_time();
    const std::uint64_t alone = std::max<std::uint64_t>((held + flit - 1) / flit, 1);
    if (apart >= alone * flit) return packets * alone;
    return std::max<std::uint64_t>(((packets - 1) * apart + held + flit - 1) / flit, 1);
  }
  void add_flits(std::uint64_t flits) {
    stats_.flits += flits;
    stats_.raw_bytes += flits * link_.flit_bytes;
  }
  // A train has a header for each of its packets.
  std::uint64_t framed(std::uint32_t bytes) const {
    return bytes + std::uint64_t{link_.header_bytes} * packets_of(bytes);
  }
  // Pieces and flits are counted from the start of the stream, `epoch_`.
  Ps piece_end(std::uint64_t pieces) const {
    return epoch_ + (piece_time_ != 0 ? pieces * piece_time_ : raw_rate_.time_for(pieces * link_.check_bytes));
  }
  /// Pieces that have begun before `time`; one that ends at it is the last of them.
  std::uint64_t pieces_until(Ps time) const {
    const Ps since = time - epoch_;
    if (piece_time_ != 0) return std::max<std::uint64_t>((since + piece_time_ - 1) / piece_time_, 1);
    const auto bytes = static_cast<unsigned __int128>(since) * link_.bytes_per_second;
    auto pieces =
        static_cast<std::uint64_t>(bytes / (static_cast<unsigned __int128>(link_.check_bytes) * kPsPerSecond));
    while (piece_end(pieces) < time) ++pieces;
    return std::max<std::uint64_t>(pieces, 1);
  }
  std::uint64_t flit_of(std::uint64_t piece) const { return (piece + pieces_per_flit_ - 1) / pieces_per_flit_; }

  void send_in_flits(Passage& passage, Ps start, Ps first) {
    if (start >= piece_end(flits_ * pieces_per_flit_) || flits_ == 0) {
      epoch_ = start;
      flits_ = 0;
    }
    const std::uint64_t head_piece = pieces_until(first);
    std::uint64_t tail_piece = pieces_until(passage.end);
    const Ps lost = replay_time(link_);
    Ps late = 0;  // so far
    for (std::uint64_t last = flit_of(tail_piece), head_flit = flit_of(head_piece); flits_ < last;) {
      const std::uint64_t good = errors_.take_good(last - flits_);
      flits_ += good;
      stats_.flits += good;
      stats_.raw_bytes += good * link_.flit_bytes;
      if (good > 0) copies_ = 0;
      if (flits_ == last) break;
      errors_.take_bad();
      if (copies_++ == BitErrors::kMaxReplays) {  // the last copy counts as good
        ++flits_;
        ++stats_.flits;
        stats_.raw_bytes += link_.flit_bytes;
        copies_ = 0;
        continue;
      }
      if (flits_ < head_flit) passage.replayed += lost;
      late += lost;
      ++passage.replays;
    }
    passage.head = piece_end(head_piece) + passage.replayed + link_.latency;
    passage.tail = piece_end(tail_piece) + late + link_.latency;
    if (late == 0) return;
    passage.end += late;
    epoch_ += late;
    stats_.replays += passage.replays;
    // Sent in vain, from a bad flit to the request for it.
    stats_.raw_bytes +=
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(late) * link_.bytes_per_second / kPsPerSecond);
  }

  const LinkConfig link_;
  const Rate rate_, raw_rate_;
  const std::uint32_t far_flit_bytes_;
  BitErrors errors_;
  unsigned pieces_per_flit_ = 1;
  Ps piece_time_ = 0;        // 0: not a whole number of picoseconds
  Ps epoch_ = 0;             // start of the stream without gaps; moved on by what replays took
  std::uint64_t flits_ = 0;  // begun since then
  unsigned copies_ = 0;      // bad ones of the flit that is being sent
  Ps began_ = 0;             // of the packet or train that was sent last
  Ps free_ = 0;
  WireStats stats_;
};

}  // namespace kernbench
