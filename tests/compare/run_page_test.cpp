#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"
#include "tests/report/browser.h"
#include "tests/support/children_cpu.h"
#include "tests/workloads/small_transformer.h"

namespace kernbench {
namespace {

/// The page of an all_reduce on two SIPs of 2 x 2 cubes.
std::string page_of_a_run(const Tool& tool, const std::string& more = "-q") {
  const Outcome done = tool({"run", "all_reduce", "-b", "16K", "-e", "16K", "--topology", "ring8", "--set",
                             "system.sips.count=2", "--data", "off", "--report", "run.html", more});
  EXPECT_EQ(done.code, 0) << done.err;
  return read(tool.file("run.html"));
}
std::string with_script(std::string page, const std::string& script) {
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  return page;
}

/// What is drawn: the scripts stand behind it.
std::string drawn(const Rendered& page) { return page.dom.substr(0, page.dom.find("<footer>")); }
/// "12 rows, 0 ps to 18.861 us of 18.861 us. ..."
std::string timeline_status(const Rendered& page) {
  const std::size_t at = page.dom.find("role=\"status\"", page.dom.find("id=\"timeline\""));
  return page.dom.substr(at, page.dom.find("</p>", at) - at);
}

/// "wire: 43.1%; flight: 32.6%; ..."
std::string critical_path(const Rendered& page) {
  const std::string key = "aria-label=\"";
  const std::size_t at = page.dom.find(key, page.dom.find("id=\"path-parts\"")) + key.size();
  return page.dom.substr(at, page.dom.find('"', at) - at);
}

/// Utilisation of the parts as the machine's view has them, in their order.
std::vector<std::string> busy_of(const Rendered& page) {
  std::vector<std::string> busy;
  const std::string view = drawn(page), key = "data-busy=\"";
  for (std::size_t at = view.find(key); at != std::string::npos; at = view.find(key, at + 1))
    busy.push_back(view.substr(at + key.size(), view.find('"', at + key.size()) - at - key.size()));
  return busy;
}

TEST(RunPage, NamesNothingOutsideItself) {
  const Tool tool;
  const std::string page = page_of_a_run(tool);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_FALSE(
      std::regex_search(page.substr(0, 3000), std::regex("<(script|img|iframe|link)[^>]*(src|href)=.?(https?:|//|/)")));
}

TEST(RunPage, DrawsEverySectionWithACleanConsole) {
  const Tool tool;
  const Rendered page = render_in_browser(tool.folder(), page_of_a_run(tool));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("data-drawn=\"yes\""), std::string::npos);
  for (const char* section : {"summary", "where", "timeline", "machine", "heat", "roofline", "bounds", "results",
                              "errors", "energy", "configuration"})
    EXPECT_NE(page.dom.find("<section id=\"" + std::string(section) + "\""), std::string::npos) << section;
  EXPECT_EQ(count_of(page.dom, "class=\"share\""), 3 * 7U);  // two ranks and their mean, seven classes
  EXPECT_EQ(count_of(page.dom.substr(0, page.dom.find("<footer>")), "NaN"), 0U) << "a mark has no place";
}

TEST(RunPage, OfAWholeModelSaysWhatIsRepeatedAndHasOneLineForLayersThatAreAlike) {
  const Tool tool;
  std::ofstream(tool.file("m.yaml")) << small_model(8);
  const Outcome done = tool({"run",        "tp_transformer",
                             "--model",    "m.yaml",
                             "--topology", "ring8",
                             "--set",      "system.sips.count=2",
                             "--set",      "cube.hbm.refresh=none",
                             "--prompt",   "8",
                             "--decode",   "2",
                             "--layers",   "0",
                             "--ends",     "0",
                             "-w",         "0",
                             "--data",     "off",
                             "--fidelity", "fast",
                             "--report",   "run.html",
                             "-q"});
  ASSERT_EQ(done.code, 0) << done.err;
  const Rendered page = render_in_browser(tool.folder(), read(tool.file("run.html")));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(drawn(page).find("of launches and collectives repeated"), std::string::npos);
  EXPECT_NE(drawn(page).find("<section id=\"path\""), std::string::npos) << "critical path, through repeats";
  EXPECT_TRUE(std::regex_search(drawn(page), std::regex("prefill, [5-8] layers</td><td[^>]*>mlp.up<")));
  EXPECT_EQ(count_of(drawn(page), "NaN"), 0U);
}

TEST(RunPage, SliderColoursTheMachineAndAClickOpensAPart) {
  const Tool tool;
  const std::string page = page_of_a_run(tool);
  const Rendered whole = render_in_browser(tool.folder(), page);
  EXPECT_TRUE(std::regex_search(whole.dom, std::regex("id=\"slice-text\">(what is timed|16384 B, iteration 1)<")))
      << "it opens on what is timed, as the rest of the page";
  const Rendered moved = render_in_browser(tool.folder(), with_script(page, R"(
    const slider = document.getElementById("slice");
    slider.value = 3;
    slider.dispatchEvent(new Event("input"));
    const open = name => [...document.querySelectorAll("#machine .opens")].find(g => g.getAttribute("aria-label") === "open " + name).dispatchEvent(new MouseEvent("click", {bubbles: true}));
    open("sip1");
    open("sip1.cube2");
    open("sip1.cube2.pe3");
  )"));
  EXPECT_TRUE(moved.quiet()) << moved.log;
  EXPECT_TRUE(std::regex_search(moved.dom, std::regex("id=\"slice-text\">[0-9.]+ [a-z]+ to ")));
  EXPECT_NE(moved.dom.find(">sip1.cube2.pe3: at sip1.cube2."), std::string::npos) << "the view of that PE";
  const Rendered slice = render_in_browser(tool.folder(), with_script(page, R"(
    const slider = document.getElementById("slice");
    slider.value = 3;
    slider.dispatchEvent(new Event("input"));
  )"));
  EXPECT_FALSE(busy_of(whole).empty());
  EXPECT_NE(busy_of(slice), busy_of(whole)) << "parts have the colour of the slice";
}

/// `list` of the timeline's rows: the tips of the first ones, and what else is drawn.
std::string tips_of(const Tool& tool, const std::string& page, const std::string& list) {
  const Rendered shown = render_in_browser(tool.folder(), with_script(page, R"(
    const select = [...document.querySelectorAll("#timeline select")].find(one => [...one.options].some(option => option.text === "ranks"));
    select.value = [...select.options].find(option => option.text === ")" + list +
                                                                                R"(").value;
    select.dispatchEvent(new Event("change"));
    const whole = [...document.querySelectorAll("#timeline select")].find(one => [...one.options].some(option => option.text === "whole run"));
    whole.value = 0;
    whole.dispatchEvent(new Event("change"));
    const canvas = document.getElementById("timeline-canvas"), box = canvas.getBoundingClientRect(), tips = new Set();
    for (let row = 0; row < 8; ++row) for (let x = 0.3; x < 0.99; x += 0.005) {
      canvas.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + box.width * x, clientY: box.top + (row * 17 + 8) * box.width / 1140, bubbles: true}));
      tips.add(document.getElementById("tip").textContent);
    }
    document.querySelector("main").append([...tips].join("; "));
  )"));
  EXPECT_TRUE(shown.quiet()) << shown.log;
  return drawn(shown);
}

TEST(RunPage, TimelineShowsWhatIsWaitedForAndOnDemandForWhatAndTheVirtualChannels) {
  const Tool tool;
  const std::string page = page_of_a_run(tool);
  EXPECT_EQ(count_of(drawn(render_in_browser(tool.folder(), page)), ">virtual channels</option>"), 0U);
  EXPECT_TRUE(std::regex_search(tips_of(tool, page, "waiting"), std::regex("[0-9.]+ waiting in the mean")));
  const std::string detailed = page_of_a_run(tool, "--stats-detail");
  EXPECT_TRUE(std::regex_search(tips_of(tool, detailed, "waiting"), std::regex("sip[^\n]*: [a-z_]+\n")));
  EXPECT_TRUE(std::regex_search(tips_of(tool, detailed, "virtual channels"),
                                std::regex("sip[^\n]*out_[a-z0-9]+ [a-z0-9.]+\n[^;]*[1-9][0-9.]*% busy")));
}

TEST(RunPage, LeavesOutWhatARunHasNoStatisticsFor) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "noc_traffic", "--warmup", "500", "--window", "1000", "--report", "run.html", "-q"}).code, 0);
  const Rendered page = render_in_browser(tool.folder(), read(tool.file("run.html")));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_EQ(count_of(drawn(page), "NaN"), 0U);
  EXPECT_EQ(drawn(page).find("<section id=\"where\""), std::string::npos);
}

