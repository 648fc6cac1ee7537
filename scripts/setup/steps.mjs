import { existsSync, lstatSync } from "node:fs"
import { join } from "node:path"
import { cmake } from "./cmake.mjs"
import { freshness } from "./fingerprint.mjs"
import { modernNode } from "./node.mjs"
import { progressLine } from "./progress.mjs"
import { run } from "./run.mjs"
import { SetupError } from "./SetupError.mjs"

/**
 * @typedef {{ title: string, stamp: string, output: string, inputs: ReadonlyArray<string>, perform: (progress: ReturnType<typeof progressLine>) => Promise<unknown> }} Step
 */

/**
 * npm empties the folder that it installs into, also where that is another checkout's.
 * @param {string} folder
 */
const refuseLink = (folder) => {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    throw new SetupError(`${folder} is a link, and installing would empty what it points to; remove the link, or install there.`)
  }
}

/**
 * What a checkout needs before it can run, in order. Each step is skipped while its output was made from its present inputs.
 * @param {string} root
 * @returns {ReadonlyArray<Step>}
 */
export const steps = (root) => {
  const at = (/** @type {ReadonlyArray<string>} */ ...parts) => join(root, ...parts)
  const stamp = (/** @type {string} */ name) => at("build", "stamps", name)
  return [
    {
      title: "Installing packages",
      stamp: stamp("packages"),
      output: at("node_modules/.package-lock.json"),
      inputs: [at("package-lock.json")],
      perform: async () => {
        refuseLink(at("node_modules"))
        await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: root })
      }
    },
    {
      title: "Building the native engine",
      stamp: stamp("native"),
      output: at("build/native/mashbox.node"),
      inputs: ["CMakeLists.txt", "src", "addon"].map((name) => at("native", name)),
      perform: (progress) => {
        const include = ["node-api-headers/include", "node-addon-api"].map((name) => at("node_modules", name)).join(";")
        return cmake({
          root,
          build: at("build/native"),
          target: "mashbox",
          options: [`-DMASHBOX_NODE_INCLUDE=${include}`],
          onProgress: progress.update
        })
      }
    },
    {
      title: "Bundling the server",
      stamp: stamp("bundle"),
      output: at("dist/cli.js"),
      inputs: ["src", "schema", "rolldown.config.ts", "package-lock.json"].map((name) => at(name)),
      perform: () => run(modernNode(root), [at("node_modules/rolldown/bin/cli.mjs"), "--config", at("rolldown.config.ts")], { cwd: root })
    }
  ]
}

/**
 * The steps whose output is missing or stale.
 * @param {string} root
 * @param {{ install: boolean }} options `install: false` leaves the packages as they are
 */
export const pending = (root, { install }) => steps(root).slice(install ? 0 : 1).filter((step) => !freshness(step).isFresh())

/** @param {Step} step */
export const perform = async (step) => {
  const progress = progressLine(step.title)
  try {
    await step.perform(progress)
    freshness(step).record()
    progress.done()
  } catch (error) {
    progress.failed()
    throw error
  }
}

/** True in a checkout of the sources; an installed package ships its build. */
export const isCheckout = (/** @type {string} */ root) => existsSync(join(root, "rolldown.config.ts"))
