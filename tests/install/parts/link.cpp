#include <cstdio>
#include <systemc>

#include "models/link/wire.h"

// 64 packets of 256 B, back to back over 128 GB/s and 100 ns: each needs 2 ns of the wire, the last byte of the last is
// there 128 + 100 ns after the first began.
int sc_main(int, char*[]) {
  kernbench::LinkConfig config;
  config.bytes_per_second = 128'000'000'000;
  config.latency = 100'000;
  kernbench::Wire wire(config, 64);
  kernbench::Wire::Passage last;
  for (int i = 0; i < 64; ++i) last = wire.send(256, wire.free(), 0);
  const bool right = last.tail == 64 * 2'000 + 100'000 && wire.stats().bytes == 64 * 256;
  std::printf("link: the last packet is there after %llu ps: %s\n", static_cast<unsigned long long>(last.tail),
              right ? "0 wrong" : "1 wrong");
  return right ? 0 : 1;
}
