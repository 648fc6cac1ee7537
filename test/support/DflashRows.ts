/** One row of a table, or one bullet, of `dflash-server-api.md`. */
export interface DflashRow {
  /** The route or the heading that it stands under. */
  readonly section: string
  /** Header of its table; `["•"]` for a bullet. */
  readonly columns: ReadonlyArray<string>
  readonly cells: ReadonlyArray<string>
}

/** Headings inside of a route's chapter. */
const inner: ReadonlySet<string> = new Set(["Supported Request Parameters", "Response Fields", "Response Structure"])

const headers: ReadonlySet<string> = new Set(["Method", "Parameter", "Field", "Feature"])

/** Every row and bullet, in their order. */
export const dflashRows = (text: string): ReadonlyArray<DflashRow> => {
  const rows: Array<DflashRow> = []
  let section = ""
  let columns: ReadonlyArray<string> = []
  for (const line of text.split("\n")) {
    const cells = line.split("\t")
    if (line.startsWith("• ")) {
      rows.push({ section, columns: ["•"], cells: [line.slice(2)] })
    } else if (cells.length > 1) {
      if (headers.has(cells[0] ?? "")) columns = cells
      else rows.push({ section, columns, cells })
    } else if (!inner.has(line) && /^(POST \/\S+|[A-Z][A-Za-z ]{2,40}$)/.test(line)) {
      section = /^POST \S+/.exec(line)?.[0] ?? line
    }
  }
  return rows
}
