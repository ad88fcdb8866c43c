/** Errors by place: a cell for each part of the array, the darker the farther off, on a logarithmic scale. */
function heatMap(section) {
  const cells = section.cells.flat();
  const finite = cells.filter((cell) => cell);
  const worst = Math.max(...finite, 0);
  const least = Math.min(...finite, worst);
  const columns = Math.max(...section.cells.map((row) => row.length), 1);
  const lines = section.cells.length;
  const size = Math.max(4, Math.min(22, Math.floor(560 / columns)));
  const picture = element("svg:svg.heat", {
    viewBox: `0 0 ${columns * size} ${lines * size}`,
    width: columns * size,
    height: lines * size,
    role: "img",
    "aria-label": `errors over ${section.rows} rows and ${section.columns} columns; largest ${short(worst)}`,
  });
  section.cells.forEach((row, y) =>
    row.forEach((cell, x) => {
      const span = Math.log(worst / least) || 1;
      const level = cell === null ? 9 : !cell ? 0 : 1 + Math.round(7 * (1 - Math.log(worst / cell) / span));
      const box = { x: x * size, y: y * size, width: size - 0.5, height: size - 0.5, class: `heat-${level}` };
      picture.append(element("svg:rect", box, element("svg:title", {}, short(cell))));
    }),
  );
  const legend = element("p.legend", {}, `${section.rows} × ${section.columns} elements · largest error ${short(worst)}`);
  if (cells.includes(null)) legend.append(" · ", element("span.swatch.not-finite"), " not finite on one side only");
  return element("div.scroll", {}, picture, legend);
}

/** Mismatches by magnitude of the value: the share of each bucket. */
function histogram(section) {
  const rows = section.bars.map(([range, mismatched, total]) => {
    const share = total ? mismatched / total : 0;
    const bar = element("span.bar");
    bar.style.width = `${mismatched ? Math.max(1, 100 * share) : 0}%`;
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, range),
      element("td.number", {}, `${mismatched} of ${total}`),
      element("td.track", { "aria-hidden": "true" }, bar),
    );
  });
  const head = ["magnitude", "mismatched", "share"].map((name) => element("th", { scope: "col" }, name));
  return element("table.histogram", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

const NODE = { width: 176, height: 40, gapX: 18, gapY: 34 };

/** The neighbourhood of an instruction: what it is made of above it, what reads it below. */
function graph(section) {
  const layers = new Map();
  for (const node of section.nodes) {
    if (!layers.has(node.distance)) layers.set(node.distance, []);
    layers.get(node.distance).push(node);
  }
  const order = [...layers.keys()].sort((one, other) => other - one);
  const widest = Math.max(...order.map((distance) => layers.get(distance).length));
  const width = widest * (NODE.width + NODE.gapX) + NODE.gapX;
  const height = order.length * (NODE.height + NODE.gapY) - NODE.gapY + 8;
  const places = new Map();
  order.forEach((distance, level) => {
    const nodes = layers.get(distance);
    const left = (width - nodes.length * (NODE.width + NODE.gapX) + NODE.gapX) / 2;
    nodes.forEach((node, i) =>
      places.set(node.name, { x: left + i * (NODE.width + NODE.gapX), y: 4 + level * (NODE.height + NODE.gapY) }),
    );
  });
  const spot = section.nodes.find((node) => node.distance === 0);
  const picture = element("svg:svg.graph", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": `${spot.opcode} ${spot.name} reads ${spot.reads.join(", ") || "nothing"}`,
  });
  for (const node of section.nodes) {
    for (const read of node.reads) if (places.has(read)) picture.append(edge(places.get(read), places.get(node.name)));
  }
  for (const node of section.nodes) picture.append(graphNode(node, places.get(node.name)));
  const states = new Set(section.nodes.map((node) => node.state).filter(Boolean));
  const legend = element("p.legend", {}, "what it reads above, what reads it below");
  for (const state of states) legend.append(" · ", element(`span.swatch.${state}`), ` ${state}`);
  return element("div.scroll", { tabindex: "0", role: "group", "aria-label": "graph" }, picture, legend);
}

function edge(from, to) {
  const [x1, y1] = [from.x + NODE.width / 2, from.y + NODE.height];
  const [x2, y2] = [to.x + NODE.width / 2, to.y];
  const middle = (y1 + y2) / 2;
  return element("svg:path.edge", { d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` });
}

function graphNode(node, place) {
  const kind = node.distance === 0 ? "spot" : node.state || "plain";
  return element(
    `svg:g.node.${kind}`,
    { transform: `translate(${place.x} ${place.y})` },
    element("svg:title", {}, node.text),
    element("svg:rect", { width: NODE.width, height: NODE.height, rx: 4 }),
    element("svg:text", { x: 10, y: 17, class: "opcode" }, clipped(node.opcode, 23)),
    element("svg:text", { x: 10, y: 32, class: "name" }, clipped(`%${node.name}`, 25)),
  );
}

function clipped(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
