// What would help: time saved by each key, as a tornado.
(function () {
  const block = data.what_if;
  if (!block) return;
  const holder = section("whatif", "What would help"), name = c => c.key + (c.place ? " of " + c.place : "");
  const ran = block.changes.filter(c => c.state === "ran" && c.saved_ns !== 0), shownKeys = ran.slice(0, 25);
  const chance = block.refreshes ? block.refreshes.chance_ns : 0, atBest = block.at_best || [];
  holder.select(".chart").append("div").attr("class", "tornado");
  if (!block.same) note("#whatif", `The run itself takes ${nanoseconds(block.baseline_ns)} now, and took ${nanoseconds(block.recorded_ns)} in the file: savings count from now.`);
  if (!shownKeys.length) return note("#whatif", "No key changes the time.");
  const width = 1140, line = 24, left = 330, right = 330;
  const svg = chart("#whatif", width, shownKeys.length * line + 56, "Time saved by each key", shownKeys.map(c => `${name(c)}: ${percent(c.saved_fraction)}`).join("; "));
  const low = Math.min(0, d3.min(shownKeys, c => c.saved_ns)), high = Math.max(0, d3.max(shownKeys, c => c.saved_ns));
  const x = d3.scaleLinear().domain([low, high]).range([left, width - right]).nice(4);
  shownKeys.forEach((change, i) => {
    const row = svg.append("g").attr("transform", `translate(0,${i * line + 4})`), from = x(Math.min(0, change.saved_ns)), to = x(Math.max(0, change.saved_ns));
    row.append("text").attr("x", left - 10).attr("y", 13).attr("text-anchor", "end").text(clipped(name(change), 50)).append("title").text(name(change));
    row.append("rect").attr("class", "saving").attr("x", from).attr("width", Math.max(0.5, to - from)).attr("height", line - 7).attr("fill", change.saved_ns > 0 ? "#228833" : "#b3261e")
      .append("title").text(`${name(change)}: ${said(change.from)} to ${said(change.to)}\n${nanoseconds(change.time_ns)}, saves ${nanoseconds(change.saved_ns)}${(change.mappings || []).map(one => "\nother mapping: " + one).join("")}`);
    row.append("text").attr("x", width - right + 14).attr("y", 13).text(`${nanoseconds(change.saved_ns)}, ${percent(change.saved_fraction)}`);
    row.append("text").attr("class", "soft").attr("x", width - right + 150).attr("y", 13).text(`${clipped(said(change.from), 16)} \u2192 ${clipped(said(change.to), 16)}${change.mappings ? " *" : ""}${Math.abs(change.saved_ns) < chance ? " ?" : ""}`);
  });
  const scale = high > -low ? high : -low;
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${shownKeys.length * line + 8})`).call(d3.axisBottom(x).ticks(5).tickFormat(nanoseconds));
  svg.append("line").attr("x1", x(0)).attr("x2", x(0)).attr("y1", 0).attr("y2", shownKeys.length * line + 8).attr("stroke", "#9aa5b1");
  svg.append("text").attr("class", "label").attr("x", (left + width - right) / 2).attr("y", shownKeys.length * line + 44).attr("text-anchor", "middle").text(`time saved of ${nanoseconds(block.baseline_ns)} (${block.measure})`);
  const others = block.changes.concat(block.parts.filter(p => p.keys > 1).map(p => ({...p, key: `all of ${p.part}`, from: "", to: ""}))).filter(c => c.state !== "ran");
  note("#whatif", `The run again with one value twice as good: rates, widths, buffers and units doubled, times and cycles halved; ${block.runs} runs. ${ran.length > 25 ? `The first 25 of ${ran.length} keys are drawn. ` : ""}`
    + `${block.changes.filter(c => c.state === "ran" && c.saved_ns === 0).length} keys change nothing by themselves, ${block.untried.length} lie in parts that change nothing as a whole${others.length ? `, ${others.length} have no legal value or failed` : ""}.`);
  if (shownKeys.some(c => c.mappings)) note("#whatif", "* The planner took another mapping, or other tiles, for a GEMM of this machine: the time is not the key's alone. The bar's tip names it.");
  if (shownKeys.some(c => Math.abs(c.saved_ns) < chance)) note("#whatif", `? Of less than ${nanoseconds(chance)}: where refreshes of the memories fall may make or hide it; more iterations, or a run with cube.hbm.refresh=none, tell.`);
  if (atBest.length) note("#whatif", `Not tried, there is nothing better: ${atBest.join(", ")}.`);
  const parts = block.parts.filter(p => p.state === "ran" && p.saved_ns !== 0);
  table(holder.select(".chart"), "Whole parts: all of their values at once", [["part"], ["keys", 1], ["time", 1], ["saved", 1], ["saved", 1], ["saves more alone"]],
    parts.map(p => [p.part, String(p.keys), nanoseconds(p.time_ns), nanoseconds(p.saved_ns), percent(p.saved_fraction), p.less_than || ""]));
  if (block.pairs) table(holder.select(".chart"), "Pairs of the best keys", [["keys"], ["saved", 1], ["saved", 1], ["each alone, added up", 1]],
    block.pairs.map(p => [p.keys.join(" + "), p.state === "ran" ? nanoseconds(p.saved_ns) : p.state, percent(p.saved_fraction), nanoseconds(p.sum_of_single_ns)]));
  if (others.length) table(holder.select(".chart"), "Values that could not be tried", [["key"], ["from", 1], ["to", 1], ["how it ended"], ["why"]],
    others.map(c => [name(c), said(c.from), said(c.to), c.state, (c.error || "").split("\n")[0]]));
})();
