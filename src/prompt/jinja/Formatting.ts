import { codePointLength, concat, join, offsetOfCodePoint, slice, type Text, TextBuilder, textOf } from "./MarkedText.ts"
import { numberOf } from "./PythonEquality.ts"
import { floatText, representation, stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { Dict, Float, JinjaError, type Keywords, Tuple, typeName, Undefined, undefinedError, type Value } from "./Values.ts"

interface Specification {
  readonly fill: string
  readonly align: string
  readonly sign: string
  readonly alternate: boolean
  readonly width: number
  readonly grouping: boolean
  readonly precision: number | undefined
  readonly type: string
}

const pad = (text: Text, fill: string, align: string, width: number, run: Run): Text => {
  const missing = width - codePointLength(textOf(text))
  if (missing <= 0) return text
  run.produce(missing * fill.length)
  const left = align === ">" ? missing : align === "^" ? missing >> 1 : 0
  return concat(fill.repeat(left), text, fill.repeat(missing - left))
}

const radix: Readonly<Record<string, number>> = { d: 10, i: 10, u: 10, n: 10, b: 2, o: 8, x: 16, X: 16 }

const exponential = (value: number, precision: number): string => value.toExponential(precision).replace(/e([+-])(\d)$/, "e$10$2")

const general = (value: number, precision: number): string => {
  const digits = precision === 0 ? 1 : precision
  const exponent = value === 0 ? 0 : Number(value.toExponential(digits - 1).split("e")[1])
  const text = exponent < -4 || exponent >= digits ? exponential(value, digits - 1) : value.toFixed(digits - 1 - exponent)
  return text.includes(".") ? text.replace(/\.?0+(e|$)/, "$1") : text
}

const group = (digits: string): string => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",")

const numberText = (value: Value, specification: Specification): string => {
  const number = numberOf(value)
  if (number === undefined) {
    if (value instanceof Undefined) throw undefinedError(value)
    throw new JinjaError(`a number is required for '${specification.type}', not ${typeName(value)}`)
  }
  const { type } = specification
  const base = radix[type]
  const precision = Math.min(specification.precision ?? 6, 100)
  let digits: string
  if (base !== undefined) {
    const whole = typeof number === "bigint" ? number : Math.trunc(number)
    const prefix = specification.alternate && base !== 10 ? `0${type.toLowerCase()}` : ""
    digits = prefix + (whole < 0 ? -whole : whole).toString(base)
    if (type === "X") digits = digits.toUpperCase()
  } else {
    const size = Math.abs(Number(number))
    if (!Number.isFinite(size)) digits = floatText(size)
    else if (type === "f" || type === "F") digits = size.toFixed(precision)
    else if (type === "e" || type === "E") digits = exponential(size, precision)
    else if (type === "%") digits = `${(size * 100).toFixed(precision)}%`
    else digits = general(size, precision)
    if (type === "E" || type === "G") digits = digits.toUpperCase()
  }
  if (specification.grouping) {
    const [whole = "", ...rest] = digits.split(".")
    digits = [group(whole), ...rest].join(".")
  }
  return (number < 0 || Object.is(number, -0) ? "-" : specification.sign === "-" ? "" : specification.sign) + digits
}

const numeric = (text: string, specification: Specification, run: Run): Text => {
  if (specification.align !== "=") return pad(text, specification.fill, specification.align, specification.width, run)
  const sign = /^[-+ ]?/.exec(text)?.[0] ?? ""
  return concat(sign, pad(text.slice(sign.length), specification.fill, ">", specification.width - sign.length, run))
}

const cut = (text: Text, precision: number | undefined): Text =>
  precision === undefined ? text : slice(text, 0, offsetOfCodePoint(textOf(text))(Math.min(precision, codePointLength(textOf(text)))))

const bounded = (text: string | undefined): number => Math.min(Number(text ?? 0), 1_000_000)

const percentPattern = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?[hlL]?(.)/gsu

