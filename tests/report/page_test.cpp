#include "sc_main/explore/report/page.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/report/browser.h"
#include "tests/report/sample_study.h"

namespace kernbench::report {
namespace {

TEST(Page, IsTheSameForTheSameStudy) { EXPECT_EQ(render(sample_study()), render(sample_study())); }

TEST(Page, NamesNothingOutsideItself) {
  const std::string page = render(sample_study());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_FALSE(std::regex_search(page, std::regex("<(script|img|iframe|link)[^>]*(src|href)=.?(https?:|//|/)")));
  EXPECT_EQ(count_of(page, "@import"), 0U);
}

TEST(Page, NoTextOfAUserEndsAScriptOrBeginsAnElement) {
  const std::string page = render(sample_study());
  EXPECT_EQ(count_of(page, "<script"), 3U);
  EXPECT_EQ(count_of(page, "</script"), 3U);
  EXPECT_NE(page.find("<h1>Mesh &amp; rate &lt;study&gt;</h1>"), std::string::npos);
}

TEST(Page, SummaryCountsPointsAndNamesTheBest) {
  const std::string page = render(sample_study());
  EXPECT_NE(page.find("<span class=\"figure\">40</span><span class=\"what\">points</span>"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"figure\">39</span><span class=\"what\">with figures</span>"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"figure\">1</span><span class=\"what\">failed</span>"), std::string::npos);
  // The least area is that of the narrowest mesh at the lowest rate: 4 + 2.
  EXPECT_NE(page.find("<th scope=\"row\">area_mm2 (mm2)</th><td>minimize</td><td class=\"num\">6</td>"),
            std::string::npos);
}

TEST(PageInABrowser, DrawsEveryChartWithACleanConsole) {
  const TestFolder folder;
  const Rendered page = render_in_browser(folder, render(sample_study()));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("data-drawn=\"yes\""), std::string::npos);
  for (const char* chart : {"scatter", "lines", "pivot", "parallel", "sensitivity", "energy", "convergence"})
    EXPECT_NE(page.dom.find("aria-labelledby=\"" + std::string(chart) + "-chart-t"), std::string::npos) << chart;
  EXPECT_EQ(count_of(page.dom, "class=\"dot"), 39U);
  EXPECT_EQ(count_of(page.dom, "class=\"thread"), 39U);
  EXPECT_EQ(count_of(page.dom, "class=\"climb"), 2U);
  EXPECT_EQ(count_of(page.dom, "class=\"bar"), 3U);
  EXPECT_EQ(count_of(page.dom, "class=\"front\""), 1U);
  EXPECT_EQ(count_of(page.dom.substr(0, page.dom.find("<footer>")), "NaN"), 0U) << "a mark has no place";
  EXPECT_EQ(count_of(page.dom, "<title>broken"), 0U);
}

TEST(PageInABrowser, LargeFiguresHaveALetterForTheirPowerAsTheAxesHave) {
  Study study = sample_study();
  for (Point& point : study.points) point.values[1] *= 12.3456789e6;  // the least: 74.0741e6
  choose_scales(study);
  const TestFolder folder;
  const std::string dom = render_in_browser(folder, render(study)).dom;
  EXPECT_NE(dom.find("<td class=\"num\">74.0741M</td>"), std::string::npos) << "of the summary";
  EXPECT_NE(dom.find(">74.074M<"), std::string::npos) << "of the points";
  EXPECT_EQ(dom.substr(0, dom.find("<footer>")).find("e+7"), std::string::npos);
}

TEST(PageInABrowser, AxesNameTheirUnits) {
  const TestFolder folder;
  const std::string dom = render_in_browser(folder, render(sample_study())).dom;
  for (const char* label :
       {"time_ns (ns), smaller is better", "area_mm2 (mm2), smaller is better", "ucie.bandwidth (GB/s)"})
    EXPECT_NE(dom.find(label), std::string::npos) << label;
}

TEST(PageInABrowser, ALinkToAPointShowsItsConfigurationAndCommand) {
  const TestFolder folder;
  const Study study = sample_study();
  const Rendered page = render_in_browser(folder, render(study), "#point=" + study.points[17].key);
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("<pre class=\"command\">" + study.points[17].command + "</pre>"), std::string::npos);
  EXPECT_NE(page.dom.find("<h3>Point " + study.points[17].key), std::string::npos);
  EXPECT_NE(page.dom.find(study.points[17].config.dump(2).substr(0, 30)), std::string::npos);
}

TEST(PageInABrowser, TwoPointsAreSetSideBySide) {
  const TestFolder folder;
  const Study study = sample_study();
  const Point &base = study.points[0], &other = study.points[39 - 2];  // of the narrowest and of the widest mesh
  const Rendered page = render_in_browser(folder, render(study), "#point=" + other.key + "&against=" + base.key);
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("<h3>Point " + other.key + " against " + base.key + "</h3>"), std::string::npos);
  EXPECT_EQ(count_of(page.dom, "class=\"plain difference\""), 3U) << "axes and texts, figures, configuration";
  const auto row = [](const std::string& name, const std::string& a, const std::string& b) {
    return "<th scope=\"row\">" + name + "</th><td class=\"num\">" + a + "</td><td class=\"num\">" + b + "</td>";
  };
  EXPECT_NE(page.dom.find(row("cube.mesh.w", "1", "5")), std::string::npos);
  EXPECT_NE(page.dom.find(row("limited_by", "links between SIPs", "longest &lt;way&gt;")), std::string::npos);
  EXPECT_EQ(page.dom.find(row("algorithm", "ring", "ring")), std::string::npos) << "only what differs";
  const double area = other.values[1] - base.values[1];
  EXPECT_NE(
      page.dom.find(row("area_mm2 (mm2)", fmt::format("{:g}", base.values[1]), fmt::format("{:g}", other.values[1])) +
                    "<td class=\"num\">+" + fmt::format("{:g}", area) + "</td>"),
      std::string::npos);
  EXPECT_EQ(count_of(page.dom, ">links between SIPs</td>"), 2U * 8 + 1) << "a column of the list, and the difference";
}

