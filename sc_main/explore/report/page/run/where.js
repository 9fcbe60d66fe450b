// Where the time went: each slice counts for the class of its busiest part, the rest of it as waiting.
(function () {
  if (!stats) return;
  const holder = section("where", "Where the time went"), classes = [...kClasses, kWaiting];
  const width = 1140, left = 130, bar = 24, kMost = 32;
  function draw(from, to) {
    const rows = stats.ranks.map(rank => {
      const spent = classes.map(() => 0);
      for (let t = 0; t < stats.slices; ++t) {
        const length = Math.min(to, stats.end(t)) - Math.max(from, stats.begin(t));
        if (length <= 0) continue;
        let best = 0;
        rank.courses.forEach((course, c) => { if (course[t] > rank.courses[best][t]) best = c; });
        const share = rank.courses[best][t] / 255;
        spent[best] += share * length;
        spent[classes.length - 1] += (1 - share) * length;
      }
      return {name: rank.sip, spent};
    });
    const all = to - from, total = {name: "all ranks, mean", spent: classes.map((_, c) => d3.mean(rows, row => row.spent[c]))};
    const shownRows = [total, ...rows.slice(0, kMost)];
    const svg = chart("#where", width, shownRows.length * bar + 60, "Where the time went", classes.map((c, i) => `${c.name}: ${percent(total.spent[i] / all)}`).join("; "));
    const x = d3.scaleLinear().domain([0, all]).range([left, width - 20]);
    classes.forEach((c, i) => {
      const entry = svg.append("g").attr("transform", `translate(${left + i * 118},2)`);
      entry.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", c.colour);
      entry.append("text").attr("x", 17).attr("y", 10).text(`${c.name} ${percent(total.spent[i] / all)}`);
    });
    shownRows.forEach((row, r) => {
      const group = svg.append("g").attr("transform", `translate(0,${24 + r * bar})`);
      group.append("text").attr("x", left - 8).attr("y", 14).attr("text-anchor", "end").attr("font-weight", r ? null : 600).text(row.name);
      let at = 0;
      row.spent.forEach((spent, c) => {
        group.append("rect").attr("class", "share").attr("x", x(at)).attr("width", Math.max(0, x(at + spent) - x(at))).attr("height", bar - 6).attr("fill", classes[c].colour)
          .append("title").text(`${row.name}, ${classes[c].name}: ${time(spent)}, ${percent(spent / all)}`);
        at += spent;
      });
    });
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${26 + shownRows.length * bar})`).call(d3.axisBottom(x).ticks(8).tickFormat(time));
    if (rows.length > kMost) note("#where", `The first ${kMost} of ${rows.length} ranks are drawn.`);
    note("#where", `${from === 0 && to === stats.time_ps ? "The whole run; the" : `${time(from)} to ${time(to)}, as the timeline shows; the`} timeline below chooses the time.`);
    note("#where", `An estimate from the statistics: in each of ${stats.slices} slices of ${time(stats.slice_ps)}, a rank's time is that of its busiest part, for as long as that was busy; the rest is waiting. Set-up is the command path: host link, IO_CPU, M_CPU and PE_CPU.`);
  }
  stats.onRange = draw;
  draw(0, stats.time_ps);
})();
