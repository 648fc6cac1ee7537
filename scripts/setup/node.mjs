import { existsSync } from "node:fs"
import { join } from "node:path"
import { SetupError } from "./SetupError.mjs"

const minimum = [22, 19]

const recentEnough = () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1])
}

/**
 * The Node that runs mashbox: this one where it is recent enough, else the pinned one that the npm package `node` brings.
 * @param {string} root the project's folder
 */
export const modernNode = (root) => {
  if (recentEnough()) return process.execPath
  const pinned = join(root, "node_modules/node/bin/node")
  if (existsSync(pinned)) return pinned
  throw new SetupError(
    `mashbox needs Node ≥ ${minimum.join(".")}; this is ${process.versions.node}, and node_modules/node/bin/node is missing`,
    "Install a newer Node, or run `npm ci` with install scripts enabled: the npm package `node` then brings one."
  )
}
