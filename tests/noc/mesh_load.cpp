// Latency against load of a k x k mesh under uniform random traffic, and the simulator's speed:
//   mesh_load <k> <flits> <vcs> <buffer> <load> [cycles]
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tests/noc/test_mesh.h"

namespace kernbench::test {
namespace {

/// Bernoulli sources: a packet in each cycle with probability `load / flits`, to any node, itself included.
struct Source {
  void next() {
    do {
      if (++last >= end) return;
    } while (random.next() > threshold);
    mesh->node(number).queue.at(last * kCycle, [this] {
      const unsigned to = random.below(static_cast<unsigned>(mesh->endpoints.size()));
      mesh->node(number).send(NodeId{to}, MessageClass::ipcq_data, bytes, 0);
      next();
    });
  }
  TestMesh* mesh;
  unsigned number;
  std::uint32_t bytes;
  std::uint64_t threshold;
  Cycle end;
  Random random;
  Cycle last = 0;  // of its packets
};

int run(unsigned k, unsigned flits, unsigned vcs, unsigned buffer, double load, Cycle cycles) {
  Dispatcher dispatcher("dispatcher", 1);
  PayloadPool pool;
  NocConfig config = mesh_config(static_cast<std::uint16_t>(k), static_cast<std::uint16_t>(k));
  config.flit_bytes = kMaxPacketBytes / flits;
  config.vcs_per_set = vcs;
  config.vc_depth_flits = buffer;
  TestMesh mesh("mesh", config, 0, dispatcher.queue(0), pool);
  const Cycle warm_up = cycles / 3;
  std::vector<Source> sources;
  for (unsigned n = 0; n < k * k; ++n) {
    mesh.node(n).keeps_log = false;
    mesh.node(n).counted_from = warm_up * kCycle;
    const auto threshold = static_cast<std::uint64_t>(load / flits * 18446744073709551615.0);
    sources.push_back({&mesh, n, kMaxPacketBytes, threshold, cycles, Random(n + 1)});
  }
  for (Source& source : sources) source.next();
  const std::clock_t start = std::clock();
  sc_core::sc_start();
  const double cpu = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::uint64_t received = 0, all = 0;
  double latency = 0;
  for (auto& endpoint : mesh.endpoints) {
    received += endpoint->received;
    all += endpoint->arrived;
    latency += static_cast<double>(endpoint->latency_sum) / kCycle;
  }
  std::printf("load %.4f  packets %llu  latency %.3f cycles  %.0f packets per CPU s  %.2f events per packet\n", load,
              static_cast<unsigned long long>(received), latency / static_cast<double>(received),
              static_cast<double>(all) / cpu, static_cast<double>(dispatcher.executed()) / static_cast<double>(all));
  return 0;
}

}  // namespace
}  // namespace kernbench::test

int sc_main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: mesh_load <k> <flits> <vcs> <buffer> <load> [cycles]\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)); };
  const unsigned cycles = argc > 6 ? number(6) : 30'000;
  return kernbench::test::run(number(1), number(2), number(3), number(4), std::strtod(argv[5], nullptr), cycles);
}
