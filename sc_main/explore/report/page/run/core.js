// What the sections of a run's page share: its data, times, tables, tips, and the statistics of its parts.
const data = JSON.parse(document.getElementById("run").textContent);

function section(id, title) {
  const holder = d3.select("main").append("section").attr("id", id).attr("aria-labelledby", id + "-title");
  holder.append("h2").attr("id", id + "-title").text(title);
  holder.append("div").attr("class", "controls");
  holder.append("div").attr("class", "chart");
  return holder;
}
/// A time with the prefix that people read.
function time(ps) {
  if (ps === null || ps === undefined) return "-";
  const size = Math.abs(ps);
  for (const [unit, of] of [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3]])
    if (size >= of) return +(ps / of).toPrecision(5) + " " + unit;
  return +ps.toPrecision(5) + " ps";
}
const nanoseconds = ns => ns === null || ns === undefined ? "-" : time(ns * 1e3);
const percent = share => share === null || share === undefined ? "-" : (100 * share).toFixed(1) + "%";
function bytes(count) {
  if (!count) return "0 B";
  const power = Math.min(4, Math.floor(Math.log(count) / Math.log(1024)));
  return +(count / Math.pow(1024, power)).toPrecision(4) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][power];
}
const said = value => value === null || value === undefined ? "-" : typeof value === "string" ? value : typeof value === "number" ? figure(value) : JSON.stringify(value);

/// heads: [name, right-aligned?]; rows of texts.
function table(holder, caption, heads, rows) {
  const frame = holder.append("div").attr("class", "wide").append("table").attr("class", "plain");
  if (caption) frame.append("caption").text(caption);
  frame.append("thead").append("tr").selectAll("th").data(heads).enter().append("th").attr("scope", "col")
    .attr("class", head => head[1] ? "num" : null).text(head => head[0]);
  const lines = frame.append("tbody").selectAll("tr").data(rows).enter().append("tr");
  lines.selectAll("td").data(row => row).enter().append("td").attr("class", (_, i) => heads[i][1] ? "num" : null).text(text => text);
  return frame;
}
function choice(holder, label, names, onChange, chosen) {
  const select = holder.select(".controls").append("label").text(label).append("select");
  select.selectAll("option").data(names).enter().append("option").attr("value", (_, i) => i).property("selected", name => name === chosen).text(name => name);
  select.on("change", function () { onChange(names[+this.value], +this.value); });
  return select;
}

const tip = document.getElementById("tip");
function showTip(x, y, text) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}
function hideTip() { tip.hidden = true; }

/// Grey over yellow to red, as `topology show` colours utilisation.
function heat(u) {
  const mix = (low, middle, high) => Math.round(u < 0.5 ? low + (middle - low) * 2 * u : middle + (high - middle) * (2 * u - 1));
  u = Math.max(0, Math.min(1, u));
  return `rgb(${mix(0xe4, 0xf0, 0xc0)},${mix(0xe6, 0xb4, 0x10)},${mix(0xe9, 0x20, 0x10)})`;
}
const kHeat = d3.range(256).map(i => heat(i / 255));
function heatLegend(holder) {
  const line = holder.append("span").attr("class", "legend");
  line.append("span").text("0%");
  line.append("span").attr("class", "ramp").style("background", `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(heat).join(",")})`);
  line.append("span").text("100% busy");
}

/// What a kind of part stands for where time is told apart.
const kClasses = [
  {name: "compute", colour: "#228833", kinds: ["gemm", "math"]},
  {name: "HBM", colour: "#c5444f", kinds: ["hbm_channel", "sram"]},
  {name: "NoC", colour: "#4477aa", kinds: ["router_port"]},
  {name: "UCIe", colour: "#2e8aa0", kinds: ["ucie"]},
  {name: "links", colour: "#aa3377", kinds: ["link"]},
  {name: "set-up", colour: "#b07d2b", kinds: ["cpu", "pcie"]}];
const kWaiting = {name: "waiting", colour: "#c9cfd6"};

