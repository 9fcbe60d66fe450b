#include "waves/vcd_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_folder.h"
#include "waves/observer_hub.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

/// Text after the header: the value changes.
std::string changes(const std::string& vcd) { return vcd.substr(vcd.find("$dumpvars")); }

const std::vector<std::string> kStates{"idle", "read", "wait credit"};

TEST(VcdWriter, NestsScopesAsTheMachineDoes) {
  const TestFolder folder;
  VcdWriter vcd(folder.file("run.vcd"), {});
  vcd.add_track("sip0.cube0.pe10.dma_r", TrackKind::state, kStates);
  vcd.add_track("sip0.cube0.pe2.dma_r", TrackKind::state, kStates);
  vcd.add_track("sip0.cube0.pe2.ipcq.local(3)", TrackKind::level, {});
  vcd.add_track("sip1.kernel", TrackKind::text, {});
  vcd.finish(10);
  EXPECT_EQ(read(folder.file("run.vcd")),
            "$version KernBench $end\n"
            "$timescale 1ps $end\n"
            "$scope module sip0 $end\n"
            "$scope module cube0 $end\n"
            "$scope module pe2 $end\n"
            "$var wire 4 # dma_r [3:0] $end\n"
            "$var string 1 $ dma_r_text $end\n"
            "$scope module ipcq $end\n"
            "$var wire 32 % local_3 [31:0] $end\n"
            "$upscope $end\n"
            "$upscope $end\n"
            "$scope module pe10 $end\n"
            "$var wire 4 ! dma_r [3:0] $end\n"
            "$var string 1 \" dma_r_text $end\n"
            "$upscope $end\n"
            "$upscope $end\n"
            "$upscope $end\n"
            "$scope module sip1 $end\n"
            "$var string 1 ( kernel $end\n"
            "$upscope $end\n"
            "$enddefinitions $end\n"
            "#0\n$dumpvars\n"
            "b0 !\nsidle \"\n"
            "b0 #\nsidle $\n"
            "b0 %\n"
            "s (\n"
            "$end\n"
            "#10\n");
}

TEST(VcdWriter, SortsRecordsThatArriveInAnyOrder) {
  const TestFolder folder;
  VcdWriter vcd(folder.file("run.vcd"), {}, 2);  // spills after every second change
  const TrackId fill = vcd.add_track("sip0.fill", TrackKind::level, {});
  vcd.change(fill, 30, 0);
  vcd.change(fill, 10, 1);
  vcd.change(fill, 40, 3);
  vcd.change(fill, 20, 2);
  vcd.change(fill, 20, 5);  // the later record of one instant holds
  vcd.finish(50);
  EXPECT_EQ(changes(read(folder.file("run.vcd"))),
            "$dumpvars\nb0 !\n$end\n#10\nb1 !\n#20\nb101 !\n#30\nb0 !\n#40\nb11 !\n#50\n");
}

TEST(VcdWriter, IntervalThatBeginsWhereAnotherEndsWins) {
  const TestFolder folder;
  VcdWriter vcd(folder.file("run.vcd"), {});
  const TrackId dma = vcd.add_track("sip0.dma", TrackKind::state, kStates);
  vcd.interval(dma, 20, 30, 2);
  vcd.interval(dma, 10, 20, 1);
  vcd.interval(dma, 25, 25, 1);  // takes no time, shows nothing
  vcd.finish(40);
  EXPECT_EQ(changes(read(folder.file("run.vcd"))),
            "$dumpvars\nb0 !\nsidle \"\n$end\n#10\nb1 !\nsread \"\n#20\nb10 !\nswait\\x20credit \"\n#30\nb0 !\nsidle "
            "\"\n#40\n");
}

TEST(VcdWriter, StaysBusyUntilTheLastOverlappingIntervalEnds) {
  const TestFolder folder;
  VcdWriter vcd(folder.file("run.vcd"), {});
  const TrackId link = vcd.add_track("sip0.link", TrackKind::number, {});
  vcd.interval(link, 10, 30, 7);
  vcd.interval(link, 20, 40, 8);
  vcd.finish(50);
  EXPECT_EQ(changes(read(folder.file("run.vcd"))),
            "$dumpvars\nbz !\n$end\n#10\nb111 !\n#20\nb1000 !\n#40\nbz !\n#50\n");
}

