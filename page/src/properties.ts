/** Property sets of objects, as IFC files state them: a line of JSON for each object, inflated at the first call. */

import { short } from "./format.ts";
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

/** Returns rows of a set, `exact` with all digits; a value that has parts has a row for each, with the names of both. */
export function propertyRows(properties: Properties, above = ""): { name: string; text: string; exact: string }[] {
  return Object.entries(properties).flatMap(([name, value]) => {
    const isGroup = value !== null && typeof value === "object" && !Array.isArray(value);
    if (isGroup) return propertyRows(value, `${above}${name}: `);
    return [{ name: `${above}${name}`, text: propertyText(value, shortNumber), exact: propertyText(value, String) }];
  });
}

function shortNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : short(value);
}

function propertyText(value: Property, numberText: (value: number) => string): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map((one) => propertyText(one, numberText)).join(", ");
  if (typeof value === "number") return numberText(value);
  return typeof value === "object" ? JSON.stringify(value) : value;
}
