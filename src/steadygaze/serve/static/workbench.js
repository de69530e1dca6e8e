// The workbench: starts the views and switches between them.

import { call, element, guarded, readAddress, rememberInAddress, say, state } from "./page.js";
import { drawChoices, fillInput, onChange, startTextView, updateText } from "./text_view.js";
import { updateCompare } from "./compare_view.js";
import { startAuditView, updateAudit } from "./audit_view.js";
import { startDataView, updateData } from "./data_view.js";

const VIEWS = { text: updateText, compare: updateCompare, audit: updateAudit, data: updateData };
let isStarted = false;

async function show(view) {
  state.view = view;
  for (const section of document.querySelectorAll("[data-views]")) {
    section.hidden = !section.dataset.views.split(" ").includes(view);
  }
  for (const button of document.querySelectorAll("[data-view]")) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  drawChoices();
  await VIEWS[view]();
}

function readState() {
  readAddress();
  if (!state.chosen.length) state.chosen = state.models.map(({ name, explainers }) => ({ model: name, explainer: explainers[0] }));
  fillInput();
}

async function start() {
  try {
    Object.assign(state, await call("/v1/models"));
  } catch (error) {
    say(error.message, true);
    return;
  }
  readState();
  if (!isStarted) {
    isStarted = true;
    startTextView();
    startDataView();
    startAuditView(() => { show("text"); element("text").focus(); });
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", guarded(() => show(button.dataset.view)));
    }
    addEventListener("hashchange", guarded(async () => { readState(); await show(state.view); }));
  }
  await guarded(show)(state.view);
  document.body.dataset.ready = "true";
}

onChange(() => { rememberInAddress(); return VIEWS[state.view](); });
element("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", element("token").value);
  element("token-form").hidden = true;
  start();
});
start();
