#include "topology/spec/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "tlm/config/nearest.h"
#include "tlm/config/read.h"
#include "tlm/machine/names.h"
#include "topology/spec/hbm_presets.h"
#include "topology/spec/neighbours.h"
#include "topology/spec/schema.h"

namespace kernbench::topology {

namespace {

/// What an override's glob names.
struct Matches {
  std::vector<CubeCoord> cubes;  ///< named themselves, or through their SIP
  std::vector<PeCoord> pes;
  bool any() const { return !cubes.empty() || !pes.empty(); }
};

class OverrideReader {
 public:
  OverrideReader(SystemSpec& spec, const ConfigNode& sound, const CheckContext& context)
      : spec_(spec), sound_(sound), context_(context), problems_(context.problems) {}

  std::map<std::string, Location> run() {
    read_all();
    return std::move(places_);
  }

 private:
  void read_all() {
    const ConfigNode* list = context_.tree.find("overrides");
    if (list == nullptr || list->is_null()) return;
    if (!expect_list(*list, "overrides", "changes such as {match: sip0.cube3, pe: {...}}", problems_)) return;
    // Names need a sound shape, patches need maps to lie on.
    for (const char* path : {"system.sips.count", "sip.cube_mesh.w", "sip.cube_mesh.h", "cube.pes", "cube.hbm", "pe"}) {
      if (!context_.usable(path)) return check_alone(*list);
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) read(list->items[i], fmt::format("overrides[{}]", i));
    bind_cubes();
    bind_pes();
    check_sips_have_pes();
  }

  std::uint16_t cubes_per_sip() const { return static_cast<std::uint16_t>(spec_.sip.cube_w * spec_.sip.cube_h); }

  /// The values of all patches, of which nobody knows where they lie: on a machine that is sound.
  void check_alone(const ConfigNode& list) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const ConfigNode& item = list.items[i];
      const std::string what = fmt::format("overrides[{}]", i);
      if (!is_override(item, what)) continue;
      CubeSpec ignored = spec_.cube;
      std::set<std::string> failed;
      const ConfigNode *cube = item.find("cube"), *pe = item.find("pe");
      if (cube != nullptr && expect_map(*cube, what + ".cube", cube_section().keys(), problems_))
        read_section(cube_section(), with_hbm_generation(merge_cube(*sound_.find("cube"), *cube)), &ignored, "cube",
                     problems_, failed);
      if (pe != nullptr && expect_map(*pe, what + ".pe", pe_section().keys(), problems_))
        read_section(pe_section(), merge(*sound_.find("pe"), *pe), &ignored.pe, "pe", problems_, failed);
    }
  }

  bool is_override(const ConfigNode& item, const std::string& what) {
    static const std::vector<std::string> kKeys{"match", "cube", "pe", "missing", "link"};
    if (!expect_map(item, what, kKeys, problems_)) return false;
    check_keys(item, what, kKeys, problems_);
    return true;
  }

  void read(const ConfigNode& item, const std::string& what) {
    if (!is_override(item, what)) return;
    if (const ConfigNode* link = item.find("link")) {
      if (item.entries.size() > 1) {
        problems_.add(item.where, fmt::format("{} has 'link' and other keys", what),
                      "a broken link is an entry of its own: '- link: [sip0, sip1]'");
      }
      read_link(*link, what + ".link");
    } else if (const ConfigNode* match = item.find("match")) {
      read_match(item, *match, what);
    } else {
      problems_.add(item.where, fmt::format("missing key '{}.match'", what),
                    "name what changes ('match: sip0.cube3'), or a broken link ('link: [sip0, sip1]')");
    }
  }

