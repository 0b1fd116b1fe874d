/* The plots, each from rows of the report to SVG. */

const PATHS = ["avx512", "avx2", "neon", "generic", "scalar"];
const WHO = { nrg: "avx512", naive: "avx2", sleef: "generic" };
const speed = (row) => row.elements / row.ns;

function open(width, height, title) {
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`;
}

/* Row length against elements/ns, a line a path, and its limit. title: of a plot that stands alone. */
function sweepPlot(rows, caches, shown, width, title) {
  const paths = PATHS.filter((p) => shown.has(p) && rows.some((r) => r.path === p));
  const own = rows.filter((r) => paths.includes(r.path));
  if (!own.length) return null;
  const narrow = width < 520, top = title ? 44 : 22, bottom = 40, left = 46, right = narrow ? 12 : 64;
  const height = (narrow ? 300 : 380) + (title ? 22 : 0);
  const values = own.flatMap((r) => [speed(r), r.limit_ns ? r.elements / r.limit_ns : speed(r)]);
  const least = Math.min(...values) / 1.15, most = Math.max(...values) * 1.15;
  const lengths = [...new Set(own.map((r) => r.elements))].sort((a, b) => a - b);
  const x = logScale(lengths[0], lengths[lengths.length - 1], left, width - right), y = logScale(least, most, height - bottom, top);
  let svg = open(width, height, title || "speed against row length");
  if (title) svg += label(left - 30, 20, title, "start", "title");
  for (const tick of logTicks(least, most))
    svg += line(left, y(tick), width - right, y(tick), "grid") + label(left - 6, y(tick) + 4, `${Number(tick.toPrecision(2))}`, "end");
  lengths.forEach((n, i) => {
    if (i % (narrow ? 4 : 2) === 0) svg += label(x(n), height - bottom + 16, count(n), "middle");
  });
  const perElement = own[own.length - 1].bytes / own[own.length - 1].elements;
  for (const cache of caches) {
    const n = cache.bytes / perElement;
    if (n > lengths[0] && n < lengths[lengths.length - 1])
      svg += line(x(n), top, x(n), height - bottom, "cache") + label(x(n), top - 6, `L${cache.level}`, "middle");
  }
  svg += line(left, height - bottom, width - right, height - bottom, "axis");
  const ends = [];
  for (const p of paths) {
    const of = own.filter((r) => r.path === p).sort((a, b) => a.elements - b.elements);
    svg += path(of.filter((r) => r.limit_ns).map((r) => [x(r.elements), y(r.elements / r.limit_ns)]), "roof", p);
    svg += path(of.map((r) => [x(r.elements), y(speed(r))]), "mark", p);
    ends.push([p, x(of[of.length - 1].elements), y(speed(of[of.length - 1]))]);
  }
  if (!narrow) {
    const places = spread(ends.map((e) => e[2]), 13);
    ends.forEach(([p, at], i) => {
      svg += `<circle cx="${round(at)}" cy="${round(ends[i][2])}" r="3" fill="var(--${p})"/>` + label(at + 8, places[i] + 4, p, "start", "strong");
    });
  }
  svg += label(left, height - 6, `elements of the row${title ? "; dashed: the limit, bare loops that move the same bytes" : ""}`);
  svg += label(left - 36, top - 8, "elements/ns");
  svg += `<line class="cross" id="cross" y1="${top}" y2="${height - bottom}" visibility="hidden"/></svg>`;
  return { svg, x, lengths, paths };
}

/* Shapes, and in each a bar a path. */
function barsPlot(rows, width, title) {
  const paths = PATHS.filter((p) => rows.some((r) => r.path === p));
  const shapes = [...new Set(rows.map((r) => r.shape))];
  if (!shapes.length) return null;
  const narrow = width < 520, bar = 12, gap = 2, between = 14, left = narrow ? 10 : 120, right = narrow ? 50 : 200;
  const top = (title ? 52 : 24) + (narrow ? 14 : 0), above = narrow ? 16 : 0, most = Math.max(...rows.map(speed));
  const groups = shapes.map((shape) => paths.map((p) => rows.find((r) => r.shape === shape && r.path === p)).filter(Boolean));
  const height = top + groups.reduce((sum, g) => sum + above + g.length * (bar + gap) + between, 0) + 6;
  const x = (value) => left + value / most * (width - left - right);
  let svg = open(width, height, title || "speed by shape and path"), y = top;
  if (title) svg += label(10, 20, title, "start", "title");
  for (const tick of linearTicks(most)) svg += line(x(tick), top - 8, x(tick), height - 6, "grid") + label(x(tick), top - 12, Number(tick.toPrecision(2)), "middle");
  svg += label(narrow ? left : left - 10, top - 26 + (narrow ? 0 : 14), "elements/ns", narrow ? "start" : "end");
  groups.forEach((group, i) => {
    if (narrow) svg += label(left, y + 11, shapes[i], "start", "strong");
    y += above;
    if (!narrow) svg += label(left - 10, y + group.length * (bar + gap) / 2 + 4, shapes[i], "end", "strong");
    const slowest = group[group.length - 1];
    for (const row of group) {
      const w = Math.max(1.5, x(speed(row)) - left), r = Math.min(3, w);
      svg += `<path fill="var(--${row.path})" data-tip="${escaped(`${row.path} ${row.shape}: ${duration(row.ns)}, ${number(speed(row))} elements/ns`)}"` +
        ` d="M${left} ${y}h${round(w - r)}q${r} 0 ${r} ${r}v${bar - 2 * r}q0 ${r} ${-r} ${r}h${round(-(w - r))}z"/>`;
      const times = row === slowest ? "" : `, ${number(speed(row) / speed(slowest))} × ${slowest.path}`;
      svg += label(left + w + 6, y + 10, narrow ? number(speed(row)) : `${row.path}: ${number(speed(row))}${times}`);
      y += bar + gap;
    }
    y += between;
  });
  return { svg: svg + line(left, top - 8, left, height - 6, "axis") + "</svg>" };
}

/* Who is which mark, from (x, y) to the right. */
function keysOfWho(x, y, points) {
  const there = Object.keys(WHO).filter((who) => points.some((p) => p.who === who));
  return there.map((who, i) => dot(who, x + 70 * i, y, WHO[who], who) + label(x + 70 * i + 11, y + 4, who)).join("");
}

/* points: {who, op, speed, ulp}. */
function accuracyPlot(points, width, title) {
  if (!points.length) return null;
  const narrow = width < 520, height = narrow ? 340 : 440, top = title ? 66 : 26, bottom = 42, left = 46, right = 16;
  const speeds = points.map((p) => p.speed), ulps = points.map((p) => p.ulp);
  const fastest = Math.max(...speeds) * 1.3, slowest = Math.min(...speeds) / 1.3;
  /* some rivals are off by millions of ulps somewhere: they stand in a band of their own, or all others would be one line */
  const cap = 2 * Math.max(4, ...points.filter((p) => p.who === "nrg").map((p) => p.ulp)), beyond = ulps.some((u) => u > cap);
  const worst = beyond ? cap : Math.max(...ulps, 2) * 1.3, best = Math.min(...ulps, 0.5) / 1.3, band = beyond ? 34 : 0;
  const x = logScale(slowest, fastest, left, width - right), inside = logScale(best, worst, height - bottom, top + band);
  const y = (ulp) => (ulp > cap ? top + 14 : inside(ulp));
  let svg = open(width, height, title || "error against speed");
  if (title) svg += label(left - 30, 20, title, "start", "title") + keysOfWho(left - 24, 38, points);
  for (const tick of logTicks(best, worst))
    svg += line(left, y(tick), width - right, y(tick), "grid") + label(left - 6, y(tick) + 4, `${Number(tick.toPrecision(2))}`, "end");
  for (const tick of logTicks(slowest, fastest))
    svg += line(x(tick), top, x(tick), height - bottom, "grid") + label(x(tick), height - bottom + 16, `${Number(tick.toPrecision(2))}`, "middle");
  svg += line(left, height - bottom, width - right, height - bottom, "axis");
  if (beyond) svg += line(left, top + band, width - right, top + band, "cache") + label(left - 6, top + 18, "more", "end");
  const taken = [];
  const free = (box) => taken.every((t) => box[0] > t[2] || box[2] < t[0] || box[1] > t[3] || box[3] < t[1]);
  for (const p of points) taken.push([x(p.speed) - 6, y(p.ulp) - 6, x(p.speed) + 6, y(p.ulp) + 6]);
  for (const p of points)
    for (const q of points)
      if (p.who === "nrg" && q.who !== "nrg" && p.op === q.op) svg += line(x(p.speed), y(p.ulp), x(q.speed), y(q.ulp), "tie");
  let labels = "";
  for (const p of [...points].sort((a, b) => (a.who === "nrg") - (b.who === "nrg"))) {
    const px = x(p.speed), py = y(p.ulp), wide = 6.6 * p.op.length;
    const error = p.ulp > 9999 ? p.ulp.toExponential(1) : number(p.ulp);
    svg += dot(p.who, px, py, WHO[p.who], `${p.who} ${p.op}: ${number(p.speed)} elements/ns, ${error} ulp`);
    if (p.who !== "nrg") continue;
    /* above, below, right, left: the first place that nothing has */
    for (const [lx, ly, anchor] of [[px, py - 10, "middle"], [px, py + 19, "middle"], [px + 9, py + 4, "start"], [px - 9, py + 4, "end"]]) {
      const from = anchor === "middle" ? lx - wide / 2 : anchor === "start" ? lx : lx - wide, box = [from, ly - 11, from + wide, ly + 2];
      if (box[0] < left || box[2] > width || box[1] < top - 4 || !free(box)) continue;
      taken.push(box);
      labels += label(lx, ly, p.op, anchor, "strong");
      break;
    }
  }
  svg += labels + label(left - 36, top - 10, "ulp") + label(left, height - 6, `elements/ns${title ? "; down is more accurate, right is faster" : ""}`);
  return { svg: svg + "</svg>" };
}
