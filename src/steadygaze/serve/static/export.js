// Exports of the text view: one HTML page without scripts, or a picture.

import { characters, element, percent, request, save, state } from "./page.js";

const COPIED = ["id", "class", "title", "scope", "min", "max", "value"];

/** A copy without scripts and controls.  Styles are set by property: the policy of the page blocks style attributes. */
function copied(node, page) {
  if (node.nodeType === Node.TEXT_NODE) return page.createTextNode(node.data);
  const copy = page.createElement(node.localName === "button" ? "span" : node.localName);
  for (const name of COPIED) if (node.hasAttribute(name)) copy.setAttribute(name, node.getAttribute(name));
  if (node.style.backgroundColor) copy.style.backgroundColor = node.style.backgroundColor;
  copy.append(...[...node.childNodes].map((child) => copied(child, page)));
  return copy;
}

export async function saveHtml() {
  const css = await (await request("/static/workbench.css")).text();
  const page = document.implementation.createHTMLDocument("steadygaze: explanations");
  const policy = page.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "default-src 'none'; style-src 'unsafe-inline'";
  const charset = page.createElement("meta");
  charset.setAttribute("charset", "utf-8");
  page.head.prepend(charset, policy);
  const main = page.createElement("main");
  const title = page.createElement("h1");
  title.textContent = "Explanations";
  const cards = copied(element("cards"), page);
  main.append(title, cards);
  page.body.append(main);
  const html = page.documentElement.outerHTML.replace("</head>", () => `<style>${css}</style></head>`);
  save("explanations.html", `<!doctype html>\n${html}`, "text/html");
}

const WIDTH = 900, EDGE = 24, LINE = 34, FONT = "18px system-ui, sans-serif", SCALE = 2;

/** Draw all explanations; without a context, only measure the height. */
function paint(context, colors, isDrawn) {
  let y = EDGE;
  const put = (text, x, color = colors.text) => {
    if (!isDrawn) return;
    context.fillStyle = color;
    context.fillText(text, x, y + 22);
  };
  for (const { model, after } of state.results) {
    context.font = `bold ${FONT}`;
    put(`${model}: ${after.explainer}`.slice(0, 90), EDGE);
    y += LINE;
    context.font = FONT;
    const shown = characters(after.text);
    let x = EDGE, place = 0;
    const write = (text, weight, strength = 0) => {
      for (const part of text.match(/\s+|\S+/g) ?? []) {
        const width = context.measureText(part).width;
        if (x + width > WIDTH - EDGE && x > EDGE) { x = EDGE; y += LINE; }
        if (x === EDGE && !part.trim()) continue;
        if (weight && isDrawn && part.trim()) {
          context.fillStyle = strength ? `rgba(${weight < 0 ? colors.against : colors.for}, ${0.55 * strength})` : `rgba(${colors.gray}, 0.14)`;
          context.fillRect(x, y + 2, width, LINE - 6);
        }
        put(part, x);
        x += width;
      }
    };
    after.spans.forEach(([start, end], i) => {
      write(shown.slice(place, start), 0);
      write(shown.slice(start, end), after.weights[i], after.shading.text[i]);
      place = end;
    });
    write(shown.slice(place), 0);
    if (after.question !== null) {
      x = EDGE;
      y += LINE;
      write("Question: ", 0);
      const question = characters(after.question);
      place = 0;
      (after.question_spans ?? []).forEach(([start, end], i) => {
        write(question.slice(place, start), 0);
        write(question.slice(start, end), after.question_weights[i], after.shading.question[i]);
        place = end;
      });
      write(question.slice(place), 0);
    }
    y += LINE;
    for (const line of [after.shading.remark, after.shading.scale].filter(Boolean)) {
      put(line.slice(0, 100), EDGE, colors.soft);
      y += LINE;
    }
    const classes = Object.entries(after.probabilities).map(([label, p]) => `${label.slice(0, 30)} ${percent(p)}`);
    put(classes.join("   ").slice(0, 100), EDGE, colors.soft);
    y += LINE + 10;
  }
  return y + EDGE / 2;
}

export async function savePng() {
  const style = getComputedStyle(document.documentElement);
  const colors = Object.fromEntries(["back", "text", "soft", "for", "against", "gray"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const height = Math.min(paint(context, colors, false), 16000);
  canvas.width = WIDTH * SCALE;
  canvas.height = height * SCALE;
  context.scale(SCALE, SCALE);
  context.fillStyle = colors.back;
  context.fillRect(0, 0, WIDTH, height);
  paint(context, colors, true);
  const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
  if (blob === null) throw new Error("The browser cannot make a picture of this size.");
  save("explanations.png", blob);
}
