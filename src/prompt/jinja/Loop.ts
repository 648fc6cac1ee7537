import { isEqual } from "./PythonEquality.ts"
import { Callable, JinjaError, Undefined, type Value } from "./Values.ts"

/** Jinja's `loop`. */
export class Loop {
  index = 0
  #changed: Array<Value> | undefined
  readonly #items: ReadonlyArray<Value>
  readonly #depth: number
  readonly value: Callable

  constructor(items: ReadonlyArray<Value>, depth: number, again: (items: Value) => Value) {
    this.#items = items
    this.#depth = depth
    this.value = new Callable("loop", (_, args) => again(args[0] ?? null), (name) => this.#attribute(name))
  }

  #item(index: number, hint: string): Value {
    const item = this.#items[index]
    return item === undefined ? new Undefined(hint) : item
  }

  #attribute(name: string): Value | undefined {
    const { length } = this.#items
    switch (name) {
      case "index":
        return this.index + 1
      case "index0":
        return this.index
      case "revindex":
        return length - this.index
      case "revindex0":
        return length - this.index - 1
      case "first":
        return this.index === 0
      case "last":
        return this.index === length - 1
      case "length":
        return length
      case "previtem":
        return this.#item(this.index - 1, "there is no previous item")
      case "nextitem":
        return this.#item(this.index + 1, "there is no next item")
      case "depth":
        return this.#depth + 1
      case "depth0":
        return this.#depth
      case "cycle":
        return new Callable("cycle", (_, args) => {
          if (args.length === 0) throw new JinjaError("no items for cycling given")
          return args[this.index % args.length] ?? null
        })
      case "changed":
        return new Callable("changed", (run, args) => {
          const changed = this.#changed === undefined || !isEqual(this.#changed, Array.from(args), run)
          this.#changed = Array.from(args)
          return changed
        })
      default:
        return undefined
    }
  }
}
