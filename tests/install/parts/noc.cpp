#include <cmath>
#include <cstdio>
#include <systemc>

#include "models/noc/flit_engine.h"
#include "tests/noc/bare_mesh.h"

// A 4 x 4 mesh far below saturation delivers what is offered.
int sc_main(int, char*[]) {
  kernbench::test::Traffic traffic;
  traffic.k = 4;
  traffic.load = 0.1;
  const kernbench::test::TrafficResult result =
      kernbench::test::BareMesh(traffic, [](const auto& config, const auto& routes, auto& actions) {
        return kernbench::make_flit_engine(config, routes, actions);
      }).run();
  const bool right = std::abs(result.accepted - traffic.load) < 0.005 && result.packets > 1000;
  std::printf("noc: %llu packets, %.4f flits per node and cycle of %.2f offered: %s\n",
              static_cast<unsigned long long>(result.packets), result.accepted, traffic.load,
              right ? "0 wrong" : "1 wrong");
  return right ? 0 : 1;
}
