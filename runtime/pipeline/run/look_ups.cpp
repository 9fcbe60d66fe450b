#include "runtime/pipeline/run/look_ups.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/tool_work.h"
#include "tlm/sim/random.h"

namespace kernbench::pipeline {

namespace {

std::vector<std::int64_t> checked_indices(const LookUp& what, const std::vector<std::uint8_t>& bytes) {
  const std::int64_t height = what.table.shape().rows;
  std::vector<std::int64_t> list(bytes.size() / size_of(what.indices.dtype()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = load_integer(bytes.data(), what.indices.dtype(), i);
    if (list[i] < 0 || list[i] >= height)
      throw std::invalid_argument(
          fmt::format("'{}': index {} is outside of the table's {} rows", what.name, list[i], height));
  }
  return list;
}

std::vector<std::int64_t> seeded_indices(const LookUp& what, std::uint64_t seed) {
  const auto height = static_cast<std::uint64_t>(what.table.shape().rows);
  std::vector<std::int64_t> list(static_cast<std::size_t>(what.indices.shape().count()));
  std::generate(list.begin(), list.end(), [&] { return static_cast<std::int64_t>(next_splitmix64(seed) % height); });
  return list;
}

void put_rows(Context& context, const LookUp& what, const std::vector<std::int64_t>& indices) {
  const ToolWork correcting(context);
  std::vector<std::uint8_t> computed;
  if (what.table_known == nullptr) computed = ToolWork::peek(what.table);
  const std::vector<std::uint8_t>& table = what.table_known == nullptr ? computed : *what.table_known;
  const auto width =
      static_cast<std::ptrdiff_t>(what.table.shape().cols) * static_cast<std::ptrdiff_t>(size_of(what.table.dtype()));
  std::vector<std::uint8_t> rows;
  rows.reserve(what.out.bytes());
  for (const std::int64_t index : indices) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(index) * width;
    rows.insert(rows.end(), row, row + width);
  }
  ToolWork::poke(what.out, std::move(rows));
}

}  // namespace

void look_up_rows(Context& context, TaskTimes& launches, const LookUp& what, const RunSettings& settings) {
  launches.wait();
  const std::vector<std::uint8_t> read = what.indices.bytes_to_host();
  const std::int64_t width = what.table.shape().cols;
  if (what.indices_known != nullptr) {
    const std::vector<std::int64_t> indices = checked_indices(what, *what.indices_known);
    launches.launched(look_up(context, what.name, what.table, indices, what.out, width));
    return;
  }
  std::vector<std::int64_t> indices;
  if (settings.data) indices = checked_indices(what, read);
  launches.launched(look_up(context, what.name, what.table, seeded_indices(what, settings.seed), what.out, width));
  launches.wait();
  if (settings.data) put_rows(context, what, indices);
}

}  // namespace kernbench::pipeline
