#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tlm/observe/observer.h"

namespace kernbench {

/// Hands every record to the listeners that want it. The machine gets a hub only if there is a listener at all.
///
/// A listener whose output fails (a full disk) is heard no more and says so again when it is closed: nothing is thrown
/// through the running machine.
class ObserverHub final : public Observer {
 public:
  /// `listener` outlives the hub. Call before any track is declared.
  void add(Observer& listener) { listeners_.push_back({&listener, false}); }

  TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) override;
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override;
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override;
  void change(TrackId track, Ps time, std::uint64_t value) override;
  void op(const OpRecord& record) override;
  bool wants_ops() const override;
  bool wants(const std::string& component) const override;
  Ps resolution() const override;
  void repeats(bool does) override;
  bool wants_order() const override;
  void kernel(const OpRecord& record) override;

 private:
  struct Listener {
    Observer* observer;
    bool failed;
  };
  using Route = std::vector<std::pair<std::size_t, TrackId>>;  ///< number of the listener, its own id
  template <class Deliver>
  void hand(std::size_t listener, const Deliver& deliver);
  const Route& route(TrackId track) const { return routes_[static_cast<std::uint32_t>(track)]; }

  std::vector<Listener> listeners_;
  std::vector<Route> routes_;  ///< by the hub's own track ids
};

}  // namespace kernbench
