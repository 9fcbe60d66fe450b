#pragma once
#include <fmt/format.h>

#include <cmath>

#include "sc_main/explore/report/study.h"

namespace kernbench::report {

/// A grid over mesh width (5), rate (4) and algorithm (2): 40 points, of which the last failed, and a search.
inline Study sample_study() {
  Study study;
  study.title = "Mesh & rate <study>";
  study.version = "1.2.3";
  study.base = "kernbench run all_reduce -b 64K";
  study.source = "axes:\n  - width  # <script>alert(1)</script>\n";
  study.axes = {{"cube.mesh.w", "", Column::Scale::linear, {}},
                {"ucie.bandwidth", "GB/s", Column::Scale::linear, {}},
                {"algorithm", "", Column::Scale::category, {"ring", "tree"}}};
  study.texts = {"limited_by"};
  study.components = {"hbm", "ucie"};
  study.operations = {{"cube.hbm.energy_per_bit", "bit", 0}};
  study.metrics = {{{"time_ns", "ns", Column::Scale::linear, {}}, search::Goal::minimize, true},
                   {{"area_mm2", "mm2", Column::Scale::linear, {}}, search::Goal::minimize, true},
                   {{"busbw_gbps", "GB/s", Column::Scale::linear, {}}, search::Goal::maximize, false}};
  for (unsigned w = 1; w <= 5; ++w) {
    for (const double rate : {32.0, 64.0, 128.0, 256.0}) {
      for (unsigned algorithm = 0; algorithm < 2; ++algorithm) {
        Point point;
        point.key = fmt::format("{:016x}", 0x1000 + study.points.size());
        point.status = "ok";
        point.axes = {static_cast<double>(w), rate, static_cast<double>(algorithm)};
        point.labels = {std::to_string(w), fmt::format("{} GB/s", rate), study.axes[2].categories[algorithm]};
        const double time = 65536 / rate * (algorithm == 0 ? 2 - 1.0 / w : std::log2(w + 1)) + 9000.0 / w;
        point.values = {time, w * w * 4 + rate / 16, 65536 / time};
        point.texts = {w < 3 ? "links between SIPs" : "longest <way>"};
        point.config = {{"cube", {{"mesh", {{"w", w}}}}}, {"ucie", {{"bandwidth", fmt::format("{}GB/s", rate)}}}};
        point.energy = {{2e6 * w, time}, {1e3 * time, 0}, {4e6 * w}, {2e6 * w}};
        point.command = fmt::format("kernbench run all_reduce -b 64K --set cube.mesh.w={}", w);
        study.points.push_back(point);
      }
    }
  }
  Point& failed = study.points.back();
  failed.status = "failed";
  failed.energy = {};
  failed.values.assign(3, kNoFigure);
  failed.error = "deadlock after 12 us </script><script>document.title='broken'</script>";
  failed.exit_code = 3;
  study.searches = {{"nsga2", 1, {{0, 8, 3, 100}, {1, 14, 5, 140}, {2, 20, 6, 150.5}}},
                    {"random", 1, {{0, 8, 3, 100}, {1, 16, 4, 120}}}};
  choose_scales(study);
  return study;
}

}  // namespace kernbench::report
