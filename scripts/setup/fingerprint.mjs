import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const filesBelow = (/** @type {string} */ path) => {
  if (!existsSync(path)) return []
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .toSorted()
}

const hash = (/** @type {Iterable<string | Buffer>} */ parts) => {
  const digest = createHash("sha256")
  for (const part of parts) digest.update(part).update("\0")
  return digest.digest("hex")
}

/**
 * What a build step was made from: `quick` covers names, sizes and times and costs a few milliseconds, `exact` covers the bytes
 * and is read only where `quick` differs, so that a fresh checkout of the same sources builds nothing again.
 */
const fingerprint = (/** @type {ReadonlyArray<string>} */ inputs) => {
  const files = inputs.flatMap(filesBelow)
  return {
    quick: hash(files.map((file) => {
      const { size, mtimeMs } = statSync(file)
      return `${file} ${size} ${mtimeMs}`
    })),
    exact: () => hash(files.flatMap((file) => [file, readFileSync(file)]))
  }
}

/**
 * Whether `output` was made from exactly these inputs; `record` says that it now is.
 * @param {{ stamp: string, output: string, inputs: ReadonlyArray<string> }} step
 */
export const freshness = ({ stamp, output, inputs }) => {
  const now = fingerprint(inputs)
  const write = () => {
    mkdirSync(dirname(stamp), { recursive: true })
    writeFileSync(stamp, JSON.stringify({ quick: now.quick, exact: now.exact() }))
  }
  const isFresh = () => {
    if (!existsSync(output) || !existsSync(stamp)) return false
    const then = JSON.parse(readFileSync(stamp, "utf8"))
    if (then.quick === now.quick) return true
    if (then.exact !== now.exact()) return false
    write()
    return true
  }
  return { isFresh, record: write }
}
