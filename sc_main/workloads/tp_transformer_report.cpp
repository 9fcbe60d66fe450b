#include <fmt/format.h>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/tp_transformer.h"
#include "tlm/config/units.h"
#include "topology/plan/event_rates.h"

namespace kernbench {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::int64_t kShownLayers = 8;
/// Of its HBM, at one time, of the SIP with most.
std::uint64_t used_bytes(Session& session) {
  std::uint64_t most = 0;
  for (std::uint16_t sip = 0; sip < session.map().sips; ++sip) {
    std::uint64_t used = 0;
    for (const PeCoord pe : session.map().pes(sip)) used += session.runtime().most_used_bytes(pe);
    most = std::max(most, used);
  }
  return most;
}
}  // namespace

std::vector<std::vector<std::int32_t>> TpTransformer::routing(const Case& run) const {
  const std::int64_t length = prompt_ + decode_, k = run.model.experts_per_token;
  std::vector<std::vector<std::int32_t>> layers;
  for (std::int64_t layer = 0; run.model.mixture() && layer < run.host.layers; ++layer) {
    std::vector<std::int32_t>& rows = layers.emplace_back(static_cast<std::size_t>(batch_ * length * k));
    for (std::int64_t group = 0; group < dp_; ++group) {
      const auto& passes = run.moe.log->choices.at({fmt::format("layer{}.moe", layer), static_cast<int>(group)});
      std::int64_t first = 0;  // position of the step's first token
      for (std::size_t step = 0; step < run.tokens.size(); ++step) {
        const std::int64_t here = static_cast<std::int64_t>(run.tokens[step].size()) / batch_;
        for (std::int64_t micro = 0; micro < micro_; ++micro) {
          const auto& choices = passes.at(step * static_cast<std::size_t>(micro_) + static_cast<std::size_t>(micro));
          for (std::int64_t i = 0; i < static_cast<std::int64_t>(choices.size()); ++i) {
            const std::int64_t entry = (group * micro_ + micro) * entries() + i / k / here;
            rows[static_cast<std::size_t>((entry * length + first + i / k % here) * k + i % k)] =
                choices[static_cast<std::size_t>(i)];
          }
        }
        first += here;
      }
    }
  }
  return layers;
}

/// Every rank's results of every step, against the whole sequences on the host.
Comparison TpTransformer::compare(const Case& run) const {
  const std::int64_t length = prompt_ + decode_, width = run.model.width, vocabulary = run.model.vocabulary;
  const auto steps = run.tokens.size();
  // Sequence after sequence: the prompt's tokens, then one of each decode step.
  HostTransformer::Values x;
  std::vector<HostTransformer::Values> of_step;
  for (std::size_t step = 0; step < steps; ++step)
    of_step.push_back(ends_ == 1 ? HostTransformer::Values() : input(run, run.tokens[step]));
  std::vector<std::int64_t> tokens;
  for (std::int64_t entry = 0; entry < batch_; ++entry) {
    for (std::size_t step = 0; step < steps; ++step) {
      const auto here = static_cast<std::int64_t>(run.tokens[step].size()) / batch_;
      const auto begin = run.tokens[step].begin() + entry * here;
      tokens.insert(tokens.end(), begin, begin + here);
      if (ends_ == 1) continue;
      const auto row = of_step[step].begin() + entry * here * width;
      x.insert(x.end(), row, row + here * width);
    }
  }
  if (ends_ == 1) x = run.host.embed(tokens, length);
  HostTransformer host = run.host;
  host.routing = routing(run);
  x = host.run(std::move(x), length);
  const std::int64_t columns = ends_ == 1 ? vocabulary : width;
  const std::int64_t own = ends_ == 1 ? run.model.padded_vocabulary(static_cast<int>(tp_)) / tp_ : width;
  Comparison comparison;
  comparison.mismatches += host.misrouted;
  for (const auto& [layer, passes] : run.moe.log->choices) {
    for (const std::vector<std::int32_t>& choices : passes)
      comparison.mismatches +=
          wrong_drops(choices, run.model.experts_per_token, run.model.experts, moe_.ranks(tp_), moe_.capacity_factor);
  }
  std::int64_t first = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto here = static_cast<std::int64_t>(run.tokens[step].size()) / batch_;
    HostTransformer::Values wanted;
    for (std::int64_t entry = 0; entry < batch_; ++entry) {
      const std::int64_t begin = entry * length + first + (ends_ == 1 ? here - 1 : 0),
                         end = entry * length + first + here;
      wanted.insert(wanted.end(), x.begin() + begin * width, x.begin() + end * width);
    }
    first += here;
    const double scale = ends_ == 1 ? run.host.logit_scale(wanted) : 0;
    if (ends_ == 1) wanted = run.host.logits(wanted);
    const double tolerance = transformer_tolerance(run.host.dtype, run.host.layers, wanted, scale);
    for (std::int64_t rank = 0; rank < tp_; ++rank) {
      const std::vector<std::uint8_t>& bytes = run.outputs[step][static_cast<std::size_t>(rank)];
      const bool own_rows = ends_ == 0 && sequence_ == 1;
      const std::int64_t rows = static_cast<std::int64_t>(wanted.size()) / columns / (own_rows ? tp_ : 1),
                         left = ends_ == 1 ? rank * own : 0, top = own_rows ? rank * rows : 0;
      if (static_cast<std::int64_t>(bytes.size() / size_of(run.host.dtype)) != rows * own) ++comparison.mismatches;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < own; ++col) {
          const std::int64_t column = left + col;  // padding of the vocabulary is zero
          const double want = column < columns ? wanted[static_cast<std::size_t>((top + row) * columns + column)] : 0;
          comparison.add(load_element(bytes.data(), run.host.dtype, static_cast<std::size_t>(row * own + col)), want,
                         tolerance);
        }
      }
      // What every rank has, all have to the bit.
      if (run.alike && ends_ == 0 && !own_rows && bytes != run.outputs[step].front()) ++comparison.mismatches;
    }
  }
  return comparison;
}

