// `run --stats`: the tool's own statistics of small runs.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/schema_check.h"
#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using nlohmann::ordered_json;

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::vector<std::string> kPlain{"run", "all_reduce", "-b", "64K", "-e", "64K", "-w", "0"};
const std::vector<std::string> kAllReduce = with(kPlain, {"--stats-slices", "16"});

ordered_json statistics_of(const Tool& tool, const std::vector<std::string>& arguments) {
  const Outcome outcome = tool(with(arguments, {"--stats", "stats.json"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  ordered_json json = json_of(read(tool.file("stats.json")));
  EXPECT_FALSE(json.is_discarded());
  return json;
}

/// Its `bytes` summed over the resources of a kind.
std::uint64_t bytes_of(const ordered_json& statistics, const std::string& kind) {
  std::uint64_t bytes = 0;
  for (const auto& resource : statistics["resources"]) {
    if (resource["kind"] == kind) bytes += resource["bytes"].get<std::uint64_t>();
  }
  return bytes;
}

TEST(Statistics, ChangeNoResultAndStandInTheResultFileOnDemand) {
  const Tool tool;
  for (const char* fidelity : {"accurate", "fast"}) {
    const auto arguments = with(kPlain, {"--fidelity", fidelity, "--json", "-"});
    ordered_json without = json_of(tool(arguments).out);
    ordered_json watched = json_of(tool(with(arguments, {"--stats-in-json", "--stats", "stats.json"})).out);
    ASSERT_FALSE(without.is_discarded());
    EXPECT_EQ(watched["statistics"], json_of(read(tool.file("stats.json"))));
    watched.erase("statistics");
    watched.erase("host");
    without.erase("host");
    EXPECT_EQ(without, watched) << fidelity;
  }
}

// Two ranks of 64 KiB that end with the sum have each to tell the other at least their 64 KiB between them.
TEST(Statistics, CountWhatAnAllReduceHasToMove) {
  const Tool tool;
  const ordered_json json = statistics_of(tool, kAllReduce);
  EXPECT_GE(bytes_of(json, "link"), 2U * 65536);
  EXPECT_EQ(json["totals"]["link"]["bytes"], bytes_of(json, "link"));
  EXPECT_GE(bytes_of(json, "ipcq"), 2U * 65536);
  EXPECT_GE(bytes_of(json, "engine"), 4U * 65536) << "DMA reads and writes every element of both";
  double busiest_link = 0;
  std::map<std::string, unsigned> over_time;  // resources that have the array
  for (const auto& resource : json["resources"]) {
    for (const auto& [key, numbers] : resource["over_time"].items()) {
      EXPECT_EQ(numbers.size(), json["slices"]) << resource["name"];
      ++over_time[key];
      std::uint64_t sum = 0, most_of_all = 0;
      for (const auto& number : numbers) {
        sum += number.get<std::uint64_t>();
        most_of_all = std::max(most_of_all, number.get<std::uint64_t>());
        const std::uint64_t most = json["slice_ps"].get<std::uint64_t>() * resource["units"].get<std::uint64_t>();
        EXPECT_TRUE(key != "busy_ps" || number <= most) << resource["name"];
      }
      std::uint64_t waiting = 0;
      for (const auto& wait : resource["waiting_ps"]) waiting += wait.get<std::uint64_t>();
      EXPECT_EQ(key == "high_water" ? most_of_all : sum,
                key == "waiting_ps" ? waiting : resource[key].get<std::uint64_t>())
          << resource["name"] << key;
    }
    if (resource["kind"] == "link") busiest_link = std::max(busiest_link, resource["utilisation"].get<double>());
  }
  for (const char* key : {"busy_ps", "waiting_ps", "bytes", "messages", "high_water"})
    EXPECT_GT(over_time[key], 8U) << key;
  EXPECT_GT(busiest_link, 65536 * 1e12 / 128e9 / json["time_ps"].get<double>()) << "128 GB/s";
}

using Numbers = std::vector<std::uint64_t>;
/// Slice by slice; an array that is left out is of zeros.
Numbers numbers(const ordered_json& over_time, const char* key, std::size_t slices) {
  return over_time.value(key, Numbers(slices, 0));
}
Numbers sum_of(const std::vector<Numbers>& all, std::size_t slices) {
  Numbers sum(slices, 0);
  for (const Numbers& one : all) {
    for (std::size_t i = 0; i < slices; ++i) sum[i] += one[i];
  }
  return sum;
}

// What a port waits for, its channels do; what a resource waits for, it does for one reason or another.
TEST(Statistics, WithDetailTellEachChannelAndReasonOverTime) {
  const Tool tool;
  for (const char* fidelity : {"accurate", "fast"}) {
    const ordered_json json = statistics_of(tool, with(kAllReduce, {"--stats-detail", "--fidelity", fidelity}));
    EXPECT_EQ(schema_errors(json, "statistics.schema.json"), "");
    const std::size_t slices = json["slices"];
    unsigned by_reason = 0, channels_of_ports = 0;
    for (const auto& resource : json["resources"]) {
      const ordered_json& over_time = resource["over_time"];
      EXPECT_EQ(over_time.contains("waiting_by_reason_ps"),
                over_time.contains("waiting_ps") && resource["waiting_ps"].size() > 1);
      if (over_time.contains("waiting_by_reason_ps")) {
        ++by_reason;
        std::vector<Numbers> reasons;
        for (const auto& [reason, times] : over_time["waiting_by_reason_ps"].items()) {
          reasons.push_back(times.get<Numbers>());
          EXPECT_EQ(reasons.back().size(), slices);
        }
        EXPECT_EQ(sum_of(reasons, slices), numbers(over_time, "waiting_ps", slices)) << resource["name"];
      }
      if (!resource.contains("virtual_channels")) continue;
      std::vector<Numbers> waits;
      for (const auto& [name, channel] : resource["virtual_channels"].items()) {
        ++channels_of_ports;
        waits.push_back(numbers(channel["over_time"], "waiting_ps", slices));
        for (const char* key : {"busy_ps", "bytes", "messages", "waiting_ps"}) {
          std::uint64_t sum = 0;
          for (const std::uint64_t one : numbers(channel["over_time"], key, slices)) sum += one;
          EXPECT_EQ(sum, channel[key]) << resource["name"] << name << key;
        }
      }
      EXPECT_EQ(sum_of(waits, slices), numbers(over_time, "waiting_ps", slices)) << resource["name"];
    }
    EXPECT_GT(by_reason, 8U);
    EXPECT_GT(channels_of_ports, 8U);
    const ordered_json without = statistics_of(tool, with(kAllReduce, {"--fidelity", fidelity}));
    EXPECT_EQ(without["totals"], json["totals"]);
    EXPECT_EQ(without.dump().find("waiting_by_reason_ps"), std::string::npos);
  }
}

TEST(Statistics, OptionsOfThemWithoutThemAreRefused) {
  const Tool tool;
  const Outcome slices = tool({"run", "all_reduce", "--stats-slices", "64"});
  EXPECT_EQ(slices.code, 2);
  EXPECT_EQ(slices.err,
            "kernbench: error: --stats-slices without --stats, --stats-in-json, --report or --trace\n"
            "  hint: give --stats FILE as well\n");
  const Outcome alone = tool({"run", "all_reduce", "--stats-detail"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("--stats-detail without --stats, --stats-in-json or --report"), std::string::npos)
      << alone.err;
}

// The wire's share of the time is what its bytes and headers need at its rate, whatever the run.
TEST(Statistics, BusyTimeOfALinkIsThatOfItsBytes) {
  const Tool tool;
  const ordered_json json = statistics_of(tool, kAllReduce);
  unsigned links = 0;
  for (const auto& resource : json["resources"]) {
    if (resource["kind"] != "link") continue;
    ++links;
    const double needed = resource["bytes"].get<double>() * 1e12 / resource["rate_bytes_per_s"].get<double>();
    EXPECT_GE(resource["busy_ps"].get<double>(), needed);
    EXPECT_LE(resource["busy_ps"].get<double>(), 1.5 * needed + 5000 * resource["messages"].get<double>());
  }
  EXPECT_GE(links, 2U);
}

TEST(Statistics, AreOfAtMostSoManySlices) {
  const Tool tool;
  const ordered_json few = statistics_of(
      tool, std::vector<std::string>{"run", "all_reduce", "-b", "1K", "-e", "1K", "-w", "0", "--stats-slices", "4"});
  EXPECT_LE(few["slices"], 4);
  EXPECT_EQ(schema_errors(few, "statistics.schema.json"), "");
  EXPECT_EQ(tool({"run", "all_reduce", "--stats-slices", "1"}).code, 2);
}

// The narrow side is where things wait: of a machine with a tenth of the links' rate, packets wait for the wire.
TEST(Statistics, TellWhatIsWaitedFor) {
  const Tool tool;
  const auto waited = [&](const std::vector<std::string>& more, const char* kind, const char* reason) {
    double sum = 0;
    const ordered_json json = statistics_of(tool, with(kAllReduce, more));
    for (const auto& resource : json["resources"]) {
      if (resource["kind"] == kind) sum += resource["waiting_ps"].value(reason, 0.0);
    }
    return sum;
  };
  EXPECT_GT(waited({"--set", "system.links.lanes=1"}, "link", "wire"), 2 * waited({}, "link", "wire"));
}

// A check that compares nothing cannot fail.
TEST(Statistics, EveryInvariantIsComparedAndInBothGrades) {
  const Tool tool;
  for (const char* fidelity : {"accurate", "fast"}) {
    std::map<std::string, std::uint64_t> compared;
    const ordered_json json = statistics_of(tool, with(kAllReduce, {"--fidelity", fidelity}));
    for (const auto& check : json["checks"]) compared[check["check"]] = check["compared"];
    EXPECT_EQ(compared.size(), 7U) << json["checks"];
    for (const auto& [check, count] : compared) EXPECT_GT(count, 0U) << fidelity << ": " << check;
  }
}

// There the pseudo channels of a slice go in step, and are told of together.
TEST(Statistics, HoldWhereQueuesHaveLongSlotsInTheFastGrade) {
  const Tool tool;
  const ordered_json json =
      statistics_of(tool, {"run", "stream", "--topology", "minimal", "--set", "pe.ipcq.slot_size=64KiB", "--bytes",
                           "16K", "--block", "4K", "--fidelity", "fast"});
  EXPECT_GT(json["totals"]["hbm_channel"]["bytes"], 0);
}

// Every kind of part that moves bytes has some, and one that has is busy.
TEST(Statistics, HaveEveryKindOfPart) {
  const Tool tool;
  std::map<std::string, std::uint64_t> bytes, busy;
  const ordered_json json = statistics_of(tool, kAllReduce);
  for (const auto& resource : json["resources"]) {
    bytes[resource["kind"]] += resource.value("bytes", std::uint64_t{0});
    busy[resource["kind"]] += resource.value("busy_ps", std::uint64_t{0});
  }
  for (const char* kind : {"link", "ucie", "router_port", "hbm_channel", "tcm", "engine", "ipcq"}) {
    EXPECT_GT(bytes[kind], 0U) << kind;
    EXPECT_TRUE(std::string(kind) == "ipcq" || busy[kind] > 0) << kind;
  }
}

// A PE that loads as fast as it can fills the queue of its DMA engine, and the DMA engines those of the memory.
TEST(Statistics, MarksOfQueuesReachTheirRoomAndDoNotPassIt) {
  const Tool tool;
  for (const unsigned room : {3U, 8U}) {
    const std::string depth = std::to_string(room);
    const ordered_json json = statistics_of(
        tool, {"run", "stream", "--topology", "minimal", "--bytes", "128K", "--set", "pe.dma.queue_depth=" + depth,
               "--set", "cube.hbm.queue_depth=" + depth, "--set", "cube.hbm.interleave=32 B"});
    std::map<std::string, std::uint64_t> marks;
    std::map<std::string, std::string> units;
    for (const auto& resource : json["resources"]) {
      std::string kind = resource["kind"];
      const std::string name = resource["name"];
      if (kind == "engine" || kind == "tcm") kind = name.substr(name.find('.', name.find(".pe") + 1) + 1);
      marks[kind] = std::max(marks[kind], resource.value("high_water", std::uint64_t{0}));
      units[kind] = resource.value("high_water_unit", "");
    }
    EXPECT_EQ(marks["dma_r"], room);
    EXPECT_GT(marks["dma_w"], 0U);
    EXPECT_LE(marks["dma_w"], room);
    EXPECT_EQ(units["dma_r"], "ops");
    // `queue_depth` bursts of each of two pseudo channels, of reads and of writes.
    EXPECT_GE(marks["hbm_channel"], 2U * room);
    EXPECT_LE(marks["hbm_channel"], 4U * room);
    EXPECT_EQ(units["hbm_channel"], "bursts");
    EXPECT_GT(marks["tcm.write"], 0U);
    EXPECT_LT(marks["tcm.write"], std::uint64_t{16} << 20);
    EXPECT_EQ(marks["tcm.write"] % 64, 0U) << "whole lines";
    EXPECT_EQ(units["tcm.write"], "bytes");
  }
}

// A packet that waits has at least a flit in a buffer, one that does not is on the wire: six cycles at most. Four times
// as many go through.
TEST(Statistics, MarksOfRouterPortsAreAtMostWhatBuffersAndTheWireHold) {
  const Tool tool;
  const ordered_json json = statistics_of(
      tool,
      with(kAllReduce, {"--topology", "ring8", "--set", "cube.noc.vcs_per_set=1", "--set", "cube.noc.vc_depth=6"}));
  constexpr std::uint64_t kChannels = 5 * 2, kDepth = 6, kWire = 6;
  std::uint64_t most = 0, messages = 0;
  for (const auto& resource : json["resources"]) {
    if (resource["kind"] != "router_port" || resource.value("high_water_unit", "") != "packets") continue;
    if (resource["name"].get<std::string>().find(".cube") == std::string::npos) continue;
    EXPECT_LE(resource["high_water"], kChannels * kDepth + kWire) << resource["name"];
    most = std::max(most, resource["high_water"].get<std::uint64_t>());
    messages = std::max(messages, resource["messages"].get<std::uint64_t>());
  }
  EXPECT_GT(most, 1U);
  EXPECT_GT(messages, 4 * (kChannels * kDepth + kWire));
}

TEST(Statistics, OfARunThatIsCutShortAreWritten) {
  const Tool tool;
  const Outcome outcome = tool(with(kAllReduce, {"--max-sim-time", "2us", "--stats", "stats.json"}));
  EXPECT_EQ(outcome.code, 4);
  const ordered_json json = json_of(read(tool.file("stats.json")));
  EXPECT_EQ(json["time_ps"], 2'000'000);
}

}  // namespace
}  // namespace kernbench
