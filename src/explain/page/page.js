"use strict";
// Draws the page from the JSON it carries. Every name goes in as text, never as markup.
const plan = JSON.parse(document.getElementById("data").textContent);

// --- elements -------------------------------------------------------------------------------------------------------
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const picture = (width, height, label, ...children) =>
  s("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, style: "max-width:100%;height:auto"}, ...children);

// --- numbers --------------------------------------------------------------------------------------------------------
function scaled(value, units, step) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= 999.5 * (step ** unit)) ++unit;
  const v = value / step ** unit;
  return `${unit === 0 || v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)} ${units[unit]}`;
}
const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"], 1000);
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  if (value >= 0.9995) return `${value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)} s`;
  const [v, unit] = value >= 0.9995e-3 ? [value * 1e3, "ms"] : [value * 1e6, "µs"];
  return `${v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)} ${unit}`;
}
/** A round number on an axis: "10 ms" for "10.0 ms". */
const brief = (text) => text.replace(/\.0+ /, " ");
const share = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–");
const times = (value) => `${value >= 9.95 ? value.toFixed(1) : value.toFixed(2)} ×`;
const colour = (name) => `var(--${name})`;
const kindColour = (kind) => colour(kind === "-" || kind === "" ? "none" : kind);

/** Round steps from 0 to at least `most`. */
function ticks(most, count = 5) {
  if (most <= 0) return [0, 1];
  const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= rough);
  const list = [];
  for (let i = 0; i * step < most + step * 0.999; ++i) list.push(i * step);
  return list;
}

function table(caption, heads, rows) {
  const cell = (tag, text, i) => h(tag, {class: heads[i].right ? "right" : "name", scope: tag === "th" ? "col" : null}, text);
  return h("div", {class: "wide"}, h("table", {},
    caption ? h("caption", {}, caption) : null,
    h("thead", {}, h("tr", {}, heads.map((head, i) => cell("th", head.text, i)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, i) => cell("td", text, i)))))));
}
const left = (text) => ({text}), right = (text) => ({text, right: true});

const legend = (items) => h("div", {class: "legend"}, items.map(([name, fillColour, shape]) =>
  h("span", {}, h("i", {class: shape || "", style: shape ? null : `background:${fillColour}`, "aria-hidden": "true"}), name)));

const section = (id, title, ...children) => h("section", {id, "aria-labelledby": `${id}-title`}, h("h2", {id: `${id}-title`}, title), ...children);

// --- head -----------------------------------------------------------------------------------------------------------
function tiles() {
  const chosen = plan.strategies[0], data = plan.strategies.find((x) => x.name === "data");
  const tile = (name, value, note) => h("div", {class: "tile"}, h("div", {class: "name"}, name), h("div", {class: "value"}, value), h("div", {class: "note"}, note || ""));
  const list = [tile("moved per step, all ranks", bytes(chosen.bytes), chosen.status || `strategy ${chosen.name}`)];
  if (data && data !== chosen && chosen.bytes > 0)
    list.push(tile("data parallelism moves", times(data.bytes / chosen.bytes), bytes(data.bytes)));
  if (chosen.seconds !== null) {
    list.push(tile("predicted step", seconds(chosen.seconds), `${(plan.batch / chosen.seconds).toPrecision(4)} samples/s`));
    if (data && data !== chosen) list.push(tile("speed-up over data parallelism", times(data.seconds / chosen.seconds), `that takes ${seconds(data.seconds)}`));
  }
  list.push(tile("memory of the fullest rank", bytes(chosen.memory), plan.machine ? `of ${bytes(plan.machine.memory)} there` : "buffers, without scratch"));
  const [, what, part] = /^(.*) (\d+ %)$/.exec(chosen.bottleneck) || ["", "", chosen.bottleneck];
  list.push(tile(plan.machine ? "takes most of the step" : "moves most of the bytes", part, what));
  return h("div", {class: "tiles"}, list);
}

function header() {
  const parts = [`${plan.ranks} rank${plan.ranks === 1 ? "" : "s"} (mesh ${plan.mesh})`, `batch ${plan.batch}`, plan.precision, `strategy ${plan.strategies[0].name}`];
  if (plan.machine) parts.push(plan.machine.name);
  return h("header", {}, h("h1", {}, `How ${plan.model} is split`), h("p", {}, parts.join(" · ")), tiles(),
    h("nav", {"aria-label": "sections"}, [["strategies", "Strategies"], ["network", "The network"], ["memory", "Memory"], ["time", "Time"], ["sweep", "Rank counts"]]
      .map(([id, text]) => h("a", {href: `#${id}`}, text))));
}

