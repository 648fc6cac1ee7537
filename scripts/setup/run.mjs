import { spawn } from "node:child_process"
import { SetupError } from "./SetupError.mjs"

/**
 * Runs a program to its end, line by line through `onLine`. Its output is shown only when it fails.
 * @param {string} command
 * @param {ReadonlyArray<string>} args
 * @param {{ cwd: string, onLine?: (line: string) => void }} options
 */
export const run = (command, args, { cwd, onLine = () => {} }) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] })
    const output = []
    for (const stream of [child.stdout, child.stderr]) {
      let partial = ""
      stream.setEncoding("utf8").on("data", (/** @type {string} */ chunk) => {
        const lines = (partial + chunk).split("\n")
        partial = lines.pop() ?? ""
        for (const line of lines) {
          output.push(line)
          onLine(line)
        }
      }).on("end", () => {
        if (partial !== "") output.push(partial)
      })
    }
    child.on("error", (error) => reject(new SetupError(`cannot run ${command}: ${error.message}`)))
    child.on("close", (code) => {
      if (code === 0) return resolve(undefined)
      reject(new SetupError(`${command} ${args.join(" ")} failed with exit code ${code}`, output.slice(-40).join("\n")))
    })
  })
