// One dialog for everything that acts: says what will happen, asks for a reason, can be left with Escape or Cancel.

import { at, say } from "./dom.js";

let act = null;

export function confirm({ title, text, yes, danger, why }, action) {
  act = action;
  say(at("confirm-title"), title);
  say(at("confirm-text"), text);
  say(at("confirm-problem"), "");
  at("confirm-yes").textContent = yes;
  at("confirm-yes").className = danger ? "danger" : "primary";
  at("confirm-yes").disabled = false;
  at("why").value = why;
  at("confirm").showModal();
  at("confirm-no").focus();
}

export function wireConfirm() {
  const dialog = at("confirm");
  at("confirm-no").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => (act = null));
  at("confirm-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (act === null) return;
    at("confirm-yes").disabled = true;
    try {
      await act(at("why").value);
      dialog.close();
    } catch (problem) {
      say(at("confirm-problem"), `That did not work: ${problem.message}`);
      at("confirm-yes").disabled = false;
    }
  });
}