// --- strategies -----------------------------------------------------------------------------------------------------
function bars(title, value, text) {
  const most = Math.max(...plan.strategies.map(value), 1e-300), first = value(plan.strategies[0]);
  return h("figure", {style: "margin:0"}, h("h3", {}, title), plan.strategies.map((x) => {
    const v = value(x), ratio = first > 0 && x !== plan.strategies[0] ? `  ${times(v / first)}` : "";
    return h("div", {class: "bar"}, h("span", {}, x.name), h("div", {class: "track"},
      h("div", {class: "fill", style: `width:calc((100% - 150px) * ${(v / most).toFixed(4)});background:${colour(x.name in {auto: 1, data: 1, model: 1, owt: 1, kcut: 1} ? x.name : "auto")}`}),
      h("span", {class: "number"}, text(v) + ratio)));
  }));
}

function strategies() {
  const timed = plan.strategies[0].seconds !== null, first = plan.strategies[0];
  const charts = [bars("moved per step, all ranks together", (x) => x.bytes, bytes), bars("memory of the fullest rank", (x) => x.memory, bytes)];
  if (timed) charts.splice(1, 0, bars(`step time on ${plan.machine.name}`, (x) => x.seconds, seconds));
  const heads = [left("strategy"), right("moved"), right("ratio"), right("memory"), left("takes most"), left("proof")];
  if (timed) heads.splice(3, 0, right("step time"), right("ratio"));
  const rows = plan.strategies.map((x) => {
    const row = [x.name, bytes(x.bytes), first.bytes > 0 ? times(x.bytes / first.bytes) : "–", bytes(x.memory), x.bottleneck, x.status || "–"];
    if (timed) row.splice(3, 0, seconds(x.seconds), times(x.seconds / first.seconds));
    return row;
  });
  const pins = plan.pinned ? " The pins of the model file hold for the first one only." : "";
  return section("strategies", "Strategies side by side",
    h("p", {}, `data: every operator splits the batch, weights are replicated. model: no operator splits the batch. owt: convolutions as data, dense layers as model. kcut: one cut after the other. auto: all cuts jointly.${pins}`),
    h("div", {class: "charts"}, charts), table(null, heads, rows));
}

// --- the network ----------------------------------------------------------------------------------------------------
/** Gives every layer a lane such that what is still to be used keeps a lane to itself. */
function lanes() {
  const last = plan.layers.map(() => -1), incoming = plan.layers.map(() => []);
  for (const edge of plan.edges) {
    last[edge.from] = Math.max(last[edge.from], edge.to);
    incoming[edge.to].push(edge);
  }
  const busy = [], lane = [];
  plan.layers.forEach((_, i) => {
    let mine = -1;
    for (const edge of incoming[i])
      if (last[edge.from] === i && (mine < 0 || lane[edge.from] < mine)) mine = lane[edge.from];
    for (const edge of incoming[i]) if (last[edge.from] === i) busy[lane[edge.from]] = false;
    if (mine < 0) {
      mine = busy.findIndex((b) => !b);
      if (mine < 0) mine = busy.length;
    }
    lane.push(mine);
    busy[mine] = last[i] > i;
  });
  return {lane, count: Math.max(1, busy.length)};
}

const ROW = 38, MIDDLE = ROW / 2, TURN = 14;
/** Of each row, the pieces of the lines that pass through it, and the labels of those that end there. */
function pieces(lane, x) {
  const most = Math.max(...plan.edges.map((e) => e.forward + e.backward), 1);
  const rows = plan.layers.map(() => ({lines: [], labels: []}));
  const sorted = [...plan.edges].sort((a, b) => a.forward + a.backward - b.forward - b.backward); // the thickest on top
  for (const edge of sorted) {
    const sum = edge.forward + edge.backward, x0 = x(lane[edge.from]), x1 = x(lane[edge.to]), straight = x0 === x1;
    const names = `${plan.layers[edge.from].name} → ${plan.layers[edge.to].name}`;
    const style = {fill: "none", stroke: sum > 0 ? colour("hot") : colour("none"), "stroke-opacity": sum > 0 ? 0.85 : 0.6, "stroke-width": sum > 0 ? (1.5 + 6.5 * Math.sqrt(sum / most)).toFixed(1) : 1.5};
    const add = (row, d) => rows[row].lines.push(s("path", {d, ...style}, s("title", {}, `${names}: forward ${bytes(edge.forward)}, backward ${bytes(edge.backward)}`)));
    for (let row = edge.from; row < edge.to; ++row)
      add(row, `M${x0},${row === edge.from ? MIDDLE : 0}V${straight || row + 1 < edge.to ? ROW : ROW - TURN}`);
    add(edge.to, straight ? `M${x1},0V${MIDDLE}` : `M${x0},${-TURN}C${x0},${MIDDLE - 8} ${x1},${-TURN + 4} ${x1},${MIDDLE}`);
    if (sum > 0) rows[edge.to].labels.push(s("text", {x: (straight ? x1 : x0) + 8, y: straight ? 4 : -3}, bytes(sum)));
  }
  return rows;
}

