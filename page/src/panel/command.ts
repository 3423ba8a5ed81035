/** Buttons, switches and keys of the commands in the table of controls. */

import type { Actions } from "../actions.ts";
import { COMMANDS } from "../controls.ts";
import { checkBox, iconButton, textButton } from "../dom.ts";

/** The button of a command; of a switch with a text, a check box. */
export function button(actions: Actions, name: string): HTMLElement {
  const command = COMMANDS.find((one) => one.name === name)!;
  const { act, follows, help, icon, key, on, part, text, works } = command;
  const title = key ? `${help} (${key})` : help;
  const press = () => act(actions);
  const box = !icon && on ? checkBox(text!, name, press) : null;
  const made = box?.node ?? (icon ? iconButton(icon, title, name, press) : textButton(text!, name, press));
  made.title = title;
  if (!on && !works) return made;
  actions.store.watch(follows ?? [part!], () => {
    if (box) box.set(on!(actions));
    else if (on) made.setAttribute("aria-pressed", String(on(actions)));
    if (works) made.toggleAttribute("disabled", !works(actions));
  });
  return made;
}

/** Run commands on presses of keys that no field, list or dialog uses. */
export function listen(actions: Actions): (event: KeyboardEvent) => void {
  return (event) => {
    const target = event.target as HTMLElement;
    const typing = target.closest("input:not([type=checkbox]):not([type=range]), select, textarea, dialog");
    const undo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey);
    if (typing || event.altKey || ((event.ctrlKey || event.metaKey) && !undo)) return;
    const key = undo ? "U" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
    const found = COMMANDS.find((command) => command.key === key);
    if (!found) return;
    event.preventDefault();
    found.act(actions);
  };
}