  void read_match(const ConfigNode& item, const ConfigNode& match, const std::string& what) {
    const auto glob = read_text(match, what + ".match", problems_);
    if (!glob) return;
    const Matches found = find(*glob);
    if (!found.any()) {
      problems_.add(match.where, fmt::format("{}.match is {}: nothing has such a name", what, quote(*glob)),
                    names_hint());
      return;
    }
    const ConfigNode *cube = item.find("cube"), *pe = item.find("pe"), *missing = item.find("missing");
    if (cube == nullptr && pe == nullptr && missing == nullptr) {
      problems_.add(item.where, fmt::format("{} changes nothing", what), "give 'cube:', 'pe:' or 'missing: true'");
    }
    if (cube != nullptr) {
      if (found.cubes.empty()) {
        problems_.add(cube->where, fmt::format("{}.match is {}, a PE, which has no 'cube'", what, quote(*glob)),
                      "match the cube, as in 'match: sip0.cube3'");
      } else if (expect_map(*cube, what + ".cube", cube_section().keys(), problems_)) {
        for (const CubeCoord at : found.cubes) cube_patches_[at].push_back({"cube", cube});
      }
    }
    if (pe != nullptr && expect_map(*pe, what + ".pe", pe_section().keys(), problems_)) {
      for (const CubeCoord at : found.cubes) cube_patches_[at].push_back({"pe", pe});
      for (const PeCoord at : found.pes) pe_patches_[at].push_back(pe);
    }
    if (missing != nullptr) read_missing(*missing, found, *glob, what);
  }

  void read_missing(const ConfigNode& missing, const Matches& found, const std::string& glob, const std::string& what) {
    const auto gone = read_bool(missing, what + ".missing", problems_);
    if (!gone || !*gone) return;
    if (found.pes.empty()) {
      problems_.add(missing.where, fmt::format("{}.match is {}, but only PEs can be missing", what, quote(glob)),
                    "match PEs, as in 'match: sip0.cube3.pe*'");
    }
    spec_.missing_pes.insert(found.pes.begin(), found.pes.end());
  }

  // Names.

  Matches find(const std::string& glob) const {
    if (glob.find("**") != std::string::npos) return find_deep(glob);
    Matches found;
    const std::vector<std::string> parts = split(glob, '.');
    if (parts.size() > 3) return found;
    const auto fits = [&](std::size_t part, const char* kind, unsigned i) {
      return part >= parts.size() || names::matches(parts[part], fmt::format("{}{}", kind, i));
    };
    for (std::uint16_t s = 0; s < spec_.sips; ++s) {
      if (!fits(0, "sip", s)) continue;
      for (std::uint16_t c = 0; c < cubes_per_sip(); ++c) {
        if (!fits(1, "cube", c)) continue;
        if (parts.size() < 3) found.cubes.push_back({s, c});
        for (std::uint16_t p = 0; parts.size() == 3 && p < spec_.cube.pes; ++p) {
          if (fits(2, "pe", p)) found.pes.push_back({s, c, p});
        }
      }
    }
    return found;
  }

  /// Globs with '**' are compared with every name.
  Matches find_deep(const std::string& glob) const {
    Matches found;
    for (std::uint16_t s = 0; s < spec_.sips; ++s) {
      const bool sip = names::matches(glob, names::sip(s));
      for (std::uint16_t c = 0; c < cubes_per_sip(); ++c) {
        if (sip || names::matches(glob, names::cube({s, c}))) found.cubes.push_back({s, c});
        for (std::uint16_t p = 0; p < spec_.cube.pes; ++p) {
          if (names::matches(glob, names::pe({s, c, p}))) found.pes.push_back({s, c, p});
        }
      }
    }
    return found;
  }

  std::string names_hint() const {
    return fmt::format(
        "names go from sip0, sip0.cube0 and sip0.cube0.pe0 to sip{0}, sip{0}.cube{1} and sip{0}.cube{1}.pe{2}",
        spec_.sips - 1, cubes_per_sip() - 1, spec_.cube.pes - 1);
  }

  // Links.