function showLayer(layer, panel) {
  const facts = [`${layer.op}, result ${layer.shape}`, layer.split ? `${layer.kind}: ${layer.split}` : null, layer.why || null, `moves ${bytes(layer.bytes)}`].filter(Boolean).join(" · ");
  panel.replaceChildren(h("h3", {}, layer.name), h("p", {}, facts),
    table(null, [left("tensor"), left("role"), left("shape"), left("kept as"), right("moved per step")],
      layer.tensors.map((t) => [t.name, t.role, t.shape, t.tiling, bytes(t.bytes)])));
}

function network() {
  const {lane, count} = lanes(), spacing = plan.edges.some((e) => e.forward + e.backward > 0) ? Math.max(26, Math.min(76, 170 / count)) : 28;
  const x = (l) => 20 + l * spacing, width = 20 + (count - 1) * spacing + Math.max(spacing, 44);
  const lines = pieces(lane, x);
  const drawing = (layer, i) => s("svg", {width, height: ROW, "aria-hidden": "true"}, lines[i].lines,
    s("rect", {x: x(lane[i]) - 8, y: MIDDLE - 8, width: 16, height: 16, rx: 4, fill: kindColour(layer.kind), stroke: "var(--card)", "stroke-width": 2},
      s("title", {}, `${layer.name}: ${layer.split || "no work of its own"}`)), lines[i].labels);
  const panel = h("div", {id: "layer", "aria-live": "polite"}, h("p", {}, "Choose a layer above to see its tensors."));
  const timed = plan.strategies[0].seconds !== null, whole = plan.strategies[0].bytes;
  const heads = ["layer", "operator", "parallel", "split", "moved", "inside it", "memory", timed ? "time" : "of all", "because"];
  let selected = null;
  const rows = plan.layers.map((layer, i) => {
    const cells = [[layer.name], [layer.op, "dim"], [h("span", {class: "chip", style: `background:${kindColour(layer.kind)}`}, layer.kind || "-")], [layer.split || "–"],
      [bytes(layer.bytes), layer.bytes > whole / 20 ? "right hot" : "right"], [bytes(layer.inside), "right dim"], [bytes(layer.held), "right dim"],
      [timed ? seconds(layer.seconds) : share(layer.bytes, whole), "right dim"], [layer.why, "dim"]];
    const row = h("div", {class: "row", role: "row", tabindex: "0"}, h("div", {class: "lines"}, drawing(layer, i)), cells.map(([content, style]) =>
      h("div", {role: "cell", class: style || "", title: typeof content === "string" ? content : null}, content)));
    const choose = () => {
      if (selected) selected.removeAttribute("aria-selected");
      selected = row;
      row.setAttribute("aria-selected", "true");
      showLayer(layer, panel);
    };
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
    return row;
  });
  const room = (text, most) => Math.min(most, Math.round(Math.max(...plan.layers.map((layer) => text(layer).length), 7) * 7 + 16));
  const graph = h("div", {class: "graph", role: "table", "aria-label": "the layers from input to loss, and what moves between them", style: `--lines:${width}px;--names:${room((layer) => layer.name, 280)}px;--splits:${room((layer) => layer.split, 230)}px`},
    h("div", {class: "heads", role: "row"}, h("div", {class: "lines"}, "graph"), heads.map((text, i) => h("div", {role: "columnheader", class: i >= 4 && i <= 7 ? "right" : ""}, text))), rows);
  const search = h("input", {type: "search", "aria-label": "find a layer", placeholder: "find a layer"});
  search.addEventListener("input", () => {
    const at = search.value === "" ? -1 : plan.layers.findIndex((layer) => layer.name.includes(search.value));
    if (at < 0) return;
    graph.scrollTop = Math.max(0, at * ROW - 60);
    rows[at].click();
  });
  const inside = plan.layers.reduce((sum, layer) => sum + layer.inside, 0), between = plan.edges.reduce((sum, e) => sum + e.forward + e.backward, 0);
  return section("network", "The network, layer by layer",
    h("p", {}, `${plan.layers.length} layers from input to loss. Boxes are coloured by how a layer is split; a line is as thick as what moves along it, forward and backward together: ${bytes(between)} between layers, ${bytes(inside)} inside them (weights and their gradients). “because” compares with the layer split otherwise and all else as it is.`),
    h("div", {class: "tools"}, legend([["data: splits the batch", colour("data")], ["model: splits features or sums", colour("model")], ["spatial: splits rows or columns", colour("spatial")], ["hybrid: several of these", colour("hybrid")], ["neither", colour("none")], ["bytes move", colour("hot")]]), search),
    graph, panel);
}

