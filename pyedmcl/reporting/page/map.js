const HEAD = 8; // pixels above the cells, which half a name needs

// A map: cells as colours on a canvas, which is zoomed and moved by mouse, touch and keyboard.
class CellMap {
  constructor(figure) {
    this.figure = figure;
    this.content = contentOf(figure);
    this.canvas = figure.querySelector("canvas");
    this.reading = figure.querySelector(".reading");
    [this.rows, this.columns] = this.content.cells;
    this.layers = this.content.layers.map((layer) => ({
      ...layer, values: unpack(layer), places: within(Math.floor(-Math.log10(layer.step)), 0, 9),
    }));
    this.layer = 0;
    this.zoom = 1;
    this.left = 0; // the cell at the left edge, and that at the top, as they are seen
    this.top = 0;
    this.cursor = null;
    this.paint();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(figure);
    onTheme(() => this.resize());
  }

  // The colours of all cells, a pixel each.
  paint() {
    const layer = this.layers[this.layer], colours = bytesOf(layer.colours), steps = colours.length / 3 - 1;
    const image = new ImageData(this.columns, this.rows);
    for (let y = 0; y < this.rows; y++) {
      const row = this.content.upwards ? this.rows - 1 - y : y;
      for (let x = 0; x < this.columns; x++) {
        const value = layer.values[row * this.columns + x], at = 4 * (y * this.columns + x);
        const share = (value - layer.bottom) / (layer.top - layer.bottom);
        const step = Number.isNaN(value) ? -1 : Math.round(within(share, 0, 1) * steps);
        for (let part = 0; part < 3; part++) image.data[at + part] = step < 0 ? 184 : colours[3 * step + part];
        image.data[at + 3] = 255;
      }
    }
    this.picture = document.createElement("canvas");
    this.picture.width = this.columns;
    this.picture.height = this.rows;
    this.picture.getContext("2d").putImageData(image, 0, 0);
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const named = this.content.rows.length > 0 && this.content.size === 1;
    const room = (names) => (named ? 30 + 6.2 * Math.min(14, Math.max(...names.map((name) => name.length))) : 56);
    this.margin = { left: Math.min(room(this.content.rows), width * 0.3), bottom: named ? room(this.content.columns) : 44 };
    this.width = width - this.margin.left - 8;
    this.height = within((this.width * this.rows) / this.columns, this.width / 5, Math.max(this.width * 1.4, 300));
    const ratio = Math.max(window.devicePixelRatio || 1, 2); // prints sharply, too
    this.canvas.style.height = `${this.height + this.margin.bottom + HEAD}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round((this.height + this.margin.bottom + HEAD) * ratio);
    this.ratio = ratio;
    this.show();
  }

  show() {
    this.left = within(this.left, 0, this.columns - this.columns / this.zoom);
    this.top = within(this.top, 0, this.rows - this.rows / this.zoom);
    const pen = this.canvas.getContext("2d"), { left } = this.margin;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    pen.imageSmoothingEnabled = this.cellWidth() < 1;
    pen.drawImage(this.picture, this.left, this.top, this.columns / this.zoom, this.rows / this.zoom,
      left, HEAD, this.width, this.height);
    pen.strokeStyle = isDark() ? "#9aa5ab" : "#555";
    pen.strokeRect(left - 0.5, HEAD - 0.5, this.width + 1, this.height + 1);
    this.axes(pen);
    if (this.cursor) this.mark(pen);
    this.canvas.style.touchAction = this.zoom > 1 ? "none" : "manipulation";
  }

  cellWidth() { return (this.width * this.zoom) / this.columns; }
  cellHeight() { return (this.height * this.zoom) / this.rows; }

  // Names beside cells that are large enough for them, some names or numbers otherwise.
  axes(pen) {
    const { left } = this.margin, bottom = this.height + HEAD;
    pen.fillStyle = isDark() ? "#e6ecef" : "#222";
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    this.ticks(this.rows, this.top, this.cellHeight(), this.height, this.content.rows, (at, words) => {
      pen.fillText(words, left - 5, at + HEAD);
    }, true);
    pen.textAlign = "center";
    const upright = this.content.columns.length > 0 && this.content.size === 1;
    this.ticks(this.columns, this.left, this.cellWidth(), this.width, this.content.columns, (at, words) => {
      pen.save();
      pen.translate(left + at, bottom + 6);
      if (upright) {
        pen.rotate(-Math.PI / 2);
        pen.textAlign = "right";
        pen.fillText(words, 0, 0);
      } else pen.fillText(words, 0, 7);
      pen.restore();
    }, false);
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.fillText(this.content.labels[1], left + this.width / 2, bottom + this.margin.bottom - 10);
    pen.save();
    pen.translate(9, HEAD + this.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(this.content.labels[0], 0, 0);
    pen.restore();
  }

  ticks(count, first, size, length, names, write, vertical) {
    const named = names.length > 0 && this.content.size === 1;
    const total = named ? count : this.content.shape[vertical ? 0 : 1];
    const unit = named ? size : (size * this.wide(count, total)); // of one row of the whole, on the screen
    const every = Math.max(1, named ? Math.ceil(13 / size) : roundStep(60 / unit, 1));
    const room = Math.floor((vertical ? this.margin.left - 24 : this.margin.bottom - 24) / 6);
    const turned = vertical && this.content.upwards;
    for (let i = 0; i < total; i += every) {
      const middle = (i + 0.5) * unit, at = (turned ? count * size - middle : middle) - first * size;
      if (at >= 0 && at <= length) write(at, named ? short(names[i], room) : i.toLocaleString("en"));
    }
  }

  // Cells for each row of the whole.
  wide(count, total) { return this.content.size > 1 ? 1 / this.content.size : count / total; }

  // The first row or column of the whole that a cell stands for.
  numbered(cell, count, vertical) {
    if (this.content.size > 1) return cell * this.content.size;
    return Math.floor((cell * this.content.shape[vertical ? 0 : 1]) / count);
  }

  mark(pen) {
    const [row, column] = this.cursor, y = this.content.upwards ? this.rows - 1 - row : row;
    const at = [this.margin.left + (column - this.left) * this.cellWidth(), HEAD + (y - this.top) * this.cellHeight()];
    const size = [Math.max(this.cellWidth(), 5), Math.max(this.cellHeight(), 5)];
    for (const [colour, width] of [["#fff", 4], ["#d1495b", 2]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.strokeRect(...at, ...size);
    }
    pen.lineWidth = 1;
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(this.left + (event.clientX - box.left - this.margin.left) / this.cellWidth());
    const y = Math.floor(this.top + (event.clientY - box.top - HEAD) / this.cellHeight());
    if (x < 0 || y < 0 || x >= this.columns || y >= this.rows) return null;
    return [this.content.upwards ? this.rows - 1 - y : y, x];
  }

  read(cell) {
    if (!cell) return;
    const [row, column] = cell, at = row * this.columns + column;
    const values = this.layers.map((layer) => `${layer.label} ${rounded(layer.values[at], layer.places)}`);
    const [effect, cause] = [this.side(row, true), this.side(column, false)];
    const where = this.content.rows.length ? `${cause} → ${effect}` : `column ${cause}, row ${effect}`;
    const same = this.content.size === 1 && effect === cause && this.content.rows.length;
    this.reading.textContent = same ? `${effect} itself` : `${where}: ${values.join("; ")}`;
  }

  side(cell, vertical) {
    const { size, shape } = this.content, names = this.content[vertical ? "rows" : "columns"];
    const count = vertical ? this.rows : this.columns, total = shape[vertical ? 0 : 1];
    if (names.length && size === 1) return names[cell];
    const first = this.numbered(cell, count, vertical);
    const last = Math.max(first, Math.min(cell + 1 < count ? this.numbered(cell + 1, count, vertical) : total, total) - 1);
    if (first === last) return names.length ? names[first] : `${first}`;
    return names.length ? `${names[first]} to ${names[last]}` : `${first} to ${last}`;
  }

  zoomBy(factor, event = null) {
    const most = Math.max(1, Math.max(this.rows, this.columns) / 4), zoom = within(this.zoom * factor, 1, most);
    const box = this.canvas.getBoundingClientRect();
    let share = [0.5, 0.5]; // of the map's window, which stays where it is
    if (event) {
      share = [(event.clientX - box.left - this.margin.left) / this.width, (event.clientY - box.top - HEAD) / this.height];
    } else if (this.cursor) {
      const y = this.content.upwards ? this.rows - 1 - this.cursor[0] : this.cursor[0];
      share = [((this.cursor[1] + 0.5 - this.left) * this.zoom) / this.columns, ((y + 0.5 - this.top) * this.zoom) / this.rows];
    }
    const [x, y] = share.map((one) => within(one, 0, 1));
    this.left += x * this.columns * (1 / this.zoom - 1 / zoom);
    this.top += y * this.rows * (1 / this.zoom - 1 / zoom);
    this.zoom = zoom;
    this.show();
  }

  // By cells, as they are seen: to the right and downwards.
  step(x, y) {
    const [row, column] = this.cursor || [this.content.upwards ? this.rows - 1 : 0, 0], turned = this.content.upwards ? -y : y;
    const next = this.cursor ? [within(row + turned, 0, this.rows - 1), within(column + x, 0, this.columns - 1)] : [row, column];
    this.cursor = next;
    const seen = this.content.upwards ? this.rows - 1 - next[0] : next[0];
    const [wide, high] = [this.columns / this.zoom, this.rows / this.zoom];
    this.left = within(this.left, next[1] + 1 - wide, next[1]);
    this.top = within(this.top, seen + 1 - high, seen);
    this.read(next);
    this.show();
  }

  whole() {
    [this.zoom, this.left, this.top] = [1, 0, 0];
    this.show();
  }

  choose(layer) {
    this.layer = layer;
    for (const scale of this.figure.querySelectorAll(".scale")) scale.hidden = +scale.dataset.layer !== layer;
    this.paint();
    this.show();
    this.read(this.cursor);
  }

  listen() {
    const on = (name, act) => this.figure.querySelector(name).addEventListener("click", act);
    on(".closer", () => this.zoomBy(1.6));
    on(".wider", () => this.zoomBy(1 / 1.6));
    on(".whole", () => this.whole());
    this.figure.querySelector("select.layer")?.addEventListener("change", (event) => this.choose(+event.target.value));
    const keys = {
      ArrowLeft: () => this.step(-1, 0), ArrowRight: () => this.step(1, 0), ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1), "+": () => this.zoomBy(1.6), "=": () => this.zoomBy(1.6),
      "-": () => this.zoomBy(1 / 1.6), 0: () => this.whole(),
    };
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      keys[event.key]();
      event.preventDefault();
    });
    this.canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== this.canvas) return;
      this.zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2, event);
      event.preventDefault();
    }, { passive: false });
    this.drag();
  }

  drag() {
    let from = null, moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      [from, moved] = [[event.clientX, event.clientY], false];
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return this.read(this.cellAt(event));
      const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
      if (!moved && Math.hypot(x, y) < 4) return;
      if (!moved) this.canvas.setPointerCapture(event.pointerId);
      moved = true;
      this.left -= x / this.cellWidth();
      this.top -= y / this.cellHeight();
      from = [event.clientX, event.clientY];
      this.show();
    });
    const end = (event) => {
      if (from && !moved && event.type === "pointerup") {
        this.cursor = this.cellAt(event) || this.cursor;
        this.read(this.cursor);
        this.show();
      }
      from = null;
    };
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, end);
    this.canvas.addEventListener("pointerleave", () => !from && this.cursor && this.read(this.cursor));
  }
}

for (const figure of document.querySelectorAll("figure.map")) new CellMap(figure);