  void read_link(const ConfigNode& link, const std::string& what) {
    const std::string hint = "give two neighbouring SIPs, as in [sip0, sip1], or cubes, as in [sip0.cube1, sip0.cube2]";
    if (!link.is_list() || link.items.size() != 2 || !link.items[0].is_scalar() || !link.items[1].is_scalar()) {
      problems_.add(link.where, fmt::format("{} is no pair of names", what), hint);
      return;
    }
    const auto a = end(link.items[0], what), b = end(link.items[1], what);
    if (!a || !b) return;
    const std::string pair = fmt::format("{} joins {} and {}", what, link.items[0].text, link.items[1].text);
    const bool same_kind = a->second == b->second;
    if (!same_kind || (a->second && a->first.sip != b->first.sip)) {
      problems_.add(link.where, fmt::format("{}, which is no link", pair), hint);
    } else if (a->second) {
      const auto [low, high] = std::minmax(a->first.cube, b->first.cube);
      if (are_neighbouring_cubes(low, high)) {
        spec_.broken_cube_links.insert({{a->first.sip, low}, high});
        const std::uint16_t sip = a->first.sip;
        places_[override_key(names::cube({sip, low}), names::cube({sip, high}))] = link.where;
      } else {
        problems_.add(link.where, pair + ", which are no neighbours",
                      fmt::format("in the {} x {} cube mesh neighbours differ by 1 in one row, or by {} in one column",
                                  spec_.sip.cube_w, spec_.sip.cube_h, spec_.sip.cube_w));
      }
    } else {
      const auto [low, high] = std::minmax(a->first.sip, b->first.sip);
      if (are_neighbouring_sips(low, high)) {
        spec_.broken_sip_links.insert({low, high});
        places_[override_key(names::sip(low), names::sip(high))] = link.where;
      } else {
        problems_.add(link.where, pair + ", which are no neighbours",
                      fmt::format("the machine is a {} of {} SIPs", to_string(spec_.topology), spec_.sips));
      }
    }
  }

  /// One end of a link: its coordinates, and whether it is a cube.
  std::optional<std::pair<CubeCoord, bool>> end(const ConfigNode& node, const std::string& what) {
    const auto number = [](const std::string& part, const std::string& kind,
                           unsigned count) -> std::optional<std::uint16_t> {
      for (unsigned i = 0; i < count; ++i) {
        if (part == fmt::format("{}{}", kind, i)) return static_cast<std::uint16_t>(i);
      }
      return std::nullopt;
    };
    const std::vector<std::string> parts = split(node.text, '.');
    const auto sip = number(parts[0], "sip", spec_.sips);
    const auto cube = parts.size() == 2 ? number(parts[1], "cube", cubes_per_sip()) : std::nullopt;
    if (!sip || parts.size() > 2 || (parts.size() == 2 && !cube)) {
      problems_.add(node.where, fmt::format("{} names {}, which does not exist", what, quote(node.text)), names_hint());
      return std::nullopt;
    }
    return std::pair(CubeCoord{*sip, cube.value_or(0)}, cube.has_value());
  }

  bool are_neighbouring_cubes(std::uint16_t a, std::uint16_t b) const {
    constexpr Side kSides[] = {Side::north, Side::south, Side::east, Side::west};
    return std::any_of(std::begin(kSides), std::end(kSides),
                       [&](Side side) { return cube_neighbour(spec_.sip.cube_w, spec_.sip.cube_h, a, side) == b; });
  }

  bool are_neighbouring_sips(std::uint16_t a, std::uint16_t b) const {
    if (spec_.is_grid() && (spec_.sip_w == 0 || spec_.sip_h == 0)) return true;  // reported elsewhere
    const std::vector<std::uint16_t> all = sip_neighbours(spec_, a);
    return std::find(all.begin(), all.end(), b) != all.end();
  }

  // Typed values. Cubes with the same patches share one reading.

  struct CubePatch {
    const char* section;  ///< "cube" or "pe"
    const ConfigNode* patch;
    friend bool operator<(const CubePatch& a, const CubePatch& b) {
      return std::pair(std::string(a.section), a.patch) < std::pair(std::string(b.section), b.patch);
    }
  };

  struct CubeReading {
    ConfigNode tree;  ///< the root with this cube's `cube` (HBM device not filled in) and `pe`
    CubeSpec spec;
    bool ok = false;
    bool differs = false;
  };

