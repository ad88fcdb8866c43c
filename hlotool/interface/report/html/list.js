/**
 * A list of which only what is on the screen is in the document: 10,000 rows scroll like ten.
 * A row has a fixed height; one that is unfolded has below it its details, whose height is measured.
 */
class VirtualList {
  constructor(box) {
    this.box = box;
    this.rows = [];
    this.open = new Map();
    this.shown = new Map();
    this.everything = false;
    this.height = 0;
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    addEventListener("scroll", () => this.draw(), { passive: true });
    addEventListener("resize", () => this.resized());
    box.addEventListener("keydown", (event) => this.pressed(event));
    this.resized();
  }

  /** Show these rows. */
  show(rows) {
    this.rows = rows;
    this.clear();
    this.draw();
  }

  /** Unfold or fold a row. */
  toggle(row) {
    if (this.open.has(row)) this.open.delete(row);
    else this.open.set(row, 0);
    this.forget(row);
    this.draw();
  }

  /** Bring a row onto the screen, and its button into focus. */
  reveal(index) {
    const [top, height] = [this.top(index), this.height];
    const start = this.box.getBoundingClientRect().top + scrollY + top;
    if (start < scrollY || start + height > scrollY + innerHeight) scrollTo({ top: start - innerHeight / 3 });
    this.draw();
    this.shown.get(this.rows[index])?.querySelector("button").focus({ preventScroll: true });
  }

  /** Unfold a row that a link names, and bring it onto the screen; of one that is not listed, nothing. */
  visit(row) {
    if (!row || !this.places.has(row)) return;
    if (!this.open.has(row)) this.toggle(row);
    this.reveal(this.places.get(row));
  }

  /** For paper everything up to a limit is in the document; false returns to what is on the screen. */
  printing(limit) {
    this.everything = limit;
    this.clear();
    this.draw();
  }

  resized() {
    const probe = this.box.appendChild(element("div.row.probe"));
    this.height = probe.getBoundingClientRect().height;
    probe.remove();
    this.draw();
  }

  /** Distance of a row from the top of the list. */
  top(index) {
    let top = index * this.height;
    for (const [row, height] of this.open) if (this.position(row) < index) top += height;
    return top;
  }

  position(row) {
    const place = this.places.get(row);
    return place === undefined ? Infinity : place;
  }

  clear() {
    this.places = new Map(this.rows.map((row, index) => [row, index]));
    for (const row of [...this.shown.keys()]) this.forget(row);
  }

  forget(row) {
    const node = this.shown.get(row);
    if (!node) return;
    this.shown.delete(row);
    this.observer.unobserve(node.lastElementChild);
    node.remove();
  }

  measured(entries) {
    let isChanged = false;
    for (const { target } of entries) {
      const height = target.getBoundingClientRect().height;
      if (this.open.has(target.row) && target.isConnected && this.open.get(target.row) !== height) {
        this.open.set(target.row, height);
        isChanged = true;
      }
    }
    if (isChanged) this.draw();
  }

  draw() {
    if (!this.places) return;
    const unfolded = [...this.open].filter(([row]) => this.places.has(row));
    const whole = this.rows.length * this.height + unfolded.reduce((sum, [, height]) => sum + height, 0);
    this.box.style.height = this.everything ? "auto" : `${whole}px`;
    const wanted = this.everything ? this.rows.slice(0, this.everything) : this.visible();
    for (const row of [...this.shown.keys()]) if (!wanted.includes(row)) this.forget(row);
    for (const row of wanted) {
      const index = this.places.get(row);
      if (!this.shown.has(row)) this.insert(row, index);
      const node = this.shown.get(row);
      node.style.transform = this.everything ? "none" : `translateY(${this.top(index)}px)`;
    }
  }

  /** The rows on the screen, and some more above and below for the next turn of the wheel. */
  visible() {
    const start = scrollY - (this.box.getBoundingClientRect().top + scrollY) - 12 * this.height;
    const end = start + innerHeight + 24 * this.height;
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.top(middle + 1) <= start) low = middle + 1;
      else high = middle;
    }
    const found = [];
    for (let i = low; i < this.rows.length && this.top(i) < end; i++) found.push(this.rows[i]);
    return found;
  }

  /** In the order of the list, for readers that follow the document. */
  insert(row, index) {
    const node = this.node(row, index);
    const after = [...this.shown].find(([other]) => this.places.get(other) > index);
    this.box.insertBefore(node, after ? after[1] : null);
    this.shown.set(row, node);
    if (this.open.has(row)) this.observer.observe(node.lastElementChild);
  }

  node(row, index) {
    const isOpen = this.open.has(row);
    const button = element(
      "button.row",
      { type: "button", "aria-expanded": String(isOpen), click: () => this.clicked(row) },
      element(`span.verdict`, {}, row.kind),
      element("span.name", { title: row.name }, row.name, ...timesOf(row)),
      element("span.difference", { title: row.difference }, row.difference),
      element("span.seconds", {}, row.seconds ? `${row.seconds.toFixed(2)} s` : ""),
    );
    const node = element(
      `div.entry.${row.state}`,
      { role: "listitem", "aria-setsize": this.rows.length, "aria-posinset": index + 1 },
      button,
    );
    if (isOpen) {
      const details = element("div.unfolded", {}, rowDetails(row));
      details.row = row;
      node.append(details);
    }
    return node;
  }

  clicked(row) {
    const hadFocus = this.shown.get(row)?.contains(document.activeElement);
    this.toggle(row);
    if (hadFocus) this.shown.get(row)?.querySelector("button").focus({ preventScroll: true });
  }

  /** Arrows go from row to row; Home and End to the ends. */
  pressed(event) {
    if (!event.target.matches("button.row")) return;
    const entry = event.target.closest(".entry");
    const index = Number(entry.getAttribute("aria-posinset")) - 1;
    const last = this.rows.length - 1;
    const target = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: last }[event.key];
    if (target === undefined || target < 0 || target > last) return;
    event.preventDefault();
    this.reveal(target);
  }
}

/** Beside the first of the same programs: how many there are. */
function timesOf(row) {
  return row.twins[0] === row.number ? [element("span.times", {}, ` ×${row.twins.length}`)] : [];
}
