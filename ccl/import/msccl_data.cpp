#include "ccl/import/msccl_data.h"

namespace kernbench::ccl::msccl {

Place DataMap::resolve(std::int32_t gpu, Place place) const {
  if (!file_.in_place || place.buffer == Buffer::scratch) return place;
  const std::int32_t own = gpu * schedule_.units;
  if (facts_.longer_out()) return place.buffer == Buffer::input ? Place{Buffer::output, own + place.chunk} : place;
  if (facts_.longer_in()) return place.buffer == Buffer::output ? Place{Buffer::input, own + place.chunk} : place;
  return {Buffer::input, place.chunk};
}

std::int32_t DataMap::chunks_of(Buffer buffer) const {
  if (buffer == Buffer::scratch) return 1 << 16;
  const bool part = buffer == Buffer::input ? facts_.longer_out() : facts_.longer_in();
  return part ? schedule_.units : file_.chunks;
}

Datum DataMap::datum(std::int32_t from, std::int32_t to, std::int32_t unit) const {
  const std::int32_t origin = facts_.combines() ? kEveryNode : facts_.rooted() ? schedule_.root : from;
  return {origin, facts_.in == Blocks::each ? to : 0, facts_.out == Blocks::each ? from : 0, unit};
}

Datum DataMap::in(std::int32_t gpu, std::int32_t chunk) const {
  if (file_.custom) return {gpu, 0, 0, chunk};
  return datum(gpu, chunk / schedule_.units, chunk % schedule_.units);
}

Datum DataMap::out(std::int32_t gpu, std::int32_t chunk) const {
  if (file_.custom) return {gpu, 0, 0, chunk};  // whatever it is
  return datum(chunk / schedule_.units, gpu, chunk % schedule_.units);
}

/// Who has a datum in the end.
std::int32_t DataMap::holder_of(const Datum& datum) const {
  if (file_.custom) return datum.origin;
  return facts_.alike ? kEveryNode : datum.in_region;
}

std::int32_t DataMap::new_block(const Datum& datum, std::int32_t contributor, std::int32_t holder) {
  schedule_.blocks.push_back({contributor, holder, datum.in_region, datum.out_region, datum.unit, datum.unit + 1});
  return static_cast<std::int32_t>(schedule_.blocks.size()) - 1;
}

std::int32_t DataMap::input_block(const Datum& datum) {
  const auto found = inputs_.find(datum.key());
  if (found != inputs_.end()) return found->second;
  const bool stays = file_.in_place && !facts_.exchanges();
  const std::int32_t block = new_block(datum, datum.origin, stays ? holder_of(datum) : kNobody);
  inputs_[datum.key()] = block;
  if (stays) outputs_[datum.key()] = block;
  return block;
}

std::int32_t DataMap::output_block(const Datum& datum) {
  if (file_.in_place && !facts_.exchanges()) return input_block(datum);
  const auto found = outputs_.find(datum.key());
  if (found != outputs_.end()) return found->second;
  return outputs_[datum.key()] = new_block(datum, kNobody, holder_of(datum));
}

/// Somewhere else.
std::int32_t DataMap::scratch_block(bool temporary, const Place& place, const Datum& datum) {
  const auto key = std::tuple(temporary, place.buffer, place.chunk, datum.key());
  const auto found = scratch_.find(key);
  if (found != scratch_.end()) return found->second;
  return scratch_[key] = new_block(datum, kNobody, kNobody);
}

std::int32_t DataMap::block_at(std::int32_t gpu, Place place, const Datum& datum) {
  place = resolve(gpu, place);
  if (place.buffer == Buffer::scratch) return scratch_block(false, place, datum);
  if (file_.custom) {
    if (datum.unit != place.chunk) return scratch_block(false, place, datum);
    return place.buffer == Buffer::output ? output_block(out(gpu, place.chunk)) : input_block(in(gpu, place.chunk));
  }
  // In place the output of a reduce-scatter is part of the input, the input of an all-gather part of the output.
  const bool parts = file_.in_place && facts_.longer_in();
  if (place.buffer == Buffer::output && datum == out(gpu, place.chunk)) return output_block(datum);
  if (place.buffer == Buffer::input && file_.in_place && !parts && datum == out(gpu, place.chunk))
    return output_block(datum);
  if (place.buffer == Buffer::input && datum == in(gpu, place.chunk)) return input_block(datum);
  return scratch_block(false, place, datum);
}

}  // namespace kernbench::ccl::msccl
