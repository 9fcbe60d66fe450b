#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/pipeline/checker.h"
#include "tlm/config/nearest.h"

namespace kernbench::pipeline {

namespace {

const WholeTensor* find_whole(const std::vector<WholeTensor>& wholes, const std::string& name) {
  const auto found =
      std::find_if(wholes.begin(), wholes.end(), [&](const WholeTensor& whole) { return whole.name == name; });
  return found == wholes.end() ? nullptr : &*found;
}

/// "past_key_values_3_1" is element 1 of "past_key_values_3", and that element 3 of "past_key_values".
std::optional<std::pair<std::string, std::uint64_t>> element_of(const std::string& name) {
  const std::size_t mark = name.rfind('_');
  if (mark == std::string::npos || mark == 0) return std::nullopt;
  const std::string digits = name.substr(mark + 1);
  const bool number = !digits.empty() && digits.size() < 10 && (digits == "0" || digits[0] != '0') &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number) return std::nullopt;
  return std::pair(name.substr(0, mark), std::stoull(digits));
}

/// A point of [0, shape) that no box holds, from dimension `dim` on; empty: there is none. `steps`: how many places may
/// be looked at; below 0, nothing is known.
std::vector<std::uint64_t> uncovered(const std::vector<std::uint64_t>& shape,
                                     const std::vector<const std::vector<Range>*>& boxes, std::size_t dim,
                                     std::int64_t& steps) {
  if (dim == shape.size()) return {};
  std::set<std::uint64_t> cuts{0};
  for (const auto* box : boxes) {
    for (const std::uint64_t cut : {(*box)[dim].begin, (*box)[dim].end}) {
      if (cut < shape[dim]) cuts.insert(cut);
    }
  }
  for (const std::uint64_t at : cuts) {
    steps -= static_cast<std::int64_t>(boxes.size()) + 1;
    if (steps < 0) return {};
    std::vector<const std::vector<Range>*> here;
    for (const auto* box : boxes) {
      if ((*box)[dim].begin <= at && at < (*box)[dim].end) here.push_back(box);
    }
    std::vector<std::uint64_t> rest(shape.size() - dim - 1, 0);
    if (!here.empty()) {
      rest = uncovered(shape, here, dim + 1, steps);
      if (rest.empty()) continue;
    }
    rest.insert(rest.begin(), at);
    return rest;
  }
  return {};
}

}  // namespace

void Checker::check_slices() {
  const Metadata& metadata = pipeline_.metadata;
  check_slices_of("inputs", metadata.slices.inputs, metadata.tensors.inputs, TaskKind::input);
  check_slices_of("outputs", metadata.slices.outputs, metadata.tensors.outputs, TaskKind::output);
}

void Checker::check_slices_of(const std::string& side, const std::vector<TensorSlice>& slices,
                              const std::vector<WholeTensor>& wholes, TaskKind kind) {
  std::map<std::uint64_t, const WholeTensor*> by_index;
  for (const WholeTensor& whole : wholes) {
    if (!whole.idx.given) continue;
    const auto [found, fresh] = by_index.emplace(whole.idx.value, &whole);
    if (!fresh)
      add(whole.idx.where,
          fmt::format("{} is {}, as of {}", json_path(whole.path, "idx"), whole.idx.value, quote(found->second->name)),
          "each has a place of its own");
  }
  check_nested(wholes);
  // Every tensor of the boundary is a part of something.
  for (const Task& task : pipeline_.supertasks) {
    if (!task.kind.given || task.kind.value != kind) continue;
    const auto& names = kind == TaskKind::input ? task.outputs : task.inputs;
    for (const Text& name : names.value) {
      const bool found =
          std::any_of(slices.begin(), slices.end(), [&](const TensorSlice& slice) { return slice.name == name.value; });
      if (!found && pipeline_.tensor(name.value) != nullptr)
        add(name.where,
            fmt::format("$.metadata.tensor_slices.{} has no {}, which {} {}", side, quote(name.value), name_of(task),
                        kind == TaskKind::input ? "emits" : "takes"),
            "say which part of which whole tensor it is");
    }
  }
  for (const TensorSlice& slice : slices) check_slice(slice, wholes, kind);
  for (const WholeTensor& whole : wholes) {
    if (whole.shape.given) check_cover(side, whole, slices, kind == TaskKind::input ? warnings_ : problems_);
  }
}

