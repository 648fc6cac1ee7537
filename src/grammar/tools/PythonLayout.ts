import * as Ir from "../Ir.ts"
import { JsonLayout } from "../JsonText.ts"
import * as Regular from "../Regular.ts"

const names: ReadonlyMap<unknown, string> = new Map<unknown, string>([[true, "True"], [false, "False"], [null, "None"]])

/** Python literals: JSON, but for three names. */
export class PythonLayout extends JsonLayout {
  constructor() {
    super("spaced")
  }

  override literal(value: unknown): Ir.Node {
    if (typeof value !== "object" || value === null) return Ir.text(names.get(value) ?? JSON.stringify(value))
    const isArray = Array.isArray(value)
    const items = isArray
      ? value.map((item) => this.literal(item))
      : Object.entries(value).map(([name, item]) => this.property(this.key(Regular.text(name)), this.literal(item)))
    const content = Ir.sequence(...items.flatMap((item, index) => index === 0 ? [item] : [this.comma, item]))
    return isArray ? this.enclosed("[", content, "]") : this.enclosed("{", content, "}")
  }
}
