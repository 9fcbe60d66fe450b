#include "topology/show/view.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/topology/machines.h"
#include "topology/plan/plan.h"
#include "topology/show/drawing.h"
#include "topology/show/show.h"

namespace kernbench::topology {
namespace {

using ::testing::HasSubstr;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(View, EverySvgIsWellFormed) {
  const Plan plan(small_machine(3, 2, 2));
  for (const char* view : {"system", "sip", "cube", "pe"}) {
    const std::string svg = show_view(plan, view, "svg");
    EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0u) << view;
    for (const char* element : {"svg", "g", "text", "title"}) {
      const std::regex open(std::string("<") + element + "[ >]");
      const auto opened = std::distance(std::sregex_iterator(svg.begin(), svg.end(), open), {});
      EXPECT_EQ(opened, static_cast<long>(count(svg, std::string("</") + element + ">"))) << view << " " << element;
    }
    EXPECT_EQ(svg.find("nan"), std::string::npos) << view;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << view;
  }
}

/// XML has no control characters, not even escaped; a pipeline's names may hold any.
TEST(View, NamesOfDrawingsMayHoldAnyCharacter) {
  Drawing drawing("a<b & \"c\"");
  Drawing::Box box;
  box.style = "sip";
  box.id = box.label = "x\x01y\xff";
  drawing.add(box);
  const std::string svg = drawing.svg();
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, HasSubstr("x\\x01y\\xff"));
  EXPECT_EQ(svg.find_first_of("\x01\xff"), std::string::npos);
}

TEST(View, ShowsEveryUnitOnce) {
  const Plan plan(small_machine(3, 2, 2));
  const std::string system = show_view(plan, "system", "dot"), sip = show_view(plan, "sip", "dot");
  const std::string cube = show_view(plan, "cube", "dot"), pe = show_view(plan, "pe", "dot");
  EXPECT_EQ(count(system, " -- "), 3u);
  for (const char* name : {"sip0", "sip1", "sip2"})
    EXPECT_EQ(count(system, std::string("  \"") + name + "\" [label"), 1u);
  EXPECT_EQ(count(sip, "PEs, HBM"), 4u);
  EXPECT_EQ(count(sip, "to sip"), 2u);
  // Two cubes to the IO chiplet, two lines and two columns of cubes; host, endpoint and IO_CPU; two links.
  EXPECT_EQ(count(sip, " -- "), 2u + 2u + 2u + 3u + 2u);
  EXPECT_EQ(count(cube, "  \"sip0.cube0.r"),
            16u + 24u + 8u + 8u + 2u + 3u * 4u);  // routers, and the lines that start at one
  EXPECT_EQ(count(pe, " [label=\"GEMM"), 1u);
}

/// Of machines of any shape: a picture that fits a screen, on which no SIP hides another one and all text can be read.
TEST(View, ThePictureOfManySipsFitsAScreen) {
  const auto of = [](SipTopology topology, std::uint16_t w, std::uint16_t h) {
    SystemSpec spec = grid_machine(topology, w, h);
    const bool grid = topology == SipTopology::torus_2d || topology == SipTopology::mesh_2d_no_wrap;
    if (!grid) spec.sip_w = spec.sip_h = 0;
    return spec;
  };
  using T = SipTopology;
  for (const SystemSpec& spec :
       {of(T::switch_star, 72, 1), of(T::switch_star, 9, 1), of(T::ring_1d, 72, 1), of(T::fully_connected, 30, 1),
        of(T::mesh_2d_no_wrap, 72, 1), of(T::mesh_2d_no_wrap, 1, 72), of(T::torus_2d, 36, 2), of(T::torus_2d, 8, 9)}) {
    const std::string name = std::string(to_string(spec.topology)) + " " + std::to_string(spec.sip_w);
    const Plan plan(spec);
    const std::string svg = show_view(plan, "system", "svg");
    std::smatch size;
    ASSERT_TRUE(std::regex_search(svg, size, std::regex("width=\"([0-9]+)\" height=\"([0-9]+)\""))) << name;
    const double width = std::stod(size[1]), height = std::stod(size[2]);
    EXPECT_LE(std::max(width / height, height / width), 4) << name << ": " << width << " x " << height;
    EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 " + size[1].str() + " " + size[2].str() + "\""))
        << name << ": no scaling";
    const std::regex text("font-size=\"([0-9.]+)\"");
    for (auto at = std::sregex_iterator(svg.begin(), svg.end(), text); at != std::sregex_iterator(); ++at)
      EXPECT_GE(std::stod((*at)[1]), 10) << name << ": pixels of a letter";
    const auto drawn = nlohmann::ordered_json::parse(show_view(plan, "system", "json"));
    std::vector<std::array<double, 4>> boxes;  // of SIPs: edges
    for (const auto& box : drawn["boxes"]) {
      if (box["id"].get<std::string>().rfind("sip", 0) != 0) continue;
      const double x = box["x"], y = box["y"], w = box["w"], h = box["h"];
      boxes.push_back({x - w / 2, x + w / 2, y - h / 2, y + h / 2});
    }
    ASSERT_EQ(boxes.size(), spec.sips) << name;
    for (std::size_t a = 0; a < boxes.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart = boxes[a][0] >= boxes[b][1] || boxes[b][0] >= boxes[a][1] || boxes[a][2] >= boxes[b][3] ||
                           boxes[b][2] >= boxes[a][3];
        EXPECT_TRUE(apart) << name << ": SIPs " << b << " and " << a;
      }
    }
  }
}

TEST(View, IsColouredByUtilisation) {
  const Plan plan(small_machine(2, 1, 1));
  ViewOptions options;
  options.utilisation["sip0.io0.link0 sip1.io0.link0"] = 1.0;
  EXPECT_THAT(show_view(plan, "system", "svg", options), HasSubstr("stroke=\"#c01010\""));
}

TEST(View, RefusesWhatIsNotThere) {
  const Plan plan(small_machine(1, 1, 1));
  EXPECT_THROW(show_view(plan, "rack", "svg"), std::invalid_argument);
  EXPECT_THROW(show_view(plan, "sip", "png"), std::invalid_argument);
  ViewOptions options;
  options.at = {0, 1, 0};
  EXPECT_THROW(show_view(plan, "cube", "svg", options), std::out_of_range);
}

TEST(Show, PrintsStagesThreeToSix) {
  const Plan plan(small_machine(2, 2, 1));
  EXPECT_THAT(show(plan, 3), HasSubstr("layout of sip0.cube0 and 3 others: 4 x 4 routers\n"));
  EXPECT_THAT(show(plan, 3), HasSubstr("  r0c1   pe0 hbm.pe0 ucie_n[1]\n"));
  EXPECT_THAT(show(plan, 4), HasSubstr("  noc        sip0.cube0.r0c0 -> sip0.cube0.r1c0, 256 GB/s, 1 ns\n"));
  EXPECT_THAT(show(plan, 5), HasSubstr("no cycle\n"));
  EXPECT_THAT(show(plan, 6), HasSubstr("modules: 2 SIPs, 4 cubes, 32 PEs, 66 routers"));
  EXPECT_THROW(show(plan, 2), std::invalid_argument);
}

}  // namespace
}  // namespace kernbench::topology
