// A network: series on a circle, an arrow from cause to effect for each link above the threshold.
const MOST_ARROWS = 400, FIRST_ARROWS = 40, PALEST = 0.3, WIDTH = 760, HEIGHT = 700;

class Links {
  constructor(figure) {
    this.figure = figure;
    this.content = contentOf(figure);
    this.drawing = figure.querySelector(".drawing");
    this.reading = figure.querySelector(".reading");
    this.slider = figure.querySelector(".threshold");
    this.tested = figure.querySelector(".tested");
    this.colours = bytesOf(this.content.colours);
    const values = this.content.links.map((link) => link[2]); // falling
    this.highest = values[0];
    this.lowest = values[Math.min(values.length, MOST_ARROWS) - 1];
    const significant = this.content.links.filter((link) => this.passes(link[3])).map((link) => link[2]);
    const most = this.content.untested ? FIRST_ARROWS : MOST_ARROWS;
    const first = significant[Math.min(significant.length, most) - 1] ?? this.lowest;
    const span = this.highest - this.lowest;
    this.slider.value = span > 0 ? Math.floor((1000 * (first - this.lowest)) / span) : 0;
    this.slider.addEventListener("input", () => this.show());
    this.tested?.addEventListener("change", () => this.show());
    onTheme(() => this.show());
  }

  passes(q) { return !this.tested?.checked || (q !== null && q <= this.content.rate); }

  chosen() {
    const threshold = this.lowest + ((this.highest - this.lowest) * this.slider.value) / 1000;
    const links = this.content.links.filter((link) => link[2] >= threshold - 1e-9 && this.passes(link[3]));
    return [threshold, links.slice(0, MOST_ARROWS)];
  }

  show() {
    const [threshold, links] = this.chosen();
    const { total } = this.content, nameOf = (node) => this.content.names[node];
    const nodes = [...new Set(links.flatMap((link) => [link[0], link[1]]))];
    nodes.sort((a, b) => nameOf(a).localeCompare(nameOf(b), "en", { numeric: true }));
    const words = `${digits(threshold)}: ${links.length === total ? "all " : ""}${links.length} ${links.length < total ? `of ${total} ` : ""}${total === 1 ? "link" : "links"}, ${nodes.length} series`;
    this.figure.querySelector(".told").textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.reading.textContent = "\u00a0";
    this.longest = Math.max(4, ...nodes.map((node) => short(nameOf(node)).length)); // letters of a name
    const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": `Network of ${words}` });
    const place = new Map(nodes.map((node, i) => [node, Math.PI / 2 - (2 * Math.PI * i) / nodes.length]));
    const at = (node) => this.onRing(place.get(node), 0);
    for (const link of [...links].reverse()) picture.append(this.arrow(link, at(link[0]), at(link[1]), links.length));
    for (const node of nodes) picture.append(this.node(node, at(node), place.get(node), nodes.length, links));
    this.drawing.replaceChildren(picture);
  }

  // Where an angle is on the circle, or so far outside. Narrow screens shrink the drawing, so names are larger there.
  onRing(angle, outside) {
    const radius = HEIGHT / 2 - 26 - 0.55 * this.longest * this.letter() + outside;
    return [WIDTH / 2 + radius * Math.cos(angle), HEIGHT / 2 - radius * Math.sin(angle)];
  }

  letter() { return within((14 * 620) / (this.drawing.clientWidth || 620), 14, 21); }

  arrow([cause, effect, value], from, to, count) {
    const thin = Math.min(1, 60 / count), width = (1 + 4 * Math.min(value, 1) * thin);
    const shade = Math.round((PALEST + (1 - PALEST) * within(value, 0, 1)) * 63), step = isDark() ? 63 - shade : shade;
    const colour = `rgb(${[...this.colours.slice(3 * step, 3 * step + 3)].join(",")})`;
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]], length = Math.hypot(dx, dy) || 1;
    const bend = [(from[0] + to[0]) / 2 + 0.12 * dy, (from[1] + to[1]) / 2 - 0.12 * dx]; // both directions are seen
    const towards = (point, away) => {
      const [x, y] = [bend[0] - point[0], bend[1] - point[1]], far = Math.hypot(x, y) || 1;
      return [point[0] + (x / far) * away, point[1] + (y / far) * away, x / far, y / far];
    };
    const head = 7 + 1.6 * width, tip = towards(to, 9), base = towards(to, 9 + Math.min(head, length / 3)), start = towards(from, 9);
    const side = head * 0.42, group = draw("g", { class: "link", "data-ends": `${cause} ${effect}` });
    group.append(draw("path", {
      d: `M${start[0]} ${start[1]}Q${bend[0]} ${bend[1]} ${base[0]} ${base[1]}`, fill: "none", stroke: colour, "stroke-width": width,
    }));
    const corners = [[tip[0], tip[1]], [base[0] - tip[3] * side, base[1] + tip[2] * side], [base[0] + tip[3] * side, base[1] - tip[2] * side]];
    group.append(draw("path", { d: `M${corners.map((corner) => corner.join(" ")).join("L")}Z`, fill: colour }));
    const { names } = this.content;
    group.append(draw("title", {}, `${names[cause]} → ${names[effect]}: ${digits(value)}`));
    return group;
  }

  node(node, [x, y], angle, count, links) {
    const name = this.content.names[node], left = Math.cos(angle) < -1e-9;
    const causes = links.filter((link) => link[1] === node).map((link) => this.content.names[link[0]]);
    const effects = links.filter((link) => link[0] === node).map((link) => this.content.names[link[1]]);
    const told = [effects.length ? `drives ${effects.join(", ")}` : "", causes.length ? `is driven by ${causes.join(", ")}` : ""];
    const words = `${name} ${told.filter(Boolean).join("; ")}`;
    const group = draw("g", { class: "node", tabindex: 0, role: "img", "aria-label": words });
    const turn = (-angle * 180) / Math.PI + (left ? 180 : 0), size = this.letter() * (count <= 20 ? 1 : count <= 40 ? 0.9 : count <= 80 ? 0.7 : 0.5);
    group.append(draw("circle", { cx: x, cy: y, r: count <= 30 ? 7 : count <= 80 ? 5 : 3.5 }));
    group.append(draw("text", {
      x: 0, y: 0, "font-size": size, "text-anchor": left ? "end" : "start", "dominant-baseline": "central",
      transform: `translate(${this.onRing(angle, 16).join(" ")}) rotate(${turn})`,
    }, short(name)));
    group.append(draw("title", {}, words));
    const alone = () => this.alone(node, words), all = () => this.alone(null, "\u00a0");
    for (const event of ["mouseenter", "focus"]) group.addEventListener(event, alone);
    for (const event of ["mouseleave", "blur"]) group.addEventListener(event, all);
    return group;
  }

  // Dims links of other series.
  alone(node, words) {
    this.reading.textContent = words;
    for (const link of this.drawing.querySelectorAll(".link")) {
      const ends = link.dataset.ends.split(" ").map(Number);
      link.classList.toggle("dim", node !== null && !ends.includes(node));
    }
  }
}

for (const figure of document.querySelectorAll("figure.network")) new Links(figure);
