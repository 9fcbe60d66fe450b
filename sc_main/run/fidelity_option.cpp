#include "sc_main/run/fidelity_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sc_main/run/exit_code.h"
#include "tlm/config/nearest.h"

namespace kernbench {
namespace {

/// The one place for what is known about the error of each grade. Figures: the worst judged case of `kernbench
/// validate` on the tables in bench/reference (docs/fidelity.md).
constexpr std::array<ErrorBand, 10> kBands{{
    {Subsystem::noc, Grade::accurate, "mean packet latency up to 0.8 of saturation, against BookSim2", 2.3},
    {Subsystem::noc, Grade::fast, "mean packet latency up to 0.8 of saturation, against BookSim2", 9.8},
    {Subsystem::ucie, Grade::accurate, "latency and bandwidth, against closed forms", 0.4},
    {Subsystem::ucie, Grade::fast, "latency and bandwidth, against closed forms", 0.4},
    {Subsystem::link, Grade::accurate, "latency and bandwidth, against closed forms", 0.4},
    {Subsystem::link, Grade::fast, "latency and bandwidth, against closed forms", 0.4},
    {Subsystem::hbm, Grade::accurate, "bandwidth per pattern, against Ramulator2", 0.2},
    {Subsystem::hbm, Grade::fast, "bandwidth per pattern, against Ramulator2", 9.4},
    {Subsystem::pe, Grade::accurate, "GEMM times, against closed forms", 0.9},
    {Subsystem::pe, Grade::fast, "GEMM times, against closed forms", 0.9},
}};

/// Where transfers travel in trains: the largest deviation of `probe`, `p2p`, `stream`, layers and collectives on the
/// presets from the same in the accurate grade, of `stream` on one cube, too (docs/fidelity.md, Trains against
/// packets). What a refresh more or less makes is not in it.
constexpr ErrorBand kTrains{Subsystem::pe, Grade::fast,
                            "times of transfers in trains on the presets, against the accurate grade, but for a "
                            "refresh more or less; 51% seen where a TCM is slower than the mesh",
                            17.1};

/// The time of a layer of a language model, the largest deviation of the cases in docs/fidelity.md.
constexpr ErrorBand kLayers{Subsystem::pe, Grade::fast,
                            "layers of language models on default and ring8, against the accurate grade", 3.0};

const std::vector<std::string> kGrades{"accurate", "fast"};

const std::vector<std::string> kParts{"noc", "hbm"};

/// Entries between commas count from 1.
[[noreturn]] void refuse(const std::string& all, std::size_t number, const std::string& problem,
                         const std::string& hint) {
  throw UsageError(fmt::format("--fidelity is {}, entry {}: {}", quote(all), number, problem), hint);
}

Grade read_grade(const std::string& all, std::size_t number, const std::string& word) {
  if (word == "accurate") return Grade::accurate;
  if (word == "fast") return Grade::fast;
  refuse(all, number, fmt::format("unknown grade {}", quote(word)), suggest(word, kGrades, "grades"));
}
}  // namespace

Fidelity parse_fidelity(const std::string& text) {
  Fidelity fidelity;
  std::set<std::string> seen;
  std::size_t number = 0;
  for (const std::string& entry : split(text, ',')) {
    ++number;
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      if (number > 1) {
        refuse(text, number, fmt::format("{} says nothing of a part", quote(entry)),
               "a grade for all parts comes first, then PART=GRADE; parts: " + join(kParts));
      }
      fidelity = Fidelity::all(read_grade(text, number, entry));
      continue;
    }
    const std::string name = entry.substr(0, equals);
    if (name != "noc" && name != "hbm") {
      const std::vector<std::string> others{"ucie", "link", "pe"};
      const bool one = std::find(others.begin(), others.end(), name) != others.end();
      refuse(text, number, fmt::format("{} part {}", one ? "no grades of" : "unknown", quote(name)),
             one ? "it is one model in both; parts: " + join(kParts) : suggest(name, kParts, "parts"));
    }
    if (!seen.insert(name).second)
      refuse(text, number, fmt::format("{} for the second time", quote(name)), "give each part once");
    fidelity.noc_by_name |= name == "noc";
    (name == "noc" ? fidelity.noc : fidelity.hbm) = read_grade(text, number, entry.substr(equals + 1));
  }
  return fidelity;
}

std::vector<ErrorBand> error_bands(const Fidelity& fidelity) {
  std::vector<ErrorBand> bands;
  for (const ErrorBand& band : kBands) {
    if (fidelity.of(band.part) == band.grade) bands.push_back(band);
  }
  if (fidelity.trains()) bands.insert(bands.end(), {kTrains, kLayers});
  return bands;
}

std::string describe(const Fidelity& fidelity, const Fidelity& asked) {
  std::vector<std::string> known;
  for (const ErrorBand& band : error_bands(fidelity)) {
    known.push_back(fmt::format("{} {:g}% ({})", to_string(band.part), band.percent, band.measure));
  }
  const std::string why = fidelity == asked
                              ? ""
                              : fmt::format(
                                    ", not {}: a router buffer is shorter than a credit's way, so networks go flit "
                                    "by flit and packets one by one",
                                    to_string(asked));
  return fmt::format("fidelity {}{}; known error: {}", to_string(fidelity), why, join(known, "; "));
}

}  // namespace kernbench
