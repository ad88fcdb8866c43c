const ORDER = { failed: 0, error: 1, skipped: 2, passed: 3 };

/** Where a row is: names of modules in inner folders begin with what their folders end with. */
function placed(folder, name) {
  const inner = name.slice(0, name.lastIndexOf("/") + 1);
  const own = inner && `/${folder}/`.endsWith(`/${inner}`) ? name.slice(inner.length) : name;
  return [folder, own].filter(Boolean).join("/");
}

/** The rows of the page's data, what they share put back. */
function readRows() {
  const { rows, shared } = JSON.parse(document.getElementById("data").textContent);
  const names = rows.map(([name, , , folder]) => placed(shared[folder], name));
  return rows.map(([name, kind, state, folder, tested, difference, cause, seconds, file, sections, commands, twins], i) => ({
    number: i,
    name,
    kind: shared[kind],
    state: shared[state],
    folder: shared[folder],
    tested: shared[tested],
    difference: shared[difference],
    cause,
    seconds,
    file: shared[file],
    sections: shared[sections],
    commands: shared[commands],
    // Rows of the same programs under other names, itself among them; empty for none.
    twins: shared[twins],
    also: shared[twins].filter((other) => other !== i).map((other) => names[other]),
    text: [name, shared[kind], shared[folder], shared[tested], shared[difference]].join("\n").toLowerCase(),
  }));
}

const SORTINGS = {
  grave: (one, other) => ORDER[one.state] - ORDER[other.state] || one.number - other.number,
  order: (one, other) => one.number - other.number,
  name: (one, other) => one.name.localeCompare(other.name, "en", { numeric: true }) || one.number - other.number,
  seconds: (one, other) => other.seconds - one.seconds || one.number - other.number,
};

/** The rows that match: all words of the search, the verdict and the cause; of the same programs the first. */
function chosenRows(rows, { search, kind, cause, sort, once }) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return rows
    .filter(
      (row) =>
        (!kind || row.kind === kind) &&
        (!once || !row.twins.length || row.twins[0] === row.number) &&
        (cause === "" || row.cause === Number(cause)) &&
        words.every((word) => row.text.includes(word)),
    )
    .sort(SORTINGS[sort]);
}
