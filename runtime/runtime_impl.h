#pragma once
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/groups.h"
#include "runtime/host_port.h"
#include "runtime/host_program.h"
#include "runtime/messages.h"
#include "runtime/replay.h"
#include "runtime/tensor_memory.h"

namespace kernbench {

/// The host's state, shared by the contexts of all workers: its parts meet here. All of it is touched by one
/// thread at a time.
struct RuntimeImpl : std::enable_shared_from_this<RuntimeImpl> {
  RuntimeImpl(Runtime& module, const MachineMap& map, Dispatcher& dispatcher, const RunOptions& options,
              Observer* observer)
      : module(module),
        map(map),
        dispatcher(dispatcher),
        options(options),
        program(*this, options.scheduling),
        port(*this),
        messages(*this, observer),
        tensors(*this),
        groups(*this) {}

  Runtime& module;
  const MachineMap& map;
  Dispatcher& dispatcher;
  const RunOptions options;
  HostProgram program;
  HostPort port;
  Messages messages;
  std::unique_ptr<Replay> replay;  ///< null: everything is simulated
  TensorMemory tensors;
  Groups groups;
};

/// Throws std::invalid_argument, in the name of `what`, for a number that stands for none of an enumeration's.
template <class Enum>
void refuse_unknown(const std::string& what, const char* type, Enum value, Enum last) {
  if (value >= Enum{} && value <= last) return;
  throw std::invalid_argument(fmt::format("{}: {}({}) is none: they are numbered from 0 to {}", what, type,
                                          static_cast<int>(value), static_cast<int>(last)));
}

/// What a rank asks of its group.
struct CollectiveRequest {
  CollectiveCall call;  ///< op, reduce_op, root; to and from as group ranks
  Tensor in, out;       ///< an empty handle: another rank has it
  Group group;
  std::optional<TensorForm> elsewhere{};
  int distance = 0;      ///< of a shift
  bool prepare = false;  ///< all but the call itself
  bool columns = false;  ///< of an all_gather: blocks lie side by side
};

}  // namespace kernbench
