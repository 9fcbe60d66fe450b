/// HBM channels against the tables of bench/reference/hbm: its README says what each column is.
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sc_main/rigs/bare_stream.h"
#include "sc_main/rigs/stream_pattern.h"
#include "sc_main/validate/hbm_devices.h"
#include "sc_main/validate/table.h"
#include "sc_main/validate/validate.h"

namespace kernbench::validate {

namespace {

constexpr double kRamulatorLimit = 0.01, kDramSysR = 0.05, kDramSysD = 0.08, kFastLimit = 0.15;
/// Fixed arrivals: their phase against the clock is not in the tables, and the reference's half clock is 312 ps, not
/// 312.5.
constexpr double kFixedArrivalsLimit = 0.05;

/// "B:RoBaCoBg": the fields alone. "direct": none.
std::string mapping_fields(const std::string& text) {
  if (text == "direct") return "";
  const std::size_t colon = text.find(':');
  return colon == std::string::npos ? text : text.substr(colon + 1);
}

unsigned scope(const Table& table, std::size_t row) {
  if (table.text(row, "scope") == "pc") return 1;
  if (table.text(row, "scope") != "ch") table.fail(row, "scope", "give pc or ch");
  return 2;
}

RefreshPolicy refresh(const Table& table, std::size_t row) {
  const std::string& text = table.text(row, "refresh");
  if (text == "off") return RefreshPolicy::none;
  if (text == "all_bank") return RefreshPolicy::all_bank;
  if (text != "per_bank") table.fail(row, "refresh", "give off, all_bank or per_bank");
  return RefreshPolicy::per_bank;
}

PagePolicy page_policy(const Table& table, std::size_t row) {
  const std::string& text = table.text(row, "page_policy");
  if (text.rfind("open", 0) == 0) return PagePolicy::open;
  if (text.rfind("closed", 0) != 0) table.fail(row, "page_policy", "give open or closed_after_1");
  return PagePolicy::closed;
}

/// A row names what this version does not know: the row is skipped.
class UnknownName : public ConfigError {
 public:
  explicit UnknownName(const ConfigError& error) : ConfigError(error) {}
};

/// What `read` makes of a row; nothing where a name is unknown, and then the group runs the others.
template <class Read>
auto unless_unknown(Group& group, const Read& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const UnknownName& error) {
    group.skipped.emplace_back(error.what());
    return std::nullopt;
  }
}

bool protects_row_hits(const Table& table, std::size_t row) {
  const std::string& text = table.text(row, "scheduler");
  if (text != "FRFCFS_rowhit_first" && text != "FRFCFS_plain")
    throw UnknownName(table.problem(row, "scheduler", "known are FRFCFS_rowhit_first and FRFCFS_plain"));
  return text == "FRFCFS_rowhit_first";
}

HbmDevice grade(const HbmDevices& devices, const Table& table, std::size_t row) {
  try {
    return devices.grade(table.text(row, "device_grade"));
  } catch (const std::invalid_argument& error) {
    throw UnknownName(table.problem(row, "device_grade", error.what()));
  }
}

/// One run in a process of its own; the figures as the verdicts expect them.
enum Figure : std::size_t { kClocks, kMean, kFromArrival, kFigures };
std::function<Figures()> run_of(const BareStreamConfig& config) {
  return [config] {
    const BareStreamResult result = run_bare_stream(config);
    Figures figures(kFigures);
    figures[kClocks] = result.clocks;
    figures[kMean] = result.mean_ns;
    figures[kFromArrival] = result.mean_from_arrival_ns;
    return figures;
  };
}

/// Whether the row can be run; notes why not, and then the group runs the others.
bool known_stream(const Table& table, std::size_t row, const BareStreamConfig& c, Group& group) {
  try {
    [[maybe_unused]] const StreamPattern made(c.pattern, c.hbm, c.pseudo_channels, c.rows, c.mapping, c.request_bytes);
    return true;
  } catch (const StreamFault& fault) {
    const std::string column = fault.member == "request_bytes" ? "req_bytes" : fault.member;
    group.skipped.emplace_back(table.problem(row, table.has(column) ? column : "pattern", fault.what()).what());
    return false;
  }
}

/// Rows of a table that are run: all, or for a sample every n-th.
std::vector<std::size_t> rows_of(const Table& table, const Request& request, std::size_t step) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < table.rows(); i += request.sample ? step : 1) rows.push_back(i);
  return rows;
}

/// What the columns of most tables say in common.
BareStreamConfig stream_of(const Table& table, const HbmDevices& devices, std::size_t row) {
  const HbmDevice device = grade(devices, table, row);
  BareStreamConfig c;
  c.hbm = device.config;
  c.rows = device.rows;
  c.pseudo_channels = scope(table, row);
  c.mapping = mapping_fields(table.text(row, "mapping"));
  c.pattern = table.text(row, "pattern");
  c.queue = static_cast<unsigned>(table.integer(row, "queue_depth"));
  return c;
}