// --- memory ---------------------------------------------------------------------------------------------------------
function memory() {
  const m = plan.memory, W = 1160, H = 300, L = 76, R = 16, T = 16, B = 34;
  const steps = ticks(Math.max(m.allocated, m.peak.bytes)), top = steps[steps.length - 1];
  const x = (i) => L + (W - L - R) * (i / Math.max(1, m.instructions)), y = (v) => T + (H - T - B) * (1 - v / top);
  const base = m.points.map(() => 0), areas = [];
  m.kinds.forEach((kind, k) => {
    const lower = m.points.map((p, i) => `${x(p[0]).toFixed(1)},${y(base[i]).toFixed(1)}`);
    m.points.forEach((p, i) => { base[i] += p[k + 1]; });
    const upper = m.points.map((p, i) => `${x(p[0]).toFixed(1)},${y(base[i]).toFixed(1)}`);
    if (m.points.some((p) => p[k + 1] > 0)) areas.push(s("polygon", {points: [...upper, ...lower.reverse()].join(" "), fill: colour(`held${k}`)}, s("title", {}, kind)));
  });
  const grid = steps.map((v) => [s("line", {class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v)}), s("text", {x: L - 8, y: y(v) + 4, "text-anchor": "end"}, brief(bytes(v)))]);
  const turn = x(m.forward_end), at = x(m.peak.at), atRight = at > W * 0.7;
  const marks = [s("line", {x1: L, x2: W - R, y1: y(m.allocated), y2: y(m.allocated), stroke: "var(--ink)", "stroke-dasharray": "5 4"}),
    s("line", {x1: turn, x2: turn, y1: T, y2: H - B, stroke: "var(--soft)", "stroke-dasharray": "2 3"}),
    s("text", {x: (L + turn) / 2, y: H - 12, "text-anchor": "middle"}, "forward"), s("text", {x: (turn + W - R) / 2, y: H - 12, "text-anchor": "middle"}, "backward and update"),
    s("circle", {cx: at, cy: y(m.peak.bytes), r: 4, fill: "var(--ink)", stroke: "var(--card)", "stroke-width": 2})];
  const used = m.kinds.map((kind, k) => [kind, k]).filter(([, k]) => m.points.some((p) => p[k + 1] > 0));
  return section("memory", "Memory of the fullest rank over the step",
    h("p", {}, `Buffers that are alive while each instruction of the step runs. The most, ${bytes(m.peak.bytes)}, is held at ${m.peak.node}; with the gaps between them the buffers take ${bytes(m.allocated)}. Scratch of kernels and staging of messages are not counted.`),
    legend([...used.map(([kind, k]) => [kind, colour(`held${k}`)]), ["allocated", "", "dash"]]),
    picture(W, H, `memory over the step, at most ${bytes(m.peak.bytes)}`, grid, areas, s("line", {class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B}), marks),
    h("div", {class: "pair"},
      table("held at the peak, by kind", [left("kind"), right("bytes"), right("share")], used.map(([kind, k]) => [kind, bytes(m.peak.kinds[k]), share(m.peak.kinds[k], m.peak.bytes)])),
      table("the largest buffers at the peak", [left("buffer"), right("bytes"), right("share")], m.at_peak.map((b) => [b.name, bytes(b.bytes), share(b.bytes, m.peak.bytes)]))));
}

