import { concat, isText, mapText, type Text, TextBuilder, textOf } from "./MarkedText.ts"
import type { Run } from "./Run.ts"
import { Callable, Dict, Float, Generator, JinjaError, Tuple, Undefined, type Value, View } from "./Values.ts"

/** Python's `repr` of a float: the shortest digits that read back, an exponent from 1e16 and below 1e-4. */
export const floatText = (value: number): string => {
  if (Number.isNaN(value)) return "nan"
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf"
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0"
  const [mantissa = "", exponentText = "0"] = Math.abs(value).toExponential().split("e")
  const sign = value < 0 ? "-" : ""
  const digits = mantissa.replace(".", "")
  const exponent = Number(exponentText)
  if (exponent < -4 || exponent >= 16) {
    const power = Math.abs(exponent).toString().padStart(2, "0")
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${power}`
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`
}

const unprintable = /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu
const shortEscapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escapeCharacter = (character: string): string => {
  const short = shortEscapes[character]
  if (short !== undefined) return short
  const code = character.codePointAt(0) ?? 0
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`
  return `\\U${code.toString(16).padStart(8, "0")}`
}

const quoted = (text: Text): Text => {
  const plain = textOf(text)
  const quote = plain.includes("'") && !plain.includes("\"") ? "\"" : "'"
  const escaped = mapText(text, (stretch) => {
    const printable = stretch.replace(unprintable, escapeCharacter)
    return quote === "'" ? printable.replaceAll("'", "\\'") : printable
  })
  return concat(quote, escaped, quote)
}

const push = (out: TextBuilder, value: Value, run: Run, depth: number): void => {
  if (depth > 200) throw new JinjaError("a value is nested too deeply")
  run.step()
  const sequence = (open: string, items: ReadonlyArray<Value>, close: string) => {
    out.push(open)
    items.forEach((item, index) => {
      if (index > 0) out.push(", ")
      push(out, item, run, depth + 1)
    })
    out.push(close)
  }
  if (isText(value)) out.push(quoted(value))
  else if (Array.isArray(value)) sequence("[", value, "]")
  else if (value instanceof Tuple) sequence("(", value.items, value.items.length === 1 ? ",)" : ")")
  else if (value instanceof View) sequence(`${value.kind}([`, value.items, "])")
  else if (value instanceof Dict) {
    out.push("{")
    value.items().forEach((item, index) => {
      if (index > 0) out.push(", ")
      push(out, item.items[0] ?? null, run, depth + 1)
      out.push(": ")
      push(out, item.items[1] ?? null, run, depth + 1)
    })
    out.push("}")
  } else if (value instanceof Undefined) out.push("Undefined")
  else if (value instanceof Callable) out.push(`<function ${value.name}>`)
  else if (value instanceof Generator) out.push("<generator object>")
  else out.push(stringOf(value, run))
}

/** Python's `repr`. */
export const representation = (value: Value, run: Run): Text => {
  const out = new TextBuilder()
  push(out, value, run, 0)
  run.produce(out.length)
  return out.finish()
}

/** Python's `str`, which is also what `{{ … }}` prints. */
export const stringOf = (value: Value, run: Run): Text => {
  if (isText(value)) return value
  if (value === null) return "None"
  if (value instanceof Undefined) return ""
  if (typeof value === "boolean") return value ? "True" : "False"
  if (typeof value === "number" || typeof value === "bigint") return value.toString()
  if (value instanceof Float) return floatText(value.value)
  return representation(value, run)
}
