import type * as Ir from "./Ir.ts"
import type { Regular } from "./Regular.ts"

/** How a syntax writes JSON values. Numbers are the same in all of them. */
export interface ValueLayout {
  /** Between two elements or properties. */
  readonly comma: Ir.Node
  /** Property names of a language. */
  readonly key: (names: Regular) => Ir.Node
  readonly property: (key: Ir.Node, value: Ir.Node) => Ir.Node
  /** `content` between brackets. */
  readonly enclosed: (open: string, content: Ir.Node, close: string) => Ir.Node
  /** One value, its keys in the order that they have. */
  readonly literal: (value: unknown) => Ir.Node
  /** Strings of a language. */
  readonly string: (language: Regular) => Ir.Node
}

/** How a syntax writes the strings among the arguments of a call. */
export interface ArgumentText {
  readonly string: (language: Regular) => Ir.Node
  /** The argument is read as a string whatever it looks like. */
  readonly only: boolean
  /** A value that is no string, as it is written within, made an argument. Default: as it is. */
  readonly other?: (value: Ir.Node) => Ir.Node
}

/** How a syntax writes the arguments of a call, one by one. */
export interface ArgumentsLayout {
  readonly separator: Ir.Node
  /** Arguments with these names; `value` makes their value, given the name where it is a single one. */
  readonly argument: (names: Regular, value: (name: string | undefined) => Ir.Node) => Ir.Node
  /** Where strings are not written as within values: of the argument of this name, where it is a single one. */
  readonly text?: (name: string | undefined) => ArgumentText
}
