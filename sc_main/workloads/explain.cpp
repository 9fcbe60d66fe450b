#include "sc_main/workloads/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "sc_main/workloads/sizes.h"
#include "tlm/machine/names.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {

using Json = nlohmann::ordered_json;
using topology::LinkEnd;

constexpr double kAtBound = 0.85;  // of a bound, or of a resource's rate: that is what limits
constexpr double kMostly = 0.5;    // of a link's rate: what limits, if nothing else stands out
constexpr double kWaiting = 0.25;  // of the time: worth saying

std::string percent(double share) { return fmt::format("{:.0f}%", share * 100); }

}  // namespace

WorkCount count_work(const topology::Plan& plan, topology::Machine& machine) {
  WorkCount count;
  for (std::uint32_t end = 0; end < plan.ends.size(); ++end) {
    const LinkPort& port = machine.link_port(end);
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < port.connections(); ++i) bytes += port.wire_stats(i).bytes;
    count.link_bytes.push_back(bytes);
  }
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube)
      count.hbm_bytes.push_back(machine.hbm({sip, cube}).stats().bytes);
    for (const PeCoord coord : plan.map.pes(sip)) {
      Pe& pe = machine.pe(coord);
      count.math_busy.push_back(pe.statistics().math_busy);
      for (const QueueStatistics& queue : pe.ipcq_statistics())
        count.queues.push_back(
            {queue.blocked_for_credit, queue.blocked_for_data, queue.bytes_sent, queue.bytes_received});
    }
  }
  return count;
}

Explanation::Explanation(const topology::Plan& plan, const std::vector<ccl::BoundInput>& inputs, double ns,
                         const WorkCount& before, const WorkCount& after, unsigned operations)
    : plan_(plan),
      ns_(ns),
      operations_(operations),
      bounds_(ccl::collective_bounds(plan.map, inputs.front())),
      groups_(inputs.size()) {
  for (const ccl::BoundInput& input : inputs) least_bytes_ += ccl::sip_link_bytes(plan.map, input);
  count_links(before, after);
  count_rest(before, after);
  limit_ = judge();
}

void Explanation::count_links(const WorkCount& before, const WorkCount& after) {
  for (std::uint32_t id = 0; id < plan_.ends.size(); ++id) {
    const LinkEnd& end = plan_.ends[id];
    const topology::LinkKind& kind = *end.kind;
    auto known =
        std::find_if(links_.begin(), links_.end(), [&](const LinkClass& one) { return one.name == kind.people; });
    if (known == links_.end()) known = links_.insert(known, LinkClass{});
    LinkClass& links = *known;
    const double rate =
        static_cast<double>(end.link.payload_rate().bytes_per_second()) * static_cast<double>(end.spots->size());
    const double bytes = static_cast<double>(after.link_bytes[id] - before.link_bytes[id]) / operations_;
    const double use = ns_ > 0 ? bytes / (rate * ns_ * 1e-9) : 0;
    if (links.directions++ == 0) {
      links.name = kind.people;
      links.between_sips = kind.between_sips;
      links.bytes_per_second = rate;
    }
    links.bytes += bytes;
    links.mean += use;
    if (use > links.most || links.busiest.empty()) {
      links.most = use;
      links.busiest = plan_.end_name(id);
    }
  }
  for (LinkClass& links : links_) links.mean /= static_cast<double>(links.directions);
  std::reverse(links_.begin(), links_.end());  // the outermost first: a plan has them innermost first
}

