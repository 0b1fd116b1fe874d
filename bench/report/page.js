/* The page: reads the report, draws, filters and sorts. */

const report = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

/* An element with these properties and children. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function rowsOf(arrays) {
  return arrays.map((cells) => Object.fromEntries(report.columns.map((name, i) => [name, cells[i]])));
}
const errors = report.errors.map(([kernel, op, dtype, path, who, ulp]) => ({ kernel, op, dtype, path, who, ulp }));
const ulpOf = (() => {
  const known = new Map(errors.filter((e) => e.who === "nrg").map((e) => [`${e.kernel}/${e.op}/${e.dtype}`, e.ulp]));
  return (row) => known.get(`${row.kernel}/${row.op}/${row.dtype}`) ?? null; /* the same on every path */
})();
const ratio = (a, b) => (a && b ? a / b : null);
const rows = rowsOf(report.rows).map((row) => ({
  ...row, speed: speed(row), gbs: row.bytes / row.ns, share: ratio(row.limit_ns, row.ns), share2: ratio(row.twice_ns, row.ns),
  naive: ratio(row.naive_ns, row.ns), sleef: ratio(row.sleef_ns, row.ns), ulp: ulpOf(row),
}));
const sweep = rowsOf(report.sweep);
const caches = report.caches.filter((c) => c.type !== "Instruction" && c.bytes);
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1] ?? null;
const unique = (values) => [...new Set(values)];
const best = PATHS.find((p) => p === report.active) || PATHS.find((p) => rows.some((r) => r.path === p));

/* ---- light and dark ---- */

function setUpScheme() {
  document.head.append(make("style", { textContent: pageStyle() }));
  const names = { auto: "Scheme: system", light: "Scheme: light", dark: "Scheme: dark" }, next = { auto: "dark", dark: "light", light: "auto" };
  let scheme = "auto";
  const show = () => {
    if (scheme === "auto") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = scheme;
    $("scheme").textContent = names[scheme];
  };
  $("scheme").onclick = () => { scheme = next[scheme]; show(); };
  show();
}

/* ---- filters ---- */

function refill(select, options) {
  const value = select.value;
  select.replaceChildren(...options.map((option) => new Option(option === "" ? "all" : option, option)));
  if (options.includes(value)) select.value = value;
}

function choice(form, name, text, options, changed, first) {
  const select = make("select", { name, onchange: changed });
  refill(select, options);
  if (options.includes(first)) select.value = first;
  form.append(make("label", {}, text, select));
  return select;
}

/* A path's name beside its colour. */
function keyOfPath(kind, p) {
  const color = make("i");
  color.style.background = `var(--${p})`;
  return make(kind, { className: "key" }, color, p);
}

function toggles(form, paths, changed) {
  const shown = new Set(paths);
  for (const p of paths) {
    const label = keyOfPath("label", p), box = make("input", { type: "checkbox", checked: true, name: p });
    box.onchange = () => { if (box.checked) shown.add(p); else shown.delete(p); changed(); };
    label.prepend(box);
    form.append(label);
  }
  return shown;
}

function saver(form, name, svg) {
  const save = () => {
    const text = svg();
    if (!text) return;
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })), download: name() });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  form.append(make("button", { type: "button", textContent: "Save as SVG", onclick: save }));
}

/* ---- plots ---- */

function put(place, plot) {
  place.innerHTML = plot ? plot.svg : '<p class="none">No such rows were measured in the time that this report had.</p>';
}

function tip(event, html) {
  const box = $("tip");
  box.hidden = !html;
  if (!html) return;
  box.innerHTML = html;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
}

const keyOf = (r) => `${r.kernel} ${r.op} ${r.dtype}`;
const drawn = [];

