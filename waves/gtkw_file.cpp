#include "waves/gtkw_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "tlm/machine/names.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {
namespace fs = std::filesystem;

// Flags of GTKWave 3.3.118 save files.
constexpr unsigned kHex = 0x22, kDecimal = 0x24, kText = 0x28;
constexpr unsigned kFileFilter = 0x2000;
constexpr unsigned kAnalogLevel = 0x88024;  // decimal, drawn as steps over the full scale
constexpr unsigned kHidden = 0x1000;        // inside a closed group
constexpr unsigned kOpenBegin = 0x800200, kOpenEnd = 0x1000200;
constexpr unsigned kClosedBegin = 0xc00200, kClosedEnd = 0x1401200;

/// Colour of a row, by what its unit is.
int colour(const std::string& name) {
  static constexpr std::pair<const char*, int> kColours[] = {{"dma", 5},  {"gemm", 4}, {"math", 6},
                                                             {"ipcq", 2}, {"hbm", 3},  {"sram", 3},
                                                             {"ucie", 7}, {"link", 7}, {"kernel", 4}};
  for (const auto& [part, value] : kColours) {
    if (name.find(part) != std::string::npos) return value;
  }
  return 0;
}

/// Background of label `i`: idle stays dark, waiting states (by their name) are red, others cycle.
const char* label_colour(std::size_t i, const std::string& label) {
  static constexpr std::array<const char*, 6> kColours{"DarkGreen",   "navy",          "purple4",
                                                       "SaddleBrown", "DarkSlateGray", "MidnightBlue"};
  if (i == 0) return "gray15";
  if (is_waiting(label)) return "firebrick4";
  return kColours[(i - 1) % kColours.size()];
}

/// One filter file a set of labels; GTKWave numbers them from 1.
class Filters {
 public:
  explicit Filters(fs::path folder) : folder_(std::move(folder)) {}

  int number(const Track& track) {
    const auto key = std::pair(track.bits, track.labels);
    const auto [found, added] = numbers_.emplace(key, static_cast<int>(numbers_.size()) + 1);
    if (added) {
      std::error_code error;
      fs::create_directories(folder_, error);
      if (error) throw OutputError(fmt::format("cannot create '{}': {}", folder_.string(), error.message()));
      std::string text = fmt::format("# states of {} and its like\n", track.name);
      for (std::size_t i = 0; i < track.labels.size(); ++i) {
        text += fmt::format("{:0{}X} ?{}?{}\n", i, track.bits / 4, label_colour(i, track.labels[i]), track.labels[i]);
      }
      write_file(path(found->second).string(), text);
    }
    return found->second;
  }
  fs::path path(int number) const { return folder_ / fmt::format("{}.txt", number); }

 private:
  fs::path folder_;
  std::map<std::pair<unsigned, std::vector<std::string>>, int> numbers_;
};

/// Prints the rows in groups as the machine nests.
class Rows {
 public:
  explicit Rows(Filters& filters) : filters_(filters) {}

  /// In its group.
  void add(const Track& track) {
    std::vector<std::string> parts = components(track.name);
    parts.pop_back();
    for (std::string& part : parts) part = vcd_name(part);
    enter(parts);
    row(track);
  }

  /// The busiest ones under a heading of their own, which stays open. GTKWave shows what is behind the last dot only:
  /// they are named once more, without dots.
  void add_first(const std::string& heading, const std::vector<const Track*>& tracks) {
    if (tracks.empty()) return;
    text_ += fmt::format("@{:x}\n-{}\n", kOpenBegin, heading);
    for (const Track* track : tracks) {
      std::string name = track->name;
      std::replace(name.begin(), name.end(), '.', '/');
      row(*track, "+{" + name + "} ");
    }
    text_ += fmt::format("@{:x}\n-{}\n", kOpenEnd, heading);
  }

  void row(const Track& track, const std::string& alias = {}) {
    std::string full;
    for (const std::string& part : components(track.name)) full += (full.empty() ? "" : ".") + vcd_name(part);
    const unsigned hidden = closed() ? kHidden : 0;
    if (const int c = colour(track.name); c != 0) text_ += fmt::format("[color] {}\n", c);
    switch (track.kind) {
      case TrackKind::state: {
        const int filter = filters_.number(track);
        text_ += fmt::format("@{:x}\n^{} {}\n{}{}[{}:0]\n", kHex | kFileFilter | hidden, filter,
                             filters_.path(filter).string(), alias, full, track.bits - 1);
        break;
      }
      case TrackKind::level:
        text_ += fmt::format("@{:x}\n{}[{}:0]\n", kAnalogLevel | hidden, full, track.bits - 1);
        break;
      case TrackKind::number:
        text_ += fmt::format("@{:x}\n{}[{}:0]\n", kDecimal | hidden, full, track.bits - 1);
        break;
      case TrackKind::text:
        text_ += fmt::format("@{:x}\n{}\n", kText | hidden, full);
        break;
    }
  }

