#pragma once
#include <cstdint>
#include <map>
#include <tuple>

#include "ccl/contract/schedule.h"
#include "ccl/import/msccl_file.h"
#include "tlm/kernel/operations.h"

/// Which part of the data lies where in an MSCCL algorithm, and under which block of a schedule. For msccl_import.cpp.
namespace kernbench::ccl::msccl {

/// A part of the data, wherever it is: a unit of a region of the input, of one gpu or, where it is reduced, of all. Its
/// blocks lie in that region of the input and in one of the output, also where they only pass through.
struct Datum {
  std::int32_t origin = kEveryNode;  ///< whose input it is
  std::int32_t in_region = 0, out_region = 0, unit = 0;
  auto key() const { return std::tuple(origin, in_region, out_region, unit); }
  bool operator==(const Datum& other) const { return key() == other.key(); }
};

/// Places of gpus as parts of the data, and blocks of the schedule for them. REQUIRES: operation, root and units of
/// the schedule are set.
class DataMap {
 public:
  DataMap(const File& file, Schedule& schedule) : file_(file), facts_(facts_of(file.op)), schedule_(schedule) {}

  /// In place some buffers are parts of others.
  Place resolve(std::int32_t gpu, Place place) const;
  std::int32_t chunks_of(Buffer buffer) const;
  /// What lies in chunk `chunk` of a gpu's input, and what has to lie in a chunk of its output.
  Datum in(std::int32_t gpu, std::int32_t chunk) const;
  Datum out(std::int32_t gpu, std::int32_t chunk) const;
  std::int32_t part_of(const Datum& d) const { return d.in_region * schedule_.units + d.unit; }

  /// Where a datum is in the input; in the output; both in one if the operation is in place and leaves it there.
  std::int32_t input_block(const Datum& datum);
  std::int32_t output_block(const Datum& datum);
  /// A new one that is neither: for what only passes.
  std::int32_t passing_block(const Datum& datum) { return new_block(datum, kNobody, kNobody); }
  /// Under which what is put into a place of a gpu is known from then on.
  std::int32_t block_at(std::int32_t gpu, Place place, const Datum& datum);
  /// The same of the temporary of a gpu's thread block, by its number.
  std::int32_t temporary_block(std::int32_t thread_block, const Datum& datum) {
    return scratch_block(true, {Buffer::scratch, thread_block}, datum);
  }

 private:
  /// A unit of what one gpu puts in for another; where all give the same, or to all, that gpu does not matter.
  Datum datum(std::int32_t from, std::int32_t to, std::int32_t unit) const;
  std::int32_t holder_of(const Datum& datum) const;
  std::int32_t new_block(const Datum& datum, std::int32_t contributor, std::int32_t holder);
  std::int32_t scratch_block(bool temporary, const Place& place, const Datum& datum);

  using Key = decltype(Datum().key());
  const File& file_;
  const OperationFacts& facts_;
  Schedule& schedule_;
  std::map<Key, std::int32_t> inputs_, outputs_;
  std::map<std::tuple<bool, Buffer, std::int32_t, Key>, std::int32_t> scratch_;
};

}  // namespace kernbench::ccl::msccl
