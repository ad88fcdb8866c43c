/** Rows on paper: a printer that is given thousands of pages is no help. */
const PRINTED = 500;

(function start() {
  const rows = readRows();
  const list = new VirtualList(document.getElementById("list"));
  const controls = document.getElementById("controls");
  const fields = Object.fromEntries(
    ["search", "kind", "cause", "sort", "once"].map((name) => [name, document.getElementById(name)]),
  );
  const kinds = new Map();
  for (const row of rows) kinds.set(row.kind, (kinds.get(row.kind) || 0) + 1);
  for (const [kind, count] of kinds) fields.kind.append(element("option", { value: kind }, `${kind} (${count})`));
  document.querySelectorAll(".cause").forEach((cause) => {
    const [number, title] = [cause.dataset.cause, cause.querySelector("h3").textContent];
    fields.cause.append(element("option", { value: number }, title.slice(0, 80)));
    const choose = element("button.quiet", { type: "button" }, "show its results");
    choose.addEventListener("click", () => {
      controls.reset();
      fields.cause.value = number;
      update();
      const title = document.getElementById("results-title");
      title.scrollIntoView();
      title.focus({ preventScroll: true });
    });
    cause.append(choose);
  });

  function update() {
    const chosen = chosenRows(rows, {
      search: fields.search.value,
      kind: fields.kind.value,
      cause: fields.cause.value,
      sort: fields.sort.value,
      once: fields.once?.checked,
    });
    list.show(chosen);
    const shown = document.getElementById("shown");
    shown.textContent =
      chosen.length === rows.length ? `${rows.length} in all` : `${chosen.length} of ${rows.length}`;
  }

  controls.hidden = false;
  controls.addEventListener("input", update);
  controls.addEventListener("submit", (event) => event.preventDefault());
  // The fields are empty only after the event.
  controls.addEventListener("reset", () => setTimeout(update));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select")) return;
    event.preventDefault();
    fields.search.focus();
  });
  addEventListener("beforeprint", () => list.printing(PRINTED));
  addEventListener("afterprint", () => list.printing(false));
  chooseTheme(document.getElementById("theme"));
  update();
  // One result alone is what the reader came for.
  if (rows.length === 1) list.toggle(rows[0]);
  addEventListener("hashchange", () => list.visit(rows[linked()]));
  list.visit(rows[linked()]);
})();

/** The number of the result that the address names (`#row-7`): its place in the record, from 0. */
function linked() {
  return Number((location.hash.match(/^#row-(\d+)$/) || [])[1]);
}

/** Light or dark as the system says, until the reader says otherwise. */
function chooseTheme(button) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => (button.textContent = isDark() ? "light" : "dark");
  button.hidden = false;
  button.setAttribute("aria-label", "switch between light and dark");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
}
