#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/runtime_impl.h"

// Where the memory of tensors comes from, and how it goes back.
namespace kernbench {

std::vector<std::size_t> TensorMemory::allocate(Tensor::State& tensor) {
  tensor.offsets.assign(tensor.shards.size(), 0);
  tensor.untouched = 0;
  std::vector<std::size_t> stale;
  std::size_t done = 0;
  try {
    for (; done < tensor.shards.size(); ++done) {
      if (tensor.shards[done].nbytes == 0) continue;
      const auto block = device_.allocate(tensor.owner(done), tensor.shards[done].nbytes, tensor.name);
      tensor.offsets[done] = block.offset;
      if (block.fresh) tensor.untouched += tensor.shards[done].nbytes;
      if (!block.fresh || runtime_.options.debug || runtime_.options.timed_host_io) stale.push_back(done);
    }
  } catch (...) {
    while (done-- > 0) {
      if (tensor.shards[done].nbytes > 0) {
        device_.free(tensor.owner(done), tensor.offsets[done], tensor.shards[done].nbytes);
      }
    }
    throw;
  }
  return stale;
}

void TensorMemory::release(Tensor::State& tensor) {
  for (std::size_t i = 0; i < tensor.shards.size(); ++i) {
    if (tensor.shards[i].nbytes > 0) device_.free(tensor.owner(i), tensor.offsets[i], tensor.shards[i].nbytes);
  }
  tensor.allocated = false;
  runtime_.messages.submit(MmuUnmapMessage{tensor.va, tensor.va_bytes}, tensor.rank, tensor.sip, tensor.stream, {},
                           tensor.name);
}

void TensorMemory::leave(std::unique_ptr<Tensor::State> tensor) {
  // After a failure memory stays as it was.
  if (!tensor->allocated || !runtime_.program.open()) return;
  auto before = runtime_.messages.touching(*tensor);
  if (before.empty()) return release(*tensor);
  leaving_.push_back({std::move(tensor), std::move(before)});
}

void TensorMemory::operation_ended() {
  if (leaving_.empty() || !runtime_.program.open()) return;
  const auto waits = [](const Leaving& one) {
    return !std::all_of(one.before.begin(), one.before.end(), [](const auto& state) { return state->done; });
  };
  const auto free = std::stable_partition(leaving_.begin(), leaving_.end(), waits);
  std::vector<Leaving> released(std::make_move_iterator(free), std::make_move_iterator(leaving_.end()));
  leaving_.erase(free, leaving_.end());
  for (Leaving& one : released) release(*one.tensor);
}

bool TensorMemory::wait_for_leaving(int sip) {
  const auto first =
      std::find_if(leaving_.begin(), leaving_.end(), [&](const Leaving& one) { return one.tensor->sip == sip; });
  if (first == leaving_.end()) return false;
  const std::shared_ptr<Tensor::State> tensor = first->tensor;  // it leaves meanwhile
  runtime_.messages.before_host_access(HostAccess::free, *tensor);
  return !tensor->allocated;
}

}  // namespace kernbench