/// Parts of a nested argument, of which element 0 shows that it is one: `x_1` alone may be a whole argument of that
/// name. So may the others, hence warnings.
void Checker::check_nested(const std::vector<WholeTensor>& wholes) {
  struct Element {
    const WholeTensor *first = nullptr, *last = nullptr;  // of its parts, by place
  };
  constexpr int kDeepest = 100;                                   // assumed: far more than what models nest
  std::map<std::string, std::map<std::uint64_t, Element>> lists;  // by name: of elements
  for (const WholeTensor& whole : wholes) {
    auto part = whole.idx.given ? element_of(whole.name) : std::nullopt;
    for (int depth = 0; part && depth < kDeepest; ++depth, part = element_of(part->first)) {
      Element& element = lists[part->first][part->second];
      if (element.first == nullptr || whole.idx.value < element.first->idx.value) element.first = &whole;
      if (element.last == nullptr || whole.idx.value > element.last->idx.value) element.last = &whole;
    }
  }
  for (const auto& [name, elements] : lists) {
    if (elements.begin()->first != 0) continue;
    for (auto before = elements.begin(), at = std::next(before); at != elements.end(); before = at++) {
      const auto& [number, element] = *at;
      if (number != before->first + 1)
        warnings_.add(element.first->where,
                      fmt::format("{}: there is no {}_{} before it", element.first->path, name, before->first + 1),
                      "parts are named by their place in the nested argument, from 0");
      const WholeTensor& last = *before->second.last;
      if (element.first->idx.value < last.idx.value)
        warnings_.add(element.first->idx.where,
                      fmt::format("{} is {}, before that of {}, {}", json_path(element.first->path, "idx"),
                                  element.first->idx.value, quote(last.name), last.idx.value),
                      "parts of a nested argument follow each other in the order of their names");
    }
  }
}

void Checker::check_slice(const TensorSlice& slice, const std::vector<WholeTensor>& wholes, TaskKind kind) {
  const TensorInfo* tensor = pipeline_.tensor(slice.name);
  if (tensor == nullptr) {
    std::vector<std::string> names;
    for (const TensorInfo& known : pipeline_.tensors) names.push_back(known.name);
    add(slice.where, fmt::format("{}: {} is no tensor", slice.path, quote(slice.name)),
        suggest_known(slice.name, names, "tensors"));
    return;
  }
  const auto origin_of = result_.origins.find(slice.name);
  const Task* producer = origin_of == result_.origins.end() ? nullptr : origin_of->second.producer;
  if (kind == TaskKind::input) {
    if (producer != nullptr && producer->kind.given && producer->kind.value != kind)
      add(slice.where, fmt::format("{}: {} makes it", slice.path, name_of(*producer)),
          "an input's slice is of what a supertask of kind 'input' emits");
  } else {
    const auto& readers = consumers_[slice.name];
    if (std::none_of(readers.begin(), readers.end(),
                     [&](const Task* task) { return task->kind.given && task->kind.value == kind; }))
      add(slice.where, fmt::format("{}: no supertask of kind 'output' takes it", slice.path),
          "add it to the inputs of one");
  }
  if (slice.device.given) {
    const std::string path = json_path(slice.path, "device");
    if (pipeline_.device(slice.device.value) == nullptr)
      add(slice.device.where, fmt::format("{} is {}, which is no slot", path, quote(slice.device.value)),
          suggest_known(slice.device.value, slots(), "slots"));
    else if (kind == TaskKind::output && producer != nullptr && !origin_of->second.slot.empty() &&
             origin_of->second.slot != slice.device.value)
      add(slice.device.where,
          fmt::format("{} is {}, but it lies on slot {}", path, quote(slice.device.value),
                      quote(origin_of->second.slot)),
          "give the slot of its producer");
  }
  if (slice.dtype.given && tensor->dtype.given && slice.dtype.value != tensor->dtype.value)
    add(slice.dtype.where,
        fmt::format("{} is {}, but the tensor is {}", json_path(slice.path, "dtype"), document_type(slice.dtype.value),
                    document_type(tensor->dtype.value)),
        "a slice has its tensor's type");
  if (!slice.origin.given) return;
  const WholeTensor* whole = find_whole(wholes, slice.origin.value);
  if (whole == nullptr) {
    std::vector<std::string> names;
    for (const WholeTensor& known : wholes) names.push_back(known.name);
    add(slice.origin.where,
        fmt::format("{} is {}, no whole tensor of the metadata", json_path(slice.path, "origin"),
                    quote(slice.origin.value)),
        suggest_known(slice.origin.value, names, "whole tensors"));
    return;
  }
  if (whole->dtype.given && slice.dtype.given && whole->dtype.value != slice.dtype.value)
    add(slice.dtype.where,
        fmt::format("{} is {}, but {} is {}", json_path(slice.path, "dtype"), document_type(slice.dtype.value),
                    quote(whole->name), document_type(whole->dtype.value)),
        "a slice has its origin's type: cast in a graph");
  if (!whole->shape.given || !slice.placements.given) return;
  check_part(slice.placements, json_path(slice.path, "placements"), whole->name, whole->shape.value, *tensor,
             "give a pair for each dimension");
}