TEST(PageInABrowser, EnergyIsDrawnByComponentWithItsStaticPart) {
  const TestFolder folder;
  const Study study = sample_study();
  const Rendered page = render_in_browser(folder, render(study), "#point=" + study.points[0].key);
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_EQ(count_of(page.dom, "class=\"joules"), 24U);  // the most that are drawn
  EXPECT_EQ(count_of(page.dom, "class=\"part dynamic\""), 2 * 24U);
  EXPECT_EQ(count_of(page.dom, "class=\"part static\""), 24U);  // of the HBM; UCIe has none
  // Width 1, 32 GB/s, ring: 2048 + 9000 ns.
  EXPECT_NE(page.dom.find("<th scope=\"row\">hbm</th><td class=\"num\">2 uJ</td><td class=\"num\">11.05 uJ</td>"
                          "<td class=\"num\">13.05 uJ</td><td class=\"num\">99.9%</td><td class=\"num\">84.7%</td>"),
            std::string::npos);
  EXPECT_NE(page.dom.find("<th scope=\"row\">cube.hbm.energy_per_bit</th><td class=\"num\">4000000 bit</td>"
                          "<td class=\"num\">0.5</td><td class=\"num\">2 uJ</td>"),
            std::string::npos);
}

TEST(PageInABrowser, DraggingAlongALineKeepsThePointsWithin) {
  const TestFolder folder;
  std::string page = render(sample_study());
  // From the top of the first line, which is the width of the mesh, down to between 3 and 4.
  page.insert(page.rfind("</body>"), R"(<script>
    const overlay = document.querySelector("#parallel .brush .overlay"), box = overlay.getBoundingClientRect();
    const fire = (type, y) => (type === "mousedown" ? overlay : window).dispatchEvent(new MouseEvent(type, {
      bubbles: true, cancelable: true, view: window, clientX: box.left + box.width / 2, clientY: box.top + y * box.height}));
    fire("mousedown", 0.01);
    fire("mousemove", 0.2);
    fire("mousemove", 0.38);
    fire("mouseup", 0.38);
  </script>)");
  const Rendered rendered = render_in_browser(folder, page);
  EXPECT_TRUE(rendered.quiet()) << rendered.log;
  EXPECT_NE(rendered.dom.find("15 of 39 points shown"), std::string::npos);  // widths 4 and 5, less the failed point
  EXPECT_EQ(count_of(rendered.dom, "class=\"dot"), 15U);
  EXPECT_EQ(count_of(rendered.dom, "class=\"thread faded\""), 24U);
  EXPECT_NE(rendered.dom.find("1 to 16 of 16 points"), std::string::npos);  // the list keeps those without figures
}

/// Twelve close values with long names, twenty categories with long names: what would lie on another label goes.
TEST(PageInABrowser, NoTwoLabelsOfAnAxisLieOnEachOther) {
  Study study = sample_study();
  study.axes[2].categories.clear();
  for (unsigned i = 0; i < 20; ++i) study.axes[2].categories.push_back(fmt::format("algorithm_number_{}", i));
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    Point& point = study.points[i];
    const std::size_t value = i % 12;
    point.axes[0] = value == 11 ? 1000 : static_cast<double>(value);
    point.labels[0] = fmt::format("a long value, {}", value);
    point.axes[2] = static_cast<double>(i % 20);
    point.labels[2] = study.axes[2].categories[i % 20];
  }
  choose_scales(study);
  const TestFolder folder;
  std::string page = render(study);
  page.insert(page.rfind("</body>"), R"(<script>
    let labels = 0, overlaps = 0;
    for (const axis of document.querySelectorAll(".axis")) {
      const texts = [...axis.querySelectorAll(".tick text")], slanted = texts.some(text => text.hasAttribute("transform"));
      const boxes = texts.map(text => text.getBoundingClientRect());
      labels += boxes.length;
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
        const apart = slanted ? Math.abs(a.right - b.right) >= 16
          : a.left >= b.right - 1 || b.left >= a.right - 1 || a.top >= b.bottom - 3 || b.top >= a.bottom - 3;
        if (!apart) ++overlaps;
      }));
    }
    document.body.dataset.labels = labels;
    document.body.dataset.overlaps = overlaps;
  </script>)");
  const Rendered rendered = render_in_browser(folder, page);
  EXPECT_TRUE(rendered.quiet()) << rendered.log;
  EXPECT_NE(rendered.dom.find("data-overlaps=\"0\""), std::string::npos);
  EXPECT_EQ(rendered.dom.find("data-labels=\"0\""), std::string::npos);
  EXPECT_NE(rendered.dom.find(">a long value, 0</text>"), std::string::npos);
  EXPECT_NE(rendered.dom.find(">a long value, 11</text>"), std::string::npos);
}

TEST(PageInABrowser, AStudyWithoutFiguresSaysSo) {
  const TestFolder folder;
  Study study = sample_study();
  study.searches.clear();
  for (Point& point : study.points) {
    point.status = "failed";
    point.energy = {};
    point.values.assign(3, kNoFigure);
  }
  const Rendered page = render_in_browser(folder, render(study));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("No point has figures."), std::string::npos);
  EXPECT_NE(page.dom.find("Fewer than two points have figures."), std::string::npos);
  EXPECT_EQ(page.dom.find("Convergence"), std::string::npos);
  EXPECT_EQ(page.dom.find("energy-title"), std::string::npos);
}

}  // namespace
}  // namespace kernbench::report
