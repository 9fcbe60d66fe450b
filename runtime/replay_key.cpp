#include <cstring>
#include <type_traits>

#include "runtime/replay.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
template <class T>
void add(std::string& text, const T& value) {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>, "nothing with padding");
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}
}  // namespace

std::uint32_t Replay::intern(const std::string& text) {
  return interned_.emplace(text, static_cast<std::uint32_t>(interned_.size() + 1)).first->second;
}

/// Where the elements of a tensor lie in its SIP, up to the addresses.
std::uint32_t Replay::placement(const Tensor& tensor) {
  Tensor::State& state = tensor.state();
  if (state.placement != 0) return state.placement;
  text_.clear();
  add(text_, state.shape.rows);
  add(text_, state.shape.cols);
  add(text_, state.dtype);
  for (const ShardSpec& shard : state.shards) {
    add(text_, shard.cube);
    add(text_, shard.pe);
    add(text_, shard.offset_bytes);
    add(text_, shard.nbytes);
    add(text_, shard.region.row);
    add(text_, shard.region.col);
    add(text_, shard.region.rows);
    add(text_, shard.region.cols);
  }
  return state.placement = intern(text_);
}

void Replay::add_sip(int sip) {
  add(key_, options_.alike.empty() ? static_cast<std::uint32_t>(sip) : options_.alike[static_cast<std::size_t>(sip)]);
}

/// Who gets which of its entries: addresses and sizes are figures of a fixed width.
void Replay::add_mapping(const Handle::State& state) {
  add_sip(state.sip);
  text_.clear();
  for (const MapEntry& entry : std::get<MmuMapMessage>(state.message->body).entries) {
    add(text_, entry.viewers.size());
    for (const PeCoord viewer : entry.viewers) {
      add(text_, viewer.cube);
      add(text_, viewer.pe);
    }
  }
  add(key_, intern("mapping" + text_));
}

/// `numbers`: that the work depends on (LaunchOptions::work), too.
void Replay::add_key(const Handle::State& state, bool numbers) {
  const auto& launch = std::get<LaunchMessage>(state.message->body);
  add_sip(state.sip);
  add(key_, launch.entry.code);
  add(key_, launch.entry.call);
  add(key_, launch.least);
  add(key_, state.cube_queues);
  add(key_, state.program.get());
  add(key_, state.uses.size());
  for (const Tensor& tensor : state.uses) add(key_, placement(tensor));

  text_.clear();
  for (const PeCoord pe : launch.targets) {
    add(text_, pe.cube);
    add(text_, pe.pe);
  }
  add(key_, intern(text_));

  add(key_, state.work.size());
  if (!state.work.empty()) {
    for (std::size_t i = 0; numbers && i < state.work.size(); ++i) add(key_, state.work[i]);
    return;
  }
  // A tensor's base says only which tensor it is.
  add(key_, launch.arguments.size());
  const std::size_t begin = key_.size();
  key_.append(reinterpret_cast<const char*>(launch.arguments.data()), launch.arguments.size());
  const std::size_t end = key_.size();
  for (std::size_t i = 0; i < state.uses.size(); ++i) {
    const Va base = state.uses[i].va();
    for (std::size_t at = begin; at + sizeof base <= end; ++at) {
      if (std::memcmp(&key_[at], &base, sizeof base) != 0) continue;
      std::memset(&key_[at], 0, sizeof base);
      add(key_, i + 1);
      add(key_, at - begin);
    }
  }
  if (launch.call) add_call(*launch.call);
}

/// Of a collective, whichever member asks: what its members' own keys differ by is in the states of its patterns.
void Replay::add_call_key(const Handle::State& state) {
  add(key_, state.order);
  add(key_, state.uses.size());
  for (const Tensor& tensor : state.uses) add(key_, placement(tensor));
  const auto& launch = std::get<LaunchMessage>(state.message->body);
  if (launch.call) add_call(*launch.call);
}

void Replay::add_call(const CollectiveCall& call) {
  add(key_, call.op);
  add(key_, call.reduce_op);
  add(key_, call.dtype);
  add(key_, call.root);
  add(key_, call.to);
  add(key_, call.from);
  add(key_, call.scope);
  add(key_, call.group);
  add(key_, call.in == call.out);
  for (const auto& [name, value] : call.parameters) add(key_, value);
}

}  // namespace kernbench
