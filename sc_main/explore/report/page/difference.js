// What tells two points apart.
/// `other` against `base`, both of the study; `flat` lists a configuration's values by path.
function difference(holder, base, other, configuration, flat) {
  holder.append("h3").text(`Point ${other.key} against ${base.key}`);
  const table = (caption, heads, rows) => {
    if (!rows.length) return;
    const made = holder.append("table").attr("class", "plain difference");
    made.append("caption").text(caption);
    made.append("thead").append("tr").selectAll("th").data(heads).enter().append("th").attr("scope", "col").text(head => head);
    const lines = made.append("tbody").selectAll("tr").data(rows).enter().append("tr");
    lines.append("th").attr("scope", "row").text(row => row[0]);
    lines.selectAll("td").data(row => row.slice(1)).enter().append("td").attr("class", "num").text(text => text);
  };
  const both = [base, other], named = both.map(point => point.key.slice(0, 10));
  const axes = columns.filter(column => column.kind !== "metric").map(column => [column.name, ...both.map(column.label)]);
  table("Axes and texts that differ", ["", ...named], axes.filter(row => row[1] !== row[2]));
  table("Figures", ["", ...named, "difference", "ratio"], metrics.filter(m => both.some(point => m.of(point) !== null)).map(m => {
    const [a, b] = both.map(m.of);
    const known = a !== null && b !== null;
    return [titled(m), figure(a), figure(b), known ? (b > a ? "+" : "") + figure(b - a) : "-", known && a !== 0 ? figure(b / a) : "-"];
  }));
  const [from, to] = both.map(point => new Map(flat(configuration(point)).filter(([path]) => path)));
  const paths = [...new Set([...from.keys(), ...to.keys()])].filter(path => from.get(path) !== to.get(path));
  table("Configuration, where it differs", ["", ...named], paths.map(path => [path, from.get(path) || "-", to.get(path) || "-"]));
}
