// Latency against load of an engine alone, and its speed:
//   engine_load <k> <flits> <vcs> <depth> <pattern> <load> [hold] [cycles] [seed]
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "models/noc/flit_engine.h"
#include "tests/noc/bare_mesh.h"

int sc_main(int argc, char** argv) {
  using namespace kernbench;
  if (argc < 7) {
    std::fprintf(stderr, "usage: engine_load <k> <flits> <vcs> <depth> <pattern> <load> [hold 0|1] [cycles] [seed]\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)); };
  test::Traffic traffic;
  traffic.k = number(1);
  traffic.flits = number(2);
  traffic.vcs = number(3);
  traffic.depth = number(4);
  traffic.pattern = argv[5];
  traffic.load = std::strtod(argv[6], nullptr);
  traffic.hold = argc > 7 && number(7) != 0;
  traffic.window = argc > 8 ? number(8) : 30'000;
  traffic.warm_up = traffic.window / 3;
  traffic.seed = argc > 9 ? number(9) : 1;
  if (traffic.pattern == "hotspot1") traffic.hot = {0};
  if (traffic.pattern == "hotspot4")
    traffic.hot = {0, traffic.k - 1, traffic.k * (traffic.k - 1), traffic.k * traffic.k - 1};
  test::BareMesh mesh(traffic, make_flit_engine);
  const std::clock_t start = std::clock();
  const test::TrafficResult result = mesh.run();
  const double cpu = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("load %.4f  latency %.3f  accepted %.4f  packets %llu  %.0f packets per CPU s\n", traffic.load,
              result.latency, result.accepted, static_cast<unsigned long long>(result.packets),
              static_cast<double>(result.all) / cpu);
  return 0;
}
