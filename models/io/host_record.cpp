#include "models/io/host_record.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "tlm/machine/names.h"

namespace kernbench {

namespace {
std::uint64_t copied_bytes(const Message& message) {
  if (const auto* write = std::get_if<MemoryWriteMessage>(&message.body)) return write->data.size();
  if (const auto* read = std::get_if<MemoryReadMessage>(&message.body)) return read->bytes;
  return message_bytes(message);
}
}  // namespace

bool is_copy(const Message& message) {
  return std::holds_alternative<MemoryWriteMessage>(message.body) ||
         std::holds_alternative<MemoryReadMessage>(message.body);
}

void account_copy(Message& message, const std::array<Ps, kDelays>& burst, const HostShare& host, Ps end) {
  message.spent = burst;
  const auto part = [&](Delay delay) -> Ps& { return message.spent[static_cast<std::size_t>(delay)]; };
  part(Delay::setup) += host.doorbell;
  part(Delay::fabric) += host.latency;
  part(Delay::wire) += host.wire;
  Ps& rest = part(Delay::contention);
  const Ps sum = std::accumulate(message.spent.begin(), message.spent.end(), Ps{0}), total = end - message.submitted;
  if (sum <= total) {
    rest += total - sum;
    return;
  }
  // The data of a long copy stream: its wire time overlaps the bursts' own way.
  const Ps cut = std::min(part(Delay::wire), sum - total);
  part(Delay::wire) -= cut;
  rest -= std::min(rest, sum - total - cut);
}

OpRecord host_record(const Message& message, std::uint16_t sip) {
  OpRecord op;
  op.start = message.submitted;
  op.end = message.completed;
  op.component = names::pcie_ep(sip);
  op.launch = message.id;
  op.kind = "host";
  if (const auto* mapping = std::get_if<MmuMapMessage>(&message.body)) {
    op.name = "mmu_map";
    op.params.push_back({"entries", "", static_cast<std::int64_t>(mapping->entries.size())});
  } else {
    op.name = "host";
    op.params.push_back({"message", message_kind(message), 0});
    op.params.push_back({"nbytes", "", static_cast<std::int64_t>(copied_bytes(message))});
  }
  if (const auto* launch = std::get_if<LaunchMessage>(&message.body)) op.kernel = launch->kernel;
  return op;
}

}  // namespace kernbench
