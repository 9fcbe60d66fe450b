#include "sc_main/explore/compare/link_ends.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tlm/config/json_text.h"
#include "tlm/machine/names.h"
#include "topology/plan/plan.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;

constexpr const char *kOfCubes = "cube.ucie.", *kOfIo = "sip.io.ucie.";

/// Which change is of a key of UCIe, by where an end lies.
class UcieChanges {
 public:
  UcieChanges(const Json& config, const std::vector<Change>& changes) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const Change& change = changes[i];
      if (change.key.rfind(kOfIo, 0) == 0) note(change.key.substr(std::string(kOfIo).size()), "io", i);
      if (change.key.rfind(kOfCubes, 0) != 0) continue;
      const std::string key = change.key.substr(std::string(kOfCubes).size());
      if (change.place.empty()) note(key, "cube", i);
      for (const std::string& pointer : change.place.empty() ? std::vector<std::string>() : change.pointers) {
        // "/overrides/3/cube/ucie/lanes": its entry names the cube.
        const Json::json_pointer entry = Json::json_pointer(pointer).parent_pointer().parent_pointer().parent_pointer();
        note(key, config[entry].value("match", std::string()), i);
      }
    }
  }
  const std::set<std::string>& keys() const { return keys_; }
  std::optional<std::size_t> of(const std::string& key, const topology::Network& network) const {
    if (network.kind == topology::NetworkKind::io) return at(key, "io");
    const std::optional<std::size_t> own = at(key, names::cube({network.sip, network.cube}));
    return own ? own : at(key, "cube");
  }

 private:
  void note(const std::string& key, const std::string& where, std::size_t change) {
    keys_.insert(key);
    changes_[{key, where}] = change;
  }
  std::optional<std::size_t> at(const std::string& key, const std::string& where) const {
    const auto found = changes_.find({key, where});
    return found == changes_.end() ? std::nullopt : std::optional(found->second);
  }

  std::set<std::string> keys_;
  std::map<std::pair<std::string, std::string>, std::size_t> changes_;
};

/// "16 GT/s", or of two "16 GT/s + 8 GT/s".
Json both_values(const Json& a, const Json& b) {
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); };
  return a == b ? a : Json(text(a) + " + " + text(b));
}
}  // namespace

std::vector<Change> changes_of_both_ends(const Json& config, const std::vector<Change>& changes,
                                         const topology::Plan& plan) {
  const UcieChanges ucie(config, changes);
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const topology::LinkEnd& end : plan.ends) {
    if (end.kind->between_sips || end.peer == topology::kNoEnd) continue;
    const topology::Network &here = plan.networks[end.network], &there = plan.networks[plan.ends[end.peer].network];
    for (const std::string& key : ucie.keys()) {
      const std::optional<std::size_t> a = ucie.of(key, here), b = ucie.of(key, there);
      if (a && b && *a < *b) pairs.emplace(*a, *b);
    }
  }
  std::vector<Change> all;
  for (const auto& [first, second] : pairs) {
    const Change &a = changes[first], &b = changes[second];
    Change both;
    both.key = a.name() + " + " + b.name();
    both.part = a.part_name() + " + " + b.part_name();
    both.from = both_values(a.from, b.from);
    both.to = both_values(a.to, b.to);
    both.ends = {a, b};
    all.push_back(std::move(both));
  }
  return all;
}

}  // namespace kernbench::compare
