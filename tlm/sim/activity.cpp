#include "tlm/sim/activity.h"

#include <fmt/format.h>

#include "tlm/machine/names.h"

namespace kernbench {

std::string Activity::kernel() const {
  const std::uint64_t pe = pe_.load(std::memory_order_acquire);
  if (pe == 0) return {};
  std::string name;
  for (const std::atomic<std::uint64_t>& part : name_) {
    const std::uint64_t word = part.load(std::memory_order_relaxed);
    name.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  name.resize(std::min(name.size(), name.find('\0')));
  return fmt::format("kernel '{}' on {}", name,
                     names::pe({static_cast<std::uint16_t>(pe >> 32), static_cast<std::uint16_t>(pe >> 16),
                                static_cast<std::uint16_t>(pe)}));
}

}  // namespace kernbench