  const CubeReading& read_cube(const std::vector<CubePatch>& patches) {
    const auto [place, is_new] = readings_.try_emplace(patches);
    CubeReading& reading = place->second;
    if (!is_new) return reading;
    reading.tree = context_.tree;
    ConfigNode& cube = *reading.tree.find("cube");
    ConfigNode& pe = *reading.tree.find("pe");
    for (const CubePatch& patch : patches) {
      if (patch.section == std::string("cube")) {
        cube = merge_cube(std::move(cube), *patch.patch);
      } else {
        pe = merge(std::move(pe), *patch.patch);
      }
    }
    reading.spec = spec_.cube;
    reading.ok = bind_and_check(reading, patches);
    reading.differs = reading.ok && (to_json(cube_section(), &reading.spec) != to_json(cube_section(), &spec_.cube) ||
                                     to_json(pe_section(), &reading.spec.pe) != to_json(pe_section(), &spec_.cube.pe));
    return reading;
  }

  bool bind_and_check(CubeReading& reading, const std::vector<CubePatch>& patches) {
    const std::size_t before = problems_.reported();
    std::set<std::string> failed;
    read_section(cube_section(), with_hbm_generation(*reading.tree.find("cube")), &reading.spec, "cube", problems_,
                 failed);
    read_section(pe_section(), *reading.tree.find("pe"), &reading.spec.pe, "pe", problems_, failed);
    report_uniform(cube_section(), &spec_.cube, &reading.spec, "cube", patches.front().patch->where, reading.tree);
    report_uniform(pe_section(), &spec_.cube.pe, &reading.spec.pe, "pe", patches.front().patch->where, reading.tree);
    if (problems_.reported() != before) return false;
    check_cube(reading.spec, {reading.tree, context_.layer_files, failed, problems_});
    return problems_.reported() == before;
  }

  /// Memory layout, queues and shape are the same everywhere: placement and neighbour tables rely on it.
  void report_uniform(const Section& section, const void* base, const void* changed, const std::string& path,
                      const Location& patch, const ConfigNode& tree) {
    for (const std::string& what : uniform_differences(section, base, changed, path)) {
      const ConfigNode* node = tree.at_path(what);
      const ConfigNode* same = context_.tree.at_path(what);
      const bool explicit_value = node != nullptr && (same == nullptr || !(same->where == node->where));
      problems_.add(
          explicit_value ? node->where : patch, fmt::format("an override cannot change {}", what),
          "it is the same in the whole machine: set it in the top-level section, or give the same value here");
    }
  }

  void bind_cubes() {
    for (const auto& [at, patches] : cube_patches_) {
      const CubeReading& reading = read_cube(patches);
      if (!reading.differs) continue;
      spec_.cubes.emplace(at, reading.spec);
      places_[override_key(names::cube(at))] = patches.back().patch->where;
    }
  }

  void bind_pes() {
    for (const auto& [at, patches] : pe_patches_) {
      const auto cube_patches = cube_patches_.find(at.in_cube());
      const std::vector<CubePatch> none;
      const std::vector<CubePatch>& under = cube_patches == cube_patches_.end() ? none : cube_patches->second;
      const auto [place, is_new] = pe_readings_.try_emplace(std::pair(under, patches));
      if (is_new) place->second = read_pe(under, patches);
      if (!place->second) continue;
      spec_.pes.emplace(at, *place->second);
      places_[override_key(names::pe(at))] = patches.back()->where;
    }
  }

  /// Nothing: it does not differ, or is wrong.
  std::optional<PeConfig> read_pe(const std::vector<CubePatch>& under, const std::vector<const ConfigNode*>& patches) {
    ConfigNode tree = context_.tree;
    CubeSpec cube = spec_.cube;
    if (!under.empty()) {
      const CubeReading& reading = read_cube(under);
      if (!reading.ok) return std::nullopt;
      tree = reading.tree;
      cube = reading.spec;
    }
    ConfigNode& pe = *tree.find("pe");
    for (const ConfigNode* patch : patches) pe = merge(std::move(pe), *patch);
    PeConfig config = cube.pe;
    std::set<std::string> failed;
    const std::size_t before = problems_.reported();
    read_section(pe_section(), pe, &config, "pe", problems_, failed);
    report_uniform(pe_section(), &spec_.cube.pe, &config, "pe", patches.front()->where, tree);
    if (problems_.reported() == before) check_pe(config, cube, {tree, context_.layer_files, failed, problems_});
    if (problems_.reported() != before || to_json(pe_section(), &config) == to_json(pe_section(), &cube.pe))
      return std::nullopt;
    return config;
  }

