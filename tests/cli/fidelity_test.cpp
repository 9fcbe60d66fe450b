#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sc_main/run/fidelity_option.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;

TEST(Fidelity, TextReadsBack) {
  for (const char* text : {"accurate", "fast", "noc=fast,hbm=accurate"})
    EXPECT_EQ(to_string(parse_fidelity(text)), text);
  Fidelity mixed;
  mixed.hbm = Grade::fast;
  EXPECT_EQ(to_string(mixed), "noc=accurate,hbm=fast");
  EXPECT_EQ(to_string(Fidelity::all(Grade::fast)), "fast");
  EXPECT_EQ(parse_fidelity("fast,noc=accurate").noc, Grade::accurate) << "an entry for a part comes after that for all";
  EXPECT_EQ(parse_fidelity("fast,noc=accurate").hbm, Grade::fast);
  EXPECT_EQ(parse_fidelity("hbm=fast").noc, Grade::accurate);
}

TEST(Fidelity, PartsThatAreOneModelAreFastWhereTheyCarryTrains) {
  EXPECT_EQ(parse_fidelity("noc=fast").of(Subsystem::link), Grade::accurate);
  EXPECT_EQ(parse_fidelity("noc=fast,hbm=fast").of(Subsystem::link), Grade::fast);
  EXPECT_EQ(parse_fidelity("noc=fast,hbm=fast"), parse_fidelity("fast"));
}

TEST(Fidelity, EveryPartHasABandAtEveryGrade) {
  for (const Grade grade : {Grade::accurate, Grade::fast}) {
    for (const Subsystem part : kSubsystems) {
      int bands = 0;
      for (const ErrorBand& band : error_bands(Fidelity::all(grade))) bands += band.part == part ? 1 : 0;
      EXPECT_GE(bands, 1) << to_string(part);
    }
  }
}

TEST(Fidelity, APartIsAskedForByItsOwnNameOnly) {
  EXPECT_FALSE(parse_fidelity("fast").noc_by_name);
  EXPECT_FALSE(parse_fidelity("fast,hbm=fast").noc_by_name);
  EXPECT_TRUE(parse_fidelity("fast,noc=fast").noc_by_name);
}

TEST(Fidelity, TheResultSaysWhyARunIsNotWhatWasAskedFor) {
  const Tool tool;
  const std::vector<std::string> run{"run", "all_reduce", "-b", "1K", "-e", "1K", "-w", "0", "-n", "1"};
  const auto line = [&](const char* fidelity) {
    std::vector<std::string> arguments = run;
    for (const char* word : {"--set", "cube.noc.vc_depth=5", "--fidelity", fidelity}) arguments.push_back(word);
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("a flow gets 5 of 6 cycles of a port"));
    return outcome.out.substr(outcome.out.find("# fidelity"));
  };
  EXPECT_THAT(line("fast"),
              testing::StartsWith("# fidelity noc=accurate,hbm=fast, not fast: a router buffer is shorter "
                                  "than a credit's way, so networks go flit by flit and packets one by "
                                  "one; known error: noc 2.3%"));
  EXPECT_THAT(line("fast,noc=fast"), testing::StartsWith("# fidelity fast; known error: noc 9.8%"));
}

TEST(Fidelity, ErrorsNameTheEntryAndTheNearestName) {
  const Tool tool;
  const auto refused = [&tool](const std::string& value) {
    const Outcome outcome = tool({"run", "all_reduce", "--fidelity", value});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(refused("acurate"),
            "kernbench: error: --fidelity is 'acurate', entry 1: unknown grade 'acurate'\n"
            "  hint: did you mean 'accurate'?\n");
  EXPECT_EQ(refused("noc=accurate,hmb=accurate"),
            "kernbench: error: --fidelity is 'noc=accurate,hmb=accurate', entry 2: unknown part 'hmb'\n"
            "  hint: did you mean 'hbm'?\n");
  EXPECT_EQ(refused("noc=accurate,noc=accurate"),
            "kernbench: error: --fidelity is 'noc=accurate,noc=accurate', entry 2: 'noc' for the second time\n"
            "  hint: give each part once\n");
  EXPECT_EQ(refused("noc=accurate,accurate"),
            "kernbench: error: --fidelity is 'noc=accurate,accurate', entry 2: 'accurate' says nothing of a part\n"
            "  hint: a grade for all parts comes first, then PART=GRADE; parts: noc, hbm\n");
  EXPECT_EQ(refused("pe=fast"),
            "kernbench: error: --fidelity is 'pe=fast', entry 1: no grades of part 'pe'\n"
            "  hint: it is one model in both; parts: noc, hbm\n");
  EXPECT_THAT(refused(""), HasSubstr("unknown grade ''"));
  EXPECT_THAT(refused("noc="), HasSubstr("unknown grade ''"));
  EXPECT_THAT(refused("noc=accurate,"), HasSubstr("entry 2: '' says nothing of a part"));
}

}  // namespace
}  // namespace kernbench
