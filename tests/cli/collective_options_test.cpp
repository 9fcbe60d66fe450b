#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/schema_check.h"
#include "tests/cli/two_sips.h"

/// What limits a collective (--explain), what `auto` takes (--algorithm), and schedules from files (--schedule).
namespace kernbench {
namespace {
using nlohmann::ordered_json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const ordered_json* sip_links(const ordered_json& explain) {
  for (const auto& links : explain.at("links")) {
    if (links.at("class") == "links between SIPs") return &links;
  }
  return nullptr;
}

TEST(Explain, CountsWhatCrossesLinksAgainstTheLeast) {
  const Tool tool;
  const ordered_json json = parsed(tool(all_reduce({"-b", "64K", "--explain", "--algorithm", "ring", "--json", "-"})));
  EXPECT_EQ(schema_errors(json), "");
  const ordered_json& row = json.at("results").at(0);
  const ordered_json& explain = row.at("explain");
  const ordered_json* links = sip_links(explain);
  ASSERT_NE(links, nullptr);
  // An all-reduce over two contributors: each must learn 64 KiB of the other, 2 (G - 1) S in all.
  EXPECT_EQ(links->at("least_bytes"), 2 * 65536);
  EXPECT_GE(links->at("moved_bytes"), 2 * 65536);
  EXPECT_LT(links->at("moved_bytes"), 2 * 65536 * 1.1) << "packet headers and credits besides";
  // One link each way; its rate is in the same row, so that the use follows.
  EXPECT_EQ(links->at("directions"), 2);
  EXPECT_NEAR(links->at("mean_utilisation").get<double>(),
              links->at("moved_bytes").get<double>() /
                  (2 * links->at("gbps_each").get<double>() * row.at("time_ns").get<double>()),
              1e-9);
  EXPECT_EQ(explain.at("algorithm"), "ring");
  EXPECT_EQ(explain.at("why"), "it was asked for");
  bool named = false;
  for (const auto& bound : explain.at("bounds")) {
    if (bound.at("name") != row.at("bound_name")) continue;
    named = true;
    EXPECT_EQ(bound.at("fraction"), row.at("bound_fraction"));
  }
  EXPECT_TRUE(named);
}

/// Counts of links are of all groups, and so is the least that they can be.
TEST(Explain, CountsAllGroupsThatAreAtWork) {
  const Tool tool;
  const ordered_json json =
      parsed(tool({"run", "all_reduce", "--topology", "minimal", "--set", "system.sips.count=4", "-b", "64K",
                   "--explain", "--algorithm", "ring", "--group", "0,1", "--group", "2,3", "--json", "-"}));
  EXPECT_EQ(schema_errors(json), "");
  for (const ordered_json& row : json.at("results")) {
    EXPECT_EQ(row.at("explain").at("groups_at_work"), 2);
    const ordered_json* links = sip_links(row.at("explain"));
    ASSERT_NE(links, nullptr);
    EXPECT_EQ(links->at("least_bytes"), 2 * 2 * 65536);
    EXPECT_GE(links->at("moved_bytes"), 2 * 2 * 65536);
    EXPECT_LT(links->at("moved_bytes"), 2 * 2 * 65536 * 1.1);
  }
}

/// Of little data links say nothing: whatever is far from the best was estimated all the same.
TEST(Explain, TellsEstimatesFromBounds) {
  const Tool tool;
  const ordered_json json = parsed(tool({"run", "all_reduce", "--topology", "fc8", "-b", "4K", "-w", "0", "--fidelity",
                                         "fast", "--data", "off", "--explain", "--json", "-"}));
  EXPECT_EQ(schema_errors(json), "");
  for (const ordered_json& candidate : json.at("results").at(0).at("explain").at("candidates"))
    EXPECT_FALSE(candidate.at("at_least").get<bool>()) << candidate.at("algorithm");
}

TEST(Explain, OneContributionIsOnlyCopied) {
  const Tool tool;
  const auto limit = [&](const std::string& op) {
    const ordered_json json =
        parsed(tool({"run", op, "--topology", "minimal", "-b", "4K", "--explain", "--json", "-"}));
    return json.at("results").at(0).at("explain").at("limit").get<std::string>();
  };
  EXPECT_EQ(limit("all_to_all"), "copies on the SIP: there is only one contribution");
  EXPECT_EQ(limit("all_reduce"), "nothing: there is nothing to move");
}

TEST(Explain, NamesWhatLimits) {
  const Tool tool;
  const auto limit = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = all_reduce({"--algorithm", "ring", "--data", "off", "--explain"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = tool(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t begin = outcome.out.find("limited by ", outcome.out.find("\n#   "));
    return outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  };
  EXPECT_THAT(limit({"-b", "256"}),
              StartsWith("limited by latency: steps that wait for each other; one way across takes "));
  // One queue pair of 4 slots of 4 KiB, about 1 us there and back: 16 GB/s of the link's 128.
  EXPECT_THAT(limit({"-b", "1M"}), StartsWith("limited by IPCQ depth: senders wait for a free slot "));
  EXPECT_THAT(limit({"-b", "256K", "--set", "system.links.bandwidth=1 GB/s"}),
              StartsWith("limited by links between SIPs: sip"));
}

/// Eight SIPs behind a switch of 448 GB/s, on a machine whose ports and receivers were made for 128: what is expected
/// and what is possible follow the ports and the credits, and warnings name the keys.
TEST(Explain, ExpectationsAndBoundsKnowPortsAndCredits) {
  const Tool tool;
  const Outcome outcome = tool({"run", "all_reduce", "--topology", "ring8", "--set", "system.sips.topology=switch",
                                "--set", "system.links.lane_rate=112 GT/s", "-b", "1M", "--fidelity", "fast", "--data",
                                "off", "--explain", "--json", "-"});
  for (const char* key :
       {"system.links.buffer_packets is 512", "system.links.switch.clock is 4 GHz", "sip.io.crossbar.clock is 4 GHz"})
    EXPECT_THAT(outcome.err, HasSubstr(std::string("warning: ") + key));
  const ordered_json row = parsed(outcome).at("results").at(0);
  const double time = row.at("time_ns"), expected = row.at("explain").at("candidates").at(0).at("expected_ns");
  EXPECT_NEAR(expected / time, 1, 0.1);
  EXPECT_GT(row.at("bound_fraction"), 0.85);
  EXPECT_LE(row.at("bound_fraction"), 1);
}

/// Who checks a machine hears of the same before any run.
TEST(Explain, TopologyCheckWarnsOfBuffersThatThrottle) {
  const Tool tool;
  const Outcome outcome = tool({"topology", "check", "ring8", "--set", "system.sips.topology=switch", "--set",
                                "system.links.lane_rate=112 GT/s"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ring8: ok"));
  EXPECT_THAT(outcome.err, HasSubstr("warning: system.links.buffer_packets is 512"));
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("hint: give at least [0-9]+"));
}

/// The table, the words and the JSON mean one bound, the largest; where ways and serialisation must both be paid, it is
/// their sum, and the words name what limits a perfect algorithm as the table does.
TEST(Explain, TableAndWordsNameTheSameBound) {
  const Tool tool;
  std::vector<std::vector<std::string>> runs;
  for (const char* size : {"256", "64K", "4M"}) runs.push_back(all_reduce({"-b", size, "-e", size, "--explain"}));
  runs.push_back({"run", "all_reduce", "-b", "64K", "--fidelity", "fast", "--data", "off", "--explain"});
  for (std::vector<std::string>& run : runs) {
    const Outcome text = tool(run);
    ASSERT_EQ(text.code, 0) << text.err;
    run.insert(run.end(), {"--json", "-"});
    const ordered_json row = parsed(tool(run))["results"][0];
    const std::uint64_t size = row["bytes"];
    EXPECT_THAT(text.out, HasSubstr("largest bound"));
    EXPECT_THAT(text.out, HasSubstr("; " + row["limited_by"].get<std::string>())) << size;
    if (&run == &runs.back()) {
      EXPECT_EQ(row["bound_name"], "sip_passage");
      EXPECT_THAT(text.out, HasSubstr("limited by " + row["limited_by"].get<std::string>() + ": the bound is "));
    }
    double largest = 0;
    std::string name;
    for (const auto& bound : row["explain"]["bounds"]) {
      if (bound["bound_ns"].get<double>() <= largest) continue;
      largest = bound["bound_ns"];
      name = bound["name"];
    }
    EXPECT_EQ(row["bound_name"], name) << size;
    EXPECT_THAT(text.out, ::testing::ContainsRegex("#   bound " + name + " [^\n]*" +
                                                   row["limited_by"].get<std::string>() + "  <- the largest\n"));
    EXPECT_EQ(row["bound_ns"], largest) << size;
    EXPECT_LE(largest, row["time_ns"].get<double>()) << size;
  }
}

TEST(Explain, AutoSaysWhatItConsideredAndTakesTheFirst) {
  const Tool tool;
  const ordered_json json = parsed(tool(all_reduce({"-b", "4K", "--explain", "--json", "-"})));
  const ordered_json& explain = json.at("results").at(0).at("explain");
  ASSERT_FALSE(explain.at("candidates").empty());
  EXPECT_EQ(explain.at("candidates").at(0).at("algorithm"), explain.at("algorithm"));
  EXPECT_EQ(explain.at("algorithm"), json.at("results").at(0).at("algorithm"));
  for (const auto& candidate : explain.at("candidates")) EXPECT_EQ(candidate.at("measured"), false);
}

/// The ranks of a reduce but its root receive nothing.
TEST(Explain, WhatOnlySendsWaitsForSlotsToo) {
  const Tool tool;
  std::vector<std::string> call{"run", "reduce", "-b", "256K", "--algorithm", "direct", "--explain", "--json", "-"};
  call.insert(call.end(), kTwo.begin(), kTwo.end());
  const ordered_json json = parsed(tool(call)), &explain = json.at("results").at(0).at("explain");
  EXPECT_GT(explain.at("waiting_for_credit"), 0.25) << explain.dump(1);
}

TEST(Explain, ChangesNoTime) {
  const Tool tool;
  const ordered_json plain = parsed(tool(all_reduce({"-b", "4K", "--json", "-"}))),
                     with = parsed(tool(all_reduce({"-b", "4K", "--explain", "--json", "-"})));
  EXPECT_EQ(plain.at("results").at(0).at("time_ns"), with.at("results").at(0).at("time_ns"));
}

/// Sizes whose data go between other PEs each, in one run: queues are added call by call.
TEST(PointToPoint, ServesSizesOneAfterTheOther) {
  const Tool tool;
  for (const char* op : {"all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"}) {
    const ordered_json json = parsed(tool({"run", op, "--topology", "ring8", "--set", "system.sips.count=4", "-b", "64",
                                           "-e", "256K", "-f", "16", "--algorithm", "point_to_point", "--json", "-"}));
    ASSERT_EQ(json.at("results").size(), 4U) << op;
    for (const ordered_json& row : json.at("results")) {
      EXPECT_EQ(row.at("algorithm"), "point_to_point");
      EXPECT_EQ(row.at("mismatches"), 0) << op << " of " << row.at("bytes");
    }
  }
}

TEST(PointToPoint, RefusesCopies) {
  const Tool tool;
  const Outcome outcome = tool({"run", "all_gather", "--topology", "ring8", "-b", "4K", "--algorithm", "point_to_point",
                                "--out-placement", "cube=replicate,pe=replicate"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("algorithm 'point_to_point' is for data without copies"), std::string::npos)
      << outcome.err;
}

/// Queues are added call by call until they do not fit: what has no room is left out, and says so.
TEST(PointToPoint, IsLeftOutByAutoWhereItsQueuesDoNotFitBesideOthers) {
  const Tool tool;
  const ordered_json json =
      parsed(tool({"run", "all_gather", "--topology", "ring8", "--set", "pe.tcm.size=256KiB", "-b", "128", "-e", "64K",
                   "-f", "8", "--fidelity", "fast", "--explain", "--json", "-"}));
  ASSERT_EQ(json.at("results").size(), 4U);
  std::string left_out;
  for (const ordered_json& row : json.at("results")) {
    EXPECT_EQ(row.at("mismatches"), 0);
    EXPECT_EQ(row.at("explain").at("candidates").at(0).at("algorithm"), row.at("algorithm"));
    for (const ordered_json& candidate : row.at("explain").at("candidates")) {
      if (candidate.at("algorithm") == "point_to_point" && !candidate.at("unfit").get<std::string>().empty())
        left_out = candidate.at("unfit");
    }
  }
  EXPECT_NE(left_out.find("of half of TCM, which has 131072 B"), std::string::npos) << left_out;
}

/// Nothing else is there: what auto does not trust is better than nothing.
TEST(PointToPoint, IsTakenByAutoWhereNothingElseIsThere) {
  const Tool tool;
  std::ofstream(tool.file("only.yaml")) << "algorithms: {only: {module: kernbench.ccl.point_to_point}}\n";
  const Outcome outcome =
      tool({"run", "all_gather", "--topology", "ring8", "--set", "system.sips.topology=fully_connected", "-b", "4M",
            "--data", "off", "--fidelity", "fast", "--ccl", "only.yaml", "--algorithm", "auto"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

/// 0 ns is a time: on one rank everything but a kernel that copies for nothing takes it.
TEST(Auto, OneRankTakesWhatHasNothingToDo) {
  const Tool tool;
  const std::vector<std::vector<std::string>> calls{{"run", "all_reduce", "--topology", "minimal", "-b", "16K"},
                                                    {"run", "barrier", "--topology", "minimal"},
                                                    all_reduce({"-b", "16K", "--group", "0"})};
  for (std::vector<std::string> call : calls) {
    call.insert(call.end(), {"--explain", "--json", "-"});
    const ordered_json json = parsed(tool(call)), &row = json.at("results").at(0);
    EXPECT_EQ(row.at("time_ns"), 0) << row.dump(1);
    EXPECT_EQ(row.at("explain").at("candidates").at(0).at("expected_ns"), 0);
  }
}

/// Cubes and PEs contribute: what an all_gather of one rank moves stays near, whatever the farthest pair of them is.
TEST(Bound, OfOneRankIsNotAboveItsTime) {
  const Tool tool;
  for (const char* op :
       {"all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all"}) {
    for (const char* scope : {"cube", "pe"}) {
      const ordered_json json = parsed(tool({"run", op, "--topology", "default", "--set", "system.sips.count=1", "-b",
                                             "2K", "--scope", scope, "--fidelity", "fast", "--json", "-"}));
      const ordered_json& row = json.at("results").at(0);
      EXPECT_LE(row.at("bound_ns").get<double>(), row.at("time_ns").get<double>()) << row.dump(1);
      EXPECT_GT(row.at("bound_ns").get<double>(), 0) << op << " " << scope;
    }
  }
}

TEST(Auto, ShippedTimesHoldForThePlacementTheyWereMeasuredWith) {
  const Tool tool;
  const auto best = [&](const std::vector<std::string>& placement) {
    std::vector<std::string> call{"run",  "all_reduce", "--topology", "ring8",  "-b", "64K",      "--fidelity",
                                  "fast", "--data",     "off",        "--json", "-",  "--explain"};
    call.insert(call.end(), placement.begin(), placement.end());
    const ordered_json json = parsed(tool(call));
    return json.at("results").at(0).at("explain").at("candidates").at(0);
  };
  EXPECT_TRUE(best({}).at("measured").get<bool>());
  const ordered_json copies = best({"--placement", "cube=replicate,pe=replicate"});
  EXPECT_FALSE(copies.at("measured").get<bool>());
  EXPECT_EQ(copies.at("algorithm"), "direct");  // 5.8 us; flood, the fastest where data are spread, takes 8.0
}

/// A run of `auto` that may take the plug-in in this `mode` (broken_algorithm.cpp), or what else is listed.
Outcome run_auto(const Tool& tool, int mode, const std::string& others) {
  write(tool.file("ccl.yaml"), "algorithms:\n  broken: { module: " KERNBENCH_BROKEN_ALGORITHM ", mode: " +
                                   std::to_string(mode) + " }\n" + others);
  return tool(all_reduce({"-b", "1K", "--explain", "--ccl", "ccl.yaml"}));
}

/// Beside ring the plug-in is not taken, for this reason.
void expect_ring_instead(const Tool& tool, int mode, const std::string& reason) {
  const Outcome outcome = run_auto(tool, mode, "  ring: { module: kernbench.ccl.ring }\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("algorithm ring: "));
  EXPECT_THAT(outcome.out, ContainsRegex("broken  .* - us " + reason));
}

TEST(Auto, SaysWhatTheOthersAreLeftOutFor) {
  const Outcome outcome = Tool()(all_reduce({"-b", "4K", "--explain"}));
  EXPECT_THAT(outcome.out,
              ContainsRegex("mesh_2d .* left out: unsupported topology kind ring_1d; it serves mesh_2d_no_w"));
  EXPECT_THAT(outcome.out, ContainsRegex("funnel .* left out: does not serve all_reduce\n"));
}

/// One that throws (4), and one that does nothing (0), which would be the fastest.
TEST(Auto, TakesAKernelOfWhichNothingIsKnownOnlyWhereNothingElseServes) {
  const Tool tool;
  for (const int mode : {0, 4}) expect_ring_instead(tool, mode, "nothing is known of it");
  const Outcome alone = run_auto(tool, 4, "");
  EXPECT_EQ(alone.code, 8);
  EXPECT_THAT(alone.err, HasSubstr("kernel error in kernel 'broken', at "));
  EXPECT_THAT(alone.err, HasSubstr(": broken: not this time"));
}

/// Queues are installed with the first call: what is chosen begins when it does by its name, and takes as long.
TEST(Auto, AnAlgorithmTakesByItsNameWhatItTakesWhenChosen) {
  const Tool tool;
  const auto log = [&](const std::string& op, const std::string& algorithm, const std::vector<std::string>& more) {
    std::vector<std::string> call{"run", op,   "--topology", "minimal", "--set", "system.sips.count=4", "-n",     "3",
                                  "-b",  "1K", "--oplog",    "log",     "-q",    "--algorithm",         algorithm};
    call.insert(call.end(), more.begin(), more.end());
    const Outcome outcome = tool(call);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string text = read(tool.file("log"));
    return text.substr(text.find('\n'));  // the first line has the configuration's hash
  };
  for (const auto& [op, algorithm] : std::vector<std::pair<std::string, std::string>>{
           {"all_reduce", "flood"}, {"all_gather", "direct"}, {"broadcast", "hierarchical"}}) {
    write(tool.file("one.yaml"), "algorithms:\n  " + algorithm + ": { module: kernbench.ccl." + algorithm + " }\n");
    EXPECT_EQ(log(op, algorithm, {}), log(op, "auto", {"--ccl", "one.yaml"})) << op;
    EXPECT_EQ(log(op, algorithm, {"--group", "0,2,3"}), log(op, "auto", {"--ccl", "one.yaml", "--group", "0,2,3"}))
        << op;
  }
}

TEST(ScheduleOption, RunsAnAlgorithmFile) {
  const Tool tool;
  const std::string file = KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml";
  std::vector<std::string> arguments{"run", "all_reduce", "--topology", "minimal", "--set", "system.sips.count=4",
                                     "-b",  "4K",         "--schedule", file};
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ring4_all_reduce.xml"));
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
  arguments.insert(arguments.end(), {"--algorithm", "ring"});
  const Outcome both = tool(arguments);
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--schedule and --algorithm: give one of them"));
  const Outcome other = tool(all_reduce({"--schedule", "x.txt"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--schedule 'x.txt': give a file that ends in .xml"));
  std::ofstream(tool.file("spelling.xml"))
      << "<algo name=\"a\" ngpus=\"4\"\n      nchunkperloop=\"4\" coll=\"allreduce\"/>\n";
  const Outcome unknown = tool(all_reduce({"--schedule", "spelling.xml"}));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("spelling.xml:2:7: error: unknown attribute 'nchunkperloop' of 'algo'\n"
                                     "  hint: did you mean 'nchunksperloop'?\n"));
}

/// Of other dialects: RCCL's files have such attributes. What is near a name that is missing is misspelt (above).
TEST(ScheduleOption, ElementsAndAttributesThatMscclDoesNotHaveAreIgnoredWithAWarning) {
  const Tool tool;
  std::string text = read(KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml");
  const std::string gpu = "<gpu id=\"0\"";
  const std::size_t body = text.find('>', text.find(gpu));
  ASSERT_NE(body, std::string::npos);
  text.insert(body + 1, "<copy from=\"i\" to=\"o\"/>");
  text.replace(text.find("<algo "), 6, "<algo maxcount=\"1\" nthreadblocks=\"24\" ");
  std::ofstream(tool.file("copy.xml")) << text;
  const Outcome outcome = tool({"run", "all_reduce", "--topology", "minimal", "--set", "system.sips.count=4", "-b",
                                "4K", "--schedule", "copy.xml"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(outcome.err,
              ::testing::MatchesRegex("copy.xml:[0-9]+:7: warning: attribute 'maxcount' of 'algo' is ignored\n"
                                      "copy.xml:[0-9]+:20: warning: attribute 'nthreadblocks' .*\n"
                                      "copy.xml:[0-9]+:[0-9]+: warning: .*'copy'.*\n"));
}

/// Two ranks that both send nine messages before they receive any: right where a queue has nine places.
TEST(ScheduleOption, AFileThatNeedsMoreSlotsThanTheMachineHasSaysHowMany) {
  const Tool tool;
  std::string text = "<algo name=\"nine\" ngpus=\"2\" nchunksperloop=\"18\" coll=\"alltoall\">\n";
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string own = std::to_string(9 * gpu), other = std::to_string(9 - 9 * gpu), cnt = "\" cnt=\"9\"/>\n";
    text += "<gpu id=\"" + std::to_string(gpu) + "\"><tb id=\"0\" send=\"" + std::to_string(1 - gpu) + "\" recv=\"" +
            std::to_string(1 - gpu) + "\">\n<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"" + other +
            "\" dstbuf=\"o\" dstoff=\"" + own + cnt + "<step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"" + own +
            "\" dstbuf=\"o\" dstoff=\"" + other + cnt + "<step s=\"2\" type=\"cpy\" srcbuf=\"i\" srcoff=\"" + own +
            "\" dstbuf=\"o\" dstoff=\"" + own + cnt + "</tb></gpu>\n";
  }
  std::ofstream(tool.file("nine.xml")) << text << "</algo>\n";
  const std::vector<std::string> run{"run", "all_to_all", "--topology", "minimal",  "--set", "system.sips.count=2",
                                     "-b",  "36K",        "--schedule", "nine.xml", "--set"};
  const auto with = [&](const std::string& slots) {
    std::vector<std::string> words = run;
    words.push_back("pe.ipcq.slots=" + slots);
    return tool(words);
  };
  for (const std::string slots : {"8", "3"}) {  // of 3 the schedule stands still, which is not the answer
    const Outcome refused = with(slots);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("algorithm 'nine' (nine.xml): its schedule needs queues of 9 slots, they have " +
                                       slots + "; raise pe.ipcq.slots"));
  }
  const Outcome right = with("16");
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(ScheduleOption, CustomFilesRunUncheckedAndSaySo) {
  const Tool tool;
  const std::string file = KERNBENCH_SOURCE_DIR "/docs/examples/schedules/next4_custom.xml";
  const std::vector<std::string> arguments{
      "run", "all_reduce", "--topology", "minimal", "--set",  "system.sips.count=4",
      "-b",  "4K",         "--schedule", file,      "--json", "out.json"};
  const Outcome outcome = tool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 NOT CHECKED"));
  EXPECT_THAT(outcome.err, ::testing::EndsWith("next4_custom.xml:2:1: warning: coll is custom, which does not say what "
                                               "the outputs are: no result of it is proved or checked\n"));
  const ordered_json result = ordered_json::parse(read(tool.file("out.json")))["results"][0];
  EXPECT_EQ(result["check"], "skipped");
  EXPECT_TRUE(result["bound_ns"].is_null());
  EXPECT_GT(result["time_ns"].get<double>(), 0);
  std::vector<std::string> average = arguments;
  average.insert(average.end(), {"--op", "avg"});
  const Outcome refused = tool(average);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("its file is custom and does not say what avg divides by"));
}

TEST(AlgorithmOption, AnOperationThatItDoesNotServeIsRefusedBeforeTheRun) {
  const Tool tool;
  const Outcome outcome =
      tool({"run", "broadcast", "--topology", "minimal", "-b", "4K", "--algorithm", "halving_doubling"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "kernbench: error: algorithm 'halving_doubling' does not serve broadcast; it serves all_reduce\n");
}

TEST(AlgorithmOption, AnAlgorithmForTheGroupsNeedNotServeAllRanks) {
  const Tool tool;
  const Outcome outcome =
      tool({"run", "all_reduce", "--topology", "minimal", "--set", "system.sips.count=6", "-b", "4K", "--schedule",
            KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml", "--group", "0,1,2,3", "--group",
            "5,3,4,2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK"));
}

/// A schedule is read again from its place, and is the one of the earlier run unless it is named again.
TEST(Schedule, OfAnEarlierRunHasToBeWhatItWas) {
  const Tool tool;
  const std::string example = read(KERNBENCH_SOURCE_DIR "/docs/examples/schedules/ring4_all_reduce.xml");
  std::ofstream(tool.file("ring.xml")) << example;
  const std::vector<std::string> options = {
      "run", "all_reduce", "--topology", "minimal",  "--set",  "system.sips.count=4",
      "-b",  "4K",         "--schedule", "ring.xml", "--json", "first.json"};
  ASSERT_EQ(tool(options).code, 0);
  const auto first = nlohmann::json::parse(read(tool.file("first.json")));
  EXPECT_EQ(first["files"].size(), 1U);
  EXPECT_EQ(tool({"run", "--from", "first.json"}).code, 0);
  std::ofstream(tool.file("ring.xml"), std::ios::app) << "<!-- of today -->\n";
  const Outcome changed = tool({"run", "--from", "first.json"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_EQ(changed.err,
            "kernbench: error: 'ring.xml' is not what it was in the earlier run\n"
            "  hint: give the option that names it again to run with it all the same\n");
  EXPECT_EQ(tool({"run", "--from", "first.json", "--schedule", "ring.xml", "--json", "second.json"}).code, 0);
  const auto second = nlohmann::json::parse(read(tool.file("second.json")));
  EXPECT_NE(first["files"]["ring.xml"], second["files"]["ring.xml"]);
  EXPECT_NE(first["config_hash"], second["config_hash"]);
}

}  // namespace
}  // namespace kernbench
