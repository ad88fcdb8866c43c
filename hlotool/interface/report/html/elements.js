"use strict";

/**
 * An element. Text is only ever set as text: a name of a dump cannot become markup.
 * @param {string} tag - "div", or "div.class"; of SVG "svg:rect".
 * @param {Object} [attributes] - functions become listeners.
 * @param {...(Node|string)} children
 */
function element(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

/** A number as reports have it: three digits. */
function short(value) {
  return value === null ? "not finite" : String(Number(value.toPrecision(3)));
}

/** A button that copies a text, where the browser lets it. */
function copyButton(text) {
  if (!navigator.clipboard) return null;
  const button = element("button.quiet.copy", { type: "button", "aria-label": `copy: ${text}` }, "copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return button;
}
