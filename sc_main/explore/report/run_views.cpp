#include <algorithm>

#include "sc_main/explore/report/run_page.h"
#include "tlm/machine/names.h"
#include "topology/plan/plan.h"
#include "topology/show/view.h"

namespace kernbench::report {
namespace {
using Json = nlohmann::ordered_json;

constexpr unsigned kMostSips = 64;  ///< drawn each by itself, with its neighbours' names; others as the first one

Json view_of(const topology::Plan& plan, const char* view, PeCoord at) {
  return Json::parse(topology::show_view(plan, view, "json", {at, {}}));
}

PeCoord first_pe(const topology::Plan& plan) {
  PeCoord at{};
  while (!plan.map.has(at) && at.pe + 1U < plan.map.pes_per_cube) ++at.pe;
  return at;
}
}  // namespace

Json views_of(const topology::Plan& plan) {
  Json views{{"system", view_of(plan, "system", {})}};
  for (std::uint16_t sip = 0; sip < std::min<unsigned>(plan.map.sips, kMostSips); ++sip)
    views["sips"][names::sip(sip)] = view_of(plan, "sip", {sip, 0, 0});
  for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube)
    views["cubes"][names::cube({0, cube})] = view_of(plan, "cube", {0, cube, 0});
  const PeCoord pe = first_pe(plan);
  views["pes"] = Json::object();
  if (plan.map.has(pe)) views["pes"][names::pe(pe)] = view_of(plan, "pe", pe);
  return views;
}

}  // namespace kernbench::report
