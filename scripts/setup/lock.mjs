import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"

const alive = (/** @type {number} */ pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === "EPERM"
  }
}

/** Runs `body` while holding a lock file, so that two set-ups of one checkout do not build over each other. A dead holder's lock is taken over. */
export const withLock = async (/** @type {string} */ folder, /** @type {() => Promise<void>} */ body) => {
  mkdirSync(folder, { recursive: true })
  const file = `${folder}/setup.lock`
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" })
      break
    } catch (error) {
      if (error.code !== "EEXIST") throw error
      const holder = Number(readFileSync(file, "utf8"))
      if (holder > 0 && !alive(holder)) rmSync(file, { force: true })
      else await setTimeout(200)
    }
  }
  const unlock = () => rmSync(file, { force: true })
  process.once("exit", unlock)
  try {
    await body()
  } finally {
    unlock()
    process.off("exit", unlock)
  }
}
