// Every launch by what it computes per byte, under the roof of the arrays and the HBM; collectives beside their bounds.
(function () {
  if (!data.roof || !data.launches || !data.launches.length) return;
  const holder = section("roofline", "Roofline of the launches"), width = 1140, height = 470, margin = {top: 14, right: 30, bottom: 50, left: 84};
  // Launches of layers that compute and read as much, and take as long within 3 %, are one line.
  const alike = 0.03, groups = [], byKind = new Map();
  for (const l of data.launches.filter(l => l.ns > 0)) {
    const name = l.name.replace(/^layer\d+\./, ""), layered = name !== l.name && /\blayer\d+$/.test(l.row);
    const kind = layered ? JSON.stringify([l.row.replace(/layer\d+$/, ""), name, l.flops, l.bytes, l.pes, l.dtype, l.bound_ns]) : `${groups.length}`;
    const same = (byKind.get(kind) || []).find(g => Math.abs(l.ns / g.first.ns - 1) <= alike);
    if (same) { same.all.push(l); continue; }
    groups.push({first: l, all: [l]});
    byKind.set(kind, [...(byKind.get(kind) || []), groups[groups.length - 1]]);
  }
  const joined = ({first, all}) => all.length === 1 ? first : {...first, name: first.name.replace(/^layer\d+\./, ""), row: first.row.replace(/layer\d+$/, `${all.length} layers`),
    times: d3.sum(all, l => l.times), ns: d3.sum(all, l => l.ns * l.times) / d3.sum(all, l => l.times)};
  const timed = groups.map(joined), launches = timed.filter(l => l.flops > 0 && l.bytes > 0), roof = data.roof;
  const list = () => table(holder.select(".chart"), "Launches, the longest first", [["row"], ["launch"], ["times", 1], ["time", 1], ["TFLOP/s", 1], ["FLOP/B", 1], ["of the roof", 1], ["bound", 1], ["bound by"]],
    timed.slice().sort((a, b) => b.ns * b.times - a.ns * a.times).slice(0, 60).map(l => [l.row, l.name, figure(l.times), nanoseconds(l.ns), l.flops > 0 ? figure(rate(l) / 1e12) : "-", l.flops > 0 && l.bytes > 0 ? figure(intensity(l)) : "-", l.flops > 0 || l.roof_share > 0 ? percent(share(l)) : "-", l.bound_ns > 0 ? nanoseconds(l.bound_ns) : "-", l.binds || "-"]));
  const compute = l => (roof.flops_per_s[l.dtype] || roof.flops_per_s.f16) * l.pes;
  const memory = l => roof.hbm_bytes_per_s_per_pe * l.pes;
  const intensity = l => l.flops / l.bytes, rate = l => l.flops / (l.ns * 1e-9);
  const share = l => l.roof_share ?? rate(l) / Math.min(compute(l), memory(l) * intensity(l));
  if (!timed.length) { holder.remove(); return; }
  if (!launches.length) {
    list();
    note("#roofline", "None of these launches computes on the arrays: there is no point to draw under the roof.");
    return;
  }
  const pes = d3.max(launches, l => l.pes), most = {pes, dtype: launches[0].dtype}, peak = compute(most), slope = memory(most), ridge = peak / slope;
  const x = d3.scaleLog().domain([Math.min(ridge / 30, d3.min(launches, intensity) / 2), Math.max(ridge * 10, d3.max(launches, intensity) * 2)]).range([margin.left, width - margin.right]);
  const y = d3.scaleLog().domain([Math.min(slope * x.domain()[0], d3.min(launches, rate)) / 2, peak * 2]).range([height - margin.bottom, margin.top]);
  const svg = chart("#roofline", width, height, "Roofline", launches.map(l => `${l.name}: ${figure(rate(l) / 1e12)} TFLOP/s`).join("; "));
  const decades = scale => { const [a, b] = scale.domain().map(Math.log10); const list = d3.range(Math.ceil(a), Math.floor(b) + 1).map(p => Math.pow(10, p)); return list.length > 1 ? list : scale.ticks(4); };
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).tickValues(decades(x)).tickFormat(d3.format("~g")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).tickValues(decades(y)).tickFormat(v => d3.format("~g")(v / 1e12)));
  svg.append("text").attr("class", "label").attr("x", width / 2).attr("y", height - 10).attr("text-anchor", "middle").text("FLOP per byte of HBM");
  svg.append("text").attr("class", "label").attr("transform", `translate(20,${height / 2}) rotate(-90)`).attr("text-anchor", "middle").text("TFLOP/s");
  const [low, high] = x.domain();
  svg.append("path").attr("class", "roof").attr("d", `M${x(low)},${y(slope * low)} L${x(ridge)},${y(peak)} L${x(high)},${y(peak)}`);
  svg.append("text").attr("x", x(high) - 4).attr("y", y(peak) - 6).attr("text-anchor", "end").text(`arrays of ${pes} PEs, ${most.dtype}: ${figure(peak / 1e12)} TFLOP/s`);
  svg.append("text").attr("x", x(Math.sqrt(low * ridge)) + 10).attr("y", y(slope * Math.sqrt(low * ridge)) + 16).text(`HBM ${figure(slope / 1e9)} GB/s`);
  svg.append("g").selectAll("circle").data(launches).enter().append("circle").attr("class", "launch").attr("r", l => 4 + 10 * Math.sqrt(l.ns / d3.max(launches, m => m.ns))).attr("cx", l => x(intensity(l))).attr("cy", l => y(rate(l)))
    .attr("fill", "#1f5fa8").attr("fill-opacity", .55).attr("stroke", "#fff")
    .append("title").text(l => `${l.row} ${l.name}\n${nanoseconds(l.ns)}, ${figure(rate(l) / 1e12)} TFLOP/s, ${figure(intensity(l))} FLOP/B\n${percent(share(l))} of the roof`);
  list();
  note("#roofline", "A circle is a kind of launch, larger where it takes longer. The roof is that of the PEs that take part.");
})();
(function () {
  const rows = (data.run && data.run.results || []).filter(row => row.redop !== undefined && row.bound_ns > 0);
  if (!rows.length) return;
  const holder = section("bounds", "Collectives and their bounds"), width = 1140, line = 26, left = 330;
  const name = row => `${row.op} ${bytes(row.bytes)}, ${row.algorithm}`;
  const svg = chart("#bounds", width, rows.length * line + 44, "Collectives and their bounds", rows.map(row => `${name(row)}: ${percent(row.bound_ns / row.time_ns)} of the bound`).join("; "));
  const ends = [d3.min(rows, r => r.bound_ns) / 1.5, d3.max(rows, r => r.time_ns) * 1.15], x = d3.scaleLog().domain(ends).range([left, width - 120]);
  rows.forEach((row, i) => {
    const group = svg.append("g").attr("transform", `translate(0,${i * line + 4})`);
    group.append("text").attr("x", left - 10).attr("y", 14).attr("text-anchor", "end").text(clipped(name(row), 46));
    group.append("rect").attr("class", "bar").attr("x", left).attr("width", x(row.time_ns) - left).attr("height", 18).attr("fill", "#c9d8ea");
    group.append("rect").attr("x", left).attr("width", x(row.bound_ns) - left).attr("height", 18).attr("fill", "#1f5fa8")
      .append("title").text(`${name(row)}\nbound ${nanoseconds(row.bound_ns)} (${row.bound_name})\ntime ${nanoseconds(row.time_ns)}, ${figure(row.busbw_gbps)} GB/s\nlimited by ${row.limited_by}`);
    group.append("text").attr("x", x(row.time_ns) + 6).attr("y", 14).text(`${nanoseconds(row.time_ns)}, ${percent(row.bound_ns / row.time_ns)}`);
  });
  const decade = d3.range(Math.floor(Math.log10(ends[0])), Math.ceil(Math.log10(ends[1])) + 1).flatMap(p => [1, 2, 5].map(s => s * Math.pow(10, p))).filter(v => v >= ends[0] && v <= ends[1]);
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${rows.length * line + 10})`).call(d3.axisBottom(x).tickValues(decade.length > 12 ? decade.filter(v => /^1/.test(v.toPrecision(1))) : decade).tickFormat(nanoseconds));
  note("#bounds", "Dark: the bound of the topology, which no algorithm beats; light: the time. The scale is logarithmic.");
})();