/// The statistics: `part(i)` describes a resource, `share(i, slice)` is how busy it was in a slice, 0 to 1.
const stats = data.stats && data.stats.names.length > 0 && (function () {
  const bytesOf = coded => Uint8Array.from(atob(coded), one => one.charCodeAt(0));
  const s = data.stats, series = bytesOf(s.series);
  const count = s.names.length, slices = s.slices;
  // Engines are told apart by their last name.
  const kind = i => s.kinds[s.kind[i]] === "engine" ? s.names[i].slice(s.names[i].lastIndexOf(".") + 1) : s.kinds[s.kind[i]];
  const under = new Map();  // by every prefix of a name: the resources below
  for (let i = 0; i < count; ++i) {
    const words = s.names[i].split(".");
    for (let n = 1; n <= words.length; ++n) {
      const name = words.slice(0, n).join(".");
      if (!under.has(name)) under.set(name, []);
      under.get(name).push(i);
    }
  }
  const share = (i, slice) => slice < 0 ? s.utilisation[i] : series[i * slices + slice] / 255;
  /// Largest share among `list` in each slice.
  const most = list => {
    const out = new Uint8Array(slices);
    for (const i of list) for (let t = 0, at = i * slices; t < slices; ++t, ++at) if (series[at] > out[t]) out[t] = series[at];
    return out;
  };
  const classOf = i => kClasses.findIndex(c => c.kinds.includes(kind(i)));
  const sips = [...new Set(s.names.map(name => name.split(".")[0]).filter(name => /^sip\d+$/.test(name)))]
    .sort((a, b) => +a.slice(3) - +b.slice(3));
  /// By SIP and class: the largest share of any of its parts in each slice.
  const ranks = sips.map(sip => {
    const lists = kClasses.map(() => []);
    for (const i of under.get(sip)) { const c = classOf(i); if (c >= 0) lists[c].push(i); }
    return {sip, courses: lists.map(most)};
  });
  /// How busy resource i was from one time to another, in ps.
  const mean = (i, from, to) => {
    let busy = 0;
    for (let t = Math.floor(from / s.slice_ps); t < slices && t * s.slice_ps < to; ++t)
      busy += share(i, t) * Math.max(0, Math.min(to, s.time_ps, (t + 1) * s.slice_ps) - Math.max(from, t * s.slice_ps));
    return to > from ? busy / (to - from) : 0;
  };
  /// Courses by name that are no part's use, as rows of the timeline; `said` of how many there are at once.
  const details = (kept, colour, said) => {
    const all = bytesOf(kept.series);
    return kept.names.map((name, i) => ({name, colour, course: all.subarray(i * slices, (i + 1) * slices), say: value => said(value / 255 * kept.scale[i])}));
  };
  const waits = details(s.waits, "#8a6d3b", count => `${count.toPrecision(3)} waiting in the mean`);
  const channels = details(s.channels, "#4477aa", share => `${percent(share)} busy`);
  return {...s, waits, channels, count, slices, series, kind, under, share, mean, most, classOf, ranks,
    begin: t => t * s.slice_ps, end: t => Math.min(s.time_ps, (t + 1) * s.slice_ps)};
})();

/// Times to look at, {name, begin, end} in ps: the run, all that is timed, and iterations or layers, the last ones. The page opens on what is timed.
const kMostSpans = 64;
const spans = stats ? [{name: "whole run", begin: 0, end: stats.time_ps}] : [];
const timed = data.critical_path ? data.critical_path.stretches.filter(one => one.timed && one.time_ps > 0) : [];
if (stats && timed.length > 1) spans.push({name: "what is timed", begin: timed[0].begin_ps, end: timed[timed.length - 1].begin_ps + timed[timed.length - 1].time_ps});
if (stats) for (const one of timed.slice(-kMostSpans)) spans.push({name: one.name, begin: one.begin_ps, end: one.begin_ps + one.time_ps});
const opening = spans[Math.min(1, spans.length - 1)];
