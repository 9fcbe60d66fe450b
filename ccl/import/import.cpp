#include "ccl/import/import.h"

#include "ccl/contract/error.h"
#include "ccl/import/msccl.h"
#include "ccl/schedule/check.h"
#include "tlm/config/problems.h"

namespace kernbench::ccl {
namespace {

/// Never called: an entry with a schedule does not ask its algorithm.
Plan no_plan(const PlanRequest&) { return {}; }
std::vector<std::pair<std::int32_t, std::int32_t>> no_links(const PlanRequest&) { return {}; }

/// The descriptor with the name it points to.
struct Named {
  std::string name;
  Algorithm algorithm;
};

}  // namespace

bool is_schedule_file(const std::string& module) {
  const std::string end = ".xml";
  return module.size() > end.size() && module.compare(module.size() - end.size(), end.size(), end) == 0;
}

Imported import_schedule(const std::string& file, std::optional<int> ranks) {
  auto schedule = std::make_shared<Schedule>(read_msccl(file, ranks));
  try {
    if (!ranks || *ranks == schedule->nodes) check(*schedule);
  } catch (const Error& error) {
    throw ConfigError(Location{file, 0, 0}, error.what(), "its result would be wrong; nothing was run");
  }
  auto named = std::make_shared<Named>();
  named->name = schedule->algorithm;
  named->algorithm = schedule_algorithm({named->name.c_str(), bit(schedule->op), bit(Scope::sip), kAllTopologies},
                                        &no_plan, &no_links);
  return {std::shared_ptr<const Algorithm>(named, &named->algorithm), std::move(schedule)};
}

}  // namespace kernbench::ccl