void Explanation::count_rest(const WorkCount& before, const WorkCount& after) {
  const double time = ns_ * 1e3 * operations_;
  if (time <= 0) return;
  for (std::size_t i = 0; i < after.hbm_bytes.size(); ++i) {
    const CubeCoord cube{static_cast<std::uint16_t>(i / plan_.map.cubes_per_sip()),
                         static_cast<std::uint16_t>(i % plan_.map.cubes_per_sip())};
    double peak = 0;
    for (std::uint16_t pe = 0; pe < plan_.map.pes_per_cube; ++pe) {
      const PeCoord owner{cube.sip, cube.cube, pe};
      if (plan_.map.has(owner)) peak += static_cast<double>(plan_.map.rates(owner).hbm_slice.bytes_per_second());
    }
    if (peak <= 0) continue;
    const double use = static_cast<double>(after.hbm_bytes[i] - before.hbm_bytes[i]) / (peak * time * 1e-12);
    if (use > hbm_most_) {
      hbm_most_ = use;
      hbm_busiest_ = names::cube(cube);
    }
  }
  for (std::size_t i = 0; i < after.math_busy.size(); ++i)
    math_most_ = std::max(math_most_, static_cast<double>(after.math_busy[i] - before.math_busy[i]) / time);
  double senders = 0, receivers = 0;  // what only sends waits for slots, too
  for (std::size_t i = 0; i < after.queues.size(); ++i) {
    const WorkCount::Queue was = i < before.queues.size() ? before.queues[i] : WorkCount::Queue{};
    const WorkCount::Queue& is = after.queues[i];
    if (is.sent > was.sent) {
      ++senders;
      for_credit_ += static_cast<double>(is.for_credit - was.for_credit) / time;
    }
    if (is.received > was.received) {
      ++receivers;
      for_data_ += static_cast<double>(is.for_data - was.for_data) / time;
    }
  }
  if (senders > 0) for_credit_ = std::min(for_credit_ / senders, 1.0);
  if (receivers > 0) for_data_ = std::min(for_data_ / receivers, 1.0);
}

/// The first of these that holds says what limits.
std::string Explanation::judge() const {
  const ccl::Bound bound = ccl::largest(bounds_), latency = ccl::named(bounds_, "latency");
  if (bound.ns <= 0) {
    return ns_ > 0 ? "copies on the SIP: there is only one contribution" : "nothing: there is nothing to move";
  }
  const auto busiest = std::max_element(links_.begin(), links_.end(),
                                        [](const LinkClass& a, const LinkClass& b) { return a.most < b.most; });
  const bool any = busiest != links_.end();
  const bool no_matter_of_size = bound.name == "latency" || bound.name == "sip_passage";
  if (no_matter_of_size && fraction(latency) >= 1 / 2.0) {
    const std::string way =
        fmt::format("the way between the farthest contributors alone takes {} of the time", percent(fraction(latency)));
    if (bound.name == "latency") return "latency: " + way;
    return fmt::format("{}: the bound is {} of the time; {}", bound.limited_by, percent(fraction(bound)), way);
  }
  if (any && busiest->most >= kAtBound) {
    std::string text = fmt::format("{}: {} is {} used", busiest->name, busiest->busiest, percent(busiest->most));
    if (busiest->between_sips && least_bytes_ > 0) {
      const double times = busiest->bytes / least_bytes_;
      text += times > 1.05 ? fmt::format("; all of them carry {:.2f} times the least", times)
                           : fmt::format("; all of them carry the least there is");
    }
    if (busiest->most - busiest->mean > 0.15)
      text += fmt::format(", but they are {} used on average", percent(busiest->mean));
    return text;
  }
  if (fraction(bound) >= kAtBound)
    return fmt::format("{}: the bound is {} of the time", bound.limited_by, percent(fraction(bound)));
  if (hbm_most_ >= kAtBound) return fmt::format("HBM: the stack of {} is {} used", hbm_busiest_, percent(hbm_most_));
  if (math_most_ >= kAtBound) return fmt::format("math engines: the busiest works {} of the time", percent(math_most_));
  const std::string rest =
      any ? fmt::format("; the busiest link, {}, is {} used", busiest->busiest, percent(busiest->most)) : std::string();
  // Receivers that wait for data then wait for those senders.
  if (for_credit_ >= kWaiting) {
    return fmt::format("IPCQ depth: senders wait for a free slot {} of the time ({} slots of {}){}",
                       percent(for_credit_), plan_.map.ipcq_slots, readable_bytes(plan_.map.ipcq_slot_bytes), rest);
  }
  if (any && busiest->most >= kMostly) {
    return fmt::format("{}: {} is {} used; the rest goes to steps that wait for each other (one way across takes {})",
                       busiest->name, busiest->busiest, percent(busiest->most), percent(fraction(latency)));
  }
  if (fraction(latency) >= kWaiting) {
    return fmt::format("latency: steps that wait for each other; one way across takes {} of the time{}",
                       percent(fraction(latency)), rest);
  }
  if (for_data_ >= kWaiting)
    return fmt::format("the algorithm: receivers wait for data {} of the time{}", percent(for_data_), rest);
  return fmt::format("the PEs: no link or memory is much used, and queues wait little{}", rest);
}

