/** The development page: one widget on an invented model, chosen by the address. */

import { mount } from "../src/app";
import { createStore } from "../src/wire/store";
import { DEFAULTS, type Traits } from "../src/wire/types";
import { sceneHost } from "./kernel";
import { scene } from "./synthetic";

const query = new URLSearchParams(location.search);
const made = scene(query.get("scene") ?? "review");
const host = sceneHost(made, Number(query.get("delay") ?? 5));
for (const name of Object.keys(DEFAULTS) as (keyof Traits)[]) {
  const given = query.get(name);
  if (given !== null) host.set({ [name]: JSON.parse(given) } as Partial<Traits>);
}
document.body.dataset.jpThemeLight = query.get("theme") === "dark" ? "false" : "true";
document.body.style.background = query.get("theme") === "dark" ? "#111417" : "#ffffff";
const life = new AbortController();
const store = createStore(host, life.signal);
const element = document.querySelector<HTMLElement>("#widget") as HTMLElement;
mount(element, host, store, life.signal);
Object.assign(globalThis, { mix: { host, store, life, element } });