/// A figure that a row is held against.
struct Wanted {
  const char* metric;
  double reference, limit;
  std::function<double(const Figures&)> measured;
  std::string reason = {};  ///< why it is reported only; empty: it is judged
};
/// What a row says of a run, beside what is run.
struct StreamRow {
  std::string name;  ///< of its cases
  std::vector<Wanted> wanted;
};

Wanted mean_latency(double reference, double limit, std::string reason) {
  return {"avg_read_lat_ns", reference, limit, [](const Figures& figures) { return figures[kMean]; },
          std::move(reason)};
}

/// Of rows that have a run each.
auto judged_rows(std::vector<StreamRow> rows) {
  return [rows = std::move(rows)](const std::vector<Figures>& figures) {
    Judged judged;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const Wanted& one : rows[i].wanted)
        judged.cases.push_back(
            judge(rows[i].name, one.metric, one.reference, one.measured(figures[i]), one.limit, one.reason));
    }
    return judged;
  };
}

using StreamOfRow = std::function<BareStreamConfig(std::size_t row)>;
/// `c`: what StreamOfRow has made of the row.
using WantedOfRow = std::function<std::vector<Wanted>(std::size_t row, const BareStreamConfig& c)>;

/// A run for each row whose stream is known; of a sample for every `step`-th.
Group row_by_row(const Table& table, const Request& request, std::size_t step, const StreamOfRow& stream,
                 const WantedOfRow& wanted) {
  Group group;
  group.name = table.name();
  std::vector<StreamRow> rows;
  for (const std::size_t row : rows_of(table, request, step)) {
    std::optional<BareStreamConfig> c = unless_unknown(group, [&] { return stream(row); });
    if (!c || !known_stream(table, row, *c, group)) continue;
    c->fast = request.fast;
    rows.push_back({table.name() + "/" + table.text(row, "case_id"), wanted(row, *c)});
    group.runs.push_back(run_of(*c));
  }
  group.verdict = judged_rows(std::move(rows));
  return group;
}

Group bandwidth(const Table& table, const HbmDevices& devices, const Request& request) {
  table.require({"case_id", "device_grade", "scope", "mapping", "pattern", "req_bytes", "reads_per_cycle_of_mix",
                 "writes_per_cycle_of_mix", "scheduler", "page_policy", "refresh", "queue_depth", "n_requests",
                 "n_bursts_32B", "sim_cycles_ck", "avg_read_lat_ns"});
  const auto stream = [&](std::size_t row) {
    BareStreamConfig c = stream_of(table, devices, row);
    c.request_bytes = static_cast<std::uint32_t>(table.integer(row, "req_bytes"));
    c.reads = static_cast<unsigned>(table.integer(row, "reads_per_cycle_of_mix"));
    c.writes = static_cast<unsigned>(table.integer(row, "writes_per_cycle_of_mix"));
    c.hbm.protect_row_hits = protects_row_hits(table, row);
    c.hbm.page_policy = page_policy(table, row);
    c.hbm.refresh = refresh(table, row);
    c.hbm.forward_writes = true;
    c.requests = table.integer(row, "n_requests");
    return c;
  };
  const double limit = request.fast ? kFastLimit : kRamulatorLimit;
  const auto wanted = [&](std::size_t row, const BareStreamConfig& c) {
    const double bytes = static_cast<double>(table.integer(row, "n_bursts_32B")) * 32;
    const bool per_bank = c.hbm.refresh == RefreshPolicy::per_bank;
    std::vector<Wanted> all{{"bandwidth_bytes_per_ck", bytes / table.number(row, "sim_cycles_ck"), limit,
                             [bytes](const Figures& figures) { return bytes / figures[kClocks]; },
                             per_bank ? "per-bank refresh: the reference's README calls these rows indicative" : ""}};
    if (!table.empty(row, "avg_read_lat_ns"))
      all.push_back(mean_latency(table.number(row, "avg_read_lat_ns"), limit, "latency of a saturated stream"));
    return all;
  };
  return row_by_row(table, request, 23, stream, wanted);
}

