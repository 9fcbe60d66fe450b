#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tlm/observe/observer.h"

namespace kernbench {

/// Hands every record to the listeners that want it. The machine gets a hub only if there is a listener at all.
class ObserverHub final : public Observer {
 public:
  /// `listener` outlives the hub. Call before any track is declared.
  void add(Observer& listener) { listeners_.push_back(&listener); }

  TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) override;
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override;
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override;
  void change(TrackId track, Ps time, std::uint64_t value) override;
  void op(const OpRecord& record) override;
  bool wants_ops() const override;

 private:
  using Route = std::vector<std::pair<Observer*, TrackId>>;
  const Route& route(TrackId track) const { return routes_[static_cast<std::uint32_t>(track)]; }

  std::vector<Observer*> listeners_;
  std::vector<Route> routes_;  ///< by the hub's own track ids
};

}  // namespace kernbench
