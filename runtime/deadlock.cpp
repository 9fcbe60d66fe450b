#include "runtime/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tlm/machine/names.h"
#include "tlm/observe/find_cycle.h"

namespace kernbench {

namespace {
constexpr std::size_t kShownOfCycle = 16;
constexpr std::size_t kShownEnds = 8;

std::string ns(Ps time) { return fmt::format("{}.{:03} ns", time / kPsPerNs, time % kPsPerNs); }

std::string rank_name(int rank) { return rank == kMainContext ? "main" : std::to_string(rank); }

using Table = std::vector<std::vector<std::string>>;

/// Columns as wide as their widest cell; the last one is not padded.
std::string render(const Table& table) {
  std::vector<std::size_t> width(table.front().size(), 0);
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? " " + row[i] : fmt::format(" {:<{}}", row[i], width[i]);
    }
    text += line + "\n";
  }
  return text;
}

/// Entries of `blocked` that form a cycle over their peers, in order of waiting; empty if there is none.
std::vector<const Blocked*> cycle_of(const std::vector<Blocked>& blocked) {
  std::map<PeCoord, std::size_t> waiting;
  for (const Blocked& entry : blocked) waiting.emplace(entry.pe, waiting.size());
  std::vector<std::vector<std::size_t>> peers(waiting.size());
  std::map<std::pair<std::size_t, std::size_t>, const Blocked*> waits;
  for (const Blocked& entry : blocked) {
    const auto peer = entry.has_peer ? waiting.find(entry.peer) : waiting.end();
    if (peer == waiting.end()) continue;
    const std::size_t from = waiting.at(entry.pe);
    peers[from].push_back(peer->second);
    waits.emplace(std::pair(from, peer->second), &entry);
  }
  const std::vector<std::size_t> cycle = find_cycle(peers);
  std::vector<const Blocked*> entries;
  for (std::size_t i = 0; i < cycle.size(); ++i) entries.push_back(waits.at({cycle[i], cycle[(i + 1) % cycle.size()]}));
  return entries;
}

/// Lines "A waits for B", then A again.
std::string render_cycle(const std::string& title, const std::vector<std::string>& cycle) {
  std::string text = fmt::format("\nwait cycle of {}:\n", title);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > kShownOfCycle && i == kShownOfCycle - 1) {
      text += fmt::format("  <- ... {} more\n", cycle.size() - i);
      break;
    }
    text += fmt::format("  {}{}\n", i == 0 ? "" : "<- ", cycle[i]);
  }
  return text + fmt::format("  <- {}\n", cycle.front().substr(0, cycle.front().find(" waits for ")));
}

std::string render_cycle(const std::vector<const Blocked*>& cycle) {
  std::vector<std::string> lines;
  for (const Blocked* entry : cycle)
    lines.push_back(fmt::format("{} waits for {}", names::pe(entry->pe), entry->waits_for));
  return render_cycle(fmt::format("{} {}", cycle.size(), cycle.size() == 1 ? "PE" : "PEs"), lines);
}

std::string render_host_cycle(const std::vector<std::string>& cycle) {
  return cycle.empty() ? "" : render_cycle("ranks and what they submitted", cycle);
}

/// Waits whose peer is not blocked itself: it has ended, or never took part.
std::string render_ends(const std::vector<Blocked>& blocked, bool host_cycle) {
  std::set<PeCoord> waiting;
  for (const Blocked& entry : blocked) waiting.insert(entry.pe);
  std::string text;
  std::size_t count = 0;
  for (const Blocked& entry : blocked) {
    if (!entry.has_peer || waiting.count(entry.peer) != 0) continue;
    if (++count > kShownEnds) continue;
    text += fmt::format("  {} waits for {}, and {} is not blocked: its kernel has ended or was never launched\n",
                        names::pe(entry.pe), entry.waits_for, names::pe(entry.peer));
  }
  if (count == 0) return text;
  if (count > kShownEnds) text += fmt::format("  ... and {} more\n", count - kShownEnds);
  return (host_cycle ? "\nwhere the chain of PEs ends:\n" : "\nno wait cycle; where the chain ends:\n") + text;
}
}  // namespace

std::string deadlock_report(const std::vector<Blocked>& blocked, const std::vector<BlockedRank>& ranks, Ps now,
                            const std::vector<std::string>& host_cycle, std::size_t limit) {
  std::string text = fmt::format("deadlock at {}: nothing is left to happen, and {} {} finished\n", ns(now),
                                 ranks.size(), ranks.size() == 1 ? "rank has not" : "ranks have not");
  if (!ranks.empty()) {
    Table table{{"rank", "waits for"}};
    for (std::size_t i = 0; i < ranks.size() && i < limit; ++i) {
      table.push_back({rank_name(ranks[i].rank), ranks[i].waits_for});
    }
    text += "\n" + render(table);
    if (ranks.size() > limit) text += fmt::format("  ... and {} more ranks\n", ranks.size() - limit);
  }
  if (blocked.empty()) return text + "\nno PE is blocked\n" + render_host_cycle(host_cycle);

  std::map<int, int> rank_of_sip;
  std::map<PeCoord, int> rank_of_pe;
  for (const BlockedRank& rank : ranks) {
    if (rank.pe) {
      rank_of_pe.emplace(*rank.pe, rank.rank);
    } else {
      rank_of_sip.emplace(rank.sip, rank.rank);
    }
  }
  const auto rank_of = [&](PeCoord pe) -> std::string {
    if (const auto found = rank_of_pe.find(pe); found != rank_of_pe.end()) return rank_name(found->second);
    const auto found = rank_of_sip.find(pe.sip);
    return found == rank_of_sip.end() ? "-" : rank_name(found->second);
  };
  Table table{{"rank", "PE", "kernel", "op", "since", "waits for"}};
  for (std::size_t i = 0; i < blocked.size() && i < limit; ++i) {
    const Blocked& entry = blocked[i];
    table.push_back({rank_of(entry.pe), names::pe(entry.pe), entry.kernel, entry.op, ns(entry.since), entry.waits_for});
  }
  text += "\n" + render(table);
  if (blocked.size() > limit) text += fmt::format("  ... and {} more blocked ops\n", blocked.size() - limit);

  const std::vector<const Blocked*> cycle = cycle_of(blocked);
  if (!cycle.empty()) return text + render_cycle(cycle);
  return text + render_host_cycle(host_cycle) + render_ends(blocked, !host_cycle.empty());
}

}  // namespace kernbench
