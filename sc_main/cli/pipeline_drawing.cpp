#include "sc_main/cli/pipeline_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/pipeline/table.h"
#include "topology/show/drawing.h"

namespace kernbench {

std::string draw_pipeline(const pipeline::Pipeline& pipeline, const pipeline::Checked& checked,
                          const std::string& format) {
  using pipeline::KindRule;
  constexpr double kColumn = 220, kRow = 70, kWidth = 170, kHeight = 44;
  // Bends of lines, whose middles are off by half as much: into the gaps between columns and between rows.
  constexpr double kAround = -kColumn, kBelow = kRow;
  topology::Drawing drawing(
      "Pipeline " + pipeline.name.value,
      fmt::format("{} slots, {} supertasks", pipeline.devices.size(), pipeline.supertasks.size()));
  const auto column_of = [&](const pipeline::SuperTask& task) {
    // The boundary stands over the middle.
    if (!task.device.given) return (static_cast<double>(pipeline.devices.size()) - 1) / 2;
    return static_cast<double>(pipeline.device(task.device.value) - pipeline.devices.data());
  };
  std::map<const pipeline::SuperTask*, double> row_of;
  std::map<std::string, double> row_of_group;
  double next = 1;
  for (const std::size_t number : checked.order) {
    const pipeline::SuperTask& task = pipeline.supertasks[number];
    if (task.kind.value == pipeline::TaskKind::output) continue;
    const auto found = task.group.given ? row_of_group.find(task.group.value) : row_of_group.end();
    if (found != row_of_group.end()) {
      row_of[&task] = found->second;
      continue;
    }
    // A row further than what feeds it, and than its slot's last one.
    double row = 1;
    for (const auto& [other, at] : row_of) {
      const bool same = other->device.given && task.device.given && other->device.value == task.device.value;
      const bool feeds =
          std::any_of(task.inputs.value.begin(), task.inputs.value.end(), [&other = other](const pipeline::Text& name) {
            return std::any_of(other->outputs.value.begin(), other->outputs.value.end(),
                               [&](const pipeline::Text& made) { return made.value == name.value; });
          });
      if (same || feeds) row = std::max(row, at + 1);
    }
    if (task.group.given) {
      for (const pipeline::SuperTask* member : checked.groups.at(task.group.value)) {
        for (const auto& [other, at] : row_of) {
          if (other->device.given && member->device.given && other->device.value == member->device.value)
            row = std::max(row, at + 1);
        }
      }
      row_of_group[task.group.value] = row;
    }
    row_of[&task] = row;
    next = std::max(next, row + 1);
  }
  for (std::size_t i = 0; i < pipeline.devices.size(); ++i) {
    const pipeline::Device& device = pipeline.devices[i];
    drawing.add(topology::Drawing::Box{"slot " + device.name, device.name,
                                       fmt::format("{} {}", to_string(device.kind.value), device.idx.value), "sip",
                                       static_cast<double>(i) * kColumn, 0, kWidth, kHeight});
  }
  std::set<std::string> named;
  for (const pipeline::SuperTask& task : pipeline.supertasks) {
    const KindRule& rule = rule_of(task.kind.value);
    const double row = row_of.count(&task) > 0 ? row_of[&task] : next;
    const std::string note = task.group.given
                                 ? fmt::format("{}, group {}", to_string(task.kind.value), task.group.value)
                                 : to_string(task.kind.value);
    const char* style = rule.is == KindRule::Class::compute         ? "engine"
                        : rule.is == KindRule::Class::communication ? "ucie"
                                                                    : "outside";
    drawing.add(topology::Drawing::Box{task.name, task.name, note, style, column_of(task) * kColumn, row * kRow, kWidth,
                                       kHeight});
    for (const pipeline::Text& name : task.inputs.value) {
      const auto origin = checked.origins.find(name.value);
      if (origin == checked.origins.end() || origin->second.producer == nullptr) continue;
      const pipeline::SuperTask& producer = *origin->second.producer;
      // Around what stands between them in a column. A tensor has its name once.
      const bool over = column_of(producer) == column_of(task) && row > row_of[&producer] + 1.5;
      drawing.add(topology::Drawing::Line{producer.name,
                                          task.name,
                                          "command",
                                          named.insert(name.value).second ? name.value : "",
                                          over ? kAround : 0,
                                          {},
                                          0.5});
    }
  }
  for (const auto& [group, members] : checked.groups) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      const double step = column_of(*members[i]) - column_of(*members[i - 1]);
      const double below = step > 1.5 ? kBelow : step < -1.5 ? -kBelow : 0;  // under the slots between them
      drawing.add(topology::Drawing::Line{members[i - 1]->name, members[i]->name, "inter_sip", "", below, {}, 0.5});
    }
  }
  drawing.explain("engine", "computes");
  drawing.explain("ucie", "communicates");
  drawing.explain("command", "a tensor");
  drawing.explain("inter_sip", "one exchange");
  return format == "dot" ? drawing.dot() : drawing.svg();
}

}  // namespace kernbench
