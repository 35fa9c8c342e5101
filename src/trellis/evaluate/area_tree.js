"use strict";
// The tree of areas: rows are made when their parent is opened, from the data blocks of the page.
// Codes come from outside, so they are only ever put into the page as text.
(() => {
  const BATCH = 200, MOST_FOUND = 30, SVG = "http://www.w3.org/2000/svg";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { levels, measures } = read("tree-data");
  const shapes = new Map(), numbers = new Map();
  const body = document.querySelector("#tree tbody");
  const chosen = document.getElementById("measure");
  const format = (number, digits = 0) => number.toLocaleString("en", { maximumFractionDigits: digits });

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  // Codes, parents and first children of a level; a code may be kept without its parent's.
  function shape(level) {
    if (shapes.has(level)) return shapes.get(level);
    const { codes, children, shortened } = read(`level-${level}`);
    const parent = new Int32Array(codes.length), first = [0];
    (children || []).forEach((n, i) => {
      parent.fill(i, first[i], first[i] + n);
      first.push(first[i] + n);
    });
    const above = level ? shape(level - 1).codes : [];
    const full = shortened ? codes.map((code, i) => above[parent[i]] + code) : codes;
    const made = { codes: full, parent, first };
    shapes.set(level, made);
    return made;
  }

  function interval(level, index) {
    const key = `values-${level}-${chosen.value}`;
    if (!document.getElementById(key)) return { value: null, lower: null, upper: null };
    if (!numbers.has(key)) {
      const block = read(key);
      numbers.set(key, { ...block, exact: new Set(block.exact) });
    }
    const { value, below, above, exact, digits } = numbers.get(key);
    const v = value[index];
    const known = v !== null && below && below[index] !== null;
    return {
      value: v, lower: known ? v - below[index] : null, upper: known ? v + above[index] : null,
      exact: exact.has(index), digits,
    };
  }

  function childRange(level, index) {
    if (level + 1 >= levels.length) return [0, 0];
    const { first } = shape(level + 1);
    return [first[index], first[index + 1]];
  }

  function bar({ value, lower, upper }, most) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 128 16");
    svg.setAttribute("aria-hidden", "true");
    const draw = (name, attributes) => {
      const part = document.createElementNS(SVG, name);
      Object.entries(attributes).forEach(([key, v]) => part.setAttribute(key, v));
      svg.append(part);
    };
    const x = (v) => 2 + 122 * Math.max(0, v) / most;
    draw("line", { x1: 2, x2: 126, y1: 8, y2: 8, stroke: "#ccc" });
    if (lower !== null) {
      draw("rect", { x: x(lower), width: Math.max(1, x(upper) - x(lower)), y: 4, height: 8, fill: "#56B4E9" });
    }
    draw("rect", { x: x(value) - 1, width: 2, y: 1, height: 14, fill: "#000" });
    return svg;
  }

  function fill(row, most) {
    const { level, index } = row.place, numbers = interval(level, index);
    const [, shown, range, drawn] = row.cells;
    const { value, lower, upper, exact, digits } = numbers;
    shown.textContent = value === null ? "–" : format(value, digits);
    // A noisy count of zero often has an interval of a single number: it is not exact for that.
    range.textContent = lower === null ? "–"
      : exact ? "exact" : `${format(lower, digits)} to ${format(upper, digits)}`;
    drawn.replaceChildren(...(numbers.value === null || !(most > 0) ? [] : [bar(numbers, most)]));
  }

  // The longest bar belongs to the largest of the areas side by side.
  function scale(level, from, to) {
    let most = 0;
    for (let i = from; i < to; i++) {
      const { value, upper } = interval(level, i);
      most = Math.max(most, value || 0, upper || 0);
    }
    return most;
  }

  function makeRow(level, index, most) {
    const row = element("tr"), name = element("td");
    row.place = { level, index };
    row.setAttribute("aria-level", level + 1);
    name.style.paddingLeft = `${0.5 + 0.9 * level}rem`;
    const [from, to] = childRange(level, index);
    if (to > from) {
      const button = element("button", "+");
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-label", `Areas in ${shape(level).codes[index]}`);
      button.addEventListener("click", () => (row.opened ? close(row) : open(row)));
      name.append(button);
    } else {
      name.append(element("span", "", "leaf"));
    }
    name.append(element("span", shape(level).codes[index]), " ", element("span", levels[level], "level"));
    row.append(name, element("td"), element("td"), element("td", "", "bar"));
    fill(row, most);
    return row;
  }

  function isBelow(row, parent) {
    return row && row.place && row.place.level > parent.place.level;
  }

  function close(row) {
    while (isBelow(row.nextElementSibling, row)) row.nextElementSibling.remove();
    row.opened = 0;
    mark(row, "+", "false");
  }

  function mark(row, sign, expanded) {
    const button = row.querySelector("button");
    button.textContent = sign;
    button.setAttribute("aria-expanded", expanded);
  }

  // Opens a row, or goes on, until `wanted` children are there.
  function open(row, wanted = BATCH) {
    const { level, index } = row.place, [from, to] = childRange(level, index);
    const until = Math.min(to, from + Math.max(wanted, row.opened || 0));
    let last = row;
    while (isBelow(last.nextElementSibling, row)) last = last.nextElementSibling;
    if (last.isMore) { const more = last; last = last.previousElementSibling; more.remove(); }
    const most = scale(level + 1, from, to), rows = [];
    for (let i = from + (row.opened || 0); i < until; i++) rows.push(makeRow(level + 1, i, most));
    if (until < to) rows.push(moreRow(row, level + 1, to - until));
    last.after(...rows);
    row.opened = until - from;
    mark(row, "–", "true");
  }

  function moreRow(parent, level, left) {
    const row = element("tr"), cell = element("td"), button = element("button", `${format(left)} more`);
    row.isMore = true;
    row.place = { level };
    cell.colSpan = 4;
    cell.style.paddingLeft = `${0.5 + 0.9 * level}rem`;
    button.type = "button";
    button.style.width = "auto";
    button.addEventListener("click", () => open(parent, parent.opened + BATCH));
    cell.append(button);
    row.append(cell);
    return row;
  }

  function find(text) {
    const wanted = text.trim().toLowerCase(), found = [];
    for (let level = 0; wanted && level < levels.length; level++) {
      const { codes } = shape(level);
      for (let i = 0; i < codes.length && found.length < MOST_FOUND; i++) {
        if (codes[i].toLowerCase().includes(wanted)) found.push([level, i]);
      }
    }
    return found;
  }

  function reveal(level, index) {
    const path = [index];
    for (let l = level; l > 0; l--) path.unshift(shape(l).parent[path[0]]);
    let row = body.firstElementChild;
    for (let l = 0; l < level; l++) {
      const [from] = childRange(l, path[l]), position = path[l + 1] - from;
      if ((row.opened || 0) <= position) open(row, Math.ceil((position + 1) / BATCH) * BATCH);
      do row = row.nextElementSibling;
      while (row.isMore || row.place.level !== l + 1 || row.place.index !== path[l + 1]);
    }
    body.querySelectorAll(".here").forEach((other) => other.classList.remove("here"));
    row.classList.add("here");
    row.scrollIntoView({ block: "center" });
  }

  const list = document.getElementById("found");
  document.getElementById("find").addEventListener("input", (event) => {
    const found = find(event.target.value);
    list.replaceChildren(...found.map(([level, index]) => {
      const item = element("li"), button = element("button", `${shape(level).codes[index]} (${levels[level]})`);
      button.type = "button";
      button.addEventListener("click", () => reveal(level, index));
      item.append(button);
      return item;
    }));
    if (!found.length && event.target.value.trim()) list.append(element("li", "No such area on this page."));
    if (found.length === MOST_FOUND) list.append(element("li", "Only the first are shown; write more of the code."));
  });

  measures.forEach((name, i) => {
    const option = element("option", name);
    option.value = i;
    chosen.append(option);
  });
  chosen.addEventListener("change", () => {
    const scales = new Map();
    for (const row of body.children) {
      if (row.isMore) continue;
      const { level, index } = row.place, parent = level ? shape(level).parent[index] : 0;
      const [from, to] = level ? childRange(level - 1, parent) : [0, 1];
      const key = `${level}-${parent}`;
      if (!scales.has(key)) scales.set(key, scale(level, from, to));
      fill(row, scales.get(key));
    }
  });
  body.append(makeRow(0, 0, scale(0, 0, 1)));
  if (body.firstElementChild.querySelector("button")) open(body.firstElementChild);
})();
