import * as CodePoints from "./CodePoints.ts"
import * as Pattern from "./Pattern.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

const language = (source: string): Language =>
  Pattern.whole(source, { dialect: "ecma" }, (_reason, message) => {
    throw new Error(message)
  })

const date =
  String.raw`(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
  String.raw`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`

/** With an offset, and a leap second where it can be told from the text: in UTC. */
const time = String
  .raw`(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)|23:59:60(?:\.\d{1,9})?(?:Z|[+-]00:00))`

const octet = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
const ipv4 = String.raw`(?:${octet}\.){3}${octet}`

/** RFC 4291, 2.2: eight groups, one run of which may be `::`, the last two perhaps as IPv4. */
const ipv6 = (() => {
  const group = "[0-9a-fA-F]{1,4}"
  const last = `(?:${group}:${group}|${ipv4})`
  const forms = [`(?:${group}:){6}${last}`, `::(?:${group}:){5}${last}`, `(?:${group})?::(?:${group}:){4}${last}`]
  for (let before = 1; before <= 4; before++) forms.push(`(?:(?:${group}:){0,${before}}${group})?::(?:${group}:){${4 - before}}${last}`)
  forms.push(`(?:(?:${group}:){0,5}${group})?::${group}`, `(?:(?:${group}:){0,6}${group})?::`)
  return `(?:${forms.join("|")})`
})()

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
const hostname = String.raw`${label}(?:\.${label})*`

/** RFC 5321's Mailbox with a dot-string and a domain of at least two labels, as validators take it. */
const email = (() => {
  const atom = String.raw`[A-Za-z0-9!#$%&'*+/=?^_\x60{|}~-]+`
  return { source: String.raw`${atom}(?:\.${atom})*@${label}(?:\.${label})+`, local: String.raw`[^@]{1,64}@.*` }
})()

/** RFC 3986, appendix A. */
const uri = (() => {
  const percent = "%[0-9A-Fa-f]{2}"
  const unreserved = String.raw`A-Za-z0-9._~\-`
  const delimiters = "!$&'()*+,;="
  const pchar = String.raw`(?:[${unreserved}${delimiters}:@]|${percent})`
  const host = String.raw`(?:\[(?:${ipv6}|[vV][0-9A-Fa-f]+\.[${unreserved}${delimiters}:]+)\]|(?:[${unreserved}${delimiters}]|${percent})*)`
  const authority = String.raw`(?:(?:[${unreserved}${delimiters}:]|${percent})*@)?${host}(?::\d*)?`
  const tail = String.raw`(?:\?(?:${pchar}|[/?])*)?(?:#(?:${pchar}|[/?])*)?`
  const absolute = String.raw`(?://${authority}(?:/${pchar}*)*|/(?:${pchar}+(?:/${pchar}*)*)?|${pchar}+(?:/${pchar}*)*|)`
  const noColon = String.raw`(?:[${unreserved}${delimiters}@]|${percent})`
  const relative = String.raw`(?://${authority}(?:/${pchar}*)*|/(?:${pchar}+(?:/${pchar}*)*)?|${noColon}+(?:/${pchar}*)*|)`
  const full = String.raw`[A-Za-z][A-Za-z0-9+.\-]*:${absolute}${tail}`
  return { full, reference: `(?:${full}|${relative}${tail})` }
})()

/** RFC 3339, appendix A. */
const duration = (() => {
  const time = String.raw`T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)`
  const day = String.raw`(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)`
  return String.raw`P(?:${day}(?:${time})?|${time}|\d+W)`
})()

const sources: Readonly<Record<string, () => Language>> = {
  date: () => language(date),
  time: () => language(time),
  "date-time": () => language(`${date}T${time}`),
  duration: () => language(duration),
  email: () => Regular.and([language(email.source), language(email.local)]),
  hostname: () => Regular.and([language(hostname), Regular.repeat(Regular.anyCharacter, 1, 253)]),
  ipv4: () => language(ipv4),
  ipv6: () => language(ipv6),
  uri: () => language(uri.full),
  "uri-reference": () => language(uri.reference),
  uuid: () => language("[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"),
  "json-pointer": () => language(String.raw`(?:/(?:[^/~]|~[01])*)*`),
  "relative-json-pointer": () => language(String.raw`(?:0|[1-9]\d*)(?:#|(?:/(?:[^/~]|~[01])*)*)`),
  byte: () => Regular.sequence([base64, Regular.optional(base64End)])
}

const base64Character = Regular.characters(
  CodePoints.union(CodePoints.of([0x30, 0x39], [0x41, 0x5a], [0x61, 0x7a]), CodePoints.among("+/"))
)
const base64 = Regular.star(Regular.repeat(base64Character, 4, 4))
const base64End = Regular.choice([
  Regular.sequence([Regular.repeat(base64Character, 2, 2), Regular.text("==")]),
  Regular.sequence([Regular.repeat(base64Character, 3, 3), Regular.text("=")])
])

const languages = new Map<string, Language>()

/** Formats that constrain no text: hints for a form or a code generator. */
const hints: ReadonlySet<string> = new Set(["password", "binary", "string", "markdown", "text", "textarea", "float", "double"])

/** What a string of a format is; undefined: the format is not known. */
export const stringFormat = (name: string): Language | undefined => {
  if (hints.has(name)) return Regular.everything
  const known = languages.get(name)
  if (known !== undefined) return known
  if (!Object.hasOwn(sources, name)) return undefined
  const made = sources[name]?.()
  if (made !== undefined) languages.set(name, made)
  return made
}

export const stringFormats: ReadonlyArray<string> = Object.keys(sources)

/** The integers that OpenAPI's formats of a width hold. */
export const integerFormat = (name: string): readonly [min: number, max: number] | undefined => {
  switch (name) {
    case "int8":
      return [-128, 127]
    case "int16":
      return [-32768, 32767]
    case "int32":
      return [-(2 ** 31), 2 ** 31 - 1]
    case "int64":
      return [-(2 ** 63), 2 ** 63]
    case "uint8":
      return [0, 255]
    case "uint16":
      return [0, 65535]
    case "uint32":
      return [0, 2 ** 32 - 1]
    case "uint64":
      return [0, 2 ** 64]
    default:
      return undefined
  }
}
