// Shared: numbers packed as text, colours, elements. Names reach the page as text only, never as markup.
const bytesOf = (packed) => Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));

// Cells of a layer as numbers; the lowest step stands for none.
function unpack(layer) {
  const bytes = bytesOf(layer.cells), cells = new Float32Array(bytes.length / 2);
  for (let i = 0; i < cells.length; i++) {
    const step = (bytes[2 * i] | (bytes[2 * i + 1] << 8)) << 16 >> 16;
    cells[i] = step === -32768 ? NaN : layer.low + (step + 32767) * layer.step;
  }
  return cells;
}

const contentOf = (figure) => JSON.parse(figure.querySelector("script[type='application/json']").textContent);
const within = (value, low, high) => Math.min(Math.max(value, low), high);
const short = (name, most = 16) => (name.length > most ? name.slice(0, most - 1) + "…" : name);
// A number of which that many places are known, in at most three digits.
function rounded(value, places) {
  if (!Number.isFinite(value)) return "none";
  const known = +value.toFixed(places);
  return known === 0 && value !== 0 ? `within ${10 ** -places} of 0` : digits(known);
}
const digits = (value) => (Number.isFinite(value) ? String(+value.toPrecision(3)) : "none");

// Whether the page is dark now; paper never is.
const darkness = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const isDark = () => darkness.matches && !printing;

// Draws now, and again whenever the page turns dark or light, or goes to paper and comes back.
function onTheme(drawing) {
  drawing();
  darkness.addEventListener("change", drawing);
  for (const [name, state] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(name, () => {
      printing = state;
      if (darkness.matches) drawing();
    });
  }
}

function make(name, attributes = {}, text = null) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function draw(name, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

// A round step that cuts a span into some parts.
function roundStep(span, parts) {
  const raw = span / parts, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((one) => one * power >= raw * 0.999);
}
