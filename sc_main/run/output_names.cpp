#include "sc_main/run/output_names.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <vector>

namespace kernbench {
namespace {
using Endings = std::vector<std::string>;

/// What an option writes, by the ending of the name; the first ones are the usual ones.
const std::map<std::string, Endings>& written() {
  static const Endings page{".html", ".htm"}, compressed{".json", ".json.gz"};
  static const std::map<std::string, Endings> all{
      {"--json", {".json"}},
      {"--report", page},
      {"--html", page},
      {"--output", page},
      {"--stats", compressed},
      {"--trace", compressed},
      {"--vcd", {".vcd", ".vcd.gz", ".fst"}},
      {"--oplog", {".jsonl", ".jsonl.gz", ".json", ".json.gz", ".sqlite", ".sqlite3", ".db"}}};
  return all;
}

/// That say a format.
constexpr const char* kKnown[] = {".json", ".jsonl", ".html", ".htm", ".vcd", ".fst", ".sqlite", ".sqlite3",
                                  ".db",   ".csv",   ".gz",   ".bz2", ".xz",  ".zst", ".zip",    ".parquet"};

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_known(const std::string& ending) {
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* known) { return ending == known; });
}

/// ".db", ".sqlite.gz" and the like; of "run.trace.gz" only ".gz", since ".trace" says no format.
std::string ending_of(const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(file).filename();
  const std::string last = small(path.extension().string());
  if (last != ".gz") return is_known(last) ? last : std::string();
  const std::string before = small(path.stem().extension().string());
  return is_known(before) ? before + last : last;
}

bool fits(const std::string& ending, const Endings& endings) {
  if (ending.empty()) return true;
  const auto same = [&](const std::string& one) {
    return one == ending || (ending == ".gz" && one.size() > ending.size() && ends_with(one, ending));
  };
  return std::any_of(endings.begin(), endings.end(), same);
}

/// ".a, .b or .c"
std::string listed(const Endings& endings) {
  std::string text;
  for (std::size_t i = 0; i < endings.size(); ++i)
    text += (i == 0 ? "" : i + 1 == endings.size() ? " or " : ", ") + endings[i];
  return text;
}
}  // namespace

void refuse_foreign_endings(const NamedFiles& outputs, Refusals& refusals) {
  for (const auto& [option, file] : outputs) {
    const auto known = written().find(option);
    if (known == written().end()) continue;
    const std::string ending = ending_of(file);
    if (fits(ending, known->second)) continue;
    refusals.add(fmt::format("{} is {}, and does not write '{}'", option, quote(file), ending),
                 "give a name that ends in " + listed(known->second));
  }
}

void refuse_foreign_endings(const NamedFiles& outputs) {
  Refusals refusals;
  refuse_foreign_endings(outputs, refusals);
  refusals.throw_if_any();
}

}  // namespace kernbench
