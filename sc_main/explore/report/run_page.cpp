#include "sc_main/explore/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "models/pe/compute/gemm_array.h"
#include "sc_main/explore/compare/run_time.h"
#include "sc_main/explore/report/resources.h"
#include "sc_main/explore/report/script_text.h"
#include "tlm/kernel/dtype.h"
#include "topology/plan/plan.h"

namespace kernbench::report {
namespace {
namespace mustache = kainjow::mustache;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCourseBytes = std::size_t{3} << 20;  ///< of all courses: 4 MB of the page, read in 0.1 s

std::string command_text(const Json& result) {
  std::string text = "kernbench";
  for (const Json& word : result.value("command", Json::array())) {
    const auto said = word.get<std::string>();
    const bool plain = !said.empty() && said.find_first_of(" '\"$*?()[]{}&;|<>\\") == std::string::npos;
    text += plain ? " " + said : fmt::format(" '{}'", said);
  }
  return text;
}

std::string render_page(const Json& data, const std::string& title, const std::string& version,
                        const std::string& command) {
  mustache::data page;
  page.set("title", title);
  page.set("version", version);
  page.set("command", command);
  page.set("style", std::string(kStyle) + kRunStyle);
  page.set("run", script_text(data));
  page.set("library", kD3);
  page.set("script", kRunScript);
  page.set("licence", kD3Licence);
  return render_template(kRunTemplate, page);
}

/// What a PE computes and moves at most.
Json roof_of(const topology::Plan& plan) {
  Json rates = Json::object();
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const double macs = pe::peak_macs_per_second(plan.spec.cube.pe.gemm, dtype);
    if (macs > 0) rates[to_string(dtype)] = 2 * macs;
  }
  const HbmConfig& hbm = plan.spec.cube.hbm;
  const double rate = static_cast<double>(hbm.pseudo_channel_peak().bytes_per_second()) * hbm.total_pseudo_channels();
  return {{"flops_per_s", std::move(rates)}, {"hbm_bytes_per_s_per_pe", rate / plan.spec.cube.pes}};
}

Json number_at(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? *found : Json();
}

/// What `explain` has of every kernel of a run whose rows name none.
Json launches_of_all(const Json& result) {
  Json launches = Json::array();
  const auto explain = result.find("explain");
  if (explain == result.end() || !explain->is_object()) return launches;
  for (const Json& kernel : explain->value("launches", Json::array())) {
    const Json binds = kernel.value("binds", Json::array());
    launches.push_back({{"row", result.value("workload", "")},
                        {"name", kernel.value("kernel", "")},
                        {"times", number_at(kernel, "launches")},
                        {"ns", number_at(kernel, "time_ns")},
                        {"flops", number_at(kernel, "flops")},
                        {"bytes", kernel.value("bytes", Json::object()).value("hbm", 0.0)},
                        {"bound_ns", number_at(kernel, "bound_ns")},
                        {"binds", binds.empty() ? "" : binds.front().value("spent", "")},
                        {"roof_share", number_at(kernel, "roof_share")},
                        {"dtype", "f16"},
                        {"pes", number_at(kernel, "pes")}});
  }
  return launches;
}

/// Launches of the rows with what they compute and move: kernels of tensor-parallel layers, and GEMMs. Of other
/// workloads those that `explain` knows.
Json launches_of(const Json& result, std::size_t pes_per_sip) {
  Json launches = Json::array();
  for (const Json& row : result.value("results", Json::array())) {
    if (compare::is_total(row)) continue;
    const std::string name = compare::row_name(row);
    if (const auto kernels = row.find("kernels"); kernels != row.end() && kernels->is_array()) {
      for (const Json& kernel : *kernels) {
        launches.push_back({{"row", name},
                            {"name", kernel.value("name", "")},
                            {"times", number_at(kernel, "launches")},
                            {"ns", number_at(kernel, "kernel_ns")},
                            {"flops", number_at(kernel, "flops")},
                            {"bytes", number_at(kernel, "bytes")},
                            {"bound_ns", number_at(kernel, "bound_ns")},
                            {"binds", kernel.value("bound_binds", "")},
                            {"dtype", row.value("dtype", "f16")},
                            {"pes", pes_per_sip}});
      }
    } else if (row.value("op", "") == "gemm") {
      const double flops = 2 * row["m"].get<double>() * row["n"].get<double>() * row["k"].get<double>();
      launches.push_back({{"row", name},
                          {"name", row.value("variant", "gemm")},
                          {"times", 1},
                          {"ns", number_at(row, "time_ns")},
                          {"flops", flops},
                          {"bytes", number_at(row, "dma_bytes")},
                          {"bound_ns", number_at(row, "bound_ns")},
                          {"binds", row.value("bound_binds", "")},
                          {"dtype", row.value("dtype", "f16")},
                          {"pes", row.value("pes", 1)}});
    }
  }
  return launches.empty() ? launches_of_all(result) : launches;
}
}  // namespace

std::string render_run(const Json& result, const topology::Plan& plan, const std::string& title) {
  Json run = result, data = Json::object();
  for (const char* key : {"config", "host", "statistics", "what_if", "critical_path"}) run.erase(key);
  for (const char* key : {"host", "what_if", "critical_path", "config"}) {
    if (result.contains(key)) data[key] = result[key];
  }
  const compare::RunTime time = compare::time_of(result, compare::TimeOf::rows);
  data["time"] = {{"ns", time.ns}, {"of", time.of}};
  data["roof"] = roof_of(plan);
  data["launches"] = launches_of(result, plan.map.pes(0).size());
  data["views"] = views_of(plan);
  if (result.contains("statistics")) data["stats"] = packed_statistics(result["statistics"], kMostCourseBytes);
  data["run"] = std::move(run);
  return render_page(data, title, result.value("version", ""), command_text(result));
}

std::string render_what_if(const Json& result, const std::string& title) {
  return render_page({{"what_if", result["what_if"]}}, title, result.value("version", ""), command_text(result));
}

std::string render_diff(const Json& diff, const std::string& a, const std::string& b) {
  return render_page({{"diff", diff}, {"names", {{"a", a}, {"b", b}}}}, "What changed",
                     diff["b"]["version"].is_string() ? diff["b"]["version"].get<std::string>() : std::string(),
                     command_text({{"command", {"diff", a, b}}}));
}

}  // namespace kernbench::report