void Checker::check_part(const Placements& placements, const std::string& path, const std::string& name,
                         const std::vector<std::uint64_t>& whole, const TensorInfo& tensor, const std::string& hint) {
  const std::vector<Range>& ranges = placements.value;
  if (ranges.size() != whole.size()) {
    add(placements.where,
        fmt::format("{} has {}, but {} has {}", path, counted(ranges.size(), "pair"), quote(name),
                    counted(whole.size(), "dimension")),
        hint);
    return;
  }
  std::vector<std::uint64_t> shape;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    shape.push_back(ranges[i].end - ranges[i].begin);
    if (ranges[i].end > whole[i])
      add(ranges[i].where,
          fmt::format("{} ends at {}, but dimension {} of {} has {} elements", json_path(path, i), ranges[i].end, i,
                      quote(name), whole[i]),
          fmt::format("give at most {}", whole[i]));
  }
  if (tensor.shape.given && shape != tensor.shape.value)
    add(placements.where,
        fmt::format("{} makes {}, but the tensor is {}", path, to_text(shape), to_text(tensor.shape.value)),
        "the part has the tensor's shape");
}

void Checker::check_cover(const std::string& side, const WholeTensor& whole, const std::vector<TensorSlice>& slices,
                          Problems& into) {
  std::vector<const std::vector<Range>*> boxes;
  for (const TensorSlice& slice : slices) {
    if (slice.origin.value != whole.name) continue;
    if (!slice.placements.given || slice.placements.value.size() != whole.shape.value.size()) return;  // told already
    boxes.push_back(&slice.placements.value);
  }
  std::int64_t steps = 10'000'000;
  std::vector<std::uint64_t> point(whole.shape.value.size(), 0);
  if (!boxes.empty()) point = uncovered(whole.shape.value, boxes, 0, steps);
  if (steps < 0) {
    into.add(whole.where,
             fmt::format("{}: its slices are cut in too many ways to tell whether they hold all of it", whole.path),
             "cut it in parts of a grid");
    return;
  }
  if (point.empty() && !(boxes.empty() && whole.shape.value.empty())) return;
  into.add(whole.where,
           fmt::format("{}: no slice of tensor_slices.{} holds element [{}]", whole.path, side, fmt::join(point, ", ")),
           boxes.empty()      ? "it has no slices"
           : side == "inputs" ? "that part is unused"
                              : "slices of an output cover all of it");
}

}  // namespace kernbench::pipeline