TEST(RunPage, WheelZoomsTheTimelineAndWithItWhereTheTimeWent) {
  const Tool tool;
  const Rendered zoomed = render_in_browser(tool.folder(), with_script(page_of_a_run(tool), R"(
    const canvas = document.getElementById("timeline-canvas"), box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -600, clientX: box.left + box.width * 0.6, clientY: box.top + 20, bubbles: true, cancelable: true}));
  )"));
  EXPECT_TRUE(zoomed.quiet()) << zoomed.log;
  EXPECT_NE(timeline_status(zoomed), timeline_status(render_in_browser(tool.folder(), page_of_a_run(tool))));
  EXPECT_NE(drawn(zoomed).find("as the timeline shows"), std::string::npos);
}

// Who looks at a run wants what was measured, not its set-up: as the save file of the waves does.
TEST(RunPage, OpensOnTheTimedIterationAndShowsTheWholeRunOnDemand) {
  const Tool tool;
  const std::string page = page_of_a_run(tool);
  const Rendered opened = render_in_browser(tool.folder(), with_script(page, R"(
    document.body.setAttribute("data-path-of", document.querySelector("#path select").selectedOptions[0].text);
  )"));
  EXPECT_NE(opened.dom.find("data-path-of=\"16384 B, iteration 1\""), std::string::npos);
  EXPECT_EQ(timeline_status(opened).find("rows, 0 ps to"), std::string::npos) << timeline_status(opened);
  EXPECT_NE(drawn(opened).find("Busiest parts: 16384 B, iteration 1<"), std::string::npos);
  EXPECT_NE(drawn(opened).find("as the timeline shows"), std::string::npos) << "where the time went follows";
  const Rendered whole = render_in_browser(tool.folder(), with_script(page, R"(
    for (const id of ["timeline", "path"]) {
      const select = [...document.querySelectorAll("#" + id + " select")].find(one => [...one.options].some(option => option.text === "whole run"));
      select.value = 0;
      select.dispatchEvent(new Event("change"));
    }
  )"));
  EXPECT_TRUE(whole.quiet()) << whole.log;
  EXPECT_NE(timeline_status(whole).find("rows, 0 ps to"), std::string::npos) << timeline_status(whole);
  EXPECT_EQ(drawn(whole).find("as the timeline shows"), std::string::npos);
  EXPECT_FALSE(critical_path(opened).empty());
  EXPECT_NE(critical_path(opened), critical_path(whole)) << "shares of other times";
}

TEST(RunPage, OfAResultFileHasWhatTheFileHas) {
  const Tool tool;
  ASSERT_EQ(
      tool({"run", "tp_mlp", "--topology", "minimal", "--data", "off", "--stats-in-json", "--json", "run.json", "-q"})
          .code,
      0);
  ASSERT_EQ(tool({"what-if", "run.json", "--keys", "cube.hbm.c*", "--json", "tried.json", "-q"}).code, 0);
  ASSERT_EQ(tool({"report", "tried.json"}).code, 0);
  const Rendered page = render_in_browser(tool.folder(), read(tool.file("tried.html")));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_EQ(count_of(page.dom, "class=\"launch\""), 2U) << "the two GEMMs; a bias computes nothing";
  EXPECT_NE(page.dom.find("class=\"saving\""), std::string::npos);
  EXPECT_NE(page.dom.find("id=\"timeline\""), std::string::npos);
  EXPECT_NE(read(tool.file("tried.html")).find("\"System: minimal\""), std::string::npos)
      << "the machine's name is not the file's";
}

/// Eight SIPs of 16 cubes of 8 PEs.
TEST(RunPage, OfAThousandPesIsSmallAndDrawnAtOnce) {
  const Tool tool;
  const Outcome done = tool({"run", "all_reduce", "-b", "16K", "-e", "16K", "-w", "0", "--topology", "ring8",
                             "--fidelity", "fast", "--data", "off", "--report", "run.html", "-q"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string text = read(tool.file("run.html"));
  EXPECT_LT(text.size(), 4U << 20);
  const double begin = children_cpu_s();
  const Rendered page = render_in_browser(tool.folder(), text);
  EXPECT_LT(children_cpu_s() - begin, 20) << "s of the browser's processor time, its start included";
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_NE(page.dom.find("data-drawn=\"yes\""), std::string::npos);
  EXPECT_EQ(count_of(drawn(page), "NaN"), 0U);
  EXPECT_EQ(count_of(page.dom, "class=\"share\""), 9 * 7U) << "eight ranks and their mean";
}

TEST(RunPage, TheRankingOfWhatIfIsAPageWithItsPairs) {
  const Tool tool;
  ASSERT_EQ(tool({"run", "all_reduce", "-b", "16K", "-e", "16K", "--topology", "minimal", "--set",
                  "system.sips.count=2", "--data", "off", "--json", "run.json", "-q"})
                .code,
            0);
  ASSERT_EQ(tool({"what-if", "run.json", "--keys", "pe.cpu.*", "--keys", "system.links.l*", "--pairs", "--html",
                  "what_if.html", "--json", "tried.json", "-q"})
                .code,
            0);
  const nlohmann::ordered_json what_if = json_of(read(tool.file("tried.json")))["what_if"];
  const std::size_t saving = static_cast<std::size_t>(
      std::count_if(what_if["changes"].begin(), what_if["changes"].end(),
                    [](const auto& change) { return change["state"] == "ran" && change["saved_ns"] != 0; }));
  ASSERT_GE(saving, 2U);
  ASSERT_FALSE(what_if["pairs"].empty());
  const Rendered page = render_in_browser(tool.folder(), read(tool.file("what_if.html")));
  EXPECT_TRUE(page.quiet()) << page.log;
  EXPECT_EQ(count_of(drawn(page), "class=\"saving\""), std::min(saving, std::size_t{25}));
  const std::string first = what_if["pairs"][0]["keys"][0], second = what_if["pairs"][0]["keys"][1];
  EXPECT_NE(drawn(page).find(first + " + " + second), std::string::npos) << "the table of pairs";
}

}  // namespace
}  // namespace kernbench
