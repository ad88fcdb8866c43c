/** Rows of the same program that are named. */
const NAMED = 12;

/** What a row unfolds to: its file, its sections, the commands that show it again. */
function rowDetails(row) {
  const body = element("div.details");
  const path = [row.folder, row.file].filter(Boolean).join("/");
  if (path) body.append(element("p.file", {}, element("code", {}, path)));
  if (row.also.length) body.append(alsoIn(row.also));
  body.append(element("p", {}, element("a.anchor", { href: `#row-${row.number}` }, "link to this result")));
  for (const section of row.sections) body.append(drawn(section));
  if (row.commands.length) {
    body.append(element("h3", {}, "reproduce"));
    for (const command of row.commands) {
      body.append(element("p.command-line", {}, element("code.command", {}, command), copyButton(command)));
    }
  }
  return body;
}

/** Where the same program is, under other names. */
function alsoIn(names) {
  const more = names.length - NAMED;
  const listed = names.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return facts({ rows: [[`same program ×${names.length + 1}`, `also ${listed}`]] });
}

const DRAWINGS = { facts, sides, graph, heat: heatMap, histogram, table: plainTable, text: paragraph, code };

function drawn(section) {
  const box = element("section");
  if (section.title) box.append(element("h3", {}, section.title));
  box.append(DRAWINGS[section.kind](section));
  return box;
}

/** Names and what is to be said of each; one without a name goes on with the one before. */
function facts(section) {
  const list = element("dl.facts");
  let last = null;
  for (const [name, value] of section.rows) {
    if (!name && last) {
      last.append(element("dd", {}, value));
      continue;
    }
    last = element("div", {}, element("dt", {}, name), element("dd", {}, value));
    list.append(last);
  }
  return list;
}

/** Two texts of HLO beside each other, below each other where there is no room; differing words are marked. */
function sides(section) {
  const known = [wordsOf(section.expected), wordsOf(section.actual)];
  const side = (title, text, others) =>
    element(
      "figure",
      {},
      element("figcaption", {}, title),
      element("pre", { tabindex: "0" }, ...marked(text || "nothing", others)),
    );
  return element(
    "div.sides",
    {},
    side("expected", section.expected, known[1]),
    side("actual", section.actual, known[0]),
  );
}

function wordsOf(text) {
  return new Set(text.match(/[%\w.-]+/g) || []);
}

/** The accused line of a text, which an arrow leads to, as a mark; in it the words that the other side lacks. */
function marked(text, others) {
  const lines = [];
  for (const line of text.split("\n")) {
    const isSpot = line.startsWith("→");
    const words = isSpot
      ? line.split(/([%\w.-]+)/).map((word, i) => (i % 2 && !others.has(word) ? element("b", {}, word) : word))
      : [line];
    lines.push(isSpot ? element("mark", {}, ...words) : words[0], "\n");
  }
  return lines;
}

function plainTable(section) {
  const head = section.columns.map((name) => element("th", { scope: "col" }, name));
  const rows = section.rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  return element(
    "div.scroll",
    {},
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
  );
}

function paragraph(section) {
  return element("p.text", {}, section.text);
}

function code(section) {
  return element("pre", { tabindex: "0" }, section.text);
}
