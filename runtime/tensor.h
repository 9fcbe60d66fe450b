#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/placement.h"
#include "tlm/kernel/dtype.h"
#include "tlm/machine/address.h"

namespace kernbench {

class Runtime;

/// A tensor on one SIP: a handle with shared ownership; the last copy frees it. Metadata never waits; contents do.
class Tensor {
 public:
  struct State;
  Tensor() = default;
  explicit Tensor(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Metadata: never drains, takes no simulated time.
  Shape shape() const;
  DType dtype() const;
  const std::string& name() const;
  Va va() const;
  int sip() const;
  const DPPolicy& policy() const;
  const std::vector<ShardSpec>& shards() const;
  PhysicalAddress pa(std::size_t shard) const;
  std::uint64_t bytes() const;  ///< of the logical tensor

  // Contents: wait until everything that could change them has finished (host-read barrier).
  /// Row-major logical contents, decoded; replicas are read from the first copy.
  std::vector<double> to_host() const;
  /// Raw bytes of the logical tensor, row-major. `copy`: which replica to read (0 .. copies()-1).
  std::vector<std::uint8_t> bytes_to_host(std::size_t copy = 0) const;
  std::size_t copies() const;
  double at(std::int64_t row, std::int64_t col) const;
  void copy_from(const Tensor& source);
  /// Overwrites all copies. `data`: row-major, size bytes().
  void write_bytes(const std::vector<std::uint8_t>& data);

  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace kernbench
