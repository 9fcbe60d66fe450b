#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kernbench::compare {

/// One value of a machine made better by a factor of two: a rate or a room doubled, a time or a count of cycles halved.
/// Within the range of the schema; a broken link made whole counts, too.
struct Change {
  std::string key;    ///< "cube.ucie.lanes"
  std::string place;  ///< where an override has the value: "sip0.cube3", or "sip0.cube0, sip0.cube1, ..."; else empty
  std::string part;   ///< the section that it belongs to, "cube.ucie"
  nlohmann::ordered_json from, to;    ///< as the configuration has them
  std::vector<std::string> pointers;  ///< JSON pointers of the values
  bool removes = false;               ///< the pointers are entries of `overrides` that go
  bool paces_block = false;           ///< see topology::Field
  std::vector<Change> ends = {};      ///< both ends of a UCIe link: what is changed; the pointers are theirs

  std::string name() const { return place.empty() ? key : key + " of " + place; }
  std::string part_name() const { return place.empty() ? part : part + " of " + place; }
};

/// All of them, in the order of the schema, then those of overrides. `config`: a resolved machine.
std::vector<Change> changes_of(const nlohmann::ordered_json& config);

/// Keys that have a better direction, but no better value: the best of their range, or 0, which says that there is none
/// of it. With their places, as Change::name().
std::vector<std::string> keys_at_their_best(const nlohmann::ordered_json& config);

/// `config` with memories that never refresh; null if none does.
nlohmann::ordered_json without_refresh(nlohmann::ordered_json config);

/// `config` with these changes.
nlohmann::ordered_json changed(nlohmann::ordered_json config, const std::vector<const Change*>& changes);

}  // namespace kernbench::compare
