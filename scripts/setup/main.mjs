import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { withLock } from "./lock.mjs"
import { SetupError } from "./SetupError.mjs"
import { isCheckout, pending, perform } from "./steps.mjs"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Brings the checkout up to date: packages, native engine, bundle. Costs a few milliseconds when nothing changed. */
export const setup = async ({ install = true } = {}) => {
  const stale = () => pending(root, { install })
  if (!isCheckout(root) || stale().length === 0) return
  await withLock(join(root, "build"), async () => {
    for (let step = stale()[0]; step !== undefined; step = stale()[0]) await perform(step)
  })
}

/** Runs `body`; a set-up error becomes a message and exit code 1. */
export const reportSetupErrors = async (/** @type {() => Promise<unknown>} */ body) => {
  try {
    await body()
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    process.stderr.write(`mashbox: ${error.message}\n${error.detail === "" ? "" : `${error.detail}\n`}`)
    process.exitCode = 1
  }
}
