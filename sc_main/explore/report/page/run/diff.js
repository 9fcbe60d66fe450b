// What changed between two runs.
(function () {
  const diff = data.diff;
  if (!diff) return;
  const times = ratio => ratio === null ? "-" : "\u00d7 " + ratio.toFixed(3);
  const summary = section("difference", "What changed").select(".chart");
  table(summary, null, [["", 0], ["A"], ["B"], ["B / A", 1]], [
    ["file", data.names.a, data.names.b, ""], ["command", diff.a.command.join(" "), diff.b.command.join(" "), ""],
    [diff.time.a_of + (diff.time.a_of === diff.time.b_of ? "" : "; B: " + diff.time.b_of), nanoseconds(diff.time.a_ns), nanoseconds(diff.time.b_ns), times(diff.time.ratio)],
    ["simulated time of the run", time(diff.a.sim_time_ps), time(diff.b.sim_time_ps), times(diff.a.sim_time_ps ? diff.b.sim_time_ps / diff.a.sim_time_ps : null)],
    ["energy", figure(diff.a.energy_pj / 1e6) + " uJ", figure(diff.b.energy_pj / 1e6) + " uJ", times(diff.a.energy_pj ? diff.b.energy_pj / diff.a.energy_pj : null)]]);
  const pairs = (caption, list) => list.length ? table(summary, caption, [["key"], ["A"], ["B"]], list.slice(0, 200).map(e => [e.key, said(e.a), said(e.b)]))
    : summary.append("p").attr("class", "note").text(caption + ": the same in both.");
  pairs("Settings", diff.settings);
  pairs("Configuration", diff.config);
  const rows = diff.results.rows, timed = rows.filter(r => r.ratio !== null);
  const results = section("rows", "Results");
  if (timed.length) {
    const width = 1140, line = 26, left = 330, svg = chart("#rows", width, timed.length * line + 46, "Times of the rows", timed.map(r => `${r.row}: ${times(r.ratio)}`).join("; "));
    const x = d3.scaleLinear().domain([0, d3.max(timed, r => Math.max(r.a_ns, r.b_ns))]).range([left, width - 110]).nice(5);
    timed.forEach((row, i) => {
      const group = svg.append("g").attr("transform", `translate(0,${i * line + 4})`);
      group.append("text").attr("x", left - 10).attr("y", 14).attr("text-anchor", "end").text(clipped(row.row, 48));
      group.append("rect").attr("class", "a").attr("x", left).attr("width", x(row.a_ns) - left).attr("height", 9).attr("fill", "#9aa5b1").append("title").text("A " + nanoseconds(row.a_ns));
      group.append("rect").attr("class", "b").attr("x", left).attr("y", 9).attr("width", x(row.b_ns) - left).attr("height", 9).attr("fill", "#1f5fa8").append("title").text("B " + nanoseconds(row.b_ns));
      group.append("text").attr("x", x(Math.max(row.a_ns, row.b_ns)) + 8).attr("y", 14).text(times(row.ratio));
    });
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${timed.length * line + 8})`).call(d3.axisBottom(x).ticks(6).tickFormat(nanoseconds));
    note("#rows", "Grey: A; blue: B.");
  }
  table(results.select(".chart"), "Values that differ", [["row"], ["value"], ["A", 1], ["B", 1], ["B / A", 1]],
    rows.flatMap(row => row.values.map(v => [row.row, v.key, said(v.a), said(v.b), times(v.ratio)])).slice(0, 400));
  for (const [side, list] of [["A", diff.results.only_a], ["B", diff.results.only_b]])
    if (list.length) results.select(".chart").append("p").attr("class", "note").text(`Only in ${side}: ${list.join("; ")}`);
  const layers = diff.layers.filter(layer => layer.a_ns !== layer.b_ns);
  if (layers.length) {
    const holder = section("layers", "Layers").select(".chart");
    for (const layer of layers) table(holder, `${layer.layer}: ${nanoseconds(layer.a_ns)} to ${nanoseconds(layer.b_ns)}, ${times(layer.ratio)}`, [["part"], ["A", 1], ["B", 1], ["change", 1], ["bound by"]],
      [...layer.parts.filter(p => p.change_ns !== 0).map(p => [p.part, nanoseconds(p.a_ns), nanoseconds(p.b_ns), nanoseconds(p.change_ns), ""]),
        ...layer.kernels.filter(k => k.change_ns !== 0).slice(0, 20).map(k => ["kernel " + k.kernel, nanoseconds(k.a_ns), nanoseconds(k.b_ns), nanoseconds(k.change_ns), (k.a_binds === k.b_binds ? said(k.a_binds) : `${said(k.a_binds)}, now ${said(k.b_binds)}`) + (k.a_mapping && k.b_mapping && k.a_mapping !== k.b_mapping ? `; ${k.a_mapping}, now ${k.b_mapping}` : "")])]);
  }
  if (diff.resources && diff.resources.length) table(section("resources", "Resources").select(".chart"), "Busy time, the largest change first", [["resource"], ["kind"], ["A", 1], ["B", 1], ["change", 1], ["busy in A", 1], ["busy in B", 1]],
    diff.resources.slice(0, 100).map(r => [r.name, r.kind, time(r.a_busy_ps), time(r.b_busy_ps), time(r.change_ps), percent(r.a_utilisation), percent(r.b_utilisation)]));
})();