function setUpSweep() {
  const form = $("sweep-filters"), place = $("sweep"), draw = () => {
    const of = sweep.filter((r) => keyOf(r) === op.value), plot = sweepPlot(of, caches, shown, place.clientWidth);
    put(place, plot);
    if (!plot) return;
    const svg = place.firstElementChild, cross = svg.querySelector("#cross");
    svg.onpointermove = (event) => {
      const at = (event.clientX - svg.getBoundingClientRect().left) * place.clientWidth / svg.getBoundingClientRect().width;
      const n = plot.lengths.reduce((a, b) => (Math.abs(plot.x(b) - at) < Math.abs(plot.x(a) - at) ? b : a));
      cross.setAttribute("x1", plot.x(n));
      cross.setAttribute("x2", plot.x(n));
      cross.setAttribute("visibility", "visible");
      const here = plot.paths.map((p) => of.find((r) => r.path === p && r.elements === n)).filter(Boolean);
      tip(event, `<b>${n} elements</b><table>${here.map((r) => `<tr><td>${r.path}</td><td>${duration(r.ns)}</td>` +
        `<td>${number(speed(r))}/ns</td><td>${number(ratio(r.limit_ns, r.ns))} of the roofline</td></tr>`).join("")}</table>`);
    };
    svg.onpointerleave = (event) => { cross.setAttribute("visibility", "hidden"); tip(event, ""); };
  };
  const op = choice(form, "op", "Call", unique(sweep.map(keyOf)), draw);
  const shown = toggles(form, PATHS.filter((p) => sweep.some((r) => r.path === p)), draw);
  saver(form, () => `${op.value.replace(/[^a-z0-9]+/gi, "-")}.svg`, () => sweepFile(op.value));
  drawn.push(draw);
}

/* As files of their own, in which the CPU's name stands. */
function sweepFile(key) {
  const all = new Set(PATHS);
  return standalone(sweepPlot(sweep.filter((r) => keyOf(r) === key), caches, all, 760, `${key}, a row: ${report.cpu}`));
}

function barsFile(key, shapes) {
  const of = rows.filter((r) => keyOf(r) === key && (!shapes || shapes.includes(r.shape)));
  return standalone(barsPlot(of, 760, `${key}: ${report.cpu}`));
}

function accuracyFile(kernel, path, shape) {
  return standalone(accuracyPlot(accuracyPoints(kernel, path, shape), 760, `${kernel} ${shape} ${path} f32, errors: ${report.cpu}`));
}

function withTips(place) {
  place.onpointermove = (event) => tip(event, escaped(event.target.dataset?.tip ?? ""));
  place.onpointerleave = (event) => tip(event, "");
}

function setUpBars() {
  const form = $("bars-filters"), place = $("bars");
  const ops = () => unique(rows.filter((r) => r.kernel === kernel.value).map((r) => r.op));
  const dtypes = () => unique(rows.filter((r) => r.kernel === kernel.value && r.op === op.value).map((r) => r.dtype));
  const draw = () => {
    refill(op, ops());
    refill(dtype, dtypes());
    put(place, barsPlot(rows.filter((r) => keyOf(r) === `${kernel.value} ${op.value} ${dtype.value}`), place.clientWidth));
  };
  const kernel = choice(form, "kernel", "Kernel", unique(rows.map((r) => r.kernel)), draw);
  const op = choice(form, "op", "Op", ops(), draw);
  const dtype = choice(form, "dtype", "Type", dtypes(), draw);
  for (const p of PATHS.filter((p) => rows.some((r) => r.path === p))) form.append(keyOfPath("span", p));
  saver(form, () => `${kernel.value}-${op.value}-${dtype.value}.svg`, () => barsFile(`${kernel.value} ${op.value} ${dtype.value}`));
  withTips(place);
  drawn.push(draw);
}

/* A kernel's ops at one shape, on one path. */
function accuracyPoints(kernel, path, shape) {
  const points = [];
  for (const row of rows) {
    if (row.kernel !== kernel || row.path !== path || row.shape !== shape || row.dtype !== "f32") continue;
    const add = (who, ns, ulp) => { if (ns && ulp) points.push({ who, op: row.op, speed: row.elements / ns, ulp }); };
    add("nrg", row.ns, row.ulp);
    for (const e of errors)
      if (e.who !== "nrg" && e.dtype === "f32" && e.kernel === kernel && e.op === row.op && e.path === path) add(e.who, row[`${e.who}_ns`], e.ulp);
  }
  return points;
}