  std::string take() {
    enter({});
    return std::move(text_);
  }

 private:
  struct Group {
    std::string name;
    bool closed;
  };
  bool closed() const {
    return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.closed; });
  }

  void enter(const std::vector<std::string>& parts) {
    std::size_t common = 0;
    while (common < groups_.size() && common < parts.size() && groups_[common].name == parts[common]) ++common;
    while (groups_.size() > common) {
      const Group group = groups_.back();
      groups_.pop_back();
      text_ +=
          fmt::format("@{:x}\n-{}\n", (group.closed ? kClosedEnd : kOpenEnd) | (closed() ? kHidden : 0), group.name);
    }
    for (; common < parts.size(); ++common) {
      // The first unit of a kind (pe0 of pe0, pe1, ...) at each depth is open; the others are there, but folded.
      const std::string kind = parts[common].substr(0, parts[common].find_last_not_of("0123456789") + 1);
      const bool first = seen_.insert(fmt::format("{}:{}", common, kind)).second;
      const bool hidden = closed();
      text_ += fmt::format("@{:x}\n-{}\n", (first ? kOpenBegin : kClosedBegin) | (hidden ? kHidden : 0), parts[common]);
      groups_.push_back({parts[common], !first});
    }
  }

  Filters& filters_;
  std::string text_;
  std::vector<Group> groups_;
  std::set<std::string> seen_;
};
}  // namespace

std::string gtkw_path(const std::string& vcd_path) { return fs::path(vcd_path).replace_extension(".gtkw").string(); }
std::string states_path(const std::string& vcd_path) {
  return fs::path(vcd_path).replace_extension(".states").string();
}

namespace {
constexpr std::size_t kBusiest = 12, kOfAKind = 3;
constexpr std::size_t kMarkers = 26;

/// The busiest tracks, of those that differ in numbers only the first few.
std::vector<const Track*> busiest(const std::vector<Track>& tracks) {
  std::vector<const Track*> order;
  for (const std::uint32_t i : in_natural_order(tracks)) {
    const bool row = components(tracks[i].name).back() == "row";  // of a bank: an open row does no work
    if (tracks[i].busy > 0 && !row) order.push_back(&tracks[i]);
  }
  std::stable_sort(order.begin(), order.end(), [](const Track* a, const Track* b) { return a->busy > b->busy; });
  std::map<std::string, std::size_t> seen;
  std::vector<const Track*> first;
  for (const Track* track : order) {
    std::string kind;
    for (const char c : track->name)
      kind += std::isdigit(static_cast<unsigned char>(c)) != 0 ? std::string() : std::string(1, c);
    if (first.size() < kBusiest && seen[kind]++ < kOfAKind) first.push_back(track);
  }
  return first;
}

/// Where the view stands: about 860 pixels show `focus`, beside names with room for the values. Zoom is -log2 of the
/// time units in 200 pixels (GTKWave, calczoom()).
std::string view(const Stretch& focus, const std::vector<Stretch>& stretches) {
  const Ps margin = (focus.end - focus.begin) / 20, from = focus.begin - std::min(margin, focus.begin);
  std::string text = fmt::format("[timestart] {}\n[size] 1600 900\n[signals_width] 420\n", from);
  const double length = static_cast<double>(focus.end + margin - from);
  text += fmt::format("*{:.6f} {}", -std::log2(std::max(1.0, length * 200 / 860)), focus.begin);
  const std::size_t first = stretches.size() - std::min(stretches.size(), kMarkers);
  std::string named;
  for (std::size_t i = 0; i < kMarkers; ++i) {
    if (first + i >= stretches.size()) {
      text += " -1";
      continue;
    }
    text += fmt::format(" {}", stretches[first + i].begin);
    named += fmt::format("[markername] {}{}\n", static_cast<char>('A' + i), stretches[first + i].name);
  }
  return text + "\n" + named;
}
}  // namespace

void write_gtkw(const std::string& vcd_path, const std::vector<Track>& tracks, const Stretch& focus,
                const std::vector<Stretch>& stretches) {
  const fs::path vcd = fs::absolute(vcd_path).lexically_normal();
  const fs::path gtkw = gtkw_path(vcd.string());
  Filters filters(states_path(vcd.string()));
  Rows rows(filters);
  for (const Track& track : tracks) {
    if (track.active && track.name == kStretchTrack) rows.row(track);
  }
  rows.add_first(focus.name.empty() ? "busiest" : "busiest in " + focus.name, busiest(tracks));
  for (const std::uint32_t i : in_natural_order(tracks)) {
    if (tracks[i].active && tracks[i].name != kStretchTrack) rows.add(tracks[i]);
  }
  std::string text = fmt::format("[*] KernBench\n[dumpfile] \"{}\"\n[savefile] \"{}\"\n", vcd.string(), gtkw.string());
  text += view(focus, stretches);
  text += rows.take();
  write_file(gtkw.string(), text);
}

}  // namespace kernbench
