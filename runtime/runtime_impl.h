#pragma once
#include <memory>

#include "runtime/groups.h"
#include "runtime/host_program.h"
#include "runtime/messages.h"
#include "runtime/replay.h"
#include "runtime/tensor_memory.h"

namespace kernbench {

/// The host's state, shared by the contexts of all workers: four parts, which meet here. All of it is touched by one
/// thread at a time.
struct RuntimeImpl : std::enable_shared_from_this<RuntimeImpl> {
  RuntimeImpl(Runtime& module, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options,
              Observer* observer)
      : module(module),
        map(map),
        dispatcher(dispatcher),
        options(options),
        program(*this, options.scheduling),
        messages(*this, observer),
        tensors(*this),
        groups(*this) {}

  Runtime& module;
  const MachineMap& map;
  Dispatcher& dispatcher;
  const RunOptions options;
  HostProgram program;
  Messages messages;
  std::unique_ptr<Replay> replay;  ///< null: everything is simulated
  TensorMemory tensors;
  Groups groups;
};

}  // namespace kernbench
