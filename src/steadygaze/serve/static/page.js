// Shared by all views: the state, requests, messages and elements.  Texts of users reach the page by textContent only.

export const element = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export const state = {
  models: [], data: null, view: "text", texts: [""], question: "", chosen: [], results: [], audit: {},
};
export const current = () => state.texts[state.texts.length - 1];
export const modelNamed = (name) => state.models.find((model) => model.name === name);
export const input = (model, text) => (model.pair ? [text, state.question] : text);
export const targetOf = (model) => (model.task === "classification" ? {} : { target: model.classes[0] });

export class ServerError extends Error {}

export async function request(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new ServerError("The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  if (response.status === 401) element("token-form").hidden = false;
  const answer = await response.json().catch(() => ({}));
  const message = answer.error?.message ?? `the server answers ${response.status}`;
  throw new ServerError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
}

export async function call(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await request(path, options ?? {})).json();
}

export function say(message, isError = false) {
  element("status").textContent = message;
  element("status").classList.toggle("error", isError);
}

/** Run a function; show its error. */
export const guarded = (work) => async (...values) => {
  try {
    return await work(...values);
  } catch (error) {
    say(error.message, true);
    if (!(error instanceof ServerError)) console.error(error);
    return undefined;
  }
};

export function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
export const number = (value) => (value === null || value === undefined ? "–" : String(value) === "inf" ? "∞" : value.toFixed(3));
export const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// ---- address: the state of the page, so that it can be shared

export function rememberInAddress() {
  const { view, texts, question, chosen, audit } = state;
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify({ view, texts, question, chosen, audit }))}`);
}

export function readAddress() {
  let kept;
  try {
    kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return; // an address without a state
  }
  if (kept === null || typeof kept !== "object") return;
  const isText = (value) => typeof value === "string";
  if (["text", "compare", "audit", "data"].includes(kept.view)) state.view = kept.view;
  if (Array.isArray(kept.texts) && kept.texts.length && kept.texts.every(isText)) state.texts = kept.texts;
  if (isText(kept.question)) state.question = kept.question;
  if (Array.isArray(kept.chosen)) {
    state.chosen = kept.chosen.filter((choice) => modelNamed(choice?.model)?.explainers.includes(choice?.explainer));
  }
  if (kept.audit !== null && typeof kept.audit === "object") {
    state.audit = Object.fromEntries(Object.entries(kept.audit).filter(([, value]) => isText(value) || Number.isInteger(value)));
  }
}
