#!/usr/bin/env node
import { spawnSync } from "node:child_process"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { reportSetupErrors, setup } from "./setup/main.mjs"
import { modernNode } from "./setup/node.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))

const checks = [
  { name: "types", command: ["tsc", "-p", "."] },
  { name: "Effect diagnostics", command: ["effect-tsgo", "diagnostics", "--strict", "--project", "tsconfig.json"] },
  { name: "lint", command: ["oxlint", "--deny-warnings", "src", "schema", "test", "bench", "scripts", "bin"] },
  { name: "format", command: ["dprint", "check"] }
]

await reportSetupErrors(async () => {
  await setup()
  const path = [join(root, "node_modules/.bin"), dirname(modernNode(root)), process.env.PATH].join(":")
  const failed = checks.filter(({ name, command: [program = "", ...args] }) => {
    const { status } = spawnSync(program, args, { cwd: root, stdio: "inherit", env: { ...process.env, PATH: path } })
    console.log(`${status === 0 ? "ok    " : "FAILED"} ${name}`)
    return status !== 0
  })
  console.log(`${checks.length - failed.length} passed, ${failed.length} failed, 0 skipped`)
  if (failed.length > 0) process.exitCode = 1
})
