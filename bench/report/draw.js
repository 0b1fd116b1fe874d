"use strict";
/* Drawing: colours in both schemes, scales, axes and marks. Plots are SVG as text, with classes that plotStyle() gives their
 * looks, so that one that is saved alone looks as it does in the page. */

const LIGHT = {
  page: "#f9f9f7", surface: "#fcfcfb", ink: "#0b0b0b", soft: "#52514e", line: "#e1e0d9", rule: "#c3c2b7",
  avx512: "#2a78d6", avx2: "#eb6834", generic: "#1baf7a", scalar: "#4a3aa7", neon: "#eda100",
};
const DARK = {
  page: "#0d0d0d", surface: "#1a1a19", ink: "#ffffff", soft: "#c3c2b7", line: "#2c2c2a", rule: "#52514e",
  avx512: "#3987e5", avx2: "#d95926", generic: "#199e70", scalar: "#9085e9", neon: "#c98500",
};

const variables = (scheme) => Object.entries(scheme).map(([name, value]) => `--${name}:${value}`).join(";");
const PLOT_RULES = `
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--soft)}
text.title{font-size:15px;font-weight:600;fill:var(--ink)}text.strong{fill:var(--ink)}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--rule);stroke-width:1}
.cache{stroke:var(--rule);stroke-width:1;stroke-dasharray:1 3}
.mark{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.roof{fill:none;stroke-width:1.5;stroke-dasharray:5 4;opacity:.75}
.dot{stroke:var(--surface);stroke-width:2}.tie{stroke:var(--rule);stroke-width:1}
.cross{stroke:var(--soft);stroke-width:1}`;

/* The page may be switched; a plot alone goes by the system. */
function pageStyle() {
  return `:root{color-scheme:light;${variables(LIGHT)}}
@media (prefers-color-scheme:dark){:root:not([data-scheme=light]){color-scheme:dark;${variables(DARK)}}}
:root[data-scheme=dark]{color-scheme:dark;${variables(DARK)}}${PLOT_RULES.replace(/(^|\n|})([.a-z])/g, "$1svg $2")}`;
}

/* Of a plot; nothing, if there is no plot. */
function standalone(plot) {
  const style = `svg{${variables(LIGHT)}}@media (prefers-color-scheme:dark){svg{${variables(DARK)}}}${PLOT_RULES}`;
  return plot && plot.svg.replace(/^<svg([^>]*)>/, (all, attributes) =>
    `<svg xmlns="http://www.w3.org/2000/svg"${attributes}><style>${style}</style>` +
    '<rect width="100%" height="100%" rx="8" fill="var(--surface)"/>') + "\n";
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const round = (x) => Math.round(x * 10) / 10;

/* Three digits. */
function number(x) {
  if (x === null || x === undefined || !isFinite(x)) return "–";
  if (x >= 100 || x === 0) return x.toFixed(0);
  return x >= 10 ? x.toFixed(1) : x >= 0.1 ? x.toFixed(2) : x.toPrecision(2);
}

function duration(ns) {
  if (ns === null) return "–";
  return ns >= 999.5e3 ? number(ns / 1e6) + " ms" : ns >= 999.5 ? number(ns / 1e3) + " µs" : number(ns) + " ns";
}

function bytesText(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let i = 0;
  for (; bytes >= 1024 && i < 3; i++) bytes /= 1024;
  return `${Number(bytes.toFixed(1))} ${units[i]}`;
}

function count(n) {
  return n >= 1 << 20 ? `${n / (1 << 20)}M` : n >= 1024 ? `${n / 1024}K` : `${n}`;
}

/* A logarithmic scale from the values of a domain to places. */
function logScale(from, to, start, end) {
  const a = Math.log(from), b = Math.log(to);
  return (x) => start + (Math.log(x) - a) / (b - a || 1) * (end - start);
}

/* 1, 2, 5 of every decade within a domain; only the ones where that would be many. */
function logTicks(from, to) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(from)); e <= Math.log10(to); e++)
    for (const digit of [1, 2, 5]) {
      const tick = digit * 10 ** e;
      if (tick >= from * 0.999 && tick <= to * 1.001) ticks.push(tick);
    }
  return ticks.length > 9 ? ticks.filter((tick) => /^1/.test(tick.toExponential())) : ticks;
}

function linearTicks(most) {
  const step = 10 ** Math.floor(Math.log10(most / 3));
  const wide = [1, 2, 5, 10].map((k) => k * step).find((s) => most / s <= 6);
  const ticks = [];
  for (let t = 0; t <= most * 1.001; t += wide) ticks.push(t);
  return ticks;
}

const line = (x1, y1, x2, y2, kind) => `<line class="${kind}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`;
const label = (x, y, text, anchor = "start", kind = "") =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped(text)}</text>`;
const path = (points, kind, color) =>
  `<path class="${kind}" stroke="var(--${color})" d="${points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join("")}"/>`;

function dot(kind, x, y, color, title) {
  const shape = kind === "naive" ? `<rect x="${round(x - 5)}" y="${round(y - 5)}" width="10" height="10" rx="1"`
    : kind === "sleef" ? `<path d="M${round(x)} ${round(y - 6.5)}l6 11h-12z"`
      : `<circle cx="${round(x)}" cy="${round(y)}" r="5.5"`;
  return `${shape} class="dot" fill="var(--${color})" data-tip="${escaped(title)}"/>`;
}

/* Places for labels so that they do not lie on each other: the lowest first, each at least `apart` above the one before. */
function spread(places, apart) {
  const order = places.map((y, i) => [y, i]).sort((a, b) => b[0] - a[0]);
  const result = [];
  let last = Infinity;
  for (const [y, i] of order) result[i] = last = Math.min(y, last - apart);
  return result;
}
