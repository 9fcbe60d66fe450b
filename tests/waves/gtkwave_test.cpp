#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/test_folder.h"
#include "waves/gtkw_file.h"
#include "waves/vcd_writer.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

/// A small run with every kind of track; 8 of its 10 tracks are ever active.
void write_example(const std::string& path) {
  VcdWriter vcd(path, {});
  const std::vector<std::string> dma{"idle", "read", "wait credit"}, gemm{"idle", "compute"};
  for (const std::string pe : {"sip0.cube0.pe0", "sip0.cube0.pe1"}) {
    vcd.interval(vcd.add_track(pe + ".dma_r", TrackKind::state, dma), 1000, 4000, 1);
    vcd.interval(vcd.add_track(pe + ".gemm", TrackKind::state, gemm), 4000, 9000, 1);
    vcd.interval(vcd.add_track(pe + ".kernel", TrackKind::text, {}), 500, 9500, "ring all_reduce");
    vcd.add_track(pe + ".math", TrackKind::state, gemm);
  }
  const TrackId fill = vcd.add_track("sip0.cube0.pe0.ipcq.W_recv", TrackKind::level, {});
  for (std::uint64_t i = 0; i < 8; ++i) vcd.change(fill, 1000 * (i + 1), i % 4);
  const TrackId packet = vcd.add_track("sip0.io0.link0.packet", TrackKind::number, {});
  vcd.interval(packet, 2000, 5000, 42);
  vcd.finish(10000, {{"warm-up 1", 500, 4000, false}, {"iteration 1", 4000, 9000, true}});
}

TEST(Gtkw, GroupsColoursAndDecodes) {
  const TestFolder folder;
  write_example(folder.file("run.vcd"));
  const std::string save = read(folder.file("run.gtkw"));
  EXPECT_THAT(save, HasSubstr("[dumpfile] \"" + folder.file("run.vcd") + "\"\n[savefile] \"" + folder.file("run.gtkw") +
                              "\"\n"));
  EXPECT_THAT(save, HasSubstr("@800200\n-pe0\n[color] 5\n@2022\n^2 " + folder.file("run.states/2.txt") +
                              "\nsip0.cube0.pe0.dma_r[3:0]\n"));
  EXPECT_THAT(save, HasSubstr("@c00200\n-pe1\n[color] 5\n@3022\n"));
  EXPECT_THAT(save, Not(HasSubstr("math"))) << "never left its idle state";
  EXPECT_EQ(
      read(folder.file("run.states/2.txt")),
      "# states of sip0.cube0.pe0.dma_r and its like\n0 ?gray15?idle\n1 ?DarkGreen?read\n2 ?firebrick4?wait credit\n");
}

/// Runs the real viewer without a screen. Its absence is a failure, not a skip: `make packages` installs it.
std::string gtkwave(const TestFolder& folder, const std::string& script, const std::string& options = {}) {
  std::ofstream(folder.file("shot.tcl")) << script << "\ngtkwave::/File/Quit\n";
  const std::string out = folder.file("gtkwave.txt");
  const std::string command = "cd '" + folder.path().string() +
                              "' && xvfb-run -a -s '-screen 0 1600x900x24' timeout 60 gtkwave " + options +
                              "run.vcd run.gtkw -S shot.tcl > '" + out + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read(out);
  return read(out);
}

TEST(Gtkw, BeginsWithTheIterationAndWhatIsBusiestInIt) {
  const TestFolder folder;
  write_example(folder.file("run.vcd"));
  const std::string states = folder.file("run.states/1.txt");
  EXPECT_THAT(read(folder.file("run.gtkw")),
              HasSubstr("@28\nprogram.iteration\n@800200\n-busiest in iteration 1\n[color] 4\n@2022\n^1 " + states +
                        "\n+{sip0/cube0/pe0/gemm} sip0.cube0.pe0.gemm[3:0]\n[color] 4\n@2022\n^1 " + states +
                        "\n+{sip0/cube0/pe1/gemm} sip0.cube0.pe1.gemm[3:0]\n@1000200\n-busiest in iteration 1\n"))
      << "the DMA engines read before it";
}

TEST(Gtkw, OpensInGtkwaveWithEveryRow) {
  const TestFolder folder;
  write_example(folder.file("run.vcd"));
  const std::string out =
      gtkwave(folder,
              "puts \"displayed [gtkwave::getTotalNumTraces]\"\nputs \"marked [gtkwave::getMarker] "
              "[gtkwave::getNamedMarker A] [gtkwave::getNamedMarker B]\"\ngtkwave::/File/Grab_To_File "
              "run.png\ngtkwave::/File/Write_Save_File_As back.gtkw");
  EXPECT_THAT(out, Not(HasSubstr("Could not open")));
  const std::string back = read(folder.file("back.gtkw"));
  // 8 signals, and a begin and an end for each of sip0, cube0, pe0, ipcq, pe1, io0, link0; before them the iteration,
  // and two signals between a begin and an end.
  EXPECT_THAT(out, HasSubstr("displayed 27\n"));
  EXPECT_THAT(out, HasSubstr("marked 4000 500 4000\n"));
  for (const char* row : {"sip0.cube0.pe0.dma_r[3:0]", "sip0.cube0.pe0.gemm[3:0]", "sip0.cube0.pe0.kernel",
                          "sip0.cube0.pe0.ipcq.W_recv[31:0]", "sip0.cube0.pe1.dma_r[3:0]", "sip0.cube0.pe1.gemm[3:0]",
                          "sip0.cube0.pe1.kernel", "sip0.io0.link0.packet[31:0]"}) {
    EXPECT_THAT(back, HasSubstr(row));
  }
  EXPECT_THAT(back, HasSubstr("[signals_width] 420\n")) << "values have room beside the names";
  EXPECT_GT(std::filesystem::file_size(folder.file("run.png")), 5000U);
}

// With the guide's settings and script, too: waves/README.md.
TEST(Gtkw, ShowsTheTimedIterationAndLittleElse) {
  const TestFolder folder;
  write_example(folder.file("run.vcd"));
  for (const std::string rc : {"", "--rcfile '" KERNBENCH_SOURCE_DIR "/waves/presets/gtkwaverc' "}) {
    const std::string out = gtkwave(
        folder,
        "puts \"from [gtkwave::getWindowStartTime] to [gtkwave::getWindowEndTime]\"\nsource {" KERNBENCH_SOURCE_DIR
        "/waves/presets/picture.tcl}",
        rc);
    unsigned from = 0, to = 0;
    const std::size_t line = out.find("from ");
    ASSERT_NE(line, std::string::npos) << out;
    ASSERT_EQ(std::sscanf(out.c_str() + line, "from %u to %u", &from, &to), 2) << out;
    EXPECT_GE(from, 3500U) << "the iteration takes 4000 to 9000";
    EXPECT_LE(from, 4000U);
    EXPECT_GE(to, 9000U) << rc;
    EXPECT_LE(to, 10500U) << rc;
    EXPECT_TRUE(std::filesystem::remove(folder.file("run.png"))) << rc;
  }
}

TEST(Gtkw, ReadsAVcdThatWasCutShort) {
  const TestFolder folder;
  write_example(folder.file("run.vcd"));
  const std::string whole = read(folder.file("run.vcd"));
  std::ofstream(folder.file("run.vcd"), std::ios::trunc) << whole.substr(0, whole.size() * 9 / 10);
  const std::string out = gtkwave(folder, "puts \"displayed [gtkwave::getTotalNumTraces]\"");
  EXPECT_THAT(out, HasSubstr("displayed 27\n"));
}

}  // namespace
}  // namespace kernbench