Group dramsys(const Table& table, const HbmDevices& devices, const Request& request) {
  table.require({"case_id", "timing_set", "scope", "mapping", "pattern", "reads_of_mix", "writes_of_mix", "scheduler",
                 "buffer", "queue_depth", "refresh", "page_policy", "max_outstanding", "n_requests", "sim_ns",
                 "avg_read_lat_ns"});
  const auto stream = [&](std::size_t row) {
    const std::string& set = table.text(row, "timing_set");
    if (set != "R" && set != "D") table.fail(row, "timing_set", "give R or D");
    HbmDevice device = set == "R" ? devices.grade("HBM2_2000") : devices.device("dramsys_hbm2");
    BareStreamConfig c;
    c.hbm = device.config;
    c.hbm.stack_ids = 1;                        // README: 32768 rows, one stack ID
    c.hbm.timing.t_dqsck = set == "D" ? 1 : 0;  // timing.yaml: data follow RL by DQSCK
    c.rows = 32'768;
    c.hbm.scheduler = hbm_scheduler("shared");
    c.paced = true;  // a TLM port of the tool takes one request per clock
    c.pseudo_channels = scope(table, row);
    c.mapping = mapping_fields(table.text(row, "mapping"));
    c.pattern = table.text(row, "pattern");
    c.reads = static_cast<unsigned>(table.integer(row, "reads_of_mix"));
    c.writes = static_cast<unsigned>(table.integer(row, "writes_of_mix"));
    c.hbm.page_policy = page_policy(table, row);
    c.hbm.refresh = refresh(table, row);
    c.queue = static_cast<unsigned>(table.integer(row, "queue_depth"));
    c.requests = table.integer(row, "n_requests");
    if (table.text(row, "max_outstanding") != "unlimited") {
      c.arrivals = BareStreamConfig::Arrivals::closed_loop;
      c.outstanding = static_cast<unsigned>(table.integer(row, "max_outstanding"));
    }
    return c;
  };
  const auto wanted = [&](std::size_t row, const BareStreamConfig& c) {
    const double bytes = static_cast<double>(c.requests) * 32;
    const double limit = request.fast ? kFastLimit : table.text(row, "timing_set") == "R" ? kDramSysR : kDramSysD;
    const std::string policy = table.text(row, "scheduler") + "/" + table.text(row, "buffer");
    const bool modelled = policy == "FrFcfs/Shared";
    // CK is 1 ns in both sets.
    std::vector<Wanted> all{{"bandwidth_gbps", bytes / table.number(row, "sim_ns"), limit,
                             [bytes](const Figures& figures) { return bytes / figures[kClocks]; },
                             modelled ? "" : "policy " + policy + " is not modelled: measured with FrFcfs/Shared"}};
    if (!table.empty(row, "avg_read_lat_ns") && modelled)
      all.push_back(mean_latency(table.number(row, "avg_read_lat_ns"), limit, "latency of a saturated stream"));
    return all;
  };
  return row_by_row(table, request, 9, stream, wanted);
}

/// A script for each named situation; the latency of its last step is the figure.
std::vector<BareStreamConfig::Step> situation(const std::string& name, const HbmConfig& c) {
  const Ps ck = kPsPerSecond / c.ck_hz;
  const Ps apart = 400 * ck;
  const auto at = [](std::uint32_t group, std::uint32_t bank, std::uint32_t row) {
    BurstPlace place;
    place.bank_group = group;
    place.bank = bank;
    place.row = row;
    return place;
  };
  if (name == "row_hit") return {{0, at(0, 0, 5), false}, {apart, at(0, 0, 5), false}};
  if (name == "row_closed") return {{0, at(0, 0, 5), false}, {apart, at(1, 0, 5), false}};
  if (name == "row_conflict_isolated") return {{0, at(0, 0, 5), false}, {apart, at(0, 0, 6), false}};
  const bool same = name == "read_after_write_same_bankgroup";
  if (same || name == "read_after_write_other_bankgroup") {
    const BurstPlace written = at(0, 0, 1), read = at(same ? 0 : 1, 1, 1);
    // The write's command starts 1 CK after it has come; the read comes then.
    return {{0, written, false}, {apart, read, false}, {2 * apart, written, true}, {2 * apart + ck, read, false}};
  }
  return {};
}

Group latency_single(const Table& table, const HbmDevices& devices, const Request& request) {
  table.require({"device_grade", "case", "formula_ck"});
  Group group;
  group.name = table.name();
  std::vector<StreamRow> rows;
  for (const std::size_t row : rows_of(table, request, 5)) {
    const std::optional<HbmDevice> device = unless_unknown(group, [&] { return grade(devices, table, row); });
    if (!device) continue;
    const std::string& what = table.text(row, "case");
    // Exact to the clock: what is left is the rounding of half clocks to picoseconds.
    rows.push_back({table.name() + "/" + table.text(row, "device_grade") + "/" + what,
                    {{"latency_ck", table.number(row, "formula_ck"), 0.0005,
                      [](const Figures& figures) { return std::round(figures[0] * 100) / 100; }}}});
    BareStreamConfig c;
    c.hbm = device->config;
    c.rows = device->rows;
    c.fast = request.fast;
    const auto ck_hz = static_cast<double>(c.hbm.ck_hz);
    if (what == "row_conflict_back_to_back") {
      c.pattern = "rowconf_1bank_bgfirst";
      c.arrivals = BareStreamConfig::Arrivals::closed_loop;
      c.requests = 20;
      group.runs.push_back([c, ck_hz] { return Figures{run_bare_stream(c).p95_ns * 1e-9 * ck_hz}; });
      continue;
    }
    c.script = situation(what, c.hbm);
    if (c.script.empty()) table.fail(row, "case", "no such situation is known");
    group.runs.push_back([c, ck_hz] {
      // From the write command: it started as the read came.
      return Figures{run_bare_stream(c).script_ns.back() * 1e-9 * ck_hz};
    });
  }
  group.verdict = judged_rows(std::move(rows));
  return group;
}

