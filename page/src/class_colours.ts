/** Colours of classes whose names say what a thing is, as maps and drawings have them. */

export interface ClassColour {
  colour: string;
  /** 0 to 255. */
  opacity: number;
}

const opaque = (colour: string): ClassColour => ({ colour, opacity: 255 });
const GLASS: ClassColour = { colour: "#9fc9dd", opacity: 110 };
const WALL = opaque("#ece8df");
const CONCRETE = opaque("#cfcac0");
const WOOD = opaque("#bf9468");
const EARTH = opaque("#d9cdb2");
const WATER = opaque("#9cc4de");
const PLANTS = opaque("#a9c796");
const ROAD = opaque("#b4b6ba");
const ROOF = opaque("#bf7a62");

/** Words of IFC and CityGML, and those of everyday. */
const BY_WORD: [ClassColour, string][] = [
  [GLASS, "glass glazing window skylight curtain pane"],
  [WALL, "wall building plaster facade"],
  [CONCRETE, "slab floor stair ramp footing foundation pile concrete"],
  [WOOD, "door wood timber"],
  [EARTH, "earth ground soil sand land terrain relief site geographic topography dirt"],
  [WATER, "water river lake canal sea pond waterway"],
  [PLANTS, "plant vegetation tree grass forest park garden meadow shrub bush leaves"],
  [ROAD, "road street pavement sidewalk asphalt square track railway parking traffic transportation"],
  [ROOF, "roof"],
];

const COLOURS = new Map(BY_WORD.flatMap(([colour, words]) => words.split(" ").map((word) => [word, colour] as const)));

/** Returns the colour of a class by the first known word of its name, such as "Wall" of "IfcWallStandardCase". */
export function classColour(name: string): ClassColour | null {
  const words = (name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []).map((word) => word.toLowerCase());
  const known = words.map((word) => COLOURS.get(word) ?? COLOURS.get(word.replace(/s$/, "")));
  return known.find((colour) => colour !== undefined) ?? null;
}
