#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/placement.h"
#include "tlm/kernel/dtype.h"
#include "tlm/machine/address.h"

namespace kernbench {

/// A tensor on one SIP: a handle with shared ownership; the last copy frees it. Metadata never waits; contents do.
/// Contents of a run with `data` off are not there: reading gives zeros, writing does nothing; the waiting is the same.
class Tensor {
 public:
  struct State;
  Tensor() = default;
  explicit Tensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }

  // Metadata: never drains, takes no simulated time.
  Shape shape() const;
  DType dtype() const;
  const std::string& name() const;
  Va va() const;
  int sip() const;
  const DPPolicy& policy() const;
  const std::vector<ShardSpec>& shards() const;
  /// Address of a shard's first byte. Throws std::invalid_argument if there is no such shard or it is empty.
  PhysicalAddress pa(std::size_t shard) const;
  std::uint64_t bytes() const;  ///< of the logical tensor
  std::size_t copies() const;   ///< how often each element is stored

  // Contents: wait until everything that could change them has finished (host-read barrier). Untimed otherwise. All of
  // these throw std::logic_error with the tensor's name after free().
  /// Row-major logical contents, decoded; replicas are read from the first copy.
  std::vector<double> to_host() const;
  std::vector<double> data() const { return to_host(); }
  /// Raw bytes of the logical tensor, row-major. `copy`: which replica to read (0 .. copies()-1).
  std::vector<std::uint8_t> bytes_to_host(std::size_t copy = 0) const;
  double at(std::int64_t row, std::int64_t col) const;
  double operator()(std::int64_t row, std::int64_t col) const { return at(row, col); }
  /// Shape and dtype must agree. The tensors may be on different SIPs.
  void copy_from(const Tensor& source);
  /// Overwrites all copies. `data`: row-major, size bytes().
  void write_bytes(const std::vector<std::uint8_t>& data);

  /// Gives the memory back and unmaps the range now, for all copies of the handle. Throws std::logic_error if it was
  /// freed.
  void free();

  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace kernbench
