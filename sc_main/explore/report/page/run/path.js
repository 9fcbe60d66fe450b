// The critical path: what the time of the run or of an iteration was spent on, by kind and by place; the longest segments, and each launch.
(function () {
  const path = data.critical_path;
  if (!path) return;
  const all = section("path", "Critical path"), width = 1140, left = 20, kMost = 40;
  const colour = d3.scaleOrdinal(path.kinds.map(kind => kind.spent), d3.schemeTableau10.concat(d3.schemeSet3));
  const own = all.select(".chart").append("div").attr("id", "path-parts"), holder = all.select(".chart").append("div");
  const heads = [["spent on"], ["place"], ["joins"], ["time", 1], ["share", 1], ["keys that govern it"]];
  /// Of the whole run, or of an iteration or layer: by kind, and by place.
  function draw(whole, parts) {
    own.selectAll("*").remove();
    const sums = new Map();
    for (const part of parts) sums.set(part.spent, (sums.get(part.spent) || 0) + part.time_ps);
    const kinds = [...sums].sort((a, b) => b[1] - a[1]);
    const svg = own.append("svg").attr("viewBox", [0, 0, width, 74 + 22 * Math.ceil(kinds.length / 6)]).attr("role", "img").attr("aria-label", kinds.map(([spent, ps]) => `${spent}: ${percent(ps / whole)}`).join("; "));
    const x = d3.scaleLinear().domain([0, whole]).range([left, width - 20]);
    let at = 0;
    kinds.forEach(([spent, ps], i) => {
      svg.append("rect").attr("class", "cause").attr("x", x(at)).attr("y", 4).attr("width", Math.max(0, x(at + ps) - x(at))).attr("height", 26).attr("fill", colour(spent))
        .append("title").text(`${spent}: ${time(ps)}, ${percent(ps / whole)}`);
      at += ps;
      const entry = svg.append("g").attr("transform", `translate(${left + i % 6 * 186},${66 + 22 * Math.floor(i / 6)})`);
      entry.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", colour(spent));
      entry.append("text").attr("x", 17).attr("y", 10).text(`${spent} ${percent(ps / whole)}`);
    });
    svg.append("g").attr("class", "axis").attr("transform", "translate(0,32)").call(d3.axisBottom(x).ticks(8).tickFormat(time));
    table(own, "By place", heads, parts.slice(0, kMost).map(part => [part.spent, placeOf(part), part.joins || "", time(part.time_ps), percent(part.share), (part.keys || []).join(", ")]));
  }
  /// Without a place a part is what the smallest places of its kind come to.
  function placeOf(part) { return part.place || "(other places)"; }
  /// Of all that is timed, as one.
  function together(list) {
    const sums = new Map();
    for (const part of list.flatMap(one => one.parts)) {
      const key = part.spent + " " + part.place, known = sums.get(key);
      sums.set(key, {...part, time_ps: part.time_ps + (known ? known.time_ps : 0)});
    }
    const time_ps = d3.sum(list, one => one.time_ps);
    const parts = [...sums.values()].map(part => ({...part, share: part.time_ps / time_ps})).sort((a, b) => b.time_ps - a.time_ps);
    return {name: "what is timed", time_ps, parts};
  }
  const shown = [{name: "whole run", time_ps: path.time_ps, parts: path.parts}, ...(timed.length > 1 ? [together(timed)] : []), ...timed.slice(-kMostSpans)];
  const first = shown[Math.min(1, shown.length - 1)];
  if (shown.length > 1) choice(all, "of", shown.map(one => one.name), (_, i) => draw(shown[i].time_ps, shown[i].parts), first.name);
  draw(first.time_ps, first.parts);
  const longest = path.segments.slice().sort((a, b) => (b.end_ps - b.begin_ps) - (a.end_ps - a.begin_ps) || a.begin_ps - b.begin_ps).slice(0, kMost);
  table(holder, `The run's longest segments${path.segments_left_out ? ` of the last ${path.segments.length}` : ""}`, [["from", 1], ["to", 1], ["takes", 1], ["spent on"], ["place"]],
    longest.map(one => [time(one.begin_ps), time(one.end_ps), time(one.end_ps - one.begin_ps), one.spent, one.place]));
  if (path.stretches.length) table(holder, "Iterations and layers, and what most of each was spent on", [["name"], ["from", 1], ["time", 1], ["most of it"], ["place"], ["share", 1]],
    path.stretches.slice(0, kMost).map(one => [one.name, time(one.begin_ps), time(one.time_ps), ...(one.parts.length ? [one.parts[0].spent, placeOf(one.parts[0]), percent(one.parts[0].share)] : ["-", "-", "-"])]));
  if (path.launches.length) table(holder, "Launches, and what most of each was spent on", [["kernel"], ["SIP", 1], ["submitted", 1], ["time", 1], ["most of it"], ["place"], ["share", 1]],
    path.launches.slice(0, kMost).map(one => [one.kernel, String(one.sip), time(one.submitted_ps), time(one.time_ps), ...(one.parts.length ? [one.parts[0].spent, placeOf(one.parts[0]), percent(one.parts[0].share)] : ["-", "-", "-"])]));
})();