// --- time -----------------------------------------------------------------------------------------------------------
function timeline() {
  const t = plan.timeline;
  if (!t) return section("time", "Time", h("p", {}, "No machine was given, so nothing is said of time: soybean_plan … --machine NAME adds the timeline of a step."));
  const H = 132, L = 76, R = 20, base = 1160;
  const names = ["forward", "backward", "update", "packing"];
  const draw = (zoom) => {
    const W = base * zoom, x = (v) => L + ((W - L - R) * v) / t.seconds;
    const box = (item, row, fillColour, what) => s("rect", {x: x(item[0]).toFixed(2), y: row, width: Math.max(0.4, x(item[1]) - x(item[0])).toFixed(2), height: 34, fill: fillColour, "shape-rendering": "crispEdges"},
      s("title", {}, `${item[2]}${what ? ` (${what})` : ""}: ${seconds(item[1] - item[0])} from ${seconds(item[0])}`));
    const steps = ticks(t.seconds, 8 * zoom).filter((v) => v <= t.seconds * 1.0001);
    return s("svg", {width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "timeline of kernels and transfers of one step", style: zoom === 1 ? "max-width:100%;height:auto" : null},
      steps.map((v) => [s("line", {class: "grid", x1: x(v), x2: x(v), y1: 8, y2: 104}), s("text", {x: x(v), y: 122, "text-anchor": "middle"}, brief(seconds(v)))]),
      s("text", {x: L - 8, y: 34, "text-anchor": "end"}, "kernels"), s("text", {x: L - 8, y: 80, "text-anchor": "end"}, "network"),
      t.kernels.map((item) => box(item, 12, colour(names[item[3]]), names[item[3]])), t.transfers.map((item) => box(item, 58, colour("network"), "")));
  };
  const holder = h("div", {class: "scroll"}, draw(1));
  const zoom = h("input", {type: "range", min: "0", max: "6", value: "0", "aria-label": "zoom of the timeline"});
  zoom.addEventListener("input", () => {
    const before = holder.scrollWidth, middle = (holder.scrollLeft + holder.clientWidth / 2) / before;
    holder.replaceChildren(draw(2 ** Number(zoom.value)));
    holder.scrollLeft = middle * holder.scrollWidth - holder.clientWidth / 2;
  });
  const sum = t.sums, hidden = Math.max(0, sum.transferring - sum.waiting);
  const parts = [...(sum.reading > 0 ? ["reading"] : []), "forward", "backward", "update", "packing", "waiting"];
  return section("time", `Time of one step on ${plan.machine.name}`,
    h("p", {}, `Predicted for the fullest rank: kernels, and transfers beside them. ${seconds(sum.transferring)} of transfers, ${seconds(hidden)} of them hidden behind kernels; nothing is computed for ${seconds(sum.waiting)}.`),
    h("div", {class: "tools"}, legend([...names.map((name) => [name, colour(name)]), ["transfer", colour("network")]]), h("label", {}, "zoom", zoom)),
    holder,
    h("div", {class: "pair"},
      table("where the step goes", [left("part"), right("time"), right("share")], parts.map((part) => [part === "waiting" ? "waiting for transfers" : part === "reading" ? "reading the batch" : part, seconds(sum[part]), share(sum[part], t.seconds)])),
      table("what takes longest", [left("kernel or transfer"), left("of layer"), right("time"), right("of step")], t.longest.map((item) => [item.what, item.layer, seconds(item.seconds), share(item.seconds, t.seconds)]))));
}

