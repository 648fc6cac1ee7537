import type { Run } from "./Run.ts"
import { Undefined, type Value } from "./Values.ts"

/** Variables of a template, a macro call or one iteration. */
export class Scope {
  readonly run: Run
  readonly #parent: Scope | undefined
  readonly #variables = new Map<string, Value>()

  constructor(run: Run, parent?: Scope) {
    this.run = run
    this.#parent = parent
  }

  child(): Scope {
    return new Scope(this.run, this)
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value)
  }

  get(name: string): Value {
    return Scope.#lookUp(this, name)
  }

  static #lookUp(start: Scope, name: string): Value {
    for (let scope: Scope | undefined = start; scope !== undefined; scope = scope.#parent) {
      const value = scope.#variables.get(name)
      if (value !== undefined) return value
    }
    return new Undefined(`'${name}' is undefined`)
  }
}