Group closed_loop(const Table& table, const HbmDevices& devices, const Request& request) {
  table.require({"case_id", "device_grade", "scope", "mapping", "pattern", "outstanding", "queue_depth",
                 "achieved_gbps", "frac_peak", "avg_read_lat_ns"});
  const auto stream = [&](std::size_t row) {
    BareStreamConfig c = stream_of(table, devices, row);
    c.arrivals = BareStreamConfig::Arrivals::closed_loop;
    c.outstanding = static_cast<unsigned>(table.integer(row, "outstanding"));
    c.requests = 20'000;
    return c;
  };
  const auto wanted = [&](std::size_t row, const BareStreamConfig& c) {
    const double limit = request.fast ? kFastLimit : kRamulatorLimit;
    // As a fraction of the peak, which does not depend on how the tool rounds its clock.
    const double bytes = static_cast<double>(c.requests) * c.hbm.burst_bytes,
                 peak_bytes_per_ck = static_cast<double>(c.hbm.burst_bytes) / c.hbm.burst_ck * c.pseudo_channels;
    return std::vector<Wanted>{
        {"fraction_of_peak", table.number(row, "frac_peak"), limit,
         [=](const Figures& figures) { return bytes / figures[kClocks] / peak_bytes_per_ck; }},
        mean_latency(table.number(row, "avg_read_lat_ns"), limit, request.fast ? "latency of grade fast" : "")};
  };
  return row_by_row(table, request, 11, stream, wanted);
}

Group open_loop(const Table& table, const HbmDevices& devices, const Request& request) {
  table.require({"case_id", "device_grade", "scope", "mapping", "pattern", "arrivals", "queue_depth",
                 "offered_frac_of_peak", "avg_read_lat_from_acceptance_ns", "avg_read_lat_from_arrival_ns"});
  const auto stream = [&](std::size_t row) {
    BareStreamConfig c = stream_of(table, devices, row);
    const std::string& arrivals = table.text(row, "arrivals");
    if (arrivals != "poisson" && arrivals != "fixed") table.fail(row, "arrivals", "give poisson or fixed");
    c.arrivals = arrivals == "fixed" ? BareStreamConfig::Arrivals::fixed : BareStreamConfig::Arrivals::poisson;
    c.load = table.number(row, "offered_frac_of_peak");
    c.requests = 100'000;
    return c;
  };
  const auto wanted = [&](std::size_t row, const BareStreamConfig& c) {
    const bool fixed = c.arrivals == BareStreamConfig::Arrivals::fixed;
    std::vector<Wanted> all;
    for (const auto& [metric, figure] : {std::pair<const char*, Figure>{"avg_read_lat_from_acceptance_ns", kMean},
                                         {"avg_read_lat_from_arrival_ns", kFromArrival}}) {
      all.push_back({metric, table.number(row, metric), request.fast ? kFastLimit : kFixedArrivalsLimit,
                     [at = figure](const Figures& figures) { return figures[at]; },
                     request.fast ? "latency of grade fast"
                     : fixed      ? ""
                                  : "the random arrivals of the reference are not known"});
    }
    return all;
  };
  return row_by_row(table, request, 6, stream, wanted);
}

}  // namespace

std::vector<Group> hbm_groups(const Request& request) {
  const HbmDevices devices(request.reference / "timing.yaml");
  std::vector<Group> groups;
  for (const std::filesystem::path& file : csv_files(request.reference)) {
    const Table table(file);
    if (table.has("timing_set")) {
      groups.push_back(dramsys(table, devices, request));
    } else if (table.has("sim_cycles_ck")) {
      groups.push_back(bandwidth(table, devices, request));
    } else if (table.has("formula_ck")) {
      groups.push_back(latency_single(table, devices, request));
    } else if (table.has("arrivals")) {
      groups.push_back(open_loop(table, devices, request));
    } else if (table.has("outstanding")) {
      groups.push_back(closed_loop(table, devices, request));
    } else {
      table.fail(0, "case_id", "the columns are those of no HBM table: see the README beside it");
    }
  }
  return groups;
}

}  // namespace kernbench::validate
