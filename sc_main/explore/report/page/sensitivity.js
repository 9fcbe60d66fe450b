// How much of a figure each axis decides by itself, and its course along the axis.
(function () {
  const usable = study.sensitivity.filter(entry => entry.effects.length);
  if (!usable.length) return note("#sensitivity", "Fewer than two points have figures.");
  let entry = usable[0];
  const choices = usable.map(one => metrics[one.metric]);
  picker("#sensitivity", "of", choices, choices[0], choice => { entry = usable[choices.indexOf(choice)]; draw(); });

  const width = 1140, bars = 30, panel = {width: 360, height: 230}, each = 3;
  function draw() {
    const metric = metrics[entry.metric];
    const effects = entry.effects.slice().sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
    const rows = Math.ceil(effects.length / each), barsHeight = effects.length * bars + 54;
    const svg = chart("#sensitivity", width, barsHeight + rows * (panel.height + 14), `Sensitivity of ${metric.name}`,
      effects.map(e => `${study.axes[e.axis].name}: ${e.share === null ? "too few points" : Math.round(e.share * 100) + " %"}`).join("; "));
    const x = d3.scaleLinear().domain([0, 1]).range([260, width - 90]);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${barsHeight - 44})`).call(d3.axisBottom(x).ticks(10, "%"));
    svg.append("text").attr("class", "label").attr("x", (260 + width - 90) / 2).attr("y", barsHeight - 8).attr("text-anchor", "middle")
      .text(`share of the variance of ${entry.log ? "log " : ""}${metric.name}`);
    effects.forEach((effect, i) => {
      const row = svg.append("g").attr("transform", `translate(0,${i * bars + 6})`);
      row.append("text").attr("x", 250).attr("y", 15).attr("text-anchor", "end").text(clipped(study.axes[effect.axis].name, 36));
      row.append("rect").attr("class", "bar").attr("x", x(0)).attr("width", x(effect.share ?? 0) - x(0)).attr("height", 20).attr("fill", "#1f5fa8");
      row.append("text").attr("x", x(effect.share ?? 0) + 8).attr("y", 15)
        .text(effect.share === null ? "too few points" : `${(effect.share * 100).toFixed(1)} %`);
      course(svg.append("g").attr("transform", `translate(${(i % each) * (panel.width + 20)},${barsHeight + Math.floor(i / each) * (panel.height + 14)})`), effect, metric);
    });
    note("#sensitivity", (entry.balanced
      ? "Every combination of values was run equally often: what the bars leave of 100 % is the interaction of axes. "
      : "Not every combination was run: shares are adjusted for the number of values, and may overlap. ") +
      "Below, along each axis: the mean as a line, lowest to highest as a band.");
  }
  /// Mean, lowest and highest of `metric` along the axis of `effect`.
  function course(group, effect, metric) {
    const axis = columns[effect.axis], left = 62, right = panel.width - 8, top = 22;
    const letters = d3.sum(effect.levels, l => isCategory(axis) ? Math.min(18, l.label.length) + 2 : 0);
    const slanted = letters * 6.2 > right - left, bottom = panel.height - (slanted ? 84 : 56);
    const low = d3.min(effect.levels, l => l.lowest), high = d3.max(effect.levels, l => l.highest);
    const y = scaleOf(metric, [low, high].map(value => ({values: metrics.map(() => value)})), [bottom, top]);
    const x = isCategory(axis) || effect.levels.length < 2
      ? d3.scalePoint().domain(effect.levels.map(l => l.position)).range([left, right]).padding(0.5)
      : (axis.scale === "log" ? d3.scaleLog() : d3.scaleLinear()).domain(d3.extent(effect.levels, l => l.position)).range([left + 12, right - 12]);
    // Slanted lines of text are half of their distance apart.
    const every = isCategory(axis) ? (slanted ? Math.ceil(25 / x.step()) : 1) : Math.ceil(effect.levels.length / 6);
    const below = group.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`)
      .call(d3.axisBottom(x).tickValues(effect.levels.map(l => l.position).filter((_, i) => i % every === 0))
        .tickFormat(v => isCategory(axis) ? clipped(axis.categories[v], 18) : namer(axis, measured)(v)));
    if (slanted) below.selectAll("text").attr("transform", "rotate(-28)").attr("text-anchor", "end").attr("x", -4).attr("y", 8);
    else separate(below.selectAll(".tick text").nodes(), true);
    drawAxis(group.append("g").attr("transform", `translate(${left},0)`), d3.axisLeft, {...metric, kind: "metric"}, y, [], 5);
    if (isCategory(axis)) {
      group.append("g").selectAll("line").data(effect.levels).enter().append("line").attr("x1", l => x(l.position)).attr("x2", l => x(l.position))
        .attr("y1", l => y(l.lowest)).attr("y2", l => y(l.highest)).attr("stroke", "#a9c4e4").attr("stroke-width", 9);
    } else {
      group.append("path").attr("fill", "#cfe0f3").attr("d", d3.area().x(l => x(l.position)).y0(l => y(l.lowest)).y1(l => y(l.highest))(effect.levels));
      group.append("path").attr("fill", "none").attr("stroke", "#1f5fa8").attr("stroke-width", 2)
        .attr("d", d3.line().x(l => x(l.position)).y(l => y(l.mean))(effect.levels));
    }
    group.append("g").selectAll("circle").data(effect.levels).enter().append("circle").attr("cx", l => x(l.position)).attr("cy", l => y(l.mean))
      .attr("r", 3.5).attr("fill", "#1f5fa8").append("title")
      .text(l => `${l.label}: mean ${figure(l.mean)}, ${figure(l.lowest)} to ${figure(l.highest)}, ${l.points} points`);
    group.append("text").attr("class", "label").attr("x", (left + right) / 2).attr("y", panel.height - 8).attr("text-anchor", "middle").text(clipped(titled(axis), 44));
    group.append("text").attr("class", "soft").attr("x", 8).attr("y", 12).text(clipped(titled(metric), 40));
  }
  draw();
})();
