#include "waves/observer_hub.h"

#include <algorithm>

#include "waves/output_file.h"

namespace kernbench {

template <class Deliver>
void ObserverHub::hand(std::size_t listener, const Deliver& deliver) {
  Listener& to = listeners_[listener];
  if (to.failed) return;
  try {
    deliver(*to.observer);
  } catch (const OutputError&) {
    to.failed = true;
  }
}

TrackId ObserverHub::add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) {
  Route route;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const TrackId id = listeners_[i].observer->add_track(name, kind, labels);
    if (id != kNoTrack) route.emplace_back(i, id);
  }
  if (route.empty()) return kNoTrack;
  routes_.push_back(std::move(route));
  return TrackId{static_cast<std::uint32_t>(routes_.size() - 1)};
}

void ObserverHub::interval(TrackId track, Ps begin, Ps end, std::uint64_t value) {
  for (const auto& [listener, own] : route(track)) {
    hand(listener, [&, id = own](Observer& to) { to.interval(id, begin, end, value); });
  }
}

void ObserverHub::interval(TrackId track, Ps begin, Ps end, const std::string& text) {
  for (const auto& [listener, own] : route(track)) {
    hand(listener, [&, id = own](Observer& to) { to.interval(id, begin, end, text); });
  }
}

void ObserverHub::change(TrackId track, Ps time, std::uint64_t value) {
  for (const auto& [listener, own] : route(track)) {
    hand(listener, [&, id = own](Observer& to) { to.change(id, time, value); });
  }
}

void ObserverHub::op(const OpRecord& record) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (listeners_[i].observer->wants_ops()) hand(i, [&](Observer& to) { to.op(record); });
  }
}

void ObserverHub::kernel(const OpRecord& record) {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (listeners_[i].observer->wants_ops()) hand(i, [&](Observer& to) { to.kernel(record); });
  }
}

bool ObserverHub::wants_ops() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Listener& listener) { return listener.observer->wants_ops(); });
}

bool ObserverHub::wants(const std::string& component) const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&](const Listener& listener) { return listener.observer->wants(component); });
}

Ps ObserverHub::resolution() const {
  Ps least = kNever;
  for (const Listener& listener : listeners_) least = std::min(least, listener.observer->resolution());
  return least;
}

void ObserverHub::repeats(bool does) {
  for (const Listener& listener : listeners_) listener.observer->repeats(does);
}

bool ObserverHub::wants_order() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const Listener& listener) { return listener.observer->wants_order(); });
}

}  // namespace kernbench
