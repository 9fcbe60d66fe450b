#pragma once
#include <algorithm>
#include <cmath>

#include "tests/acceptance/run_json.h"

namespace kernbench {

/// What results say of `what`, a share: no row may be off by more.
inline double printed_error(const nlohmann::ordered_json& fast, const std::string& what) {
  for (const nlohmann::ordered_json& error : fast["fidelity_errors"]) {
    if (error["measure"].get<std::string>().find(what) != std::string::npos) {
      return error["max_error_percent"].get<double>() / 100;
    }
  }
  ADD_FAILURE() << fast["fidelity_errors"];
  return 0;
}

/// Times of a row, or of one of its kernels, in both grades. A layer's collective is no such time: it has what is left
/// of the other ranks' kernels in it.
inline void expect_within(double printed, const nlohmann::ordered_json& accurate, const nlohmann::ordered_json& fast,
                          const std::string& row, double besides_ns, double& most) {
  for (const char* key : {"time_ns", "launch_ns", "kernel_ns"}) {
    if (accurate.value(key, 0.0) <= 0) continue;
    const double time = accurate[key], error = fast[key].get<double>() - time;
    EXPECT_LE(std::fabs(error), printed * time + besides_ns) << row << " " << key << " " << time << " ns";
    most = std::max(most, std::fabs(error) / time);
  }
}

/// Largest relative deviation of any time of a run; none is larger than the run's own result says, and by `besides_ns`:
/// a refresh, which a kernel of some us meets or does not.
inline double largest_error_within_the_printed(const std::vector<std::string>& run, double besides_ns) {
  const std::vector<std::string> arguments = with(run, {"--data", "off"});
  const nlohmann::ordered_json accurate = run_json(arguments)["results"];
  const nlohmann::ordered_json whole = run_json(with(arguments, {"--fidelity", "fast"}));
  const nlohmann::ordered_json& fast = whole["results"];
  EXPECT_EQ(accurate.size(), fast.size());
  const double printed = printed_error(whole, "trains");
  double most = 0;
  for (std::size_t i = 0; i < std::min(accurate.size(), fast.size()); ++i) {
    const std::string row = accurate[i].value("layer", accurate[i].value("op", "")) + " " + std::to_string(i);
    expect_within(printed, accurate[i], fast[i], row, besides_ns, most);
    if (!accurate[i].contains("kernels")) continue;
    const nlohmann::ordered_json &a = accurate[i]["kernels"], &f = fast[i]["kernels"];
    EXPECT_EQ(a.size(), f.size());
    for (std::size_t k = 0; k < std::min(a.size(), f.size()); ++k) {
      expect_within(printed, a[k], f[k], row + " kernel " + a[k]["name"].get<std::string>(), besides_ns, most);
    }
  }
  return most;
}

/// Likewise of the layers of a language model: their own times, from barrier to barrier.
inline double largest_error_of_layers_within_the_printed(const std::vector<std::string>& run) {
  const std::vector<std::string> arguments =
      with(with({"run", "tp_transformer"}, run), {"--ends", "0", "-w", "0", "--data", "off", "--replay", "on"});
  const nlohmann::ordered_json accurate = run_json(arguments)["results"];
  const nlohmann::ordered_json fast = run_json(with(arguments, {"--fidelity", "fast"}));
  const double printed = printed_error(fast, "layers of language models");
  double most = 0;
  for (std::size_t i = 0; i < accurate.size(); ++i) {
    const std::string row = accurate[i].value("layer", "");
    if (row.rfind("layer", 0) != 0) continue;
    const double time = accurate[i]["time_ns"], error = fast["results"].at(i)["time_ns"].get<double>() / time - 1;
    EXPECT_LE(std::fabs(error), printed) << accurate[i]["phase"] << " " << row << " " << time << " ns";
    most = std::max(most, std::fabs(error));
  }
  return most;
}

}  // namespace kernbench
