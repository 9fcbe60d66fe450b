#pragma once
#include <cstddef>
#include <memory>
#include <tlm>
#include <vector>

#include "tlm/ext/packet.h"

namespace kernbench {

/// Pooled generic payloads. Each keeps a Packet and a buffer of kMaxPacketBytes for life; acquire() hands it out with a
/// reference count of one, the data pointer on its buffer, byte enables off and its packet cleared.
class PayloadPool : public tlm::tlm_mm_interface {
 public:
  PayloadPool();
  ~PayloadPool() override;
  PayloadPool(const PayloadPool&) = delete;
  PayloadPool& operator=(const PayloadPool&) = delete;

  tlm::tlm_generic_payload& acquire();
  void free(tlm::tlm_generic_payload* payload) override;  ///< by the last release()

  /// Payloads handed out and not yet returned: zero when the machine is idle.
  std::size_t outstanding() const { return entries_.size() - free_.size(); }

 private:
  struct Entry;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> free_;
};

}  // namespace kernbench
