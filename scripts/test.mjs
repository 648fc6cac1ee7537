#!/usr/bin/env node
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { reportSetupErrors, setup } from "./setup/main.mjs"
import { modernNode } from "./setup/node.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const report = join(root, "build/test-report.json")

/** Of Vitest and its workers, which keep all cores busy as a model does: see src/Maglev.ts. */
const v8Flags = ["--no-maglev"]

/** Runs the tests that `args` select (all without any); skips are listed, and the last line sums everything up. */
const test = (/** @type {ReadonlyArray<string>} */ args) => {
  mkdirSync(dirname(report), { recursive: true })
  rmSync(report, { force: true })
  const node = modernNode(root)
  const { status } = spawnSync(
    node,
    [
      ...v8Flags,
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...args
    ],
    { cwd: root, stdio: "inherit", env: { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` } }
  )
  const { testResults } = JSON.parse(readFileSync(report, "utf8"))
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const file of testResults) {
    // A file that cannot even be loaded has no tests to count, but it is a failure.
    if (file.status === "failed" && file.assertionResults.length === 0) counts.failed++
    for (const { status, fullName } of file.assertionResults) {
      if (status === "passed" || status === "failed") counts[status]++
      else {
        counts.skipped++
        console.log(`skipped: ${fullName}`)
      }
    }
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  process.exitCode = status ?? 1
}

await reportSetupErrors(async () => {
  await setup()
  test(process.argv.slice(2))
})