void add_choice(const std::string& algorithm, const ccl::Choice* choice, nlohmann::ordered_json& json) {
  json["algorithm"] = algorithm;
  json["why"] = choice == nullptr ? "it was asked for" : choice->why;
  json["candidates"] = Json::array();
  if (choice == nullptr) return;
  for (const ccl::Candidate& candidate : choice->candidates) {
    json["candidates"].push_back({{"algorithm", candidate.name},
                                  {"expected_ns", candidate.known ? Json(candidate.ns) : Json()},
                                  {"at_least", candidate.at_least},
                                  {"measured", candidate.measured},
                                  {"unfit", candidate.unfit}});
  }
}

std::string choice_text(const std::string& algorithm, const ccl::Choice* choice) {
  std::string text =
      fmt::format("#   algorithm {}: {}\n", algorithm, choice == nullptr ? "it was asked for" : choice->why);
  if (choice == nullptr) return text;
  for (const ccl::Candidate& candidate : choice->candidates) {
    const std::string left_out = candidate.unfit.empty() ? "" : "left out: " + candidate.unfit;
    if (candidate.known)
      text += fmt::format("#     {:<28} {:>12.3f} us {}{}{}\n", candidate.name, candidate.ns / 1e3,
                          candidate.measured   ? "tuned"
                          : candidate.at_least ? "or more, by its links"
                                               : "by its model",
                          left_out.empty() ? "" : ", ", left_out);
    else
      text += fmt::format("#     {:<28} {:>12} us {}\n", candidate.name, "-",
                          left_out.empty() ? "nothing is known of it" : left_out);
  }
  return text;
}

nlohmann::ordered_json Explanation::json(const std::string& algorithm, const ccl::Choice* choice) const {
  Json json;
  json["limit"] = limit_;
  json["bounds"] = Json::array();
  for (const ccl::Bound& bound : bounds_)
    json["bounds"].push_back(
        {{"name", bound.name}, {"bound_ns", bound.ns}, {"fraction", fraction(bound)}, {"of", bound.limited_by}});
  json["links"] = Json::array();
  for (const LinkClass& links : links_) {
    json["links"].push_back({{"class", links.name},
                             {"directions", links.directions},
                             {"gbps_each", links.bytes_per_second / 1e9},
                             {"moved_bytes", links.bytes},
                             {"least_bytes", links.between_sips ? Json(least_bytes_) : Json()},
                             {"mean_utilisation", links.mean},
                             {"max_utilisation", links.most},
                             {"busiest", links.busiest}});
  }
  json["hbm_max_utilisation"] = hbm_most_;
  json["math_max_utilisation"] = math_most_;
  json["waiting_for_credit"] = for_credit_;
  json["waiting_for_data"] = for_data_;
  json["groups_at_work"] = groups_;
  add_choice(algorithm, choice, json);
  return json;
}

std::string Explanation::text(const std::string& algorithm, const ccl::Choice* choice) const {
  std::string text = fmt::format("#   limited by {}\n", limit_);
  text += choice_text(algorithm, choice);
  const ccl::Bound largest = ccl::largest(bounds_);
  for (const ccl::Bound& bound : bounds_) {
    text += fmt::format("#   bound {:<16} {:>12.3f} us {:>7.3f} of the time  {}{}\n", bound.name, bound.ns / 1e3,
                        fraction(bound), bound.limited_by, bound.name == largest.name ? "  <- the largest" : "");
  }
  for (const LinkClass& links : links_) {
    text += fmt::format("#   {:<24} {:>5} x {:>7.1f} GB/s  mean {:>4} most {:>4} used ({}), {} B moved", links.name,
                        links.directions, links.bytes_per_second / 1e9, percent(links.mean), percent(links.most),
                        links.busiest, static_cast<std::uint64_t>(links.bytes));
    if (links.between_sips && least_bytes_ > 0) {
      text += fmt::format(", least {} B ({:.3f} times)", static_cast<std::uint64_t>(least_bytes_),
                          links.bytes / least_bytes_);
    }
    text += "\n";
  }
  text += fmt::format("#   HBM at most {} used, math {}; queues wait {} of the time for a slot, {} for data\n",
                      percent(hbm_most_), percent(math_most_), percent(for_credit_), percent(for_data_));
  if (groups_ > 1) text += fmt::format("#   links, HBM, math and queues: of all {} groups together\n", groups_);
  return text;
}

}  // namespace kernbench
