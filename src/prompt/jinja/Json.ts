import { isText, mapText, mark, type Text, TextBuilder, textOf } from "./MarkedText.ts"
import { compare } from "./PythonEquality.ts"
import { floatText } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { Dict, Float, Generator, integer, JinjaError, Tuple, typeName, Undefined, type Value, View } from "./Values.ts"

export interface JsonStyle {
  readonly ensureAscii: boolean
  readonly indent: string | undefined
  readonly itemSeparator: string
  readonly keySeparator: string
  readonly sortKeys: boolean
}

const scalar = (value: Value): string | undefined => {
  if (value === null) return "null"
  if (typeof value === "boolean") return value ? "true" : "false"
  if (typeof value === "number" || typeof value === "bigint") return value.toString()
  if (!(value instanceof Float)) return undefined
  if (Number.isFinite(value.value)) return floatText(value.value)
  return Number.isNaN(value.value) ? "NaN" : value.value > 0 ? "Infinity" : "-Infinity"
}

/** Like Python's `json.dumps`. */
export const writeJson = (value: Value, style: JsonStyle, run: Run): Text => {
  const out = new TextBuilder()
  const string = (text: Text) => {
    out.push("\"")
    out.push(mapText(text, (stretch) => {
      const escaped = JSON.stringify(stretch).slice(1, -1)
      return style.ensureAscii
        ? escaped.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
        : escaped
    }))
    out.push("\"")
  }
  const container = <A>(open: string, items: ReadonlyArray<A>, close: string, depth: number, write: (item: A) => void) => {
    out.push(open)
    const line = style.indent === undefined ? "" : `\n${style.indent.repeat(depth + 1)}`
    items.forEach((item, index) => {
      run.produce(line.length)
      out.push(index > 0 ? style.itemSeparator + line : line)
      write(item)
    })
    if (style.indent !== undefined && items.length > 0) out.push(`\n${style.indent.repeat(depth)}`)
    out.push(close)
  }
  const write = (item: Value, depth: number): void => {
    if (depth > 200) throw new JinjaError("a value is nested too deeply")
    run.step()
    const text = scalar(item)
    if (text !== undefined) out.push(text)
    else if (isText(item)) string(item)
    else if (Array.isArray(item)) container("[", item, "]", depth, (element) => write(element, depth + 1))
    else if (item instanceof Tuple) container("[", item.items, "]", depth, (element) => write(element, depth + 1))
    else if (item instanceof Dict) {
      const keys = item.keys()
      if (style.sortKeys) keys.sort((left, right) => compare(left, right, "<", run))
      container("{", keys, "}", depth, (key) => {
        string(isText(key) ? key : scalar(key) ?? "")
        out.push(style.keySeparator)
        write(item.get(isText(key) ? textOf(key) : typeof key === "number" || typeof key === "bigint" ? key : null) ?? null, depth + 1)
      })
    } else if (item instanceof Generator || item instanceof View) {
      // llama.cpp's own templates write `map(…)|tojson`
      write(item instanceof View ? item.items : item.take(), depth)
    } else throw new JinjaError(`Object of type ${typeName(item)} is not JSON serializable`)
  }
  write(value, 0)
  run.produce(out.length)
  return out.finish()
}

const maximumDepth = 200
const numberPattern = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y
const stringPattern = /"(?:[^"\\]|\\.)*"/y
const spacePattern = /[ \t\n\r]*/y

/**
 * Reads JSON text into template values as Python's `json.loads` does: keys keep their order, `2.0` and `1e3` are floats, integers keep all
 * digits. With `marked`, every text and key counts as a user's. Throws a JinjaError.
 */
export const readJson = (source: string, marked: boolean): Value => {
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(source)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  const fail = (): never => {
    throw new JinjaError(`not valid JSON at character ${at}`)
  }
  const space = () => {
    take(spacePattern)
    return source[at]
  }
  const string = (): string => {
    const match = take(stringPattern)
    if (match === null) return fail()
    try {
      return String(JSON.parse(match[0]))
    } catch {
      return fail()
    }
  }
  const items = (close: string, item: () => void) => {
    at++
    if (space() === close) {
      at++
      return
    }
    for (;;) {
      item()
      const next = space()
      at++
      if (next === close) return
      if (next !== ",") {
        at--
        fail()
      }
    }
  }
  const word = (text: string, value: null | boolean): Value => {
    if (!source.startsWith(text, at)) return fail()
    at += text.length
    return value
  }
  const value = (depth: number): Value => {
    if (depth > maximumDepth) throw new JinjaError("JSON is nested too deeply")
    switch (space()) {
      case "{": {
        const entries = new Map<string, Value>()
        items("}", () => {
          space()
          const key = string()
          if (space() !== ":") fail()
          at++
          entries.set(key, value(depth + 1))
        })
        return new Dict(entries, marked)
      }
      case "[": {
        const list: Array<Value> = []
        items("]", () => list.push(value(depth + 1)))
        return list
      }
      case "\"":
        return marked ? mark(string()) : string()
      case "t":
        return word("true", true)
      case "f":
        return word("false", false)
      case "n":
        return word("null", null)
      default: {
        const match = take(numberPattern)
        if (match === null) return fail()
        if (match[1] !== undefined || match[2] !== undefined) return new Float(Number(match[0]))
        return match[0].length < 16 ? Number(match[0]) : integer(BigInt(match[0]))
      }
    }
  }
  const result = value(0)
  if (space() !== undefined) fail()
  return result
}

/** Parsed JSON (or plain data) as template values. What JSON.parse lost (`2.0`, the order of integer-like keys) stays lost. */
export const fromData = (data: unknown, marked: boolean, depth = 0): Value => {
  if (depth > maximumDepth) throw new JinjaError("a value is nested too deeply")
  switch (typeof data) {
    case "string":
      return marked ? mark(data) : data
    case "boolean":
      return data
    case "bigint":
      return integer(data)
    case "number":
      return Number.isInteger(data) && Math.abs(data) < 1e21 ? integer(data) : new Float(data)
    case "object":
      if (data === null) return null
      if (Array.isArray(data)) return data.map((item) => fromData(item, marked, depth + 1))
      return new Dict(
        new Map(
          Object.entries(data).filter(([, item]) => item !== undefined).map(([key, item]) => [key, fromData(item, marked, depth + 1)])
        ),
        marked
      )
    default:
      return new Undefined(`a ${typeof data} is not a template value`)
  }
}
