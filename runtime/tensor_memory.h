#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/placement_units.h"
#include "runtime/runtime.h"

namespace kernbench {

/// Throws std::invalid_argument on an empty handle, std::logic_error on a tensor that was freed.
void check_usable(const Tensor& tensor, const std::string& who);

/// A tensor's placement. Freed by Tensor::free, or with its last handle (TensorMemory::leave).
struct Tensor::State {
  std::weak_ptr<RuntimeImpl> runtime;
  std::string name;
  Shape shape;
  DType dtype = DType::f16;
  DPPolicy policy;
  int sip = 0;
  std::uint16_t stream = 0;  ///< of its maker: map and unmap messages
  int rank = 0;
  Va va = 0;
  std::uint64_t va_bytes = 0;  ///< of the shard-packed range
  std::vector<ShardSpec> shards;
  std::vector<std::uint64_t> offsets;  ///< in the owner's HBM slice, by shard
  std::size_t copies = 1;
  std::uint32_t placement = 0;          ///< number of equal placements in Replay; 0: not asked for yet
  bool allocated = false;               ///< false once freed
  mutable std::uint64_t untouched = 0;  ///< bytes of memory that nobody has used before, until contents are written

  PeCoord owner(std::size_t shard) const;
  /// The shards of copy `copy`: for each range of the packed tensor the copy-th owner.
  std::vector<std::size_t> shards_of(std::size_t copy) const;
};

/// Where tensors lie, and how the host gets at their contents.
class TensorMemory {
 public:
  explicit TensorMemory(RuntimeImpl& runtime);

  Tensor place(int rank, int sip, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name,
               bool clear);
  void release(Tensor::State& tensor);
  /// The last handle of a tensor is gone: released at once, or, since nobody can wait here, when all that was submitted
  /// before and may touch its memory has ended.
  void leave(std::unique_ptr<Tensor::State> tensor);
  void operation_ended();  ///< releases what waited for it
  /// Bytes of a shard that the host reads or writes.
  struct HostCopy {
    std::size_t shard = 0;
    std::uint64_t offset = 0;  ///< in the shard
    std::vector<std::uint8_t> data;
  };
  /// Carries out host copies: by transport_dbg, untimed; with timed_host_io as messages, until the last is complete.
  /// Several are under way at once, on streams that no launch can hold up.
  void host_copies(const Tensor::State& tensor, std::vector<HostCopy>& copies, bool write);
  std::uint16_t copy_stream(int rank, std::size_t queue);
  /// Whether contents go anywhere: before they are made. Throws HostShortage if this computer has no room for those of
  /// a large tensor that is written for the first time, and for `copy` bytes that its caller makes them in.
  bool takes_contents(const Tensor::State& tensor, std::uint64_t copy);
  /// Writes row-major contents into all copies; waits for nothing. Throws as takes_contents() does.
  void write_contents(const Tensor::State& tensor, const std::uint8_t* data);
  /// Row-major contents by transport_dbg, untimed in any case: writes all copies, reads the last.
  void access_untimed(const Tensor::State& tensor, std::uint8_t* data, bool write);

  /// Where a rank's tensors go: its PE where ranks are PEs, its part of a SIP if it has one.
  PlacementUnits units_of(int rank) const;
  /// Of Context::set_part. Throws std::invalid_argument.
  void set_part(int rank, CubeRange cubes, PeRange pes);
  void forget_parts() { parts_.clear(); }  ///< another program begins
  DeviceMemory& device() { return device_; }

 private:
  /// Memory for all shards. Returns those to be cleared: used before; all where clearing takes time. Throws
  /// OutOfDeviceMemory.
  std::vector<std::size_t> allocate(Tensor::State& tensor);
  /// Waits, as free() does, for what keeps the first tensor of a SIP that has no handles. False: there is none, or it
  /// stays.
  bool wait_for_leaving(int sip);
  /// Moves `bytes` at `offset` of a shard's packed bytes between host and memory by transport_dbg.
  void debug_access(const Tensor::State& tensor, std::size_t shard, std::uint64_t offset, void* data,
                    std::uint64_t bytes, bool write);

  /// A tensor without handles, and what may still touch it.
  struct Leaving {
    std::shared_ptr<Tensor::State> tensor;
    std::vector<std::shared_ptr<Handle::State>> before;
  };

  RuntimeImpl& runtime_;
  DeviceMemory device_;
  std::vector<Leaving> leaving_;  // in the order in which their last handles went
  const PlacementUnits units_;
  std::map<int, PlacementUnits> parts_;                     // by rank
  std::vector<Va> next_va_;                                 // by SIP
  std::map<int, std::vector<std::uint16_t>> copy_streams_;  // by rank; made with its first timed host copy
};

}  // namespace kernbench
