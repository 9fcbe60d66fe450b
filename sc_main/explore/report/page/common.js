"use strict";
// What the pages of studies and of runs share: figures, ticks, charts, texts.
function figure(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  if (size >= 1e7 && size < 1e15) return d3.format(".5~s")(value);
  return size !== 0 && (size < 1e-3 || size >= 1e15) ? value.toExponential(3) : String(+value.toPrecision(5));
}
/// A format for all ticks of one axis: with k, M, G or small letters where the largest asks for it.
function tick(values) {
  const most = d3.max(values, Math.abs) || 0;
  const plain = value => d3.format("~g")(+value.toPrecision(6));
  if (most < 1e4 && (most >= 0.1 || most === 0)) return plain;
  return value => value === 0 ? "0" : d3.format("~s")(+value.toPrecision(6)).replace("\u00b5", "u");
}


/// An SVG with a title and a description for those who do not see it.
function chart(selector, width, height, title, description) {
  const id = selector.replace(/[^a-z]/g, "") + "-chart";
  const holder = d3.select(selector + " .chart");
  holder.selectAll("*").remove();
  const svg = holder.append("svg").attr("viewBox", [0, 0, width, height]).attr("role", "img")
    .attr("aria-labelledby", id + "-t " + id + "-d").attr("xmlns", "http://www.w3.org/2000/svg");
  svg.append("title").attr("id", id + "-t").text(title);
  svg.append("desc").attr("id", id + "-d").text(description);
  return svg;
}
function note(selector, text) { d3.select(selector + " .chart").append("p").attr("class", "note").text(text); }
function clipped(text, most) { return text.length > most ? text.slice(0, most - 1) + "\u2026" : text; }
/// Breaks a long name after dots, blanks and underscores.
function wrapped(text, words, most) {
  const lines = [""];
  for (const part of words.split(/(?<=[._ ])/)) {
    if (lines[lines.length - 1] && (lines[lines.length - 1] + part).length > most) lines.push("");
    lines[lines.length - 1] += part;
  }
  lines.forEach((line, i) => text.append("tspan").attr("x", 0).attr("dy", i ? 15 : 0).text(line));
  return lines.length;
}
