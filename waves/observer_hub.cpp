#include "waves/observer_hub.h"

#include <algorithm>

namespace kernbench {

TrackId ObserverHub::add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) {
  Route route;
  for (Observer* listener : listeners_) {
    if (const TrackId id = listener->add_track(name, kind, labels); id != kNoTrack) route.emplace_back(listener, id);
  }
  if (route.empty()) return kNoTrack;
  routes_.push_back(std::move(route));
  return TrackId{static_cast<std::uint32_t>(routes_.size() - 1)};
}

void ObserverHub::interval(TrackId track, Ps begin, Ps end, std::uint64_t value) {
  for (const auto& [listener, id] : route(track)) listener->interval(id, begin, end, value);
}

void ObserverHub::interval(TrackId track, Ps begin, Ps end, const std::string& text) {
  for (const auto& [listener, id] : route(track)) listener->interval(id, begin, end, text);
}

void ObserverHub::change(TrackId track, Ps time, std::uint64_t value) {
  for (const auto& [listener, id] : route(track)) listener->change(id, time, value);
}

void ObserverHub::op(const OpRecord& record) {
  for (Observer* listener : listeners_) {
    if (listener->wants_ops()) listener->op(record);
  }
}

bool ObserverHub::wants_ops() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Observer* listener) { return listener->wants_ops(); });
}

}  // namespace kernbench
