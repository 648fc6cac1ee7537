/**
 * The grammar IR: what every front end compiles to and the native engine runs. A grammar is a list of named rules over nodes; its language
 * is that of the root rule, as UTF-8 text of which some places may be single tokens. Nodes are a graph without cycles: one object that
 * stands in several places is encoded once. Recursion goes through rules. native/GRAMMAR.md describes semantics, limits and the bytes.
 */
export interface Grammar {
  readonly root: string
  readonly rules: ReadonlyArray<Rule>
}

export interface Rule {
  readonly name: string
  readonly node: Node
}

export type Node =
  /** These characters; the empty text matches nothing but itself. Lone surrogates become U+FFFD. */
  | { readonly kind: "text"; readonly value: string }
  /** One code point inside the ranges (both ends included), or outside all of them. Surrogates are never matched. */
  | { readonly kind: "class"; readonly ranges: ReadonlyArray<readonly [low: number, high: number]>; readonly negated?: boolean }
  | { readonly kind: "sequence"; readonly items: ReadonlyArray<Node> }
  /** No item at all: matches nothing, not even the empty text. */
  | { readonly kind: "choice"; readonly items: ReadonlyArray<Node> }
  /** `max` null: unbounded. Counts are not unrolled: `max` 10 000 costs as much as `max` 1. */
  | { readonly kind: "repeat"; readonly item: Node; readonly min: number; readonly max: number | null }
  | { readonly kind: "rule"; readonly name: string }
  /** What all items match. Regular items only. */
  | { readonly kind: "and"; readonly items: ReadonlyArray<Node> }
  /** Every well-formed UTF-8 text that the item does not match. Regular items only. */
  | { readonly kind: "not"; readonly item: Node }
  /** The same texts as its item, which is regular: a hint that this is one unit, whose automaton and masks are shared by all its places. */
  | { readonly kind: "lexeme"; readonly item: Node }
  /** A lexeme that is content: what is not, is syntax, and may be drawn greedily. Inside `and`, `not` and lexemes it is as its item. */
  | { readonly kind: "content"; readonly item: Node }
  | Permutation
  | Free
  /** One whole token, by id; the only way to match a control token, which has no text. */
  | { readonly kind: "token"; readonly ids: ReadonlyArray<number> }

/** Each item at most once (`many`: any number of times), all `required` ones, with the separator between two that are there. */
export interface Permutation {
  readonly kind: "permutation"
  readonly items: ReadonlyArray<PermutationItem>
  readonly separator: Node
  /** True: in the order of `items`; false (default): in any order. */
  readonly ordered?: boolean
  /** Items, repetitions counted. Default 0 and null (no limit). */
  readonly min?: number
  readonly max?: number | null
}

export interface PermutationItem {
  readonly node: Node
  readonly required?: boolean
  readonly many?: boolean
}

/**
 * Free text. With triggers: up to and including the first of `until` that occurs. Without: any text, which ends anywhere. None of
 * `except` occurs in it.
 */
export interface Free {
  readonly kind: "free"
  readonly until: ReadonlyArray<string | { readonly tokens: ReadonlyArray<number> }>
  readonly except?: ReadonlyArray<string>
}

/** Regular: no `token`, no `free` with token triggers, and no rule that leads back to itself. */

export const text = (value: string): Node => ({ kind: "text", value })
export const sequence = (...items: ReadonlyArray<Node>): Node => ({ kind: "sequence", items })
export const choice = (...items: ReadonlyArray<Node>): Node => ({ kind: "choice", items })
export const repeat = (item: Node, min = 0, max: number | null = null): Node => ({ kind: "repeat", item, min, max })
export const optional = (item: Node): Node => repeat(item, 0, 1)
/** Marks a node that has no rules which lead back to themselves as content, but for the tokens in it. */
export const content = (node: Node): Node => {
  if (node.kind === "token") return node
  return (node.kind === "sequence" || node.kind === "choice") && holdsTokens(node)
    ? { ...node, items: node.items.map(content) }
    : { kind: "content", item: node }
}

const holdsTokens = (node: Node): boolean =>
  node.kind === "token" || ((node.kind === "sequence" || node.kind === "choice") && node.items.some(holdsTokens))

export const rule = (name: string): Node => ({ kind: "rule", name })

/** The nodes that a node is made of. */
export const childrenOf = (node: Node): ReadonlyArray<Node> => {
  switch (node.kind) {
    case "sequence":
    case "choice":
    case "and":
      return node.items
    case "repeat":
    case "not":
    case "lexeme":
    case "content":
      return [node.item]
    case "permutation":
      return [node.separator, ...node.items.map((item) => item.node)]
    case "text":
    case "class":
    case "rule":
    case "free":
    case "token":
      return []
  }
}
