#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_timing.h"
#include "models/hbm/channel_tracks.h"
#include "models/hbm/hbm.h"
#include "models/hbm/wide_slice.h"
#include "models/memory/memory_port.h"
#include "tlm/observe/usage.h"

namespace kernbench {

/// Private to models/hbm: hbm_requests.cpp queues requests, hbm_answers.cpp answers them, hbm.cpp has the rest.
struct Hbm::Impl final : MemoryBackend {
  static constexpr Tick kFar = ~Tick{0} / 2;  ///< later than any
  static constexpr std::uint32_t kNoAccess = ~std::uint32_t{0};

  /// Bursts of an access that enter a channel's queue together.
  struct Piece {
    unsigned channel = 0;
    std::uint64_t first = 0;  ///< burst of the slice
    unsigned count = 0;
    std::uint64_t end = 0;  ///< in the slice; not beyond the access
    BurstPlace place;       ///< of the first burst, in its channel
  };
  /// One request from BEGIN_REQ to its response.
  struct Access {
    tlm::tlm_generic_payload* payload = nullptr;
    unsigned port = 0;
    std::uint64_t offset = 0;     ///< of the next byte to queue
    std::uint64_t end = 0;        ///< in the slice
    Piece next;                   ///< at `offset`
    std::uint32_t undecided = 0;  ///< bursts queued, column command unknown
    std::uint32_t bursts = 0;     ///< all that it takes, each of one pseudo channel
    Tick apart = 0;               ///< wide slices: later than in step, since it lies in few pseudo channels
    bool opened = false, closed_other = false;
    Ps arrived = 0;               ///< BEGIN_REQ
    Tick first = kFar, last = 0;  ///< end of the data of its first burst, of all
  };
  /// A read whose time is known.
  struct Ready {
    Ps at = 0;
    std::uint32_t access = 0;
  };
  struct Channel {
    explicit Channel(std::unique_ptr<ChannelTiming> channel) : timing(std::move(channel)) {}
    const std::unique_ptr<ChannelTiming> timing;
    std::uint32_t open_reads = 0;   ///< bursts queued and undecided
    std::vector<unsigned> blocked;  ///< ports whose request waits for room, in order
    unsigned missing = 0;           ///< bursts that the first of them lacked when it was offered last
    unsigned wanted = 0;            ///< bursts that it asked for
    unsigned streak = 0;            ///< bursts that have come since the last of the other direction
    bool writes = false;            ///< those are
    std::vector<Ready> ready;       ///< in order of time, from `answered` on
    std::size_t answered = 0;
    Ps wake = kNever;
    bool waking = false;       ///< in wake(), which looks when all is done; trains: at each request
    Usage* usage = nullptr;    ///< null: nobody wants it
    std::uint64_t booked = 0;  ///< bursts that it knows of, where burst_time is 0
    Ps busy = 0;               ///< what all of them take
  };
  /// Where a pseudo channel of the stack lies.
  struct ChannelPlace {
    std::uint32_t channel = 0, pseudo_channel = 0;
  };
  void book(Channel& target, const ChannelTiming::Decided& burst) const;

  Impl(const std::string& name, const HbmConfig& config, CubeCoord cube, std::uint32_t slices,
       const RunOptions& options, EventQueue& queue, Observer* observer);

  bool take(unsigned port, tlm::tlm_generic_payload& payload, Ps arrival) override;
  Ps serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) override;
  unsigned debug(unsigned port, tlm::tlm_generic_payload& payload) override;

  /// Offset of the bytes; nothing if they cannot be served. Sets the response status.
  std::optional<std::uint64_t> locate(unsigned port, tlm::tlm_generic_payload& payload) const;
  void apply(unsigned port, tlm::tlm_generic_payload& payload, std::uint64_t offset);
  Channel& channel(unsigned index) { return channels[index] ? *channels[index] : make_channel(index); }
  Channel& make_channel(unsigned index);
  std::unique_ptr<ChannelTiming> make_timing() const;
  const ChannelTiming::Stats& stats_of(unsigned index);
  bool enqueue(std::uint32_t id, Tick now);
  void enqueued(std::uint32_t id, Ps when);
  Piece piece_at(unsigned port, std::uint64_t at, std::uint64_t end) const;
  void measure(Access& access) const;
  unsigned accept(Channel& target, unsigned port, const Piece& piece, bool write, std::uint32_t id, Tick now,
                  bool waited);
  void accept_part(std::uint32_t id, Channel& target, const Piece& piece, bool write, Tick now, bool waited);
  bool has_turn(Channel& target, unsigned port, unsigned count, bool write);
  void book_decided(Channel& channel);
  void finish(Channel& channel, std::uint32_t id);
  void wake(unsigned index);
  void arm(unsigned index);
  void wake_at(unsigned index, Ps time);
  void advance(Channel& channel, Tick now) {
    channel.timing->advance(now);
    book_decided(channel);
  }
  bool decide_ahead(unsigned index);
  void retry_blocked(Channel& channel, Tick now, Ps when);
  std::uint32_t new_access();

  const std::string name;
  const HbmConfig config;
  const CubeCoord cube;
  const std::uint32_t slices, pseudo_channels_per_slice;
  const std::uint64_t slice_bytes;
  const std::optional<WideSlice> wide;  ///< where trains are long: the pseudo channels of a slice go in step
  const std::uint32_t in_step;          ///< pseudo channels whose bursts a place of a queue stands for
  const std::uint64_t burst_bytes;      ///< of them together
  const unsigned burst_shift;           ///< of it
  const HbmAddressMap map;
  const ChannelClock clock;
  const ChannelGaps gaps;
  const Ps burst_time;  ///< of a burst on its bus; 0: no whole number of picoseconds
  const Ps read_time;   ///< least from a read command to its response
  const Ps ahead;       ///< trains: so long ahead reads are decided, that a train may leave as its data come
  const RunOptions options;
  EventQueue& queue;
  const unsigned queue_bursts;
  std::vector<std::uint64_t> bases;                           // by slice: its first address
  std::vector<ChannelPlace> channel_places;                   // by pseudo channel of the stack
  std::vector<std::unique_ptr<ChannelTracks>> tracks;         // by channel; empty: nobody listens
  std::vector<std::unique_ptr<WideSliceTracks>> wide_tracks;  // by slice, the same
  std::vector<Usage*> usages;                                 // by channel; empty: nobody wants them
  std::vector<std::unique_ptr<Channel>> channels;             // made on first use; wide: by slice
  std::unique_ptr<ChannelTiming> unused;                      // counts for all that nobody has used
  std::vector<std::unique_ptr<SparseMemory>> contents;        // by slice; made on first use
  std::vector<std::unique_ptr<MemoryPort>> ports;
  std::vector<std::uint32_t> waiting;  // by port: the access that is not queued whole
  std::vector<Access> accesses;
  std::vector<std::uint32_t> free_accesses;
  std::uint64_t bytes = 0;
  unsigned unwritten_reports = 0;
};

}  // namespace kernbench
