import * as CodePoints from "./CodePoints.ts"
import * as Ir from "./Ir.ts"
import type { Regular } from "./Regular.ts"

const nodes = new WeakMap<Regular, Ir.Node>()

/** A regular language as a node; the same object for the same language object. */
export const toNode = (regular: Regular): Ir.Node => {
  const known = nodes.get(regular)
  if (known !== undefined) return known
  const node = convert(regular)
  nodes.set(regular, node)
  return node
}

const convert = (regular: Regular): Ir.Node => {
  switch (regular._tag) {
    case "Text":
      return Ir.text(regular.text)
    case "Class":
      return classNode(regular.points)
    case "Sequence":
      return { kind: "sequence", items: regular.items.map(toNode) }
    case "Choice":
      return { kind: "choice", items: regular.items.map(toNode) }
    case "And":
      return { kind: "and", items: regular.items.map(toNode) }
    case "Not":
      return { kind: "not", item: toNode(regular.item) }
    case "Repeat":
      return Ir.repeat(toNode(regular.item), regular.min, regular.max === Infinity ? null : regular.max)
  }
}

export const classNode = (points: CodePoints.CodePoints): Ir.Node => {
  const outside = CodePoints.complement(points)
  return outside.length < points.length ? { kind: "class", ranges: outside, negated: true } : { kind: "class", ranges: points }
}
