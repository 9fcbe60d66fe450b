// What every chart shares: the study, the columns, scales and their axes, and which points are shown and chosen.
const study = JSON.parse(document.getElementById("study").textContent);

const columns = [];
study.axes.forEach((axis, i) => columns.push({...axis, of: point => point.axes[i], label: point => point.labels[i] || "-", kind: "axis"}));
study.metrics.forEach((metric, i) => columns.push({...metric, of: point => point.values[i], kind: "metric"}));
(study.texts || []).forEach((name, i) => {
  const categories = [...new Set(study.points.map(point => point.texts[i]).filter(text => text))].sort();
  const of = point => (at => at < 0 ? null : at)(categories.indexOf(point.texts[i]));
  columns.push({name, unit: "", scale: "category", categories, of, label: point => point.texts[i] || "-", kind: "text"});
});
const metrics = columns.filter(column => column.kind === "metric");
const objectives = metrics.filter(metric => metric.objective);
const measured = study.points.filter(point => point.status === "ok");

const state = {shown: new Set(measured.map(point => point.index)), chosen: null, base: null, listeners: []};
function changed() { state.listeners.forEach(listener => listener()); }
function choose(point) {
  state.chosen = point ? point.index : null;
  const base = state.base === null ? "" : "&against=" + study.points[state.base].key;
  if (point) history.replaceState(null, "", "#point=" + point.key + base);
  changed();
}

const titled = column => column.name + (column.unit ? " (" + column.unit + ")" : "");
const isCategory = column => column.scale === "category";
function shown(column, point) {
  const value = column.of(point);
  if (value === null) return "-";
  if (column.kind !== "metric") return column.label(point);
  return figure(value);
}
/// Values of an axis whose title has no unit as the sweep file has them ("64K"), where points have them.
function namer(column, points) {
  const names = new Map(column.unit ? [] : points.map(point => [column.of(point), column.label(point)]));
  const other = tick(points.map(column.of).filter(value => value !== null));
  return value => names.has(value) ? clipped(names.get(value), 18) : other(value);
}

/// A D3 scale of `column` over `points`, with some air at its ends.
function scaleOf(column, points, range) {
  if (isCategory(column))
    return d3.scalePoint().domain(d3.range(column.categories.length)).range(range).padding(0.5);
  const values = points.map(column.of).filter(value => value !== null);
  let [low, high] = values.length ? d3.extent(values) : [0, 1];
  if (column.scale === "log" && low > 0) {
    const air = Math.pow(high / low, 0.04);
    return d3.scaleLog().domain([low / air, high * air]).range(range);
  }
  if (low === high) { const air = Math.abs(low) * 0.1 || 1; low -= air; high += air; }
  const air = (high - low) * 0.04;
  return d3.scaleLinear().domain([low - air, high + air]).range(range);
}
/// Ticks that people read: an axis' own values where they are few, 1-2-5 within decades on a log scale.
function ticksOf(column, scale, points, most) {
  if (isCategory(column)) return {values: scale.domain(), format: value => clipped(column.categories[value], 18)};
  const own = [...new Set(points.map(column.of).filter(value => value !== null))].sort((a, b) => a - b);
  if (column.kind === "axis" && own.length <= most) return {values: own, format: namer(column, points)};
  if (column.scale !== "log" || !scale.base) return {values: scale.ticks(most), format: tick(scale.ticks(most))};
  const [low, high] = scale.domain();
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const values = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); ++decade)
      for (const step of steps) values.push(step * Math.pow(10, decade));
    const inside = values.filter(value => value >= low && value <= high);
    if (inside.length <= most || steps.length === 1)
      return {values: inside.filter((_, i) => i % Math.ceil(inside.length / most) === 0), format: tick(inside)};
  }
}
function drawAxis(group, make, column, scale, points, most) {
  const {values, format} = ticksOf(column, scale, points, most);
  group.attr("class", "axis").call(make(scale).tickValues(values).tickFormat(format));
  separate(group.selectAll(".tick text").nodes(), make === d3.axisBottom);
}
/// No two labels lie on each other: on a horizontal axis one may go a line lower; what still does is left out.
function separate(labels, horizontal) {
  const [begin, end] = horizontal ? ["left", "right"] : ["top", "bottom"], gap = horizontal ? 4 : -2;
  const placed = labels.map(node => ({node, box: node.getBoundingClientRect()})).filter(label => label.box.width > 0);
  const taken = horizontal ? [-Infinity, -Infinity] : [-Infinity];  // of each line, how far
  placed.sort((a, b) => a.box[begin] - b.box[begin]);
  for (const {node, box} of placed) {
    const line = taken.findIndex(until => until + gap <= box[begin]);
    if (line < 0) { node.remove(); continue; }
    taken[line] = box[end];
    if (line > 0) node.setAttribute("y", 21);
  }
}

function picker(selector, label, choices, chosen, onChange) {
  const select = d3.select(selector + " .controls").append("label").text(label).append("select");
  select.selectAll("option").data(choices).enter().append("option").attr("value", (_, i) => i)
    .property("selected", choice => choice === chosen).text(choice => choice === null ? "none" : titled(choice));
  select.on("change", function () { onChange(choices[+this.value]); });
}

/// Colours by `column`: ten of their own for categories and few values, else a ramp.
function colouring(column, points) {
  if (!column) return () => "#1f5fa8";
  const values = [...new Set(points.map(column.of).filter(value => value !== null))].sort((a, b) => a - b);
  const few = isCategory(column) || (column.kind === "axis" && values.length <= 8);
  if (isCategory(column)) {
    const hue = d3.scaleOrdinal(d3.schemeTableau10).domain(values);
    return point => hue(column.of(point));
  }
  const ramp = d3.scaleSequential(t => d3.interpolateViridis(0.93 * t));
  const rank = few ? value => values.indexOf(value) / Math.max(1, values.length - 1)
    : (scale => value => scale(value))(scaleOf(column, points, [0, 1]));
  return point => column.of(point) === null ? "#999" : ramp(Math.max(0, Math.min(1, rank(column.of(point)))));
}
/// A legend at (x, y), downwards.
function legend(svg, column, points, x, y) {
  if (!column) return;
  const values = [...new Set(points.map(column.of).filter(value => value !== null))].sort((a, b) => a - b);
  const colour = colouring(column, points);
  let entries = values;
  if (values.length > 10) entries = d3.range(6).map(i => values[Math.round(i * (values.length - 1) / 5)]);
  const group = svg.append("g").attr("transform", `translate(${x},${y})`);
  wrapped(group.append("text").attr("class", "label"), titled(column), 22);
  const top = 8 + 15 * group.selectAll("tspan").size();
  entries.forEach((value, i) => {
    const sample = points.find(point => column.of(point) === value);
    const row = group.append("g").attr("transform", `translate(0,${top + i * 18})`);
    row.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", colour(sample));
    row.append("text").attr("x", 18).attr("y", 10).text(clipped(shown(column, sample), 20));
  });
}
