// The critical path: what the run's time was spent on, by kind and by place, its longest segments, and each launch.
(function () {
  const path = data.critical_path;
  if (!path) return;
  section("path", "Critical path");
  const holder = d3.select("#path .chart"), width = 1140, left = 20, kMost = 40;
  const colour = d3.scaleOrdinal(path.kinds.map(kind => kind.spent), d3.schemeTableau10.concat(d3.schemeSet3));
  const svg = chart("#path", width, 74 + 22 * Math.ceil(path.kinds.length / 6), "Critical path", path.kinds.map(kind => `${kind.spent}: ${percent(kind.share)}`).join("; "));
  const x = d3.scaleLinear().domain([0, path.time_ps]).range([left, width - 20]);
  let at = 0;
  for (const kind of path.kinds) {
    svg.append("rect").attr("class", "cause").attr("x", x(at)).attr("y", 4).attr("width", Math.max(0, x(at + kind.time_ps) - x(at))).attr("height", 26).attr("fill", colour(kind.spent))
      .append("title").text(`${kind.spent}: ${time(kind.time_ps)}, ${percent(kind.share)}`);
    at += kind.time_ps;
  }
  svg.append("g").attr("class", "axis").attr("transform", "translate(0,32)").call(d3.axisBottom(x).ticks(8).tickFormat(time));
  path.kinds.forEach((kind, i) => {
    const entry = svg.append("g").attr("transform", `translate(${left + i % 6 * 186},${66 + 22 * Math.floor(i / 6)})`);
    entry.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", colour(kind.spent));
    entry.append("text").attr("x", 17).attr("y", 10).text(`${kind.spent} ${percent(kind.share)}`);
  });
  const heads = [["spent on"], ["place"], ["joins"], ["time", 1], ["share", 1]];
  table(holder, "By place", heads, path.parts.slice(0, kMost).map(part => [part.spent, part.place, part.joins || "", time(part.time_ps), percent(part.share)]));
  const longest = path.segments.slice().sort((a, b) => (b.end_ps - b.begin_ps) - (a.end_ps - a.begin_ps) || a.begin_ps - b.begin_ps).slice(0, kMost);
  table(holder, `Its longest segments${path.segments_left_out ? ` of the last ${path.segments.length}` : ""}`, [["from", 1], ["to", 1], ["takes", 1], ["spent on"], ["place"]],
    longest.map(one => [time(one.begin_ps), time(one.end_ps), time(one.end_ps - one.begin_ps), one.spent, one.place]));
  if (path.stretches.length) table(holder, "Iterations and layers, and what most of each was spent on", [["name"], ["from", 1], ["time", 1], ["most of it"], ["place"], ["share", 1]],
    path.stretches.slice(0, kMost).map(one => [one.name, time(one.begin_ps), time(one.time_ps), ...(one.parts.length ? [one.parts[0].spent, one.parts[0].place, percent(one.parts[0].share)] : ["-", "-", "-"])]));
  if (path.launches.length) table(holder, "Launches, and what most of each was spent on", [["kernel"], ["SIP", 1], ["submitted", 1], ["time", 1], ["most of it"], ["place"], ["share", 1]],
    path.launches.slice(0, kMost).map(one => [one.kernel, String(one.sip), time(one.submitted_ps), time(one.time_ps), ...(one.parts.length ? [one.parts[0].spent, one.parts[0].place, percent(one.parts[0].share)] : ["-", "-", "-"])]));
})();