function setUpAccuracy() {
  const form = $("accuracy-filters"), place = $("accuracy");
  const known = rows.filter((r) => r.ulp !== null);
  const shapes = () => unique(known.filter((r) => r.kernel === kernel.value).map((r) => r.shape));
  const draw = () => {
    refill(shape, shapes());
    put(place, accuracyPlot(accuracyPoints(kernel.value, path.value, shape.value), place.clientWidth));
  };
  const kernels = unique(known.map((r) => r.kernel));
  const kernel = choice(form, "kernel", "Kernel", kernels, draw, "activation");
  const path = choice(form, "path", "Path", PATHS.filter((p) => known.some((r) => r.path === p)), draw, best);
  const shape = choice(form, "shape", "Shape", shapes(), draw);
  for (const [who, color] of Object.entries(WHO)) {
    const mark = `<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">${dot(who, 7, 7, color, "")}</svg> ${who}`;
    form.append(make("span", { className: "key", innerHTML: mark }));
  }
  saver(form, () => `errors-${kernel.value}-${path.value}.svg`, () => accuracyFile(kernel.value, path.value, shape.value));
  withTips(place);
  drawn.push(draw);
}

/* ---- tables ---- */

const COLUMNS = [
  ["kernel", "kernel", 1], ["op", "op", 1], ["dtype", "type", 1], ["path", "path", 1], ["shape", "shape", 1],
  ["ns", "time", 0, duration], ["speed", "el./ns", 0, number], ["gbs", "GB/s", 0, number], ["share", "roofline fraction", 0, number],
  ["share2", "fraction 2", 0, number], ["naive", "× plain C", 0, number], ["sleef", "× SLEEF", 0, number], ["ulp", "ulp", 0, number],
];

function setUpTable() {
  const form = $("table-filters"), table = $("cases"), step = 100;
  let by = null, down = false, most = step;
  const head = table.createTHead().insertRow(), body = table.createTBody();
  for (const [key, title, isText] of COLUMNS) {
    const sort = () => { down = by === key ? !down : !isText; by = key; most = step; draw(); };
    const th = make("th", { className: isText ? "text" : "" }, make("button", { type: "button", textContent: title, onclick: sort }));
    th.dataset.key = key;
    head.append(th);
  }
  const natural = new Intl.Collator("en", { numeric: true });
  const order = (a, b) => {
    const x = a[by], y = b[by];
    if (x === null || y === null) return (x === null) - (y === null); /* what is unknown comes last in either order */
    return (typeof x === "string" ? natural.compare(x, y) : x - y) * (down ? -1 : 1);
  };
  const draw = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const of = rows.filter((r) => ["kernel", "dtype", "path"].every((key, i) => !selects[i].value || r[key] === selects[i].value) &&
      wanted.every((word) => `${r.op} ${r.shape}`.includes(word)));
    if (by) of.sort(order);
    body.replaceChildren(...of.slice(0, most).map((row) => make("tr", {}, ...COLUMNS.map(([key, , isText, format]) => make("td", {
      textContent: format ? format(row[key]) : row[key],
      className: isText ? "text" : "",
      title: key === "share" ? report.loops[row.loop] ?? "" : "",
    })))));
    for (const th of head.cells) {
      if (th.dataset.key === by) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    $("table-count").textContent = `${of.length} of ${rows.length} rows` + (of.length > most ? `, the first ${most} shown` : "");
    $("more").hidden = of.length <= most;
  };
  const again = () => { most = step; draw(); };
  const selects = [["kernel", "Kernel"], ["dtype", "Type"], ["path", "Path"]].map(([key, title]) =>
    choice(form, key, title, ["", ...unique(rows.map((r) => r[key]))], again));
  const text = make("input", { type: "search", name: "text", placeholder: "op or shape: silu 1x4096", oninput: again });
  form.append(text);
  form.onsubmit = (event) => event.preventDefault();
  $("more").onclick = () => { most += 5 * step; draw(); };
  draw();
}

function setUpMemory() {
  const sets = unique(report.memory.map((m) => m.bytes)), paths = PATHS.filter((p) => report.memory.some((m) => m.path === p));
  const cell = (p, bytes, what) => number(report.memory.find((m) => m.path === p && m.bytes === bytes)?.[what]);
  $("memory").innerHTML = `<thead><tr><th class="text">path</th>${sets.map((s) => `<th>read ${bytesText(s)}</th><th>copy ${bytesText(s)}</th>`).join("")}</tr></thead>` +
    `<tbody>${paths.map((p) => `<tr><td class="text">${p}</td>${sets.map((s) => `<td>${cell(p, s, "read")}</td><td>${cell(p, s, "copy")}</td>`).join("")}</tr>`).join("")}</tbody>`;
}

