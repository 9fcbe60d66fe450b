// What ran, and what came of it.
(function () {
  const run = data.run;
  if (!run) return;
  const holder = section("summary", "Summary").select(".chart"), tiles = holder.append("div").attr("class", "tiles");
  const tile = (figure, what) => { const one = tiles.append("div").attr("class", "tile"); one.append("span").attr("class", "figure").text(figure); one.append("span").attr("class", "what").text(what); };
  if (data.time) tile(nanoseconds(data.time.ns), data.time.of);
  tile(time(run.sim_time_ps), "simulated, with set-up");
  tile(`${run.machine.sips} / ${run.machine.cubes} / ${run.machine.pes}`, "SIPs / cubes / PEs");
  tile(`${figure(run.energy_pj / 1e6)} uJ`, "energy");
  const checks = (run.results || []).map(row => row.check).filter(Boolean);
  if (checks.length) tile(checks.includes("wrong") ? "wrong" : checks.includes("ok") ? "ok" : "skipped", "check of the numerics");
  tile(run.fidelity.includes("=") ? "mixed" : run.fidelity, "fidelity");
  if (data.host) tile(`${data.host.wall_s.toFixed(2)} s`, "on the host");
  const replay = run.replay;
  if (replay) tile(percent(replay.repeated_time_share), "of launches and collectives repeated");
  const words = [];
  if (replay) words.push("What is repeated is not simulated: it does what the mean of equal work did, evenly over its time.");
  if (stats) {
    // Three of a class at most: machines have many parts that are alike.
    const whole = opening === spans[0], busy = d3.range(stats.count).map(i => whole ? stats.utilisation[i] : stats.mean(i, opening.begin, opening.end));
    const order = d3.range(stats.count).filter(i => stats.classOf(i) >= 0).sort((a, b) => busy[b] - busy[a] || a - b);
    const seen = new Map(), best = order.filter(i => {
      const times = (seen.get(stats.classOf(i)) || 0) + 1;
      seen.set(stats.classOf(i), times);
      return times <= 3;
    }).slice(0, 10);
    const heads = [["part"], ["kind"], ["busy", 1], ...(whole ? [] : [["busy, whole run", 1]]), [whole ? "bytes" : "bytes, whole run", 1]];
    table(holder, `Busiest parts: ${opening.name}`, heads, best.map(i =>
      [stats.names[i], stats.kind(i), percent(busy[i]), ...(whole ? [] : [percent(stats.utilisation[i])]), stats.bytes[i] ? bytes(stats.bytes[i]) : ""]));
  }
  const best = data.what_if && data.what_if.changes[0];
  if (best && best.saved_ns > 0) words.push(`Of single values, ${best.key}${best.place ? " of " + best.place : ""} helps most: ${said(best.from)} to ${said(best.to)} saves ${percent(best.saved_fraction)}.`);
  if (words.length) holder.append("p").text(words.join(" "));
})();
