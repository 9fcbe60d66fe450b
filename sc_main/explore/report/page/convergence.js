// How much of what all points dominate each search had found, by points evaluated.
(function () {
  const section = d3.select("#convergence");
  if (!study.searches.length) return section.remove();
  const width = 1140, height = 400, margin = {top: 16, right: 220, bottom: 52, left: 84};
  const svg = chart("#convergence", width, height, "Hypervolume by points evaluated",
    study.searches.map(run => `${run.algorithm}, seed ${run.seed}: ${run.generations.length} generations`).join("; "));
  const all = [].concat(...study.searches.map(run => run.generations));
  // Searches have reference points of their own, so that their hypervolumes do not compare; shares do.
  const shares = all.every(g => g.share !== null), height_of = g => shares ? g.share : g.hypervolume;
  const x = d3.scaleLinear().domain([0, d3.max(all, g => g.evaluated) || 1]).nice().range([margin.left, width - margin.right]);
  // What little a good search still gains would not be seen from zero.
  const [least, most] = d3.extent(all, height_of);
  const y = d3.scaleLinear().domain([least > most / 2 ? least - (most - least) * 0.1 : 0, most || 1]).nice().range([height - margin.bottom, margin.top]);
  svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(6).tickSize(-(width - margin.left - margin.right)).tickFormat(""));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).ticks(10));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(6).tickFormat(shares ? d3.format(".3~%") : tick(y.domain())));
  svg.append("text").attr("class", "label").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 10).attr("text-anchor", "middle").text("points evaluated (count)");
  svg.append("text").attr("class", "label").attr("transform", `translate(18,${(margin.top + height - margin.bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle")
    .text(shares ? "share of all points' hypervolume" : "hypervolume (product of the objectives' units)");
  const names = [...new Set(study.searches.map(run => run.algorithm))];
  const hue = d3.scaleOrdinal(d3.schemeTableau10).domain(names);
  study.searches.forEach(run => {
    svg.append("path").attr("class", "climb").attr("fill", "none").attr("stroke", hue(run.algorithm)).attr("stroke-width", 2).attr("stroke-opacity", 0.8)
      .attr("d", d3.line().x(g => x(g.evaluated)).y(g => y(height_of(g))).curve(d3.curveStepAfter)(run.generations));
    svg.append("g").selectAll("circle").data(run.generations).enter().append("circle").attr("r", 3).attr("fill", hue(run.algorithm))
      .attr("cx", g => x(g.evaluated)).attr("cy", g => y(height_of(g))).append("title")
      .text(g => `${run.algorithm}, seed ${run.seed}, generation ${g.number}\n${g.evaluated} points evaluated, ${g.front} on the front\n${g.share === null ? "" : "share " + d3.format(".2%")(g.share) + ", "}hypervolume ${figure(g.hypervolume)} from its own reference point`);
  });
  if (shares)
    note("#convergence", "100 % is what all points of the store dominate, those of sweeps and of other searches among them, " +
      "up to a reference point a tenth beyond the worst of their front.");
  const key = svg.append("g").attr("transform", `translate(${width - margin.right + 24},${margin.top + 8})`);
  names.forEach((name, i) => {
    const row = key.append("g").attr("transform", `translate(0,${i * 18})`);
    row.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", hue(name));
    const runs = study.searches.filter(run => run.algorithm === name);
    row.append("text").attr("x", 18).attr("y", 10).text(`${name}, ${runs.length === 1 ? "seed " + runs[0].seed : runs.length + " seeds"}`);
  });
})();