/* ---- words ---- */

function setUpWords() {
  document.title = `nrg ${report.nrg} on ${report.cpu}`;
  $("title").textContent = report.cpu;
  $("subtitle").textContent = `nrg ${report.nrg}, ${report.compiler}, ${report.date.slice(0, 10)}`;
  const main = rows.filter((r) => r.path === best);
  const memory = report.memory.filter((m) => m.path === best).sort((a, b) => b.bytes - a.bytes)[0];
  const tiles = [
    [best, "the path that runs here"],
    [`${number(median(main.map((r) => r.naive).filter(Boolean)))} ×`, "speedup over plain C with -O3 -ffast-math (median)"],
    [number(median(main.filter((r) => r.bytes > 1 << 26).map((r) => r.share2 ?? r.share).filter(Boolean))), "of the roofline, out of cache (median)"],
    memory ? [`${number(memory.copy)} GB/s`, `copied by one core, ${bytesText(memory.bytes)}`] : ["–", "memory was not measured"],
  ];
  $("tiles").innerHTML = tiles.map(([value, what]) => `<div><b>${escaped(value)}</b><span>${escaped(what)}</span></div>`).join("");
  const facts = [
    ["CPU", report.cpu], ["CPUs", report.cpus ?? "unknown"],
    ["Caches", report.caches.map((c) => `L${c.level}${c.type === "Instruction" ? " (code)" : ""} ${c.bytes ? bytesText(c.bytes) : "?"}`).join(", ") || "unknown"],
    ["System", `${report.system}, ${report.machine}`], ["Compiler", `${report.compiler}, ${report.options}`],
    ["nrg", `${report.nrg}, version ${report.numbers} of the numbers; paths ${report.paths.join(", ")}`],
    ["Date", report.date], ["Took", `${Math.round(report.seconds)} s; load at the end ${report.load ?? "unknown"}`],
    ["Cases", `${report.measured} of ${report.cases} measured` + (report.refused ? `, ${report.refused} refused` : "")],
  ];
  $("machine").innerHTML = facts.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value)}</dd>`).join("");
  const notes = [
    "One core. Time is the median of short batches. A kernel on all paths, its rooflines and its rivals run alternately on the same memory.",
    "Roofline fraction: the time of the fastest loop that only moves the same bytes, divided by the kernel's time. The cell's title names the loop. Fraction 2 is for a loop that reads the tensor of the statistics twice, because L2 cannot hold it.",
    "× plain C and × SLEEF: their time divided by the kernel's time. Above 1, the kernel is faster. f16 has no plain C loop, and only activations have one with SLEEF's functions.",
    "ulp: the largest error of results in the last place of their type, against 113-bit arithmetic over the benchmark's own numbers; activations against double, in f32 over one in 7747 of the floats from −80 to 80, in 16 bits over all of them. Of the larger of the result and its terms, where it is a sum that may cancel (a bias, a rotation, a logarithm; before its activation, where a channel norm has one); of gradients, without those of w and b in 16 bits, of the sum of their terms' magnitudes. All paths are bit-identical, so their errors are the same.",
    "No error is given for recurrent and relative positions, embeddings, score biases, cross-entropy, masks, parts and the gradient of softmax, permuted heads, statistics alone, some sandwich norms, q, k and v, gradients of rotations and sandwich norms, ops in two calls and quantized rows: the library's tests compare them with 113-bit arithmetic, and docs/numerics.md and docs/ops have their errors, also for worse inputs than these.",
  ];
  if (report.measured < report.cases) notes.push(`${report.cases - report.measured} cases were not reached in the time: nrg-bench --report DIR --seconds-total N takes longer.`);
  $("notes").innerHTML = notes.map((note) => `<li>${escaped(note)}</li>`).join("");
}

setUpScheme();
setUpWords();
setUpMemory();
setUpSweep();
setUpBars();
setUpAccuracy();
setUpTable();
const drawAll = () => drawn.forEach((draw) => draw());
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
drawAll();
document.documentElement.dataset.ready = "yes";
