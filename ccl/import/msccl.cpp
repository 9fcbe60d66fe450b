#include "ccl/import/msccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ccl/import/msccl_import.h"
#include "tlm/config/config_node.h"
#include "tlm/config/json_text.h"

namespace kernbench::ccl {

/// Of pe.ipcq.slots (topology/spec/schema_pe.cpp); MSCCL's own runtime has 8 of 512 KiB, which hold many small
/// messages.
constexpr int kMostSlots = 4096;

Schedule parse_msccl(const std::string& text, const std::string& name, std::optional<int> ranks, int lambda) {
  const msccl::File file = msccl::parse(text, name);
  static std::set<std::string> said;  // a file is read for each group that uses it
  for (const std::string& warning : file.warnings) {
    if (said.insert(warning).second) std::fputs((printable(warning) + "\n").c_str(), stderr);
  }
  const auto gpus = static_cast<std::int32_t>(file.gpus.size());
  if (ranks && *ranks != gpus) {
    Schedule head;
    head.algorithm = file.name;
    head.op = file.op;
    head.nodes = gpus;
    return head;
  }
  // With more slots a file waits no longer: as few as it needs, found by halving.
  std::optional<Schedule> found;
  int too_few = lambda - 1, enough = lambda;
  std::optional<msccl::Stuck> stuck;
  while (!found) {
    try {
      found = msccl::import_file(file, enough);
    } catch (const msccl::Stuck& error) {
      if (!stuck) stuck = error;
      too_few = enough;
      if (enough + 1 >= kMostSlots) {
        if (!error.for_room) throw ConfigError(*stuck);
        throw ConfigError(*error.for_room, fmt::format("needs queues of more than {} slots, the most", kMostSlots),
                          "receive before more is sent, or send fewer messages of more chunks");
      }
      enough = std::min(2 * enough + 1, kMostSlots - 1);
    }
  }
  while (enough - too_few > 1) {
    const int middle = (enough + too_few) / 2;
    try {
      found = msccl::import_file(file, middle);
      enough = middle;
    } catch (const msccl::Stuck&) {
      too_few = middle;
    }
  }
  return std::move(*found);
}

/// assumed: the largest public file has 4 MiB
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Schedule read_msccl(const std::string& file, std::optional<int> ranks, int lambda) {
  constexpr const char* kHint = "give an MSCCL algorithm file";
  const std::string text = load_text(file, kMostBytes, kHint, "");
  if (text.empty()) throw ConfigError(Location{file, 0, 0}, "the file is empty", kHint);
  return parse_msccl(text, file, ranks, lambda);
}

}  // namespace kernbench::ccl
