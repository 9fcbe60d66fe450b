#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runtime/host_access.h"
#include "runtime/placement.h"
#include "tlm/kernel/dtype.h"
#include "tlm/machine/address.h"

namespace kernbench {

/// A tensor on one SIP: a handle with shared ownership; the last copy frees it. Metadata never waits; contents do.
/// Contents of a run with `data` off are not there: reading gives zeros, writing does nothing; the waiting is the same.
class Tensor {
 public:
  struct State;                                                                ///< of the runtime
  Tensor() = default;                                                          ///< an empty handle
  explicit Tensor(std::shared_ptr<State> state) : state_(std::move(state)) {}  ///< for the runtime
  explicit operator bool() const { return state_ != nullptr; }                 ///< not an empty handle

  // All of these throw std::invalid_argument, which names the call, of an empty handle.

  // Metadata: never drains, takes no simulated time.
  Shape shape() const;                           ///< rows x columns, in elements
  DType dtype() const;                           ///< of the elements
  const std::string& name() const;               ///< as given when it was made
  Va va() const;                                 ///< base of its range of virtual addresses
  int sip() const;                               ///< where it lives
  const DPPolicy& policy() const;                ///< how it was placed
  const std::vector<ShardSpec>& shards() const;  ///< cube-major, then PE
  /// Address of a shard's first byte. Throws std::invalid_argument if there is no such shard or it is empty.
  PhysicalAddress pa(std::size_t shard) const;
  std::uint64_t bytes() const;  ///< of the logical tensor
  std::size_t copies() const;   ///< how often each element is stored

  // Contents: wait until everything that could change them has finished (host-read barrier). Untimed otherwise, unless
  // the run has timed host copies. All of these throw std::logic_error with the tensor's name after free().
  /// Row-major logical contents, decoded; replicas are read from the first copy.
  std::vector<double> to_host() const;
  std::vector<double> data() const;  ///< the same as to_host()
  /// Raw bytes of the logical tensor, row-major. `copy`: which replica to read (0 .. copies()-1).
  std::vector<std::uint8_t> bytes_to_host(std::size_t copy = 0) const;
  /// One element. Throws std::invalid_argument outside of the shape.
  double at(std::int64_t row, std::int64_t col) const;
  double operator()(std::int64_t row, std::int64_t col) const;  ///< the same as at()
  /// Name, shape, dtype and contents; of a large tensor the first rows and columns.
  friend std::string to_string(const Tensor& tensor);
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);  ///< the same as to_string()
  /// Shape and dtype must agree. The tensors may be on different SIPs.
  void copy_from(const Tensor& source);
  /// Overwrites all copies. `data`: row-major, size bytes(); std::invalid_argument otherwise.
  void write_bytes(const std::vector<std::uint8_t>& data);

  /// Gives the memory back and unmaps the range now, for all copies of the handle. Throws std::logic_error if it was
  /// freed.
  void free();

  State& state() const { return *state_; }  ///< for the runtime. REQUIRES: not an empty handle

 private:
  State& of(const char* call) const;
  std::vector<std::uint8_t> read_bytes(HostAccess access, std::size_t copy) const;
  std::vector<double> read_values(HostAccess access) const;
  double read_element(HostAccess access, std::int64_t row, std::int64_t col) const;
  std::string text(HostAccess access) const;

  std::shared_ptr<State> state_;
};

}  // namespace kernbench
