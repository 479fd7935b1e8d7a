// Asks for a token where the server knows nobody without one. It stays in this tab, until the tab is closed.

import { make, setText } from "./dom.js";

const KEPT = "bayplan-token";

/** The token of this tab: from the address, where `bayplan ui` put its key, or as it was given before. */
export function token() {
  const key = /^#key=([\w-]+)$/.exec(location.hash);
  if (key) {
    sessionStorage.setItem(KEPT, key[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT) ?? "";
}

class BayLogin extends HTMLElement {
  #why = make("p", { class: "warn" });

  /** Ask, and give the token once it is there. */
  ask(why) {
    const input = make("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const form = make("form", { class: "card" }, make("h2", { text: "Who are you?" }), this.#why,
      make("label", { for: "token", text: "Token of your account, as `kubectl create token` prints it" }), input,
      make("button", { type: "submit", text: "look" }),
      make("p", { class: "quiet", text: "You see what this account may list. The token is kept in this tab alone." }));
    setText(this.#why, why);
    this.replaceChildren(form);
    this.hidden = false;
    input.focus();
    return new Promise((done) => form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEPT, input.value.trim());
      this.hidden = true;
      this.replaceChildren();
      done(input.value.trim());
    }));
  }
}

customElements.define("bay-login", BayLogin);
