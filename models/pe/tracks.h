#pragma once
#include <string>
#include <vector>

#include "models/pe/services.h"
#include "tlm/machine/names.h"

namespace kernbench::pe {

/// A signal of one part of a PE; silent if nobody listens.
class Track {
 public:
  Track() = default;
  Track(const Services& services, const std::string& part, TrackKind kind, const std::vector<std::string>& labels = {})
      : observer_(services.observer) {
    if (observer_ != nullptr) id_ = observer_->add_track(names::pe_part(services.coord, part), kind, labels);
  }
  bool wanted() const { return id_ != kNoTrack; }
  void interval(Ps begin, Ps end, std::uint64_t value) {
    if (wanted()) observer_->interval(id_, begin, end, value);
  }
  /// REQUIRES: wanted(), so that no text is made in vain.
  void interval(Ps begin, Ps end, const std::string& text) { observer_->interval(id_, begin, end, text); }
  void change(Ps time, std::uint64_t value) {
    if (wanted()) observer_->change(id_, time, value);
  }

 private:
  Observer* observer_ = nullptr;
  TrackId id_ = kNoTrack;
};

}  // namespace kernbench::pe
