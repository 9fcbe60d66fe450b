#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/process_group.h"
#include "runtime/runtime.h"
#include "runtime/scheduler.h"

namespace kernbench {

/// What a handle stands for. In the pending set until its message has come back.
struct Handle::State {
  std::unique_ptr<Message> message;  ///< null: a collective that no PE takes part in
  std::string kind, name;            ///< for the host trace and reports; kind "launch", "collective" or the message's
  int rank = 0;
  int sip = 0;
  bool done = false;
  bool fault_seen = false;  ///< some worker has been told
  Ps submitted = 0, completed = kNever;
  std::vector<int> waiters;  ///< ranks
  std::vector<Tensor> uses;  ///< kept alive until it completes
  std::size_t call = 0;      ///< kind "collective": its number in the group

  std::string fault_text() const;  ///< REQUIRES: the message has faults
  std::string describe() const;    ///< "launch 'gemm' on sip0, submitted at 12.000 ns"
};

/// A tensor's placement. Freed with the last handle, or by Tensor::free.
struct Tensor::State {
  ~State();
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
  bool allocated = false;  ///< false once freed

  PeCoord owner(std::size_t shard) const;
  /// The shards of copy `copy`: for each range of the packed tensor the copy-th owner.
  std::vector<std::size_t> shards_of(std::size_t copy) const;
};

/// The host's state, shared by the contexts of all workers. All of it is touched by one thread at a time.
struct RuntimeImpl : public tlm::tlm_bw_transport_if<>, public std::enable_shared_from_this<RuntimeImpl> {
  RuntimeImpl(Runtime& module, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options);
  ~RuntimeImpl() override;

  // Messages (messages.cpp).
  std::shared_ptr<Handle::State> submit(decltype(Message::body) body, int rank, int sip, std::uint16_t stream,
                                        std::string kind, std::string name, std::vector<Tensor> uses = {});
  /// Returns when it is done. Throws std::logic_error if it is not and nobody can wait here.
  void await(const std::shared_ptr<Handle::State>& state);
  /// Returns when nothing is pending on `sip` that could change its memory and can complete by itself. A collective
  /// that not every rank has submitted cannot, nor can what stands behind it in its stream.
  void drain(int sip);
  void throw_fault(Handle::State& state);
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  std::uint16_t stream_of(int rank, std::uint16_t stream) const;

  // Tensors (tensors.cpp).
  Tensor place(int rank, int sip, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name,
               bool clear);
  void release(Tensor::State& tensor);
  /// Moves `bytes` at `offset` of a shard's packed bytes between host and memory by transport_dbg.
  void debug_access(const Tensor::State& tensor, std::size_t shard, std::uint64_t offset, void* data,
                    std::uint64_t bytes, bool write);
  /// Writes row-major contents into all copies; waits for nothing.
  void write_contents(const Tensor::State& tensor, const std::uint8_t* data);

  // Workers.
  void run_worker(int rank);
  void barrier(int rank, const char* what);
  std::vector<BlockedRank> blocked_ranks() const;

  Runtime& module;
  const MachineMap& map;
  Dispatcher& dispatcher;
  const RunOptions options;
  Scheduler scheduler;
  std::function<void(Context&)> program;
  int nprocs = 0;
  std::vector<int> devices;  ///< by rank; -1: none set

  std::uint64_t next_message = 1;
  std::uint16_t next_stream = 0;
  std::map<std::uint64_t, std::shared_ptr<Handle::State>> pending;  ///< by message id: in order of submission
  std::vector<std::shared_ptr<Handle::State>> failed;  ///< kept: the machine may still refer to their messages
  std::vector<HostTraceEntry> trace;
  class Payloads;
  std::unique_ptr<Payloads> payloads;

  DeviceMemory memory;
  std::vector<Va> next_va;  ///< by SIP

  std::unique_ptr<ProcessGroup> group;
  int at_barrier = 0;
  std::uint64_t barriers = 0;  ///< passed
};

}  // namespace kernbench