TEST(VcdWriter, WindowClipsAndBeginsWithTheStateThatHeld) {
  const TestFolder folder;
  WaveSelection selection;
  selection.from = 100;
  selection.to = 200;
  VcdWriter vcd(folder.file("run.vcd"), selection);
  const TrackId fill = vcd.add_track("sip0.fill", TrackKind::level, {});
  const TrackId dma = vcd.add_track("sip0.dma", TrackKind::state, kStates);
  vcd.change(fill, 90, 4);
  vcd.change(fill, 50, 3);
  vcd.change(fill, 150, 5);
  vcd.change(fill, 250, 6);
  vcd.interval(dma, 0, 90, 1);
  vcd.interval(dma, 95, 120, 2);
  vcd.interval(dma, 180, 300, 1);
  vcd.interval(dma, 320, 350, 2);  // behind the window
  vcd.finish(400);
  EXPECT_EQ(changes(read(folder.file("run.vcd"))),
            "$dumpvars\nb100 !\nb0 #\nsidle $\n$end\nb10 #\nswait\\x20credit $\n#120\nb0 #\nsidle $\n#150\nb101 "
            "!\n#180\nb1 #\nsread $\n#200\n");
}

TEST(VcdWriter, RefusesTracksOutsideTheGlobs) {
  const TestFolder folder;
  WaveSelection selection;
  selection.globs = {"sip0.cube3.**", "sip1.*"};
  VcdWriter vcd(folder.file("run.vcd"), selection);
  EXPECT_NE(vcd.add_track("sip0.cube3.pe0.dma_r", TrackKind::state, kStates), kNoTrack);
  EXPECT_NE(vcd.add_track("sip1.link", TrackKind::level, {}), kNoTrack);
  EXPECT_EQ(vcd.add_track("sip1.cube3.pe0", TrackKind::level, {}), kNoTrack);
  EXPECT_EQ(vcd.add_track("sip0.cube30.pe0.dma_r", TrackKind::state, kStates), kNoTrack);
}

TEST(VcdWriter, WidensWhatDoesNotFit) {
  const TestFolder folder;
  VcdWriter vcd(folder.file("run.vcd"), {});
  const TrackId packet = vcd.add_track("sip0.packet", TrackKind::number, {});
  const TrackId state = vcd.add_track("sip0.state", TrackKind::state, kStates);
  vcd.interval(packet, 1, 2, std::uint64_t{1} << 40);
  vcd.interval(state, 1, 2, 99);  // no such label
  vcd.finish(3);
  const std::string text = read(folder.file("run.vcd"));
  EXPECT_THAT(text, HasSubstr("$var wire 64 ! packet [63:0] $end"));
  EXPECT_THAT(text, HasSubstr("b1111 #\nsunknown-99 $"));
}

TEST(VcdWriter, LeavesNothingBehindUnlessFinished) {
  const TestFolder folder;
  { VcdWriter vcd(folder.file("run.vcd"), {}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(VcdWriter, SaysWhyAFileCannotBeWritten) {
  const TestFolder folder;
  try {
    VcdWriter vcd(folder.file("missing/run.vcd"), {});
    FAIL() << "opened a file in a folder that does not exist";
  } catch (const OutputError& error) {
    EXPECT_EQ(error.what(), "cannot write '" + folder.file("missing/run.vcd") + "': No such file or directory");
  }
}

TEST(ChangeSorter, MergesSpilledRunsInStableOrder) {
  ChangeSorter sorter(7);
  for (std::uint32_t i = 0; i < 1000; ++i) sorter.push({(i * 7919ULL) % 10, i, 0, Change::Kind::set});
  Ps last_time = 0;
  std::uint64_t last_value = 0, count = 0;
  sorter.drain([&](const Change& change) {
    EXPECT_GE(change.time, last_time);
    if (change.time == last_time && count != 0) {
      EXPECT_GT(change.value, last_value);
    }
    last_time = change.time;
    last_value = change.value;
    ++count;
  });
  EXPECT_EQ(count, 1000U);
}

TEST(ObserverHub, AsksEveryListenerAndForwardsOnlyToThoseThatWant) {
  const TestFolder folder;
  WaveSelection first, second;
  first.globs = {"sip0.**"};
  second.globs = {"**.pe0"};
  VcdWriter a(folder.file("a.vcd"), first), b(folder.file("b.vcd"), second);
  ObserverHub hub;
  hub.add(a);
  hub.add(b);
  EXPECT_EQ(hub.add_track("sip1.link", TrackKind::level, {}), kNoTrack);
  const TrackId both = hub.add_track("sip0.pe0", TrackKind::level, {});
  const TrackId only_b = hub.add_track("sip1.pe0", TrackKind::level, {});
  hub.change(both, 5, 1);
  hub.change(only_b, 6, 2);
  EXPECT_FALSE(hub.wants_ops());
  a.finish(10);
  b.finish(10);
  EXPECT_THAT(read(folder.file("a.vcd")), HasSubstr("#5\nb1 !"));
  EXPECT_THAT(read(folder.file("a.vcd")), Not(HasSubstr("#6")));
  EXPECT_THAT(read(folder.file("b.vcd")), HasSubstr("#5\nb1 !\n#6\nb10 #"));
}

}  // namespace
}  // namespace kernbench
