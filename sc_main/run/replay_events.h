#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "tlm/observe/observer.h"

namespace kernbench {

/// What the machine publishes goes on to `to`. For repeats that is what one occurrence has published of
/// its SIP, the one that took the most usual time, at the times and places of the repeat, and `to` is told so
/// (Observer::repeats): stretched by the little that the two differ in length, with op ids, messages and queues of its
/// own. It comes when the repeat begins, or, where that is only then known, when it ends. Refreshes go by time and not
/// by work: the memories tell them. docs/replay.md.
class ReplayEvents final : public Observer, public ReplayRecord {
 public:
  /// `to` outlives it. `now`: of the host. `repeats`: there may be repeats.
  ReplayEvents(Observer& to, std::size_t sips, bool repeats, std::function<Ps()> now)
      : to_(to), may_repeat_(repeats), now_(std::move(now)), sips_(sips), tapes_(2 * sips) {}
  ~ReplayEvents() override;

  TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) override;
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override;
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override;
  void change(TrackId track, Ps time, std::uint64_t value) override;
  void op(const OpRecord& record) override;
  bool wants_ops() const override { return to_.wants_ops(); }
  bool wants(const std::string& component) const override { return to_.wants(component); }
  bool wants_order() const override { return to_.wants_order(); }
  void kernel(const OpRecord& record) override;
  Ps resolution() const override { return to_.resolution(); }
  void repeats(bool does) override { to_.repeats(does); }

  std::unique_ptr<Done> begin(const Batch& batch) override;
  void end(int sip, Done& done) override;
  void simulated(Work work, const Done& done, Ps from, bool afresh) override;
  void repeated(Work work, const Batch& batch, Ps begin, Ps end) override;

 private:
  struct Tape;
  using TapePtr = std::shared_ptr<Tape>;
  struct Recording;
  /// One that is not simulated.
  struct Repeat {
    Batch batch;
    Ps begin = 0, end = 0;
    std::uint64_t number = 0;  ///< parts of one collective have the same
  };
  struct Known {
    double occurrences = 0, time = 0;                    ///< that count, ps: of the first part
    bool takes = true;                                   ///< what is told now of its parts
    std::map<std::size_t, TapePtr> parts;                ///< all of one occurrence, whose time is nearest to the mean
    std::map<std::size_t, std::vector<Repeat>> waiting;  ///< by part, until there is something
  };
  /// Tracks of equal names but for their SIP.
  using Family = std::vector<TrackId>;  ///< by SIP
  struct Track {
    TrackId to = kNoTrack;  ///< of what follows; kNoTrack: that wants those of other SIPs only
    std::uint32_t family = 0;
    std::uint64_t by_time = 0;                                  ///< the state that is no work's; 0: none is
    bool leaves = false;                                        ///< to other SIPs, or from the switch to this one
    std::size_t sip = std::numeric_limits<std::size_t>::max();  ///< of none
  };
  const Track& track(TrackId id) const { return tracks_[static_cast<std::size_t>(id)]; }
  bool wanted_somewhere(const std::string& component);
  Tape*& running(std::size_t sip, bool links) { return tapes_[2 * sip + (links ? 1 : 0)]; }
  Tape* tape_of(const Track& track, Ps begin);
  void keep(const Track& track, Ps begin, Ps end, std::uint64_t value);
  void keep(const OpRecord& record, bool kernel);
  void tell(const Tape& tape, const Repeat& repeat);
  OpRecord moved(const Tape& tape, const Repeat& repeat, const OpRecord& record);

  Observer& to_;
  const bool may_repeat_;
  const std::function<Ps()> now_;
  const std::size_t sips_;
  std::vector<Tape*> tapes_;  ///< of each SIP: what runs now, and goes over its links; null: nothing that is kept
  std::vector<Track> tracks_;
  std::vector<Family> families_;
  std::unordered_map<std::string, bool> somewhere_;         ///< by component: wanted_somewhere()
  std::unordered_map<std::string, std::uint32_t> by_name_;  ///< families, by the name of SIP 0's track
  std::map<std::size_t, Known> known_;                      ///< by kind
  std::unordered_map<std::uint64_t, std::uint64_t> ops_;    ///< of the repeat that is being told: its op ids
  std::uint64_t next_op_ = 1;  ///< those of simulated ops are larger than there are repeats
  std::uint64_t repeats_ = 0;
};

}  // namespace kernbench
