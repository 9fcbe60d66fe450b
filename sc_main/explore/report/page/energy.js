// Where the energy of each run went: a bar per point, a hue per component, its static part pale.
const energyHue = d3.scaleOrdinal(d3.schemeTableau10).domain(d3.range(study.components.length));
const energyOf = point => study.components.map((name, i) => ({name, component: i,
  dynamic: (point.energy && point.energy.dynamic_pj[i]) || 0, still: (point.energy && point.energy.static_pj[i]) || 0}))
  .filter(part => part.dynamic + part.still > 0);
const energyTotal = point => d3.sum(energyOf(point), part => part.dynamic + part.still);
/// With the prefix that people read: "51.2 uJ".
function joules(pj) {
  if (pj === 0) return "0";
  const [factor, unit] = [[1e12, "J"], [1e9, "mJ"], [1e6, "uJ"], [1e3, "nJ"]].find(([least]) => pj >= least) || [1, "pJ"];
  return `${+(pj / factor).toPrecision(4)} ${unit}`;
}
const percent = d3.format(".1%");

/// The tables of one point: its components, and what each of them did.
function energyTables(holder, point) {
  const parts = energyOf(point), total = energyTotal(point);
  if (!parts.length) return;
  const both = holder.append("div");
  function table(caption, heads, rows) {
    const table = both.append("table").attr("class", "plain energy");
    table.append("caption").text(caption);
    table.append("thead").append("tr").selectAll("th").data(heads).enter().append("th").attr("scope", "col").attr("class", (_, i) => i ? "num" : null).text(head => head);
    const body = table.append("tbody").selectAll("tr").data(rows).enter().append("tr");
    body.append("th").attr("scope", "row").text(row => row[0]);
    body.selectAll("td").data(row => row.slice(1)).enter().append("td").attr("class", "num").text(text => text);
  }
  const row = (name, dynamic, still) => [name, joules(dynamic), joules(still), joules(dynamic + still),
    percent((dynamic + still) / total), percent(still / (dynamic + still))];
  table("Energy by component", ["component", "dynamic", "static", "both", "of all", "static part"],
    [...parts.map(part => row(part.name, part.dynamic, part.still)), row("all", d3.sum(parts, p => p.dynamic), d3.sum(parts, p => p.still))]);
  const done = study.operations.map((operation, i) => ({...operation, count: point.energy.counts[i], pj: point.energy.operation_pj[i]}))
    .filter(operation => operation.count > 0 && operation.pj !== null);
  table("Dynamic energy by operation: the configuration's key gives that of one", ["operation", "count", "pJ each", "energy"],
    done.map(d => [d.key, `${figure(d.count)} ${d.unit}`, figure(d.pj / d.count), joules(d.pj)]));
}

(function () {
  const all = measured.filter(point => energyTotal(point) > 0);
  if (!all.length) return d3.select("#energy").remove();
  const most = 24, bar = 22, width = 1140, margin = {top: 36, right: 210, bottom: 48, left: 300};
  const views = [{name: "energy", text: "energy of each run"}, {name: "share", text: "share of each run's energy"}];
  let view = views[0];
  const select = d3.select("#energy .controls").append("label").text("show").append("select");
  select.selectAll("option").data(views).enter().append("option").text(v => v.text);
  select.on("change", function () { view = views[this.selectedIndex]; draw(); });
  const best = new Set(study.front);
  const name = point => study.axes.map((axis, i) => point.labels[i]).filter(label => label).join(", ") || point.key.slice(0, 10);

  function draw() {
    const shown = all.filter(point => state.shown.has(point.index)).sort((a, b) => energyTotal(a) - energyTotal(b) || a.index - b.index);
    // Of many, those on the front and the chosen one first, then evenly from the least energy to the most.
    let points = shown.filter(point => best.has(point.index) || point.index === state.chosen).slice(0, most);
    const rest = shown.filter(point => !points.includes(point)), room = Math.min(rest.length, most - points.length);
    for (let i = 0; i < room; ++i) points.push(rest[room === 1 ? 0 : Math.round(i * (rest.length - 1) / (room - 1))]);
    points.sort((a, b) => energyTotal(a) - energyTotal(b) || a.index - b.index);
    const share = view.name === "share", height = margin.top + points.length * bar + margin.bottom;
    const svg = chart("#energy", width, height, "Energy by component",
      points.map(p => `${name(p)}: ${energyOf(p).map(part => `${part.name} ${joules(part.dynamic + part.still)}`).join(", ")}`).join("; "));
    const top = d3.max(points, energyTotal) || 1;
    const x = d3.scaleLinear().domain([0, share ? 1 : top]).range([margin.left, width - margin.right]);
    const ground = margin.top + points.length * bar;
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${ground})`)
      .call(d3.axisBottom(x).ticks(8).tickFormat(value => share ? d3.format(".0%")(value) : joules(value)));
    svg.append("text").attr("class", "label").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 8)
      .attr("text-anchor", "middle").text(share ? "share of the run's energy" : "energy of the run");
    points.forEach((point, row) => {
      const total = energyTotal(point), group = svg.append("g").attr("transform", `translate(0,${margin.top + row * bar})`)
        .attr("class", "joules" + (point.index === state.chosen ? " chosen" : "")).on("click", () => choose(point));
      group.append("text").attr("x", margin.left - 8).attr("y", 14).attr("text-anchor", "end")
        .attr("font-weight", point.index === state.chosen ? 600 : null).text(clipped(name(point), 44));
      let from = 0;
      for (const part of energyOf(point)) for (const [what, pj] of [["dynamic", part.dynamic], ["static", part.still]]) {
        const scaled = share ? pj / total : pj;
        if (pj > 0) group.append("rect").attr("class", "part " + what).attr("x", x(from)).attr("width", Math.max(0, x(from + scaled) - x(from)))
          .attr("y", 2).attr("height", bar - 5).attr("fill", energyHue(part.component)).attr("fill-opacity", what === "static" ? 0.42 : 1)
          .append("title").text(`${part.name}, ${what}: ${joules(pj)}, ${percent(pj / total)} of ${joules(total)}`);
        from += scaled;
      }
      group.append("text").attr("x", x(share ? 1 : total) + 6).attr("y", 14).text(joules(total));
    });
    const key = svg.append("g").attr("transform", `translate(${width - margin.right + 100},${margin.top})`);
    study.components.forEach((component, i) => {
      const row = key.append("g").attr("transform", `translate(0,${i * 18})`);
      row.append("rect").attr("width", 9).attr("height", 12).attr("fill", energyHue(i));
      row.append("rect").attr("x", 9).attr("width", 9).attr("height", 12).attr("fill", energyHue(i)).attr("fill-opacity", 0.42);
      row.append("text").attr("x", 24).attr("y", 10).text(component);
    });
    const still = d3.sum(points, p => d3.sum(energyOf(p), part => part.still)) / d3.sum(points, energyTotal);
    note("#energy", `${points.length === shown.length ? `${points.length} points` : `${points.length} of ${shown.length} points, from the least energy to the most`}. ` +
      `Full colour: dynamic energy; pale: static power times the run's time, ${percent(still)} of what is drawn. ` +
      "A click on a bar shows the point's tables of components and operations below.");
  }
  state.listeners.push(draw);
  draw();
})();
