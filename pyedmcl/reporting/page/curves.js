// Curves of pairs, both directions in one small chart; the reader adds and removes pairs.
const FORTH = { colour: "var(--forth)", dash: "", mark: "circle" }, BACK = { colour: "var(--back)", dash: "6 4", mark: "square" };

class Charts {
  constructor(figure) {
    this.content = contentOf(figure);
    this.area = figure.querySelector(".charts");
    this.select = figure.querySelector("select.pair");
    this.curves = new Map(this.content.curves.map(([cause, effect, values]) => [`${cause} ${effect}`, values]));
    this.select.append(make("option", { value: "" }, "choose…"));
    const offered = new Set();
    for (const [cause, effect] of this.content.curves) {
      if (offered.has(`${effect} ${cause}`)) continue;
      offered.add(`${cause} ${effect}`);
      this.select.append(make("option", { value: `${cause} ${effect}` }, this.words(cause, effect, "–")));
    }
    this.select.addEventListener("change", () => {
      if (this.select.value) this.add(...this.select.value.split(" ").map(Number), true);
      this.select.value = "";
    });
    const all = [...this.curves.values()].flat().filter(Number.isFinite);
    this.low = Math.min(0, ...all);
    this.high = Math.max(0.1, ...all);
    for (const [cause, effect] of this.content.chosen) this.add(cause, effect, false);
  }

  words(cause, effect, sign) { return `${this.content.names[cause]} ${sign} ${this.content.names[effect]}`; }

  add(cause, effect, first) {
    const key = [cause, effect].sort((a, b) => a - b).join(" ");
    this.area.querySelector(`[data-pair="${key}"]`)?.remove();
    const box = make("div", { class: "chart", "data-pair": key });
    const shown = [[cause, effect, FORTH], [effect, cause, BACK]].filter(([one, other]) => this.curves.has(`${one} ${other}`));
    const close = make("button", { type: "button", class: "close", "aria-label": `Remove ${this.words(cause, effect, "and")}` }, "×");
    close.addEventListener("click", () => {
      box.remove();
      this.select.focus();
    });
    const legend = make("ul", { class: "legend" });
    for (const [one, other, style] of shown) {
      const item = make("li"), sample = draw("svg", { viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": "true" });
      sample.append(this.line("M1 5H29", style), this.dot(15, 5, style));
      item.append(sample, document.createTextNode(this.words(one, other, "→")));
      legend.append(item);
    }
    box.append(close, legend, this.chart(shown));
    if (first) this.area.prepend(box);
    else this.area.append(box);
  }

  line(d, style) {
    return draw("path", { d, fill: "none", style: `stroke: ${style.colour}`, "stroke-width": 2, "stroke-dasharray": style.dash });
  }

  dot(x, y, style) {
    return style.mark === "circle" ? draw("circle", { cx: x, cy: y, r: 3, style: `fill: ${style.colour}` })
      : draw("rect", { x: x - 2.6, y: y - 2.6, width: 5.2, height: 5.2, style: `fill: ${style.colour}` });
  }

  chart(shown) {
    const { x, x_label, y_label } = this.content, [left, right, top, bottom] = [48, 298, 8, 168];
    const ends = [Math.min(...x), Math.max(...x)], wide = ends[1] - ends[0] || 1, high = this.high - this.low;
    const across = (value) => left + ((value - ends[0]) / wide) * (right - left);
    const up = (value) => bottom - ((value - this.low) / high) * (bottom - top);
    const told = shown.map(([one, other]) => {
      const values = this.curves.get(`${one} ${other}`);
      return `${this.words(one, other, "→")}: ${y_label} ${digits(values[0])} to ${digits(values.at(-1))}`;
    });
    const picture = draw("svg", { viewBox: "0 0 316 206", role: "img", "aria-label": told.join("; ") });
    const write = (words, place) => picture.append(draw("text", { "font-size": 11, style: "fill: var(--ink)", ...place }, words));
    const yStep = roundStep(high, 6), xStep = roundStep(wide, 5);
    for (let i = Math.ceil(this.low / yStep - 1e-6); i * yStep <= this.high + 1e-9; i++) {
      const y = up(i * yStep);
      picture.append(draw("path", { d: `M${left} ${y}H${right}`, style: `stroke: var(${i === 0 ? "--quiet" : "--line"})` }));
      write(digits(i * yStep), { x: left - 5, y: y + 4, "text-anchor": "end" });
    }
    for (let i = Math.ceil(ends[0] / xStep - 1e-6); i * xStep <= ends[1] + 1e-9; i++) {
      write((+(i * xStep).toPrecision(6)).toLocaleString("en"), { x: across(i * xStep), y: bottom + 15, "text-anchor": "middle" });
      picture.append(draw("path", { d: `M${across(i * xStep)} ${bottom}v4`, style: "stroke: var(--quiet)" }));
    }
    picture.append(draw("path", { d: `M${left} ${top}V${bottom}H${right}`, fill: "none", style: "stroke: var(--quiet)" }));
    write(x_label, { x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle" });
    write(y_label, { x: 0, y: 0, "text-anchor": "middle", transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)` });
    for (const [one, other, style] of shown) {
      const points = this.curves.get(`${one} ${other}`).map((value, i) => [x[i], value]).filter(([, value]) => value !== null);
      picture.append(this.line(points.map(([a, b], i) => `${i ? "L" : "M"}${across(a)} ${up(b)}`).join("") || "M0 0", style));
      if (points.length <= 40) picture.append(...points.map(([a, b]) => this.dot(across(a), up(b), style)));
    }
    return picture;
  }
}

for (const figure of document.querySelectorAll("figure.curves")) new Charts(figure);
