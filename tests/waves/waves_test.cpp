// `run --vcd`: what the tool leaves for GTKWave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;

/// Without escapes: as we write them (\\x20), or as fst2vcd does (\\040).
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const bool hex = text[i + 1] == 'x';
    out += static_cast<char>(std::stoi(text.substr(i + (hex ? 2 : 1), hex ? 2 : 3), nullptr, hex ? 16 : 8));
    i += 3;
  }
  return out;
}

/// Changes of each signal, by its full name; equal values one after the other are one.
using Signals = std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>>;
Signals signals_of(const std::string& vcd) {
  Signals signals;
  std::map<std::string, std::vector<std::string>> names;  // by identifier
  std::vector<std::string> scope;
  std::uint64_t now = 0;
  std::istringstream in(vcd);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first, kind, size, id, name;
    words >> first;
    if (first == "$scope") {
      words >> kind >> name;
      scope.push_back(name);
    } else if (first == "$upscope") {
      scope.pop_back();
    } else if (first == "$var") {
      words >> kind >> size >> id >> name;
      std::string full;
      for (const std::string& part : scope) full += part + ".";
      names[id].push_back(full + name);
    } else if (first[0] == '#') {
      now = std::stoull(first.substr(1));
    } else if (first[0] == 'b' || first[0] == 's') {
      words >> id;
      std::string value = first.substr(1);
      if (first[0] == 'b') value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
      if (first[0] == 's') value = unescaped(value);
      if (first[0] == 'b' && value.find_first_not_of('z') == std::string::npos) value = "z";  // of one digit or of all
      for (const std::string& signal : names[id]) {
        if (signals[signal].empty() || signals[signal].back().second != value) signals[signal].emplace_back(now, value);
      }
    }
  }
  return signals;
}

const std::vector<std::string> kWaveRun{"run",
                                        "all_reduce",
                                        "-b",
                                        "64K",
                                        "-e",
                                        "64K",
                                        "-q",
                                        "--topology",
                                        "ring8",
                                        "--set",
                                        "system.sips.count=2",
                                        "--set",
                                        "sip.cube_mesh.w=1",
                                        "--set",
                                        "sip.cube_mesh.h=1",
                                        "--data",
                                        "off"};
Outcome waves(const Tool& tool, const std::vector<std::string>& more) {
  std::vector<std::string> run = kWaveRun;
  run.insert(run.end(), more.begin(), more.end());
  return tool(run);
}

TEST(Waves, AnFstHoldsWhatTheVcdHolds) {
  const Tool tool;
  ASSERT_EQ(waves(tool, {"--vcd", "run.vcd"}).code, 0);
  const Outcome outcome = waves(tool, {"--vcd", "run.fst"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  ASSERT_EQ(tool.shell("fst2vcd -f run.fst -o back.vcd").code, 0);
  const Signals written = signals_of(read(tool.file("run.vcd"))), back = signals_of(read(tool.file("back.vcd")));
  EXPECT_GT(written.size(), 100U);
  EXPECT_EQ(written.size(), back.size());
  for (const auto& [name, changes] : written) ASSERT_EQ(changes, back.at(name)) << name;
  EXPECT_LT(std::filesystem::file_size(tool.file("run.fst")), std::filesystem::file_size(tool.file("run.vcd")) / 4);
  EXPECT_THAT(read(tool.file("run.gtkw")), HasSubstr("[dumpfile] \"" + tool.file("run.fst") + "\""));
  EXPECT_EQ(tool.shell("ls | grep -c tmp").out, "0\n") << "nothing is left of the way there";
}

TEST(Waves, WithoutVcd2fstAnFstIsRefusedBeforeTheRun) {
  const Tool tool;
  const Outcome outcome =
      tool.shell("PATH=/nowhere " + quoted(KERNBENCH_BINARY) + " run probe --topology minimal --vcd run.fst");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(
      outcome.err,
      "kernbench: error: cannot write 'run.fst': there is no vcd2fst on the PATH; install the package gtkwave, or "
      "give a name that ends in .vcd\n");
  EXPECT_EQ(tool.shell("ls").out, "");
}

TEST(Waves, TheSaveFileOpensOnTheTimedIterationAndTheSaturatedLink) {
  const Tool tool;
  ASSERT_EQ(waves(tool, {"--set", "system.links.bandwidth=4 GB/s", "-w", "1", "-n", "2", "--vcd", "run.vcd"}).code, 0);
  const Signals signals = signals_of(read(tool.file("run.vcd")));
  const auto& iterations = signals.at("program.iteration");
  std::vector<std::uint64_t> begins;
  for (const auto& [time, name] : iterations) {
    if (!name.empty()) begins.push_back(time);
  }
  ASSERT_EQ(begins.size(), 3U);
  EXPECT_EQ(iterations[iterations.size() - 2].second, "65536 B, iteration 2");

  const std::string save = read(tool.file("run.gtkw"));
  std::istringstream in(save.substr(save.find("\n*")));
  double zoom = 0;
  std::uint64_t primary = 0, marker = 0;
  in.ignore(2);
  in >> zoom >> primary;
  EXPECT_EQ(primary, begins[2]);
  for (const std::uint64_t begin : begins) {
    in >> marker;
    EXPECT_EQ(marker, begin);
  }
  const std::uint64_t end = iterations.back().first;
  // GTKWave's zoom is of 200 pixels: 860 show the iteration and a twentieth of it on either side.
  EXPECT_NEAR(std::exp2(-zoom) * 860 / 200, 1.1 * static_cast<double>(end - begins[2]),
              0.001 * static_cast<double>(end));
  EXPECT_THAT(save, HasSubstr("[markername] A65536 B, warm-up 1\n[markername] B65536 B, iteration 1\n"));

  const std::string heading = "-busiest in 65536 B, iteration 2\n";
  const std::size_t busiest = save.find(heading);
  ASSERT_NE(busiest, std::string::npos);
  const std::string first = save.substr(busiest, save.find('[', save.find("sip", busiest)) - busiest);
  EXPECT_THAT(first, HasSubstr(".io0.link")) << "two SIPs exchange 64 KiB at 4 GB/s: nothing is as busy";
}

}  // namespace
}  // namespace kernbench
