/** Instructions that are laid out at a time: the layout of many more would freeze the page. */
const LAID_OUT = 150;

/** Ranks between two instructions beyond which their edge is a straight line, of which the layout knows nothing. */
const FAR = 8;
/** How much smaller than in full size a program is at first. */
const OVERVIEW = 1.5;
const BOX = { width: 190, height: 66 };

/**
 * A whole program: what is near an instruction is laid out; a search or a click goes elsewhere in it.
 * The darker, the fewer operations from the accused one. What stands inside of called computations can be
 * left out: a fusion or a loop is one box then. (dagre's own clusters fail on some programs, and are slow.)
 */
class ProgramGraph {
  constructor(section) {
    this.section = section;
    this.near = section.nodes.map(() => []);
    const readers = section.nodes.map(() => []);
    for (const [source, target] of section.edges) {
      this.near[source].push(target);
      this.near[target].push(source);
      readers[source].push(target);
    }
    this.reached = distances(section.spot, readers);
    this.box = element("div.program");
    this.canvas = element("div.canvas", { tabindex: "0", role: "group", "aria-label": "program" });
    this.about = element("pre.statement", { "aria-live": "polite" });
    this.box.append(this.controls(), this.canvas, this.about);
    this.moves();
  }

  controls() {
    const found = element("span.dim", { role: "status", "aria-live": "polite" });
    this.count = element("span.dim");
    this.isFlat = element("input", { type: "checkbox", change: () => this.go(this.focus) });
    const search = element("input", {
      type: "search", spellcheck: "false", autocomplete: "off",
      "aria-label": "search the program", placeholder: "instruction, opcode, line",
    });
    let last = -1;
    search.addEventListener("input", () => (last = -1));
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const matches = this.matching(search.value);
      last = matches.length ? (last + 1) % matches.length : -1;
      found.textContent = matches.length ? `${last + 1} of ${matches.length}` : "nothing found";
      if (last >= 0) this.go(matches[last]);
    });
    const button = (text, name, click) => element("button.quiet", { type: "button", "aria-label": name, click }, text);
    return element(
      "p.tools",
      {},
      search,
      button("+", "larger", () => this.zoom(0.8)),
      button("−", "smaller", () => this.zoom(1.25)),
      button("all", "all that is laid out", () => this.fit()),
      button("accused", "to the wrong instruction", () => this.go(this.section.spot)),
      element("label", {}, this.isFlat, "calls as one box"),
      found,
      this.count,
    );
  }

  /** Instructions whose name, opcode, statement or line has all words. */
  matching(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (node) => words.every((word) => node.slice(0, 4).join("\n").toLowerCase().includes(word));
    return words.length ? this.section.nodes.flatMap((node, i) => (has(node) ? [i] : [])) : [];
  }

  /** Lay out what is near an instruction, and bring it into the middle. */
  go(focus) {
    const isShown = (node) => !this.isFlat.checked || this.isOuter(node) || node === focus;
    const shown = [...distances(focus, this.near, LAID_OUT, isShown).keys()];
    this.focus = focus;
    const visible = new Set(shown);
    const edges = this.section.edges.filter(([source, target]) => visible.has(source) && visible.has(target));
    const layout = this.laidOut(shown, edges);
    const { width, height } = layout.graph();
    this.size = { width: width || BOX.width, height: height || BOX.height };
    this.picture = element("svg:svg.graph", { role: "img", "aria-label": `${shown.length} of ${this.section.nodes.length} instructions` });
    this.drawEdges(layout, edges);
    for (const number of shown) this.picture.append(this.node(number, layout.node(number), focus));
    this.canvas.replaceChildren(this.picture);
    const { x, y } = layout.node(focus);
    const room = { width: OVERVIEW * this.canvas.clientWidth, height: OVERVIEW * this.canvas.clientHeight };
    this.view = { x: x - room.width / 2, y: y - room.height / 2, ...room };
    const all = this.section.nodes.length;
    this.count.textContent = shown.length < all ? `${shown.length} of ${all} instructions, those nearest` : "";
    this.draw();
    this.tell(focus);
  }

  /** Whether an instruction is of the entry, or of a computation that several call. */
  isOuter(number) {
    return this.section.groups[this.section.nodes[number][4]][1] < 0;
  }

  laidOut(shown, edges) {
    const layout = new dagre.graphlib.Graph();
    layout.setGraph({ ranksep: 34, nodesep: 14, marginx: 10, marginy: 10, ranker: "tight-tree" });
    layout.setDefaultEdgeLabel(() => ({}));
    for (const number of shown) layout.setNode(number, { ...BOX });
    const ranks = ranksOf(shown, edges);
    for (const [source, target] of edges) {
      if (Math.abs(ranks.get(target) - ranks.get(source)) <= FAR) layout.setEdge(source, target);
    }
    dagre.layout(layout);
    return layout;
  }

  drawEdges(layout, edges) {
    for (const [source, target, isCall] of edges) {
      const ends = [layout.node(source), layout.node(target)];
      const { points } = layout.edge(source, target) || { points: ends };
      const line = points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" L");
      this.picture.append(element(`svg:path.edge${isCall ? ".call" : ""}`, { d: `M${line}` }));
    }
  }

  node(number, { x, y }, focus) {
    const [name, opcode, text, place, computation, state] = this.section.nodes[number];
    const distance = this.reached.get(number);
    const around = this.isOuter(number) ? "" : `in %${this.section.groups[computation][0]}`;
    const level = distance === undefined || state ? "" : `.reached-${Math.min(distance, 4)}`;
    const group = element(
      `svg:g.node.${state || "plain"}${level}${number === focus ? ".focus" : ""}`,
      { transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})`, click: () => this.tell(number), dblclick: () => this.go(number) },
      element("svg:title", {}, text),
      element("svg:rect", { width: BOX.width, height: BOX.height, rx: 4 }),
      element("svg:text", { x: 8, y: 16, class: "opcode" }, clipped(opcode, 24)),
      element("svg:text", { x: 8, y: 31, class: "name" }, clipped(`%${name}`, 26)),
      element("svg:text", { x: 8, y: 45, class: "name" }, clipped(place.split("/").pop(), 26)),
      element("svg:text", { x: 8, y: 59, class: "name" }, clipped(around, 26)),
    );
    return group;
  }

  /** Say what an instruction is, and lead to what is near it. */
  tell(number) {
    const [, , text, place, , state] = this.section.nodes[number];
    const distance = this.reached.get(number);
    const known = { spot: "the wrong instruction", unknown: "" }[state] ?? state;
    const heat = known || (distance === undefined ? "does not read the wrong instruction" : `reads it, ${distance} operations on`);
    const centre = element("button.quiet", { type: "button", click: () => this.go(number) }, "centre");
    this.about.replaceChildren([text, place, heat].filter(Boolean).join("\n"), "\n", centre);
  }

  zoom(factor) {
    const { x, y, width, height } = this.view;
    this.view = { x: x + (width * (1 - factor)) / 2, y: y + (height * (1 - factor)) / 2, width: width * factor, height: height * factor };
    this.draw();
  }

  fit() {
    this.view = { x: 0, y: 0, ...this.size };
    this.draw();
  }

  draw() {
    const { x, y, width, height } = this.view;
    this.picture.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  }

  /** Drag to move, the wheel with Ctrl to zoom (alone it scrolls the page), keys for both. */
  moves() {
    let from = null;
    const move = (dx, dy) => {
      const scale = Math.max(this.view.width / this.canvas.clientWidth, this.view.height / this.canvas.clientHeight);
      this.view.x -= dx * scale;
      this.view.y -= dy * scale;
      this.draw();
    };
    this.canvas.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]));
    addEventListener("pointerup", () => (from = null));
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      move(event.clientX - from[0], event.clientY - from[1]);
      from = [event.clientX, event.clientY];
    });
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.9 : 1.1);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      if (step) move(...step);
      else if (event.key === "+") this.zoom(0.8);
      else if (event.key === "-") this.zoom(1.25);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}

/** Steps from one node to those that it leads to and that are wanted, nearest first, at most so many. */
function distances(start, next, most = Infinity, isWanted = () => true) {
  const found = new Map([[start, 0]]);
  for (const [node, distance] of found) {
    for (const other of next[node]) {
      if (found.size >= most) return found;
      if (!found.has(other) && isWanted(other)) found.set(other, distance + 1);
    }
  }
  return found;
}

/** How many instructions one after the other lead to each; what a loop leads back to does not count. */
function ranksOf(nodes, edges) {
  const ranks = new Map(nodes.map((node) => [node, 0]));
  const open = new Map(nodes.map((node) => [node, 0]));
  const next = new Map(nodes.map((node) => [node, []]));
  for (const [source, target] of edges) {
    open.set(target, open.get(target) + 1);
    next.get(source).push(target);
  }
  const ready = nodes.filter((node) => !open.get(node));
  for (const node of ready) {
    for (const other of next.get(node)) {
      ranks.set(other, Math.max(ranks.get(other), ranks.get(node) + 1));
      open.set(other, open.get(other) - 1);
      if (!open.get(other)) ready.push(other);
    }
  }
  return ranks;
}

/** The layout waits until the reader wants it. */
DRAWINGS.program = (section) => {
  const box = element("div", {});
  const count = section.nodes.length;
  const draw = () => {
    const graph = new ProgramGraph(section);
    box.replaceChildren(graph.box);
    // Only what is in the document has a size.
    graph.go(section.spot);
  };
  const open = element("button.quiet", { type: "button", click: draw }, `draw ${count} instructions`);
  box.append(open);
  return box;
};