// --- rank counts ----------------------------------------------------------------------------------------------------
function lineChart(title, value, text) {
  const W = 560, H = 300, L = 66, R = 58, T = 14, B = 40;
  const series = plan.sweep[0].plans.map((p, k) => ({name: p.strategy, k}));
  const values = plan.sweep.flatMap((point) => point.plans.map(value)).filter((v) => v > 0);
  const ranks = plan.sweep.map((point) => point.ranks);
  if (values.length === 0) return h("figure", {style: "margin:0"}, h("h3", {}, title), h("p", {}, "nothing moves at these rank counts"));
  const least = Math.min(...values), most = Math.max(...values), round = [];
  for (let p = Math.floor(Math.log10(least)); p <= Math.ceil(Math.log10(most)); ++p) round.push(...[1, 2, 5].map((f) => f * 10 ** p));
  const bottom = Math.max(...round.filter((v) => v <= least * 1.0001)), top = Math.max(2 * bottom, Math.min(...round.filter((v) => v >= most * 0.9999)));
  const lo = Math.log10(bottom), hi = Math.log10(top), decades = hi - lo > 2.5;
  const marks = round.filter((v) => v >= bottom && v <= top * 1.0001 && (!decades || /^1/.test(v.toExponential(3))));
  const r0 = Math.log2(ranks[0]), r1 = Math.max(r0 + 1, Math.log2(ranks[ranks.length - 1]));
  const x = (r) => L + ((W - L - R) * (Math.log2(r) - r0)) / (r1 - r0), y = (v) => T + (H - T - B) * (1 - (Math.log10(v) - lo) / (hi - lo));
  const grid = [];
  for (const v of marks) grid.push(s("line", {class: "grid", x1: L, x2: W - R, y1: y(v), y2: y(v)}), s("text", {x: L - 8, y: y(v) + 4, "text-anchor": "end"}, brief(text(v))));
  let free = -Infinity;
  for (const r of ranks) {
    grid.push(s("line", {class: "axis", x1: x(r), x2: x(r), y1: H - B, y2: H - B + 4}));
    if (x(r) - free < 28) continue;
    free = x(r);
    grid.push(s("text", {x: x(r), y: H - B + 17, "text-anchor": "middle"}, String(r)));
  }
  const ends = series.map((line) => {
    const points = plan.sweep.filter((point) => value(point.plans[line.k]) > 0);
    return points.length ? {...line, points, end: y(value(points[points.length - 1].plans[line.k]))} : null;
  }).filter(Boolean).sort((a, b) => a.end - b.end);
  ends.forEach((line, i) => { line.label = i === 0 ? line.end : Math.max(line.end, ends[i - 1].label + 13); });
  const lines = ends.map((line) => {
    const stroke = colour(line.k === 0 ? "auto" : line.name), at = (point) => [x(point.ranks), y(value(point.plans[line.k]))];
    return [s("polyline", {points: line.points.map((p) => at(p).map((v) => v.toFixed(1)).join(",")).join(" "), fill: "none", stroke, "stroke-width": 2.5}),
      line.points.map((p) => s("circle", {cx: at(p)[0], cy: at(p)[1], r: 3.5, fill: stroke, stroke: "var(--card)", "stroke-width": 1}, s("title", {}, `${line.name}, ${p.ranks} ranks: ${text(value(p.plans[line.k]))}`))),
      s("text", {x: x(line.points[line.points.length - 1].ranks) + 9, y: line.label + 4, style: `fill:${stroke};font-weight:600`}, line.name)];
  });
  return h("figure", {style: "margin:0"}, h("h3", {}, title), picture(W, H, title, grid, s("line", {class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B}), lines, s("text", {x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle"}, "ranks")));
}

function sweep() {
  if (plan.sweep.length === 0) return null;
  const timed = plan.sweep[0].plans[0].seconds !== null;
  const heads = [right("ranks"), right("batch"), ...plan.sweep[0].plans.map((p) => right(`${p.strategy}: moved`))];
  if (timed) heads.push(...plan.sweep[0].plans.map((p) => right(`${p.strategy}: time`)), right("speed-up over data"));
  heads.push(left("proof"));
  const rows = plan.sweep.map((point) => {
    const row = [String(point.ranks), String(point.batch), ...point.plans.map((p) => bytes(p.bytes))];
    if (timed) row.push(...point.plans.map((p) => seconds(p.seconds)), times(point.plans[1].seconds / point.plans[0].seconds));
    row.push(point.status || "–");
    return row;
  });
  const charts = [lineChart("moved per step, all ranks together", (p) => p.bytes, bytes)];
  if (timed) charts.push(lineChart("step time", (p) => p.seconds, seconds));
  return section("sweep", "Over rank counts", h("p", {}, "The same model planned for other numbers of ranks, both axes logarithmic. A single rank moves nothing."), h("div", {class: "charts"}, charts), table(null, heads, rows));
}

document.getElementById("page").replaceChildren(...[header(), strategies(), network(), memory(), timeline(), sweep(),
  h("footer", {}, `Made by soybean_plan ${plan.version}. Bytes are bytes received, summed over all ranks, in one training step; 1 MB is 10⁶ bytes. Planning took ${seconds(plan.planning_seconds)}.`)].filter(Boolean));