  void check_sips_have_pes() {
    const std::size_t per_sip = std::size_t{cubes_per_sip()} * spec_.cube.pes;
    std::map<std::uint16_t, std::size_t> gone;
    for (const PeCoord pe : spec_.missing_pes) ++gone[pe.sip];
    for (const auto& [sip, count] : gone) {
      if (count < per_sip) continue;
      problems_.add(context_.tree.find("overrides")->where,
                    fmt::format("overrides leave {} without a single PE", names::sip(sip)),
                    "keep at least one PE per SIP, or lower system.sips.count");
    }
  }

  SystemSpec& spec_;
  const ConfigNode& sound_;
  const CheckContext& context_;
  Problems& problems_;
  std::map<std::string, Location> places_;
  std::map<CubeCoord, std::vector<CubePatch>> cube_patches_;
  std::map<PeCoord, std::vector<const ConfigNode*>> pe_patches_;
  std::map<std::vector<CubePatch>, CubeReading> readings_;
  std::map<std::pair<std::vector<CubePatch>, std::vector<const ConfigNode*>>, std::optional<PeConfig>> pe_readings_;
};

/// Keys of `changed` that differ from `base`. An HBM of another generation is kept whole: a generation resets the
/// device.
nlohmann::ordered_json difference(const nlohmann::ordered_json& base, const nlohmann::ordered_json& changed) {
  auto result = nlohmann::ordered_json::object();
  for (const auto& [key, value] : changed.items()) {
    const auto old = base.find(key);
    if (old != base.end() && *old == value) continue;
    const bool whole = old == base.end() || !value.is_object() ||
                       (value.contains("generation") && value["generation"] != old->value("generation", ""));
    result[key] = whole ? value : difference(*old, value);
  }
  return result;
}

}  // namespace

std::string override_key(const std::string& name) { return "overrides." + name; }
std::string override_key(const std::string& low, const std::string& high) { return override_key(low + "-" + high); }

std::map<std::string, Location> apply_overrides(SystemSpec& spec, const ConfigNode& sound,
                                                const CheckContext& context) {
  return OverrideReader(spec, sound, context).run();
}

nlohmann::ordered_json overrides_to_json(const SystemSpec& spec) {
  auto list = nlohmann::ordered_json::array();
  const auto base_cube = to_json(cube_section(), &spec.cube), base_pe = to_json(pe_section(), &spec.cube.pe);
  for (const auto& [at, cube] : spec.cubes) {
    nlohmann::ordered_json entry = {{"match", names::cube(at)}};
    if (auto patch = difference(base_cube, to_json(cube_section(), &cube)); !patch.empty()) entry["cube"] = patch;
    if (auto patch = difference(base_pe, to_json(pe_section(), &cube.pe)); !patch.empty()) entry["pe"] = patch;
    list.push_back(std::move(entry));
  }
  for (const auto& [at, pe] : spec.pes) {
    const auto patch = difference(to_json(pe_section(), &spec.cube_at(at.in_cube()).pe), to_json(pe_section(), &pe));
    list.push_back({{"match", names::pe(at)}, {"pe", patch}});
  }
  for (const PeCoord at : spec.missing_pes) list.push_back({{"match", names::pe(at)}, {"missing", true}});
  for (const auto& [a, b] : spec.broken_sip_links) {
    list.push_back({{"link", nlohmann::ordered_json::array({names::sip(a), names::sip(b)})}});
  }
  for (const auto& [cube, neighbour] : spec.broken_cube_links) {
    list.push_back({{"link", nlohmann::ordered_json::array({names::cube(cube), names::cube({cube.sip, neighbour})})}});
  }
  return list;
}

}  // namespace kernbench::topology
