/** Property sets of objects, as IFC files state them: a line of JSON for each object, inflated at the first call. */

import { through } from "./wire.ts";

/** A value as JSON has it. */
export type Property = null | boolean | number | string | Property[] | Properties;
export interface Properties {
  [name: string]: Property;
}
/** Returns the sets of an object, by name. */
export type PropertyReader = (object: number) => Promise<Record<string, Properties>>;

export function propertyReader(packed: Uint8Array): PropertyReader {
  let lines: Promise<string[]> | null = null;
  return async (object) => {
    lines ??= inflatedLines(packed);
    return JSON.parse((await lines)[object] || "{}");
  };
}

async function inflatedLines(packed: Uint8Array): Promise<string[]> {
  return new TextDecoder().decode(await through(packed, new DecompressionStream("deflate"))).split("\n");
}

/** Returns names and values as text; a value that has parts is a row for each, with the names of both. */
export function propertyRows(properties: Properties, above = ""): [name: string, value: string][] {
  return Object.entries(properties).flatMap(([name, value]) => {
    const isGroup = value !== null && typeof value === "object" && !Array.isArray(value);
    return isGroup ? propertyRows(value, `${above}${name}: `) : [[`${above}${name}`, propertyText(value)]];
  });
}

function propertyText(value: Property): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(propertyText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
