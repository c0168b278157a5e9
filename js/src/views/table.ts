/** The views by name, in the order of their tabs. */

import type { ViewName } from "../wire/types";
import { answerView } from "./answer";
import { compareView } from "./compare";
import { faithfulnessView } from "./faithfulness";
import { graphView } from "./graph";
import { headsView } from "./heads";
import { layersView } from "./layers";
import { mapView } from "./map";
import { multiplesView } from "./multiples";
import { textView } from "./text";

const VIEWS: Record<ViewName, [title: string, make: typeof textView]> = {
  text: ["Words", textView],
  graph: ["Graph", graphView],
  layers: ["Layers", layersView],
  map: ["Map", mapView],
  multiples: ["Grid", multiplesView],
  compare: ["Compare", compareView],
  faithfulness: ["Test", faithfulnessView],
  heads: ["Heads", headsView],
  answer: ["Answer", answerView],
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
  tab("answer"),
];

export const viewCalled = (name: ViewName): typeof textView => VIEWS[name][1];