/** `format % values`. */
export const percentFormat = (format: Text, values: Value, run: Run): Text => {
  const source = textOf(format)
  const positional = values instanceof Tuple ? values.items : [values]
  const out = new TextBuilder()
  let used = 0
  let offset = 0
  const next = (): Value => {
    const value = positional[used++]
    if (value === undefined) throw new JinjaError("not enough arguments for format string")
    return value
  }
  const size = (text: string | undefined): number | undefined => {
    if (text !== "*") return text === undefined ? undefined : bounded(text)
    const value = next()
    if (typeof value !== "number") throw new JinjaError("* wants int")
    return bounded(value.toString())
  }
  for (const match of source.matchAll(percentPattern)) {
    run.step()
    const [all, name, flags = "", widthText, precisionText, type = ""] = match
    out.push(slice(format, offset, match.index))
    offset = match.index + all.length
    if (type === "%") {
      out.push("%")
      continue
    }
    const width = size(widthText) ?? 0
    const precision = size(precisionText)
    if (name !== undefined) {
      if (!(values instanceof Dict)) throw new JinjaError("format requires a mapping")
      used = 1
    }
    const value = name === undefined ? next() : values instanceof Dict ? values.get(name) : undefined
    if (value === undefined) throw new JinjaError(`'${name}'`)
    const align = flags.includes("-") ? "<" : ">"
    if (type === "s" || type === "r" || type === "a") {
      out.push(pad(cut(type === "s" ? stringOf(value, run) : representation(value, run), precision), " ", align, width, run))
    } else if (type === "c") {
      out.push(pad(typeof value === "number" ? String.fromCodePoint(value) : stringOf(value, run), " ", align, width, run))
    } else {
      if (!/[diouxXeEfFgG]/.test(type)) throw new JinjaError(`unsupported format character '${type}'`)
      const zero = flags.includes("0") && align === ">"
      const specification: Specification = {
        fill: zero ? "0" : " ",
        align: zero ? "=" : align,
        sign: flags.includes("+") ? "+" : flags.includes(" ") ? " " : "-",
        alternate: flags.includes("#"),
        width,
        grouping: false,
        precision,
        type
      }
      out.push(numeric(numberText(value, specification), specification, run))
    }
  }
  out.push(slice(format, offset))
  if (used < positional.length && !(values instanceof Dict) && !(Array.isArray(values) && used === 0)) {
    throw new JinjaError("not all arguments converted during string formatting")
  }
  run.produce(out.length)
  return out.finish()
}

const specificationPattern = /^(?:(.)?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?(,|_)?(?:\.(\d+))?([bcdeEfFgGnosxX%])?$/su

const formatValue = (value: Value, specificationText: string, run: Run): Text => {
  if (specificationText === "") return stringOf(value, run)
  const match = specificationPattern.exec(specificationText)
  if (match === null) throw new JinjaError(`Invalid format specifier '${specificationText}'`)
  const [, fill, align, sign, alternate, zero, width, grouping, precisionText, type] = match
  const precision = precisionText === undefined ? undefined : bounded(precisionText)
  const isNumber = numberOf(value) !== undefined && type !== "s"
  if (!isNumber) {
    if (type !== undefined && type !== "s") {
      throw new JinjaError(`Unknown format code '${type}' for object of type '${typeName(value)}'`)
    }
    return pad(cut(stringOf(value, run), precision), fill ?? " ", align ?? "<", bounded(width), run)
  }
  const specification: Specification = {
    fill: fill ?? (zero === undefined ? " " : "0"),
    align: align ?? (zero === undefined ? ">" : "="),
    sign: sign ?? "-",
    alternate: alternate !== undefined,
    width: bounded(width),
    grouping: grouping !== undefined,
    precision,
    type: type ?? (value instanceof Float ? "g" : "d")
  }
  const text = type === undefined && precision === undefined && value instanceof Float && !specification.grouping
    ? (value.value >= 0 && specification.sign !== "-" ? specification.sign : "") + floatText(value.value)
    : numberText(value, specification)
  return numeric(text, specification, run)
}

const fieldPattern = /\{\{|\}\}|\{([^{}!:]*)(?:!([rsa]))?(?::([^{}]*))?\}|[{}]/gs

/** `format.format(…)`, with positions and names but without attribute access inside a field. */
export const braceFormat = (format: Text, positional: ReadonlyArray<Value>, keywords: Keywords, run: Run): Text => {
  const source = textOf(format)
  const out: Array<Text> = []
  let offset = 0
  let automatic = 0
  for (const match of source.matchAll(fieldPattern)) {
    run.step()
    const [all, name, conversion, specification = ""] = match
    out.push(slice(format, offset, match.index))
    offset = match.index + all.length
    if (all === "{{" || all === "}}") {
      out.push(all.slice(1))
      continue
    }
    if (name === undefined) throw new JinjaError(`Single '${all}' encountered in format string`)
    const value = name === "" ? positional[automatic++] : /^\d+$/.test(name) ? positional[Number(name)] : keywords.get(name)
    if (value === undefined) throw new JinjaError(`no replacement for the format field '${name}'`)
    const converted = conversion === undefined ? value : conversion === "s" ? stringOf(value, run) : representation(value, run)
    out.push(formatValue(converted, specification, run))
  }
  out.push(slice(format, offset))
  const text = join(out, "")
  run.produce(textOf(text).length)
  return text
}
