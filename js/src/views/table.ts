/** The views by name, in the order of their tabs. */

import type { MakeView } from "../kit/context";
import type { ViewName } from "../wire/types";
import { compareView } from "./compare";
import { faithfulnessView } from "./faithfulness";
import { graphView } from "./graph";
import { headsView } from "./heads";
import { layersView } from "./layers";
import { mapView } from "./map";
import { multiplesView } from "./multiples";
import { textView } from "./text";

const VIEWS: Record<ViewName, [title: string, make: MakeView]> = {
  text: ["Words", textView],
  graph: ["Graph", graphView],
  layers: ["Layers", layersView],
  map: ["Map", mapView],
  multiples: ["Grid", multiplesView],
  compare: ["Compare", compareView],
  faithfulness: ["Test", faithfulnessView],
  heads: ["Heads", headsView],
};
const tab = (name: ViewName) => ({ name, title: VIEWS[name][0] });

/** Null is a gap between those of one method and the others. */
export const TABS = [
  tab("text"),
  tab("graph"),
  tab("layers"),
  tab("map"),
  tab("multiples"),
  null,
  tab("compare"),
  tab("faithfulness"),
  tab("heads"),
];

export const viewCalled = (name: ViewName): MakeView => VIEWS[name][1];