Report TpTransformer::report(Session& session, const Case& run, const TpTimes& times,
                             const std::vector<TpTimes::Row>& rows, const Comparison& comparison) const {
  const bool checked = common_.checks(session);
  const std::string check = !checked ? "skipped" : comparison.mismatches == 0 ? "ok" : "wrong";
  Report report;
  report.wrong = checked && comparison.mismatches > 0;
  report.text = fmt::format(
      "# tp_transformer, {}: {} of {}, batch {}, context {}, prompt {}, decode {}, {}, TP {}{} of {}, all-reduce {}{}\n"
      "# warm-up {}, iterations {}; times in ns of one step, of rank 0: launch, coll. (exposed) and waiting add up to "
      "time, parts to all; hidden: communication beside launches; kernels: in launches, on the PEs\n"
      "#{:>8} {:>10} {:>7} {:>15} {:>15} {:>14} {:>12} {:>12} {:>15} {:>14} {:>6} {:>8}  {}\n",
      run.model.name, counted(run.host.layers, "layer"), run.model.layers, batch_, context_, prompt_, decode_,
      common_.dtype, tp_,
      dp_ * pp_ > 1 ? fmt::format(" x DP {} x PP {} (micro-batches: {})", dp_, pp_, micro_) : std::string(),
      counted(session.map().sips, "SIP"), session.runtime().algorithm(),
      run.model.mixture() ? moe_.text(tp_, session.options().run.data) : std::string(), common_.warmup,
      common_.iterations, "phase", "part", "tokens", "time", "launch", "coll.", "hidden", "waiting", "kernels", "bound",
      "share", "check", "bound by");
  const auto head = [&](const std::string& phase, const std::string& part) {
    Json row;
    row["op"] = "tp_transformer";
    row["phase"] = phase;
    row["layer"] = part;
    row["model"] = run.model.name;
    row["batch"] = batch_;
    row["ranks"] = tp_;
    if (dp_ * pp_ > 1) {
      row["dp"] = dp_;
      row["pp"] = pp_;
      row["micro_batches"] = micro_;
    }
    if (run.model.mixture()) {
      row["ep"] = moe_.ranks(tp_);
      row["capacity_factor"] = moe_.capacity_factor;
      row["routing"] = moe_.routing_text(session.options().run.data);
    }
    row["dtype"] = to_string(run.host.dtype);
    return row;
  };
  Json set_up = head("set-up", "set-up");
  times.add_set_up_to(set_up);
  set_up["cache_bytes"] = run.cache_bytes;
  set_up["hbm_need_bytes"] = run.memory->need();
  set_up["hbm_used_bytes"] = used_bytes(session);
  set_up["hbm_bytes"] = run.memory->have;
  report.results.push_back(std::move(set_up));
  report.text += fmt::format(" {:>8} {:>10} {:>7} {:>15.3f}\n", "set-up", "-", "-", in_ns(times.of_set_up().time));
  std::string details;
  const auto most = topology::most_per_second(*session.options().plan, static_cast<std::uint16_t>(world()));
  MachineWork in_all;
  double request_ns = 0;
  std::size_t first = 0;
  for (const TransformerPhase& phase : run.phases) {
    const int passes = common_.iterations * static_cast<int>(phase.steps);
    TpTimes::Row all;
    const auto add_row = [&](const std::string& part, const TpTimes::Row& row, bool shown) {
      Json json = head(phase.name, part);
      json["tokens"] = batch_ * phase.length;
      json["steps"] = phase.steps;
      json["time_ns"] = static_cast<double>(row.time) / passes / 1e3;
      TpTimes::add_to(row, passes, json);
      json["check"] = check;
      json["mismatches"] = checked ? Json(comparison.mismatches) : Json();
      json["max_abs_err"] = checked ? Json(comparison.max_abs_error) : Json();
      const auto ns = [&](const char* key) { return json[key].get<double>(); };
      if (shown)
        report.text += fmt::format(
            " {:>8} {:>10} {:>7} {:>15.3f} {:>15.3f} {:>14.3f} {:>12.3f} {:>12.3f} {:>15.3f} {:>14.3f} {:>6.3f} {:>8}  "
            "{}\n",
            phase.name, part, batch_ * phase.length, ns("time_ns"), ns("launch_ns"), ns("collective_ns"),
            ns("hidden_ns"), ns("waiting_ns"), ns("kernel_ns"), ns("bound_ns"), ns("bound_share"), check,
            json["bound_binds"].get<std::string>());
      report.results.push_back(std::move(json));
    };
    const auto add_work = [&](Json& json, const MachineWork& work) {
      json["energy_pj"] = work.pj / passes;
      json["utilisation"] = work.utilisation(most);
    };
    const std::size_t phase_number = static_cast<std::size_t>(&phase - run.phases.data()),
                      first_piece = phase_number * static_cast<std::size_t>(run.pieces);
    for (std::int64_t piece = 0; piece < run.pieces; ++piece) {
      TpTimes::Row sum;
      for (std::int64_t step = 0; step < phase.steps; ++step)
        sum += rows[first + static_cast<std::size_t>(step * run.pieces + piece)];
      all += sum;
      // Of many layers, which are alike, the terminal shows the first.
      if (pp_ > 1) continue;  // stages go on at once
      add_row(piece_name(piece), sum,
              run.host.layers <= kShownLayers || piece <= ends_ || piece >= ends_ + run.host.layers);
      add_work(report.results.back(), run.of_piece[first_piece + static_cast<std::size_t>(piece)]);
    }
    all.join_layers();
    add_row("all", all, true);
    Json& whole = report.results.back();
    whole["tokens_per_s"] = static_cast<double>(batch_ * phase.length) / whole["time_ns"].get<double>() * 1e9;
    details += fmt::format("# {}: {:.0f} tokens per second, {:.3f} us {}\n", phase.name,
                           whole["tokens_per_s"].get<double>(), whole["time_ns"].get<double>() / 1e3,
                           phase.name == "decode" ? "per output token" : "to the first token");
    const MachineWork& work = run.of_phase[phase_number];
    add_work(whole, work);
    whole["token_energy_pj"] = whole["energy_pj"].get<double>() / static_cast<double>(batch_ * phase.length);
    details += fmt::format("# {}: {:.6f} J, {:.6f} J per token\n", phase.name, whole["energy_pj"].get<double>() * 1e-12,
                           whole["token_energy_pj"].get<double>() * 1e-12);
    details += fmt::format("# {}: mean utilisation: {}\n", phase.name, utilisation_text(whole["utilisation"]));
    in_all.add(work);
    request_ns += whole["time_ns"].get<double>() * static_cast<double>(phase.steps);
    whole["where"] = where_time_goes(all, passes);
    const auto share = [&](const char* part) {
      return 100 * whole["where"][part].get<double>() / whole["time_ns"].get<double>();
    };
    details += fmt::format(
        "# {}: of the time {:.1f} % compute-bound kernels, {:.1f} % HBM-bound ones, {:.1f} % kernels bound by latency, "
        "{:.1f} % launching, {:.1f} % exposed communication, {:.1f} % waiting for other ranks\n",
        phase.name, share("compute_ns"), share("hbm_ns"), share("latency_ns"), share("host_ns"), share("exposed_ns"),
        share("waiting_ns"));
    if (run.model.mixture()) {
      whole["experts"] = experts_of(*run.moe.log, times, session.runtime().host_trace(), first,
                                    first + static_cast<std::size_t>(phase.steps * run.pieces), passes);
      details += experts_text(phase.name, whole["experts"], kShownLayers);
    }
    details += TpTimes::kernels_text(whole);
    first += static_cast<std::size_t>(phase.steps * run.pieces);
  }
  Json& request = report.results.back()["request"];
  request["time_ns"] = request_ns;
  request["energy_pj"] = in_all.pj / common_.iterations;
  request["utilisation"] = in_all.utilisation(most);
  details += fmt::format("# in all: {:.3f} us, {:.6f} J, mean utilisation: {}\n", request_ns / 1e3,
                         request["energy_pj"].get<double>() * 1e-12, utilisation_text(request["utilisation"]));
  report.text += times.set_up_text() + details;
  if (comparison.not_finite > 0)
    report.text += fmt::format("# check: {} of the host's values are NaN or infinite, and say little of the others\n",
                               comparison.not_finite);
  report.text +=
      fmt::format("# KV caches of a rank: {} B; HBM needed on a SIP: at least {:.3f}, used {:.3f} of {:.3f} GB\n",
                  run.cache_bytes, static_cast<double>(run.memory->need()) / 1e9,
                  static_cast<double>(used_bytes(session)) / 1e9, static_cast<double>(run.memory->have) / 1e9);
  return report;
}

}  // namespace kernbench
