#include "runtime/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <variant>

#include "tlm/machine/names.h"

namespace kernbench {

void Leftovers::add(Rings& rings, const RingCount& count, const std::string& kernel) {
  const auto found = rings.try_emplace({count.owner, count.ring}).first;
  Count& sum = found->second;
  sum.messages += count.messages;
  if (count.messages > 0) {
    sum.sent = count;
    sum.kernel = kernel;
  }
  if (sum.messages == 0) rings.erase(found);
}

void Leftovers::put(Rings& rings, const Ring& ring, const Count& count) {
  RingCount sum = count.sent;
  std::tie(sum.owner, sum.ring) = ring;
  sum.messages = count.messages;
  add(rings, sum, count.kernel);
}

std::string Leftovers::text_of(const Count& count) {
  return fmt::format("{} {} to {} {} never received: each send needs its recv", count.messages,
                     count.messages == 1 ? "message" : "messages", names::pe(count.sent.owner),
                     count.messages == 1 ? "was" : "were");
}

void Leftovers::report(const Rings& rings, Message& message) {
  for (const auto& [ring, count] : rings) {
    if (count.messages <= 0) continue;
    message.faults.push_back({Fault::Kind::ipcq, names::pe_part(count.sent.sender, "ipcq"), count.kernel,
                              fmt::format("send({})", count.sent.direction.str()), text_of(count), message.completed});
  }
}

void Leftovers::came_back(Message& message, const CallOrder* order, std::size_t call, bool repeated) {
  auto* launch = std::get_if<LaunchMessage>(&message.body);
  if (launch == nullptr || !message.faults.empty()) return;  // after a fault the program is over
  Rings own;
  for (const RingCount& count : launch->rings) add(own, count, launch->kernel);
  launch->rings.clear();
  Rings within;
  const auto& targets = launch->targets;
  for (auto ring = own.begin(); ring != own.end();) {
    const PeCoord owner = ring->first.first;
    const bool here = ring->second.messages > 0 && owner.sip == message.sip &&
                      std::find(targets.begin(), targets.end(), owner) != targets.end();
    const auto next = std::next(ring);
    if (here) within.insert(own.extract(ring));
    ring = next;
  }
  report(within, message);
  Call* part = order == nullptr ? nullptr : &calls_[{order, call}];
  Rings& open = part == nullptr ? open_ : part->open;
  for (const auto& [ring, count] : own) put(open, ring, count);
  if (part == nullptr) return;
  part->repeated = part->repeated || repeated;
  if (++part->parts < order->size()) return;
  if (!part->repeated) report(part->open, message);
  calls_.erase({order, call});
}

void Leftovers::no_part(const CallOrder& order, std::size_t call) {
  Call& part = calls_[{&order, call}];
  if (++part.parts < order.size()) return;
  if (!part.repeated) {  // there is no message to put a fault on: the program's end says it
    for (const auto& [ring, count] : part.open) put(open_, ring, count);
  }
  calls_.erase({&order, call});
}

std::string Leftovers::at_end() {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t found = 0;
  for (const auto& [ring, count] : open_) {
    if (count.messages <= 0 || ++found > kShown) continue;
    text += fmt::format("\n  {}: kernel '{}', send({}): {}", names::pe(count.sent.sender), count.kernel,
                        count.sent.direction.str(), text_of(count));
  }
  if (found > kShown) text += fmt::format("\n  ... and {} more", found - kShown);
  open_.clear();
  calls_.clear();
  return found == 0 ? std::string() : "messages are left in queues at the end of the program" + text;
}

}  // namespace kernbench
