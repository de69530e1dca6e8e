// The data view: explain every row of a file in the background.

import { element, fillSelect, guarded, modelNamed, rememberInAddress, request, say, state, choice } from "./page.js";
import { refreshJobs, showJobs } from "./job_list.js";

const LARGEST = 256 * 1024 * 1024; // bytes that the server accepts

export async function updateData() {
  rememberInAddress();
  say("Choose a file.");
  await refreshJobs();
}

function drawExplainers() {
  const model = modelNamed(element("data-model").value);
  fillSelect(element("data-explainer"), model.explainers.map((name) => [name, name]));
  element("data-question-row").hidden = model.pair === false;
  element("data-question").value = model.pair ? "question" : "";
  element("data-question").placeholder = model.pair === null ? "none" : "";
}

async function explainFile(event) {
  event.preventDefault();
  const file = element("file").files[0];
  if (!file) {
    say("Choose a file first.", true);
    element("file").focus();
    return;
  }
  if (file.size > LARGEST) {
    say("The file has more than 256 MiB. Split it.", true);
    return;
  }
  const model = modelNamed(element("data-model").value);
  const query = new URLSearchParams({ name: file.name.slice(-255), model: model.name, explainer: element("data-explainer").value });
  query.append("text", element("data-text").value);
  const question = element("data-question").value;
  if (model.pair || (model.pair === null && question)) query.append("text", question);
  if (model.task !== "classification") query.append("target", model.classes[0]);
  if (element("data-drop-empty").checked) query.append("drop_empty", "true");
  say("Uploading …");
  await request(`/v1/explain-file?${query}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  say("The job has started.");
  await refreshJobs();
}

export function startDataView() {
  fillSelect(element("data-model"), state.models.map(choice));
  element("data-model").addEventListener("change", drawExplainers);
  drawExplainers();
  element("data-form").addEventListener("submit", guarded(explainFile));
  const drop = element("drop");
  const mark = (isOver) => (event) => { event.preventDefault(); drop.classList.toggle("over", isOver); };
  drop.addEventListener("dragover", mark(true));
  drop.addEventListener("dragleave", mark(false));
  drop.addEventListener("drop", (event) => {
    mark(false)(event);
    if (event.dataTransfer?.files.length) {
      element("file").files = event.dataTransfer.files;
      say(`${event.dataTransfer.files[0].name}: press Explain the file.`);
    }
  });
  showJobs("data-jobs", "explain");
}
