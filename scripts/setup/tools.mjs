import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { SetupError } from "./SetupError.mjs"

/** Programs that the native build needs, and the package that brings each. */
const needed = [
  { command: "cmake", debian: "cmake", fedora: "cmake", brew: "cmake" },
  { command: "make", debian: "make", fedora: "make", brew: "make" },
  { command: "g++", debian: "g++", fedora: "gcc-c++", brew: "gcc" }
]

const onPath = (/** @type {string} */ command) =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** Fails, naming the packages, when a tool of the native build is missing. */
export const requireBuildTools = () => {
  const missing = needed.filter(({ command }) => !onPath(command))
  if (missing.length === 0) return
  const packages = (/** @type {"debian" | "fedora" | "brew"} */ system) => missing.map((tool) => tool[system]).join(" ")
  throw new SetupError(
    `the native engine is built from source and needs ${missing.map(({ command }) => command).join(", ")}`,
    `Debian, Ubuntu: apt install ${packages("debian")}\nFedora: dnf install ${packages("fedora")}\nmacOS: brew install ${packages("brew")}`
  )
}
